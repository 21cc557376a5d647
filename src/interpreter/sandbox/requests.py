"""Sandbox requests: what a sandbox denied a block, how a block asks for it, and running it with what was granted.

A block asks in its first comments: `# needs: host pypi.org`. It can name `host NAME`, `read PATH`, `write PATH` and
`env NAME`. Nothing can be mounted into a live runtime, so for a path the block runs in a new one, and its language's
variables are moved there and back.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from interpreter.config.homes import homes
from interpreter.errors import InterpreterError, NotRestorableError
from interpreter.questions import Question, Step
from interpreter.runtimes.block import notice
from interpreter.runtimes.live import LiveLanguage
from interpreter.sandbox.places import APART, PACKAGE, SandboxPlaces, is_inside, is_trusted
from interpreter.sandbox.proxy import ProxyVerdict, is_listed, is_public
from interpreter.sandbox.sandbox import LEADING_OUT, Access, Sandbox, full, is_harmless

if TYPE_CHECKING:
    from interpreter.messages import Chunk
    from interpreter.runtimes.pool import RuntimePool
    from interpreter.session import Block

Scope = Literal["block", "session", "always"]
NOT_GIVEN = "it asks for more than the sandbox allows ({wanted}), and {why}. Do without it, or tell the user."
NEW_SESSION = "The extra permission needs a new {name} session, which does not have the earlier variables.\n"
LOST = "The session that this block ran in has ended. Its variables are lost, and the earlier ones are back.\n"
MAX_REQUESTS = 4  # per block
COMMENT = re.compile(r"\s*(?:#|//|--)\s?(.*)")
NEED = re.compile(r"needs?:\s*((?:host|read|write|env)\s+\S.*)", re.IGNORECASE)
KIND = re.compile(r"(?:^|[,;]\s*(?:and\s+)?|\s+and\s+)(host|read|write|env)\s+(?=\S)", re.IGNORECASE)
HOST = re.compile(r"(?:https?://)?((?:[\w-]+\.)*[\w-]+(?::\d+)?)(?:/\S*)?", re.ASCII)
VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
NEIGHBOURS = ("localhost", "host.docker.internal", "gateway.docker.internal")


@dataclass
class SandboxRequest:
    """The access that a block asks for. The block runs when the user has granted all of it, or not at all."""

    wanted: tuple[Access, ...]
    refusal: str = ""  # why it cannot be given
    granted: Scope | None = None

    def __str__(self) -> str:
        return ", ".join(map(str, self.wanted))

    @property
    def lines(self) -> list[str]:
        return [each.words for each in self.wanted]

    @property
    def is_open(self) -> bool:
        """Check whether the user still has to be asked."""
        return bool(self.wanted) and self.granted is None

    def not_given(self, why: str) -> str:
        return NOT_GIVEN.format(wanted=self, why=why)

    def run(self, runtimes: RuntimePool, block: Block) -> Generator[Step]:
        """Run the block with what was granted, and yield its chunks. Errors become part of the output."""
        try:
            narrow: Any = runtimes.context.containment
            wide = runtimes.context.containment = narrow.widen(*self.wanted)
            self._export(runtimes, given=True)
            if self.granted == "block":
                yield from self._run_once(runtimes, block, narrow, moves=wide is not narrow)
                return
            before = live_language(runtimes, block)
            runtime = before.runtime  # it may have started before the grant
            if runtime is not None and runtime.launch.containment is not wide:
                after, note = copied(before, runtimes)
                end_runtime(before, heir=after)
                runtimes.use(after)
                yield from _said(note)
            yield from runtimes.run_now(block)
        except InterpreterError as error:
            yield notice(f"{error}\n")

    def _run_once(self, runtimes: RuntimePool, block: Block, narrow: Any, moves: bool) -> Generator[Step]:
        """Run the block with the extra access, then restore the sandbox."""
        before: LiveLanguage | None = None
        last: list[Chunk] = []
        try:
            if moves:
                before = live_language(runtimes, block)
                after, note = copied(before, runtimes)
                runtimes.use(after)
                yield from _said(note)
            with closing(runtimes.run_now(block)) as steps:
                for step in steps:
                    if isinstance(step, Question):
                        yield step
                    else:
                        yield from last
                        last = [step]
        finally:
            runtimes.context.containment = narrow
            narrow.narrow(*self.wanted)
            self._export(runtimes, given=False)
            note = bring_back(before, live_language(runtimes, block), runtimes) if before is not None else ""
        yield from _said(note)
        yield from last  # the chunk that ends the block

    def _export(self, runtimes: RuntimePool, given: bool) -> None:
        """Export the granted variables to the next block, or remove them again."""
        names = [each.value for each in self.wanted if each.kind == "env"]
        runtimes.context.exported.update({name: os.environ.get(name) if given else None for name in names})


# -- reading a block's comments -------------------------------------------------------------------------------------


def requested(code: str, workspace: str) -> list[Access]:
    """Parse the requests in the comments that a block begins with, without duplicates."""
    requests: list[Access] = []
    for line in code.splitlines():
        comment = COMMENT.fullmatch(line)
        if comment is None and line.strip():
            break  # the code begins here
        if comment is not None and (need := NEED.match(comment[1])):
            _, *parts = KIND.split(need[1].strip())  # kind, value, kind, value, ...
            for kind, text in zip(parts[::2], parts[1::2], strict=True):
                requests += _named(kind.lower(), text.strip(), workspace)
    return list(dict.fromkeys(requests))[:MAX_REQUESTS]


def _named(kind: str, text: str, workspace: str) -> Iterator[Access]:
    if kind in ("read", "write"):
        path = os.path.join(workspace, os.path.expanduser(text.strip("\"'`").removesuffix(":rw")))
        yield Access(kind, str(full(path)))
        return
    pattern = HOST if kind == "host" else VARIABLE
    for name in re.split(r"[,\s]+(?:and\s+)?", text.strip("\"'`")):
        match = pattern.fullmatch(name.strip("\"'`;"))
        if match is None:
            return  # prose, not a request
        yield Access(kind, match[1].lower() if kind == "host" else match[0])


# -- what can be given ----------------------------------------------------------------------------------------------


def is_given(sandbox: Sandbox, places: SandboxPlaces, wanted: Access) -> bool:
    match wanted.kind:
        case "host":
            return is_listed(*_host_and_port(wanted.value), sandbox.hosts)
        case "read":
            seen = is_inside(wanted.value, (*places.readable, *places.writable))
            return seen or not (places.is_hidden(wanted.value) or is_inside(wanted.value, APART))
        case "write":
            return places.is_writable(wanted.value)
        case _:
            value = os.environ.get(wanted.value)
            return wanted.value in sandbox.env or (value is not None and is_harmless(wanted.value, value))


def obstacle(sandbox: Sandbox, places: SandboxPlaces, state: tuple[Path, ...], wanted: Access) -> str:
    """Say why no sandbox can be given this access; empty if the user can grant it."""
    if sandbox.fixed:
        return "in plan mode, code can only read"
    match wanted.kind:
        case "host":
            host, _ = _host_and_port(wanted.value)
            is_near = host in NEIGHBOURS or host.endswith((".local", ".localhost", ".internal"))
            with suppress(ValueError):  # a name, whose address the proxy checks
                is_near = is_near or not is_public(host)
            return f"{host} is this machine or in its network, which a sandbox can never reach" if is_near else ""
        case "env":
            if LEADING_OUT.match(wanted.value):
                return f"{wanted.value} names something that can't be reached from a sandbox"
            return "" if wanted.value in os.environ else f"the variable {wanted.value} is not set"
        case _:
            return _path_obstacle(sandbox, places, state, Path(wanted.value), wanted.kind == "write")


def _path_obstacle(sandbox: Sandbox, places: SandboxPlaces, state: tuple[Path, ...], path: Path, writes: bool) -> str:
    if writes and not sandbox.writes_workspace:
        return "the sandbox is read-only, and only the user can change that"
    if is_inside(path, state) or is_inside(path, APART[2:]):
        return f"{path} is never available in a sandbox"
    if any(Path(home).is_relative_to(path) for home in homes()):
        return f"{path} is too broad. Name a folder inside it"
    ours = (Path(sys.prefix), PACKAGE)
    if writes and (places.is_protected(path) or is_inside(path, ours) or is_trusted(*path.parts)):
        return "files that git, editors and Open Interpreter trust can't be written"
    if is_inside(path, places.writable):
        return f"{path} is never available in a sandbox"  # masked there, and code could put a link in its place
    if not os.path.exists(path) and not places.is_hidden(path):
        return f"{path} does not exist. Ask for an existing folder"
    return ""


def _host_and_port(value: str) -> tuple[str, int]:
    host, _, port = value.partition(":")
    return host, int(port) if port.isdigit() else 443


# -- moving a runtime's state between sandboxes ----------------------------------------------------------------------


def live_language(runtimes: RuntimePool, block: Block) -> LiveLanguage:
    language = runtimes.runtime(block.language)
    assert isinstance(language, LiveLanguage)  # others run in no sandbox
    return language


def copied(language: LiveLanguage, runtimes: RuntimePool) -> tuple[LiveLanguage, str]:
    """Copy a runtime's variables to a new one in the present sandbox. Returns it with a note for the user."""
    try:
        after, restored = language.split(runtimes)
        return after, str(restored)
    except NotRestorableError:
        return type(language)(runtimes), NEW_SESSION.format(name=language.name)


