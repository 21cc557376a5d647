"""Records an analysis: steps, their effects, and where paths lead."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from importlib import import_module
from typing import Literal
from urllib.parse import urlsplit

from interpreter.config.homes import home, homes
from interpreter.errors import MissingLeafError
from interpreter.host.exposure import is_inside
from interpreter.policy.analysis.effects import Effect, EffectStep, Kind, Operation, Place
from interpreter.policy.analysis.tables import listed, python_calls

# Replaces the parts of a text that are only known at run time; no path and no argument can contain it.
HOLE = "\0"

_MAX_LENGTH = 4096
_NOWHERE = re.compile(r"/dev/(null|zero|u?random|std(in|out|err)|tty|fd/.*)|-")
_ADDRESS = re.compile(r"[a-z][\w+.-]*://", re.IGNORECASE)
_SERVICES = {"s3": "s3.amazonaws.com", "s3a": "s3.amazonaws.com", "hf": "huggingface.co"} | dict.fromkeys(
    ("gs", "gcs"), "storage.googleapis.com"
)
_FIRST_UNKNOWN = re.compile(r"[\0*?\[{]")
_SECRET_SYSTEM = ("/etc/shadow", "/etc/gshadow", "/etc/sudoers")
_SECRET_ANYWHERE = re.compile(
    r"/(\.env(\.(?!example|sample|template)[^/]*)?|id_(rsa|dsa|ecdsa|ed25519)[^/]*|[^/]*\.(pem|p12|pfx|kdbx|keystore))$"
    r"|^/etc/(shadow|gshadow|sudoers)\b|^/proc/[^/]+/environ$"
)
_SYSTEM = re.compile(r"(?:(?:/usr)?(?:/local)?/s?bin|/opt/homebrew/bin)/[^/]+")
_NOT_SECRET = re.compile(r"(\.pub|/known_hosts|/\.ssh/config)$")


class CodeLocation:
    """The workspace, and the folder in which the code is at the moment (None: unknown)."""

    def __init__(self, workspace: str, cwd: str | None = None) -> None:
        self.workspace = _real(workspace)
        self.cwd: str | None = _real(cwd) if cwd else self.workspace
        # Links that the code makes, and where they lead (None: unknown); folders that it unpacks archives into.
        self._links: dict[str, str | None] = {}
        self._unpacked: list[str] = []
        self._moved: str | bool | None = False  # the target of a link that is being renamed

    def effect(self, kind: Kind, text: str, line: int, how: str = "", operation: Operation = "") -> Effect | None:
        """Return the effect on a path and where it leads; None for what isn't a file, such as /dev/null."""
        if _NOWHERE.fullmatch(text):
            return None
        shown = text.replace(HOLE, "*") or "*"
        full = self._behind_links(self.full(text), kind, operation)
        if full is None:
            return Effect(kind, shown, line, "unknown", known=False, how=how, operation=operation)
        place: Place = "workspace" if is_inside(full, self.workspace) else "outside"
        return Effect(kind, shown, line, place, full, HOLE not in text, how, operation)

    def full(self, text: str) -> str | None:
        """Resolve the absolute path; None if even its beginning is unknown."""
        path = expanded(text)
        if not path.startswith("/"):
            if not path or path.startswith(HOLE) or self.cwd is None:
                return None
            path = f"{self.cwd}/{path}"
        first = _FIRST_UNKNOWN.search(path)
        if first is None:
            return _real(path)
        cut = path.rfind("/", 0, first.start()) + 1
        rest = path[cut:].replace(HOLE, "*")
        if any(
            part[0] == "." and fnmatchcase("..", part) for part in filter(None, path[cut:].split("/"))
        ) or ".." in rest.split("/"):
            return None  # `.?` may be `..`
        return f"{_real(path[:cut]).rstrip('/')}/{rest}"

    def _leads_away(self, full: str) -> bool:
        inside = (is_inside(full, link) for link in (*self._links, *self._unpacked))
        return any(inside) and full not in self._unpacked

    def _behind_links(self, full: str | None, kind: Kind, operation: Operation) -> str | None:
        """Follow the links that the code has made; None if unknown, or if a written file has hard links."""
        if full is None:
            return None
        of_itself = kind == "delete" or operation in ("rename", "link")
        if of_itself and operation == "rename":
            if kind == "delete":
                self._moved = self._links.get(full, False)
            elif not isinstance(self._moved, bool):
                self._links[full], self._moved = self._moved, False
        for link, target in self._links.items():
            if full.startswith(f"{link}/") or (full == link and not of_itself):
                return target and target + full[len(link) :]
        if kind == "write" and any(is_inside(full, folder) for folder in self._unpacked):
            return None
        is_shared = kind == "write" and not of_itself and _has_other_names(full)
        return None if is_shared else full

    def link(self, text: str, target: str, hard: bool = False) -> None:
        """Remember a link. `target` counts from the link's folder, or for a hard link from where the code is."""
        full = self.full(text)
        if full is not None:
            beside = target if hard or target.startswith(("/", "~", HOLE)) else f"{os.path.dirname(full)}/{target}"
            self._links[full] = None if HOLE in target else self._behind_links(self.full(beside), "read", "")

    def is_link(self, text: str) -> bool:
        """Return whether the code has made a link at this path."""
        return self.full(text) in self._links

    def unpack(self, folder: str) -> None:
        """Remember where an archive is unpacked: links in it may lead anywhere."""
        self._unpacked += filter(None, [self.full(folder)])

    def move(self, text: str | None) -> None:
        """Change the folder that later paths are relative to, as `cd` does."""
        full = self.full(text) if text is not None else None
        self.cwd = full if full is not None and not self._leads_away(full) and not _FIRST_UNKNOWN.search(full) else None


