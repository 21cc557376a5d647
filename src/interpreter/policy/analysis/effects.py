"""What a block would do: effects step by step, a summary for the approval, and whether undo brings all back."""

from __future__ import annotations

import re
import stat
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple, get_args

from interpreter.console_text import first_few
from interpreter.host.exposure import is_inside
from interpreter.host.files import Folder, beneath

Kind = Literal[
    "read", "write", "delete", "secret", "program", "network", "install", "database", "kill", "computer", "unknown"
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
Place = Literal["", "workspace", "outside", "unknown"]
Operation = Literal["", "rename", "edit", "create", "link"]

_MAX_SHOWN = 4
_MAX_LENGTH = 60
_COUNTED_BYTES, _COUNTED_SECONDS = 32_000_000, 0.1  # how much of a table is read to count its rows
_CHUNK = 1_000_000


@dataclass(frozen=True, slots=True)
class Effect:
    """Something the code would do, such as write a file or contact a host, and the line that does it."""

    kind: Kind
    what: str  # a path as it is written, a program, a host, a package; `*` where it is only known at run time
    line: int
    place: Place = ""  # of a path: in the workspace or not
    full: str = ""  # of a path: absolute, with links resolved where possible
    known: bool = True  # false: the path or host is made at run time, or the program may do anything
    # `tree` (a folder with all that is in it), `send` or `get` (network), `file` or `server` (database), `looks`,
    # `acts` or `sends` (the computer's tools), ...
    how: str = ""
    # Of a write or delete: it renames a file, changes a part of it, makes it if it is not there, or makes a link.
    operation: Operation = ""

    @property
    def is_exact(self) -> bool:
        """Return whether the path is a single known file or folder in the workspace."""
        return self.place == "workspace" and self.known and not re.search(r"[*?\[{]", self.full)

    def __str__(self) -> str:
        if self.kind == "network" and not self.known:
            return "an unknown host"
        what = short(self.what)
        return f"the database {what}" if self.kind == "database" and self.known else what


@dataclass(frozen=True, slots=True)
class EffectStep:
    """A part of the block that is judged separately: a command, a redirection, a call."""

    language: str
    text: str
    line: int
    words: tuple[str, ...] = ()  # the command and its arguments; for a call, its whole name and its arguments
    effects: tuple[Effect, ...] = ()
    fixed: bool = True  # False: part of the command is only known when it runs

    @property
    def is_command(self) -> bool:
        """Return whether the step is a shell command. Without effects, such as `cd`, it changes nothing on its own."""
        return self.language == "shell"


@dataclass(frozen=True)
class Effects:
    """Everything found that a block would do. An empty field means that nothing was found, not that it does nothing."""

    language: str
    workspace: str
    steps: tuple[EffectStep, ...]
    # What the functions that the block defines would do when a later block calls them.
    defines: dict[str, tuple[Effect, ...]] = field(default_factory=dict, compare=False, repr=False)
    lasting: str = ""  # the language, if its variables cannot be rewound
    machine: str = ""  # where it runs, if on another machine, whose files can't be looked at here
    cwd: str = ""  # where it begins, if not in the workspace

    @property
    def folder(self) -> str:
        """Return the workspace's name on the card: `this folder` if the user works inside it."""
        return "the workspace" if self.cwd and not is_inside(self.cwd, self.workspace) else "this folder"

    @cached_property
    def all(self) -> tuple[Effect, ...]:
        return tuple(effect for step in self.steps for effect in step.effects)

    def of(self, *kinds: Kind) -> tuple[Effect, ...]:
        """Return the effects of these kinds, in the order of the code."""
        return tuple(effect for effect in self.all if effect.kind in kinds)

    @property
    def deleted(self) -> tuple[Effect, ...]:
        return self.of("delete")

    @property
    def calls(self) -> tuple[Effect, ...]:
        """Calls of the computer's tools, such as `computer.mouse.click`."""
        return self.of("computer")

    @property
    def unknown(self) -> bool:
        """Return whether it contains anything that static analysis can't predict."""
        return bool(self.of("unknown"))

    def changes(self, look: Look | None = None) -> dict[str, list[str]]:
        """List the affected files by verb. What exists now decides between Creates and Overwrites."""
        look = look or (lambda path: existing(self.workspace, path))
        renames: dict[str, None] = {}
        forecasts: dict[tuple[str, str], tuple[int, str]] = {}
        for step in self.steps:
            targets = [each for each in step.effects if each.kind == "write" and each.operation == "rename"]
            for effect in step.effects:
                if effect.place == "unknown" and not effect.what.strip("*/."):
                    continue  # the reasons against an undo name it
                if effect.kind == "delete" and effect.operation == "rename":
                    target = targets.pop(0) if len(targets) > 1 else next(iter(targets), None)
                    is_named = target is not None and target.known and "*" not in target.what
                    path = self._path(effect)
                    renames[f"{path} to {self._path(target)}" if target and is_named else path] = None
                elif effect.kind in ("write", "delete"):
                    is_here = effect.is_exact and not self.machine
                    verb, description = _forecast(
                        effect, self._path(effect), look(effect.full) if is_here else None, is_here
                    )
                    if verb:
                        key = effect.kind, effect.full or effect.what
                        forecasts[key] = min(forecasts.get(key, (9, "")), (_FILE_VERBS.index(verb), description))
        lists = {
            verb: [description for number, description in forecasts.values() if number == at]
            for at, verb in enumerate(_FILE_VERBS)
        }
        lists["Renames"] = list(renames)
        return {verb: list(dict.fromkeys(paths)) for verb, paths in lists.items() if paths}

    def _path(self, effect: Effect) -> str:
        what = effect.what.removeprefix("./")
        if what == "*" and effect.place == "workspace":
            return f"files in {self.folder}"
        return what + {"outside": f" (outside {self.folder})", "unknown": " (can't tell where)"}.get(effect.place, "")

    def lines(self, left_out: LeftOut = lambda path: None, look: Look | None = None) -> list[str]:
        """Describe the block for the approval: its effects in plain words, and whether undo covers them."""
        changes = self.changes(look)
        rows: list[tuple[str, Iterable[object]]] = [*changes.items()]
        installs, outside = self.of("install"), [each for each in self.of("read") if each.place == "outside"]
        rows += [
            ("Contacts", [f"{each} (sends data)" if each.how == "send" else each for each in self.of("network")]),
            ("Installs", [each for each in installs if each.how != "remove"]),
            ("Uninstalls", [each for each in installs if each.how == "remove"]),
            ("Changes", self.of("database")),
            ("Ends", self.of("kill")),
            ("Uses", self.calls),
            ("Reads secrets in", self.of("secret")),
            (
                f"Reads outside {self.folder}:",
                [read for read in outside if not is_inside(read.full, self.cwd or self.workspace)],
            ),
        ]
        lines = [f"{verb} {_listed(map(str, items))}" for verb, items in rows if items]
        if len(renames := changes.get("Renames", [])) > 1:
            lines[list(changes).index("Renames")] = f"Renames {len(renames)} files: {_listed(renames)}"
        undo = reversibility(self, left_out).lines(bool(changes or installs or self.of("database")))
        return [*([f"Runs on {self.machine}"] if self.machine else []), *(lines + undo or ["Changes no files"])]


_FILE_VERBS = ("Deletes", "Overwrites", "Renames", "Changes", "Creates", "Writes")


class Existing(NamedTuple):
    """The file or folder that exists at a path."""

    is_folder: bool = False
    rows: str = ""  # how many rows a table has, as text


Look = Callable[[str], Existing | None]
LeftOut = Callable[[str], str | None]


def existing(workspace: str, path: str, count_rows: bool = True) -> Existing | None:
    """Describe a path in the workspace without following links; None if it doesn't exist or leads outside."""
    try:
        folder, name = beneath(workspace, path)
        with folder:
            status = folder.stat(name)
            is_table = count_rows and stat.S_ISREG(status.st_mode) and path.lower().endswith((".csv", ".tsv"))
            return Existing(stat.S_ISDIR(status.st_mode), _rows(folder, name) if is_table else "")
    except (OSError, ValueError):
        return None


def _rows(folder: Folder, name: str) -> str:
    """Count a table's rows below its header, as text; empty if reading takes too long."""
    lines, read, last, end = 0, 0, b"\n", time.monotonic() + _COUNTED_SECONDS
    with folder.open(name) as file:
        while read < _COUNTED_BYTES and (chunk := file.read(_CHUNK)):
            if time.monotonic() > end:
                return ""
            lines, read, last = lines + chunk.count(b"\n"), read + len(chunk), chunk[-1:]
        more = "more than " if file.read(1) else ""
    rows = max(lines + (last != b"\n" and not more) - 1, 0)
    return f"{more}{rows:,} row{'' if rows == 1 else 's'}"


def _forecast(effect: Effect, path: str, there: Existing | None, is_here: bool) -> tuple[str, str]:
    """Return a verb and the path as shown, for a path that is written or deleted; an empty verb if nothing changes."""
    is_folder = there is not None and there.is_folder
    if effect.kind == "delete":
        return "Deletes", f"{path} (whole folder)" if is_folder and effect.how == "tree" else path
    if there is None:
        verb = "Creates" if is_here else "Writes"
        return "" if effect.operation == "rename" else verb, path
    if is_folder:
        return {"": "Writes", "edit": "Changes"}.get(effect.operation, ""), f"{path.rstrip('/')}/"
    if effect.operation in ("edit", "create"):
        return "Changes" if effect.operation == "edit" else "", path
    return "Overwrites", f"{path} ({there.rows})" if there.rows else path


def _listed(names: Iterable[str]) -> str:
    return first_few(list(dict.fromkeys(map(short, names))), _MAX_SHOWN)


def short(name: str) -> str:
    """Cut a name to one line of limited length."""
    flat = " ".join(name.split())
    return flat if len(flat) <= _MAX_LENGTH else flat[: _MAX_LENGTH - 1] + "…"


Degree = Literal["reversible", "partly", "not"]
_ORDER: tuple[Degree, ...] = ("reversible", "partly", "not")
_MAX_REASONS = 3


@dataclass(frozen=True)
class Reversibility:
    """The part of a block's effects that an undo restores, and the reason if it isn't all."""

    kind: Degree
    reasons: tuple[str, ...] = ()
    covers: bool = False  # whether undo restores any file

    def lines(self, is_written: bool) -> list[str]:
        """Describe for the approval what the analysis can't predict and, on changes, whether undo restores them."""
        unknown = [reason.removeprefix(_CANT_TELL) for reason in self.reasons if reason.startswith(_CANT_TELL)]
        certain = [reason for reason in self.reasons if not reason.startswith((_CANT_TELL, _CONTACTING))]
        lines = []
        if unknown:
            lines.append(f"Can't tell {first_few(unknown, _MAX_REASONS, '; ')}, so undo isn't guaranteed.")
        if certain and is_written:
            verdict = "Undoable, except" if self.covers and not unknown else "Not undoable:"
            lines.append(f"{verdict} {first_few(certain, _MAX_REASONS, '; ')}")
        elif is_written and not unknown:
            lines.append("Undoable")
        return lines


_CANT_TELL, _CONTACTING = "can't tell ", "contacting "


# What an undo doesn't restore: an effect's kind, `how` and place (None: any), how bad that is, and its description.
# The first matching row counts.
_LEFT: tuple[tuple[Kind, str | None, Place | None, Degree, str], ...] = (
    ("write", "git", "workspace", "partly", "git's own files"),
    ("write", "temporary", None, "partly", "temporary files"),
    ("write", None, "unknown", "not", "can't tell which files it {verb}"),
    ("write", None, "outside", "not", "writing outside {folder}: {}"),
    ("delete", None, "unknown", "not", "can't tell which files it {verb}"),
    ("delete", None, "outside", "not", "deleting outside {folder}: {}"),
    ("network", "get", None, "partly", "contacting {}"),
    ("network", None, None, "not", "sending data to {}"),
    ("install", "remove", None, "partly", "uninstalling {}"),
    ("install", None, None, "partly", "installing {}"),
    ("database", "file", "workspace", "partly", "open connections to {}"),
    ("database", None, None, "not", "changing {}"),
    ("kill", None, None, "not", "ending {}"),
    ("computer", "looks", None, "reversible", ""),
    ("computer", "sends", None, "not", "sending with {}"),
    ("computer", None, None, "not", "what {} does"),
    ("program", None, None, "not", "can't tell what {} does"),
    ("unknown", None, None, "not", "can't tell {why}"),
)


def reversibility(effects: Effects, left_out: LeftOut = lambda path: None) -> Reversibility:
    """Determine how much of the block an undo would restore; its worst effect decides.

    `left_out` returns why a path in the workspace isn't restored, or None if it is.
    """
    losses: list[tuple[Degree, str]] = []
    for effect in effects.all:
        row = next((row for row in _LEFT if _fits(effect, *row[:3])), None)
        if row is not None and row[3] != "reversible":
            verb = "renames" if effect.operation == "rename" else f"{effect.kind}s"
            why = f"{effect}" if effect.what.startswith("what ") else f"what this does ({effect})"
            losses.append((row[3], row[4].format(effect, verb=verb, why=why, folder=effects.folder)))
    written = [effect for effect in effects.of("write", "delete") if effect.place == "workspace"]
    missing: dict[str, list[str]] = {}
    for effect in written:
        if (reason := left_out(effect.full)) is not None:
            missing.setdefault(reason, []).append(str(effect))
    losses += [
        ("not", reason if reason.startswith(_CANT_TELL) else f"{_listed(paths)} ({reason})")
        for reason, paths in missing.items()
    ]
    if effects.lasting:
        losses.append(("partly", f"{effects.lasting}'s variables"))
    worst = max((_ORDER.index(degree) for degree, _ in losses), default=0)
    # The worst come first; each reason is given once.
    losses.sort(key=lambda each: -_ORDER.index(each[0]))
    covers = len(written) > sum(map(len, missing.values()))
    return Reversibility(_ORDER[worst], tuple(dict.fromkeys(reason for _, reason in losses)), covers)


def _fits(effect: Effect, kind: Kind, how: str | None, place: Place | None) -> bool:
    if effect.kind != kind or (kind == "program" and effect.known):
        return False
    return how in (None, effect.how) and place in (None, effect.place)
