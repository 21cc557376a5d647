"""What a sandbox kept from a block, in words: what was stopped, by which rule, and how to ask for it.

The sources are the proxy's own verdicts and the error numbers of exceptions that ended the block: those are certain.
Of programs in a shell there is only what they print, and what the block names that is out of reach: there we say
"probably".
"""

from __future__ import annotations

import errno
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from interpreter.sandbox.places import Places
from interpreter.sandbox.proxy import Verdict
from interpreter.sandbox.sandbox import Access, Sandbox

REFUSED = (errno.EROFS, errno.EACCES, errno.EPERM)
UNREACHABLE = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN)
MOST_TOLD = 3
OPERATORS = re.compile(r"[;&|<>()\n]")
ADDRESS = re.compile(r"\b(?:https?|ftp|ssh|git)://(?:[^/@\s]*@)?([\w.-]+)")
LOCAL = ("localhost", "127.0.0.1", "::1")
BEFORE_WHY = re.compile(r"(?:['‘]|: )([^'’‘:]+)['’]?: [A-Z][a-z -]+\.?\s*$")
# What programs print for the system's numbers, in a session whose language is English.
READ_ONLY, MISSING = os.strerror(errno.EROFS), os.strerror(errno.ENOENT)
NO_WAY = (os.strerror(errno.ENETUNREACH), "name resolution", "Could not resolve host", "Name or service not known")


@dataclass(frozen=True)
class Denial:
    """One thing that was stopped."""

    what: str
    rule: str
    remedy: Access | None = None
    certain: bool = True

    def __str__(self) -> str:
        begin = "Blocked by the sandbox" if self.certain else "Probably blocked by the sandbox"
        return f"{begin}: {self.what}. Rule: {self.rule}.{asking_for(self.remedy) if self.remedy else ''}"


def asking_for(remedy: Access) -> str:
    """How the model asks the user for it, and where the user can give it."""
    return (
        f" To ask the user for it, begin the next block with the comment `needs: {remedy}` (setting {remedy.setting})."
    )


@dataclass(frozen=True)
class Block:
    """A block that has ended; `errors` are those that ended it: `number`, `path`, `kind`.

    `said` is what a shell's block printed: programs there tell of errors in words alone.
    """

    code: str
    exit_code: int | None = None
    errors: list[dict[str, Any]] = field(default_factory=list)
    said: str = ""
    cwd: str = ""  # where it has ended

    def full(self, path: str, sandbox: Sandbox) -> str:
        """A path that it names."""
        return os.path.normpath(os.path.join(self.cwd or sandbox.workspace, os.path.expanduser(path)))


DIRECT = Denial("a direct connection to the network", "connections go through the proxy, to hosts in sandbox_hosts")


def blocked(sandbox: Sandbox, places: Places, block: Block, verdicts: Iterable[Verdict]) -> list[Denial]:
    """What was stopped, each once, the certain first."""
    verdicts = list(verdicts)
    found = list(stopped(sandbox, places, block, verdicts))
    askable = [replace(each, remedy=None) if sandbox.fixed else each for each in found]
    return list(dict.fromkeys(askable))[:MOST_TOLD]


def stopped(sandbox: Sandbox, places: Places, block: Block, verdicts: list[Verdict]) -> Iterator[Denial]:
    refused = [verdict for verdict in verdicts if not verdict.allowed]
    found = [*by_proxy(refused), *by_error(sandbox, places, block)]
    found += by_words(sandbox, places, block)
    if not found and not block.errors and block.exit_code:
        reached = {verdict.host for verdict in verdicts} | {*sandbox.hosts, *LOCAL}
        found += by_name(sandbox, places, block, reached)
    yield from found


def by_proxy(refused: Iterable[Verdict]) -> Iterator[Denial]:
    for verdict in refused:
        if verdict.listed:
            yield Denial(f"connecting to {verdict.host}:{verdict.port}", verdict.why.rstrip("."))
        else:
            yield to_host(verdict.host, verdict.port)


def to_host(host: str, port: int = 443, certain: bool = True) -> Denial:
    name = host if port in (80, 443) else f"{host}:{port}"
    return Denial(f"connecting to {name}", "only hosts in sandbox_hosts can be reached", Access("host", name), certain)


def by_error(sandbox: Sandbox, places: Places, block: Block) -> Iterator[Denial]:
    for error in block.errors:
        number, path = int(error.get("number") or 0), str(error.get("path") or "")
        if path and (number in REFUSED or number == errno.ENOENT):
            yield from for_path(sandbox, places, block.full(path, sandbox), number)
        elif number in UNREACHABLE or error.get("kind") == "gaierror":
            yield DIRECT