def _has_other_names(full: str) -> bool:
    """Return whether the file has hard links, which change with what is written to it."""
    try:
        status = os.lstat(full)
    except (OSError, ValueError):
        return False
    return status.st_nlink > 1 and stat.S_ISREG(status.st_mode)


def expanded(path: str) -> str:
    """Replace a leading tilde with the home folder."""
    if path == "~" or path.startswith("~/"):
        return home() + path[1:]
    if path.startswith(("~-", "~+")):
        return HOLE  # where the shell is or was
    if not re.match(r"~\w", path):
        return path
    named = os.path.expanduser(path)  # as the system has it
    return named if named != path else f"/home/{path[1:]}"


def is_of_system(program: str) -> bool:
    """Return whether the system keeps its own programs at this path."""
    return bool(_SYSTEM.fullmatch(os.path.normpath(program)))


def is_secret(full: str) -> bool:
    """Return whether keys or passwords are stored at this path."""
    if _NOT_SECRET.search(full):
        return False
    if _SECRET_ANYWHERE.search(full) or any(_stars(full, path) for path in _SECRET_SYSTEM):
        return True
    below = [os.path.relpath(full, folder) for folder in homes() if is_inside(full, folder)]
    return any(_stars(path, name) for path in below for name in listed("programs.txt", "@secret_home"))


def _stars(path: str, name: str) -> bool:
    """Return whether a path that may contain stars could be this one or be inside it. A star matches no leading dot."""
    given, wanted = path.split("/"), name.rstrip("/").split("/")
    return len(given) >= len(wanted) and all(
        fnmatchcase(meant, part) and (not meant.startswith(".") or part.startswith("."))
        for part, meant in zip(given, wanted, strict=False)
    )


def _real(path: str) -> str:
    path = re.sub(r"^//+", "/", path)
    if len(path) > _MAX_LENGTH:
        return os.path.normpath(path)
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):  # a name that no file system accepts
        return os.path.normpath(path)


_MAX_DEPTH = 5
_MAX_TEXT_LENGTH = 500
# The words in tables about a path: the kind of effect, its `how` and its operation.
ON_PATHS: dict[str, tuple[Kind, str, Operation]] = {
    "read": ("read", "", ""),
    "names": ("read", "names", ""),
    "write": ("write", "", ""),
    "edit": ("write", "", "edit"),
    "create": ("write", "", "create"),
    "delete": ("delete", "", ""),
    "tree": ("delete", "tree", ""),
    "rename": ("delete", "", "rename"),
    "renamed": ("write", "", "rename"),
}


class Notes:
    """The steps recorded so far, and the folder that the code is in."""

    def __init__(self, location: CodeLocation, language: str = "", database: str = "") -> None:
        self.location = location
        self.language = language  # the block's own
        self.database = database  # the address of SQL blocks' database; empty: in memory
        self.steps: list[StepEffects] = []
        self.depth = 0  # how deeply code is nested in code: `bash -c "python -c ..."`

    @property
    def too_deep(self) -> bool:
        return self.depth >= _MAX_DEPTH

    def step(self, language: str, text: str, line: int, words: Sequence[str] = ()) -> StepEffects:
        doing = StepEffects(self.location, language, text, line, words)
        self.steps.append(doing)
        return doing

    def not_known(self, language: str, why: str, line: int, how: str = "") -> None:
        self.step(language, why, line).note("unknown", why, known=False, how=how)


def analyze_embedded(language: str, code: str, line: int, notes: Notes) -> None:
    """Record the effects of code inside other code: `bash -c`, `python -c`, `node -e`, `exec(...)`.

    `line` is that of its first line in the block.
    """
    if language == "shell":
        if HOLE in code:
            notes.not_known("shell", "shell code built at run time", line)
        code = code.replace(HOLE, "${_}")
    import_module(f"interpreter.policy.analysis.{language}").analyze(code, notes, {}, line)