def bring_back(before: LiveLanguage, after: LiveLanguage, runtimes: RuntimePool) -> str:
    """Move the variables back to the earlier sandbox. Returns a note for the user."""
    from interpreter.runtimes.python import Python

    kept, note = before, ""
    if after.has_begun():
        try:
            if isinstance(before, Python) and isinstance(after, Python) and before.has_begun():
                note = str(before.take_back(after))
            else:
                kept, restored = after.split(runtimes)
                note = str(restored)
        except NotRestorableError:
            note = LOST
    if kept is not before:
        end_runtime(before, heir=kept)
    end_runtime(after, heir=kept)
    runtimes.use(kept)
    return note


def end_runtime(language: LiveLanguage, heir: LiveLanguage) -> None:
    """End a runtime, and move its background jobs to the runtime that replaces it."""
    heir.jobs += language.jobs
    language.jobs = []
    language.terminate()


def _said(note: str) -> Iterator[Chunk]:
    if note:
        yield notice(note if note.endswith("\n") else f"{note}\n")


# -- what was denied a block ---------------------------------------------------------------------------------------
#
# The proxy's verdicts and the error numbers of exceptions that ended the block are certain. For programs in a shell
# there is only what they print, and which unreachable things the block names: then we say "probably".

MAY_BE_HIDDEN = (errno.ENOENT, errno.EACCES, errno.EPERM)
UNREACHABLE = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN)
MAX_REPORTED = 3
OPERATORS = re.compile(r"[;&|<>()\n]")
ADDRESS = re.compile(r"\b(?:https?|ftp|ssh|git)://(?:[^/@\s]*@)?([\w.-]+)")
WRITING = re.compile(
    r"[>]\s*['\"]?$|\b(?:touch|rm|mv|cp|mkdir|tee|ln|chmod|chown|install|rmdir|sed -i|truncate)\b"
)  # a redirection or a command before the path
LOCAL = ("localhost", "127.0.0.1", "::1")
BEFORE_WHY = re.compile(r"(?:['‘]|: )([^'’‘:]+)['’]?: [A-Z][a-z -]+\.?\s*$")
# What programs print for these errors, with English as the system's language.
READ_ONLY, MISSING, NO_FAMILY = map(os.strerror, (errno.EROFS, errno.ENOENT, errno.EAFNOSUPPORT))
NO_WAY = (os.strerror(errno.ENETUNREACH), "name resolution", "Could not resolve host", "Name or service not known")