def for_path(sandbox: Sandbox, places: Places, path: str, number: int) -> Iterator[Denial]:
    if number == errno.ENOENT and places.is_hidden(path):
        yield hidden(path)
    elif number == errno.EROFS:
        yield read_only(sandbox, places, path)
    elif number in (errno.EACCES, errno.EPERM) and places.is_hidden(path):
        yield hidden(path)


def hidden(path: str) -> Denial:
    """Never certain: to say whether it exists would tell what is to be hidden."""
    rule = "home folders, keys and our own state are hidden"
    return Denial(f"reading {path}", rule, Access("read", path), certain=False)


def read_only(sandbox: Sandbox, places: Places, path: str, certain: bool = True) -> Denial:
    if any(Path(path).is_relative_to(place) for place in places.protected):
        return Denial(
            f"writing {path}", "what git, editors and Open Interpreter trust cannot be written", certain=certain
        )
    where = f"only {sandbox.workspace} and temporary folders" if sandbox.writes_workspace else "only temporary folders"
    remedy = Access("write", there(path)) if sandbox.writes_workspace else None
    return Denial(f"writing {path}", f"{where} can be written (sandbox {sandbox.kind})", remedy, certain)


def there(path: str) -> str:
    """What can be mounted: the path, or the folder in which it would be new."""
    while not os.path.lexists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def by_words(sandbox: Sandbox, places: Places, block: Block) -> Iterator[Denial]:
    """Programs of a shell say in the system's words why they failed, whether or not the block goes on.

    Never certain: anybody can print such words.
    """
    for line in filter(says_why, block.said.splitlines()):
        path = next((plain(path) for path in reversed(named_paths(line)) if path[:1] in "/~"), "")
        near = BEFORE_WHY.search(line)
        path = block.full(path or (near[1] if near else ""), sandbox) if path or near else ""
        if tells(line, READ_ONLY) and path and is_kept(sandbox, places, path):
            yield read_only(sandbox, places, path, certain=False)
        elif tells(line, MISSING) and path and places.is_hidden(path):
            yield hidden(path)
        elif any(words in line for words in NO_WAY):
            yield replace(DIRECT, certain=False)


def tells(line: str, why: str) -> bool:
    """Whether a program tells of its error so: `touch: /etc/x: WHY`, or in Python's form with the number."""
    return line.rstrip(" .)\r").endswith(f": {why}") or f"] {why}: " in line


def says_why(said: str) -> bool:
    """Whether there are such words in it."""
    return any(words in said for words in (READ_ONLY, MISSING, *NO_WAY))


def is_kept(sandbox: Sandbox, places: Places, path: str) -> bool:
    return not is_temporary(sandbox, path) and not places.is_writable(path)


def plain(path: str) -> str:
    return os.path.normpath(path.strip("'\"`:,;‘’“”"))


def by_name(sandbox: Sandbox, places: Places, block: Block, reached: set[str]) -> Iterator[Denial]:
    """A command failed: what does the block name that is out of reach?"""
    code = block.code
    for host in ADDRESS.findall(code):
        if host not in reached:
            yield to_host(host, certain=False)
    for path in named_paths(code):
        full = block.full(path, sandbox)
        if places.is_hidden(full):
            yield hidden(full)
        elif is_written(code, path) and not is_temporary(sandbox, full) and not places.is_writable(full):
            yield read_only(sandbox, places, full, certain=False)


def named_paths(code: str) -> list[str]:
    """Words that look like paths, `/etc/hosts` or `~/notes` or `.git/config`."""
    try:
        words = shlex.split(OPERATORS.sub(" ", code), comments=True)
    except ValueError:
        words = OPERATORS.sub(" ", code).split()
    values = [word.rpartition("=")[2] for word in words]
    return [word for word in values if word.startswith(("/", "~/", "../", ".git")) and "*" not in word]


def is_written(code: str, path: str) -> bool:
    """Whether a command that writes, or an arrow, stands before it in its line."""
    before = next((line.partition(path)[0] for line in code.splitlines() if path in line), "")
    return bool(
        re.search(
            r"[>]\s*['\"]?$|\b(?:touch|rm|mv|cp|mkdir|tee|ln|chmod|chown|install|rmdir|sed -i|truncate)\b", before
        )
    )


def is_temporary(sandbox: Sandbox, path: str) -> bool:
    apart = ("/tmp", "/var/tmp", "/dev", "/proc", "/run")
    inside = Path(path).is_relative_to(sandbox.workspace)
    return not inside and any(Path(path).is_relative_to(place) for place in apart)