class StepEffects:
    """A step that is being analyzed."""

    def __init__(self, location: CodeLocation, language: str, text: str, line: int, words: Sequence[str]) -> None:
        self.location, self.language, self.line = location, language, line
        self.text = text[:_MAX_TEXT_LENGTH].replace(HOLE, "*")
        self.words = words
        self.effects: list[Effect] = []
        self.dropped = False  # True: only what it starts counts, or it does nothing

    def done(self) -> EffectStep:
        arguments = tuple(word.replace(HOLE, "*") for word in self.words)
        fixed = not any(HOLE in word for word in self.words)
        return EffectStep(self.language, self.text, self.line, arguments, tuple(dict.fromkeys(self.effects)), fixed)

    def path(self, kind: Kind, *paths: str, how: str = "", operation: Operation = "") -> None:
        for path in paths:
            if _ADDRESS.match(path) and not path.startswith("file:"):
                self.network(path, "get" if kind == "read" else "send")
                continue
            effect = self.location.effect(kind, path, self.line, how, operation)
            if effect is None:
                continue
            self.effects.append(effect)
            if kind == "read" and how != "names" and is_secret(effect.full):
                self.effects.append(replace(effect, kind="secret"))

    def on_paths(self, word: str, *paths: str) -> None:
        """Record on these paths the effect that a word in a table names."""
        kind, how, operation = ON_PATHS[word]
        self.path(kind, *paths, how=how, operation=operation)

    def look_into(self, folder: str) -> None:
        """Record the folder that a command works in, unless it is in the workspace."""
        effect = self.location.effect("read", folder, self.line, "names")
        if effect is not None and effect.place != "workspace":
            self.effects.append(effect)

    def read(self, *paths: str) -> None:
        self.path("read", *paths)

    def link(self, path: str, target: str, hard: bool = False) -> None:
        """Record that a link is made; `target` is the path that it is given."""
        self.write(path, operation="link")
        self.location.link(path, target, hard)

    def unpack(self, folder: str) -> None:
        """Record that an archive is unpacked into this folder."""
        self.write(f"{folder}/*")
        self.location.unpack(folder)

    def write(self, *paths: str, how: str = "", operation: Operation = "") -> None:
        self.path("write", *paths, how=how, operation=operation)

    def delete(self, *paths: str, tree: bool = False, operation: Operation = "") -> None:
        self.path("delete", *paths, how="tree" if tree else "", operation=operation)

    def program(self, name: str, known: bool = True) -> None:
        self.note("program", name, known=known and HOLE not in name)

    def network(self, address: str, how: str) -> None:
        host = host_of(address)
        self.note("network", host or "network", known=bool(host), how=how)

    def unknown(self, why: str) -> None:
        self.note("unknown", why, known=False)

    def note(self, kind: Kind, what: str, known: bool = True, how: str = "") -> None:
        self.effects.append(Effect(kind, what.replace(HOLE, "*"), self.line, known=known, how=how))


def host_of(address: str) -> str:
    """Extract the host from a URL, `user@host:path` or a bare name; empty if the text doesn't contain it."""
    try:
        if "://" in address:
            host = _SERVICES.get(address.partition(":")[0].lower()) or urlsplit(address).hostname or ""
        else:
            match = re.match(r"(?:[^@/\s]+@)?(\[[0-9a-f:]+\]|[\w.\0-]+)(?=[:/]|$)", address, re.ASCII | re.IGNORECASE)
            host = match[1] if match else ""
    except ValueError:
        return ""
    return "" if HOLE in host or not re.search(r"[.:]|^localhost$|^[\w-]+$", host) else host.lower().rstrip(".")


# -- calls of the computer's tools --------------------------------------------------------------------------------

ComputerEffect = Literal["looks", "acts", "sends", "unknown"]


def computer_call_effect(name: str) -> ComputerEffect:
    """Classify a call such as `computer.mouse.click`; "unknown" if that name doesn't exist."""
    from interpreter.computer_api.tool import TOOLS, kind_of

    _, tool, *rest = [*name.split("."), ""]
    if tool in {"help", "view", "screenshot"}:
        return "looks"
    if tool not in TOOLS or name in python_calls():  # what the call is given decides
        return "unknown"
    try:
        member: object = kind_of(tool)
    except (ImportError, AttributeError, MissingLeafError):
        return "unknown"
    for part in filter(None, rest):
        member = getattr(member, part, None)
    if member is None or isinstance(member, property):
        return "unknown"
    return "sends" if getattr(member, "__sends__", False) else "acts" if getattr(member, "__acts__", False) else "looks"


def note_computer_call(doing: StepEffects, name: str) -> None:
    how = computer_call_effect(name)
    doing.note("computer", name, known=how != "unknown", how=how)


def is_computer_shadowed(notes: Notes) -> bool:
    """Return whether a file of the project has the name `computer`, so that Python imports it first."""
    return any(os.path.exists(os.path.join(notes.location.workspace, name)) for name in ("computer.py", "computer"))