@dataclass(frozen=True)
class Denial:
    what: str
    rule: str
    remedy: Access | None = None
    certain: bool = True

    def __str__(self) -> str:
        begin = "Blocked by the sandbox" if self.certain else "Probably blocked by the sandbox"
        sentence = f"{begin}: {self.what}. Rule: {self.rule}."
        if self.remedy is None:
            return sentence
        remedy = f"start the next block with the comment `needs: {self.remedy}` (setting {self.remedy.setting})"
        return f"{sentence} To ask the user for it, {remedy}."


@dataclass(frozen=True)
class EndedBlock:
    """A block that has ended; `errors` are those that ended it: `number`, `path`, `kind`.

    `output` is what a shell's block printed: programs there report errors only as text.
    """

    code: str
    exit_code: int | None = None
    errors: list[dict[str, Any]] = field(default_factory=list)
    output: str = ""
    cwd: str = ""  # the working directory at its end

    def full(self, path: str, sandbox: Sandbox) -> str:
        return os.path.normpath(os.path.join(self.cwd or sandbox.workspace, os.path.expanduser(path)))


UNIX_SOCKET = Denial("a Unix socket", "sandboxed code can't use them (setting sandbox_unix_sockets)")
DIRECT = Denial(
    "a direct connection to the network", "connections must go through the proxy, to hosts in sandbox_hosts"
)


def blocked(
    sandbox: Sandbox, places: SandboxPlaces, block: EndedBlock, verdicts: Iterable[ProxyVerdict]
) -> list[Denial]:
    """List what was blocked, without duplicates, the certain ones first."""
    verdicts = list(verdicts)
    denials = []
    for each in (verdict for verdict in verdicts if not verdict.allowed):
        by_address = Denial(f"connecting to {each.host}:{each.port}", each.why.rstrip("."))
        denials.append(by_address if each.listed else to_host(each.host, each.port))
    denials += [*by_error(sandbox, places, block), *by_message(sandbox, places, block)]
    if not denials and not block.errors and block.exit_code:
        reached = {verdict.host for verdict in verdicts} | {*sandbox.hosts, *LOCAL}
        denials += by_name(sandbox, places, block, reached)
    askable = [replace(each, remedy=None) if sandbox.fixed else each for each in denials]
    return list(dict.fromkeys(askable))[:MAX_REPORTED]


