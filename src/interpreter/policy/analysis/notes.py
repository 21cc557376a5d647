"""Records an analysis: steps, their effects, and where paths lead."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import islice
from typing import Literal
from urllib.parse import urlsplit

from interpreter.config.homes import home, homes
from interpreter.errors import MissingLeafError
from interpreter.host.exposure import is_inside
from interpreter.leaves import code_names, exists
from interpreter.policy.analysis.effects import Effect, EffectStep, Kind, Operation
from interpreter.policy.analysis.tables import listed, python_calls
from interpreter.runtimes import BUILT_IN, resolve

# Replaces the parts of a text that are only known at run time; no path and no argument can contain it.
HOLE = "\0"

_MAX_LENGTH = 4096
_MAX_STEPS = 1000  # of links into links
_MAX_ORIGINS = 10  # copies of copies
_MAX_ENTRIES = 1000
_NOWHERE = re.compile(r"/dev/(null|zero|u?random|std(in|out|err)|tty|fd/.*)|-")
_ADDRESS = re.compile(r"(?!file:)[a-z][\w+.-]*://", re.IGNORECASE)
_FILE_ADDRESS = re.compile(r"(?:file|local):(?://[^/]*)?(?=[^/]|/)", re.IGNORECASE)
# Of fsspec: the address or path behind is what counts.
_CHAINED = re.compile(r"(?:(?:simplecache|filecache|blockcache|zip|tar|libarchive)(?:://[^:]*)?::)+")
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
        # What the code makes: links, with where they lead (None: unknown); copies and new names of what may have links
        # in it, with where that comes from; folders that it unpacks archives into.
        self._links: dict[str, str | None] = {}
        self._copies: dict[str, str] = {}
        self._unpacked: list[str] = []

    def effect(self, kind: Kind, text: str, line: int, how: str = "", operation: Operation = "") -> Effect | None:
        """Return the effect on a path and where it leads; None for what isn't a file, such as /dev/null."""
        if _NOWHERE.fullmatch(text):
            return None
        full = self.full(text, itself=_is_itself(kind, operation))
        if kind == "write" and full and any(is_inside(full, folder) for folder in self._unpacked):
            full = None
        effect = Effect(
            kind, text.replace(HOLE, "*") or "*", line, known=HOLE not in text, how=how, operation=operation
        )
        return self._placed(effect, full)

    def settled(self, effect: Effect) -> Effect:
        """Follow the links that the code has made later, too: a loop or a function may use the path again."""
        if effect.place != "workspace" or effect.operation == "rename":
            return effect
        return self._placed(effect, self.full(effect.full, itself=_is_itself(effect.kind, effect.operation)))

    def _placed(self, effect: Effect, full: str | None) -> Effect:
        if full is not None and not is_inside(full, self.workspace):
            return replace(effect, place="outside", full=full)
        itself = _is_itself(effect.kind, effect.operation)
        is_content = effect.kind == "write" and not itself and effect.operation != "rename"
        is_shared = is_content and full is not None and any(map(_has_other_names, self._origins(full)))
        if full is None or is_shared or self._may_lead_out(full, itself):
            return replace(effect, place="unknown", full="", known=False)
        return replace(effect, place="workspace", full=full)

    def full(self, text: str, itself: bool = False) -> str | None:
        """Return the absolute path, or with `itself` that of a link of the code; None if its beginning is unknown."""
        path = expanded(text)
        if not path.startswith("/"):
            if not path or path.startswith(HOLE) or self.cwd is None:
                return None
            path = f"{self.cwd}/{path}"
        first = _FIRST_UNKNOWN.search(path)
        if first is None:
            return self._followed(path, itself)
        cut = path.rfind("/", 0, first.start()) + 1
        rest = path[cut:].replace(HOLE, "*")
        if any(
            part[0] == "." and fnmatchcase("..", part) for part in filter(None, path[cut:].split("/"))
        ) or ".." in rest.split("/"):
            return None  # `.?` may be `..`
        folder = self._followed(path[:cut])
        return folder and f"{folder.rstrip('/')}/{rest}"

    def _followed(self, path: str, itself: bool = False) -> str | None:
        """Resolve all links in a path, including those the code creates; None if one leads to an unknown place."""
        if not (self._links or self._copies):
            return _real(path)
        left, full = path.split("/")[::-1], ""
        for _ in range(_MAX_STEPS):
            while left and left[-1] in ("", "."):
                left.pop()
            if not left:
                return full or "/"
            part = left.pop()
            if part == "..":
                full = full.rpartition("/")[0]
                continue
            full = f"{full}/{part}"
            is_own = itself and not left and not self._links.keys().isdisjoint(self._origins(full))
            target = "" if is_own else self._target(full)
            if target is None:
                return None
            if target:
                full = "" if target.startswith("/") else full.rpartition("/")[0]
                left += target.split("/")[::-1]
        return None

    def _target(self, full: str) -> str | None:
        """Return what a link contains; empty if there is none, None if it is unknown."""
        for at in self._origins(full):
            if at in self._links:
                return self._links[at]
            with suppress(OSError, ValueError):
                return os.readlink(at)
        return ""

    def _origins(self, full: str) -> Iterator[str]:
        """Return the path, and where its content comes from if the code has copied or renamed it."""
        for _ in range(_MAX_ORIGINS):
            yield full
            target = full
            while target and target not in self._copies:
                target = target.rpartition("/")[0]
            if not target:
                return
            full = self._copies[target] + full[len(target) :]

    def _may_lead_out(self, full: str, itself: bool) -> bool:
        """Check whether an unknown part of the path may match a link that leads out of the workspace."""
        first = _FIRST_UNKNOWN.search(full)
        if first is None:
            return False
        folder, _, rest = full[: first.start()].rpartition("/")
        pattern, _, more = (rest + full[first.start() :]).partition("/")
        if itself and not more:
            return False
        try:
            with os.scandir(folder) as entries:
                links = [entry.path for entry in islice(entries, _MAX_ENTRIES) if entry.is_symlink()]
        except OSError:
            links = []
        links += [link for link in self._links if link.rpartition("/")[0] == folder]
        ends = [self._followed(link) for link in links if fnmatchcase(link.rpartition("/")[2], pattern)]
        return not all(end and is_inside(end, self.workspace) for end in ends)

    def link(self, text: str, target: str, hard: bool = False) -> None:
        """Record a new link; `target` counts from its folder, or for a hard link from where the code is."""
        full, target = self.full(text, itself=True), expanded(target)
        if hard and not target.startswith(("/", HOLE)):
            target = f"{self.cwd}/{target}" if self.cwd else HOLE
        if full is not None and "*" in full:
            self._unpacked.append(full[: full.index("*")].rpartition("/")[0])
        elif full is not None:
            self._links[full] = None if HOLE in target else target

    def copy(self, source: str, target: str) -> None:
        """Record a copy or a new name; links inside keep their targets."""
        folder, slash, name = source.rstrip("/").rpartition("/")
        origin, full = self.full(f"{folder}{slash}" or "."), self.full(target, itself=True)
        if origin is None or full is None or "*" in origin + full:
            return
        if _FIRST_UNKNOWN.search(name):
            name = ""
        elif target.endswith("/") or os.path.isdir(full):
            full = f"{full}/{name}"
        self._copies[full] = f"{origin.rstrip('/')}/{name}".rstrip("/")

    def unpack(self, folder: str) -> None:
        """Remember where an archive is unpacked: links in it may lead anywhere."""
        self._unpacked += filter(None, [self.full(folder)])

    def move(self, text: str | None) -> None:
        """Change the folder that later paths are relative to, as `cd` does."""
        full = self.full(text) if text is not None else None
        is_unpacked = full is not None and any(is_inside(full, folder) and full != folder for folder in self._unpacked)
        self.cwd = None if full is None or is_unpacked or _FIRST_UNKNOWN.search(full) else full