def to_host(host: str, port: int = 443, certain: bool = True) -> Denial:
    name = host if port in (80, 443) else f"{host}:{port}"
    return Denial(f"connecting to {name}", "only hosts in sandbox_hosts can be reached", Access("host", name), certain)


def by_error(sandbox: Sandbox, places: SandboxPlaces, block: EndedBlock) -> Iterator[Denial]:
    for error in block.errors:
        number, path = int(error.get("number") or 0), str(error.get("path") or "")
        full_path = block.full(path, sandbox) if path else ""
        if path and number == errno.EROFS:
            yield read_only(sandbox, places, full_path)
        elif path and number in MAY_BE_HIDDEN and places.is_hidden(full_path):
            yield hidden(full_path)
        elif number in UNREACHABLE or error.get("kind") == "gaierror":
            yield DIRECT
        elif number == errno.EAFNOSUPPORT and not sandbox.unix_sockets:
            yield UNIX_SOCKET


def hidden(path: str) -> Denial:
    """Make a denial that is never certain: confirming that the path exists would reveal what is hidden."""
    return Denial(
        f"reading {path}", "home folders, keys and our own state are hidden", Access("read", path), certain=False
    )


def read_only(sandbox: Sandbox, places: SandboxPlaces, path: str, certain: bool = True) -> Denial:
    if places.is_protected(path):
        return Denial(
            f"writing {path}", "files that git, editors and Open Interpreter trust can't be written", certain=certain
        )
    where = f"only {sandbox.workspace} and temporary folders" if sandbox.writes_workspace else "only temporary folders"
    remedy = Access("write", there(path)) if sandbox.writes_workspace else None
    return Denial(f"writing {path}", f"{where} can be written to (sandbox {sandbox.kind})", remedy, certain)


def there(path: str) -> str:
    """Return what can be mounted: the path, or the nearest existing folder above it."""
    while not os.path.lexists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def by_message(sandbox: Sandbox, places: SandboxPlaces, block: EndedBlock) -> Iterator[Denial]:
    """Yield denials that a shell's programs report in the system's error messages, even if the block continues.

    They are never certain, because any program can print such messages.
    """
    for line in filter(says_why, block.output.splitlines()):
        path = next((path for path in reversed(named_paths(line)) if path[:1] in "/~"), "").strip("'\"`:,;‘’“”")
        near = BEFORE_WHY.search(line)
        path = block.full(path or (near[1] if near else ""), sandbox) if path or near else ""
        if tells(line, READ_ONLY) and path and is_kept(sandbox, places, path):
            yield read_only(sandbox, places, path, certain=False)
        elif tells(line, MISSING) and path and places.is_hidden(path):
            yield hidden(path)
        elif any(message in line for message in NO_WAY):
            yield replace(DIRECT, certain=False)
        elif NO_FAMILY in line and not sandbox.unix_sockets:
            yield replace(UNIX_SOCKET, certain=False)


def tells(line: str, why: str) -> bool:
    """Check whether a line is an error such as `touch: /etc/x: WHY` or Python's `[Errno 30] WHY: ...`."""
    return line.rstrip(" .)\r").endswith(f": {why}") or f"] {why}: " in line


def says_why(output: str) -> bool:
    return any(message in output for message in (READ_ONLY, MISSING, NO_FAMILY, *NO_WAY))


def is_kept(sandbox: Sandbox, places: SandboxPlaces, path: str) -> bool:
    """Check whether a path is read-only in the sandbox, which has its own temporary and device folders."""
    is_own = is_inside(path, APART) and not is_inside(path, [Path(sandbox.workspace)])
    return not is_own and not places.is_writable(path)


def by_name(sandbox: Sandbox, places: SandboxPlaces, block: EndedBlock, reached: set[str]) -> Iterator[Denial]:
    """Yield the hosts and paths in a failed block's code that the sandbox blocks."""
    code = block.code
    for host in ADDRESS.findall(code):
        if host not in reached:
            yield to_host(host, certain=False)
    for path in named_paths(code):
        full = block.full(path, sandbox)
        if places.is_hidden(full):
            yield hidden(full)
        elif is_kept(sandbox, places, full):
            before = next((line.partition(path)[0] for line in code.splitlines() if path in line), "")
            if WRITING.search(before):
                yield read_only(sandbox, places, full, certain=False)


def named_paths(code: str) -> list[str]:
    """List the arguments that look like paths: `/etc/hosts`, `~/notes`, `.git/config`."""
    try:
        arguments = shlex.split(OPERATORS.sub(" ", code), comments=True)
    except ValueError:
        arguments = OPERATORS.sub(" ", code).split()
    values = [argument.rpartition("=")[2] for argument in arguments]
    return [path for path in values if path.startswith(("/", "~/", "../", ".git")) and "*" not in path]