def _is_itself(kind: Kind, operation: Operation) -> bool:
    """Does it happen to a link itself, not to what that leads to?"""
    return kind == "delete" or operation == "link"


def _has_other_names(full: str) -> bool:
    """Return whether the file has hard links, which change with what is written to it."""
    try:
        status = os.lstat(full)
    except (OSError, ValueError):
        return False
    return status.st_nlink > 1 and stat.S_ISREG(status.st_mode)


def expanded(path: str) -> str:
    """With the home folder in the place of a tilde, and without `file://`."""
    if address := _FILE_ADDRESS.match(path):
        path = path[address.end() :].partition("?")[0]
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
        self.database = database  # the address of the one that SQL blocks use; empty: in memory
        self.attached: tuple[Effect, ...] = ()  # the database files that earlier blocks have attached
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
    reference = BUILT_IN.describe(language).analysis
    if reference is None or not exists(reference):
        notes.not_known(language, f"what {language} code does", line, "unparsed")
    else:
        resolve(reference)(code, notes, {}, line)


class StepEffects:
    """A step that is being analyzed."""

    def __init__(self, location: CodeLocation, language: str, text: str, line: int, words: Sequence[str]) -> None:
        self.location, self.language, self.line = location, language, line
        self.text = text[:_MAX_TEXT_LENGTH].replace(HOLE, "*")
        self.words = words
        self.effects: list[Effect] = []
        self._renamed: list[str] = []
        self.dropped = False  # True: what it starts is what counts, or it does nothing

    def done(self) -> EffectStep:
        arguments = tuple(word.replace(HOLE, "*") for word in self.words)
        fixed = not any(HOLE in word for word in self.words)
        effects = dict.fromkeys(map(self.location.settled, self.effects))
        return EffectStep(self.language, self.text, self.line, arguments, tuple(effects), fixed)

    def path(self, kind: Kind, *paths: str, how: str = "", operation: Operation = "") -> None:
        for path in paths:
            path = _CHAINED.sub("", path)
            if _ADDRESS.match(path):
                self.network(path, "get" if kind == "read" else "send")
                continue
            effect = self.location.effect(kind, path, self.line, how, operation)
            if effect is None:
                continue
            self.effects.append(effect)
            if operation == "rename" and kind == "delete":
                self._renamed.append(path)
            elif operation == "rename":
                for source in self._renamed:
                    self.location.copy(source, path)
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
        if _FILE_ADDRESS.match(address):
            return self.path("read" if how == "get" else "write", address)
        host = host_of(_CHAINED.sub("", address))
        return self.note("network", host or "network", known=bool(host), how=how)

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

    root, tool, *rest = [*name.split("."), "", ""]
    if root in code_names():  # they ask the model, and the actions of sub-agents are judged separately
        return "looks"
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


def note_registered_call(doing: StepEffects, name: str) -> None:
    """Record a call of a registered tool, by the name that rules use. The call itself is judged when it is made."""
    doing.note("computer", name.removeprefix("tools."), known=True, how="acts")


def is_computer_shadowed(notes: Notes) -> bool:
    """Return whether a file of the project has the name `computer`, so that Python imports it first."""
    return any(os.path.exists(os.path.join(notes.location.workspace, name)) for name in ("computer.py", "computer"))
