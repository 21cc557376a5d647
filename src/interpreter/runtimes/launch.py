"""What runtimes start from: their shared context, the program, the sandbox around it, and how the worker talks."""

from __future__ import annotations

import atexit
import functools
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from interpreter.errors import RuntimeStartError
from interpreter.host import processes
from interpreter.questions import OnInput, Question
from interpreter.runtimes.block import Spool, outputs_folder
from interpreter.runtimes.protocol import Frame
from interpreter.runtimes.sharing import Shared

if TYPE_CHECKING:
    from interpreter.runtimes.calls import Tools
    from interpreter.runtimes.environments import Environment


PLACES = ("VIRTUAL_ENV", "CONDA_PREFIX")  # variables that name the active environment
HELD = 60  # the supervisor's number for the terminal of the running block
KEYBOARD = 61  # and for the one that the user types in


@dataclass(frozen=True)
class Start:
    argv: list[str]
    env: dict[str, str]
    cwd: str | None = None
    fds: list[int] = field(default_factory=list)  # inherited


class Containment(Protocol):
    """A sandbox, as far as runtimes need to know it."""

    outputs: Path  # where long outputs are kept; readable inside

    def __hash__(self) -> int: ...

    @property
    def within(self) -> Containment | None:
        """The narrower one that this was made of."""

    @property
    def only_reads(self) -> bool:
        """Whether code inside can't change any of the user's files."""

    def environment(self, env: dict[str, str]) -> dict[str, str]:
        """The variables that are visible inside."""

    def admit(self, layer: str, stack: str, writable: bool = True) -> None:
        """Show code the data stack, and a session environment that it can write to if it can write to the workspace."""

    def wrap(self, start: Start, folder: Path | None = None) -> AbstractContextManager[Start]:
        """The same start inside; the folder is the runtime's own. Descriptors are closed at the end of the context."""

    def close(self) -> None:
        """Clean up; its runtimes have ended."""

    def denials(self, code: str, done: dict[str, Any]) -> list[str]:
        """What the sandbox denied a block that has ended, one line each."""

    def door(self) -> int:
        """A port of this machine, through which a program outside reaches what can be reached inside."""

    def refusal(self, host: str, port: int) -> str:
        """Why a host cannot be reached, and how to ask for it; nothing if it can."""

    def may_read(self, path: Path) -> bool:
        """Whether the user's file at a path can be read inside."""

    def may_write(self, path: Path) -> bool:
        """Whether it can be written inside."""


def path_of(descriptor: int) -> str:
    """Where processes inside find a descriptor of the supervisor, which is the first of them."""
    return f"/proc/1/fd/{descriptor}"


class Dialect(Protocol):
    """How to talk to a worker that does not read JSON; its own frames are JSON lines all the same."""

    def greet(self, folder: Path) -> bytes:
        """What a new worker receives first."""

    def encode(self, frame: Frame, folder: Path) -> bytes:
        """A frame in the worker's language; the folder is the runtime's, for files that go along."""


@dataclass(frozen=True)
class Launch:
    # ["driver", path]: a file run in the supervisor's Python; ["exec", program, ...]: a program that gets the data
    # socket's number for {data}; ["stdin", program, ...]: a program whose standard input is the data socket
    worker: list[str]
    dialect: Dialect | None = None
    interrupt_frames: bool = False  # for a driver that cannot notice a signal while it is busy
    python: str = sys.executable  # runs the supervisor
    env: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    cwd: str | None = None
    containment: Containment | None = None
    # modules that a warm parent has imported already, and folders to import them from; not in a sandbox
    preload: tuple[str, ...] = ()

    def outputs(self) -> Path:
        return self.containment.outputs if self.containment else outputs_folder()


def run_to_end(
    plain: Start, containment: Containment | None, stdin: bytes, timeout: float, folder: Path | None = None
) -> processes.Completed:
    """Run a program where the runtimes run: in the sandbox, if there is one. OSError if it cannot start or is late.

    With a folder, which it may write to, it must be a Python script. It then has the sandbox's limits and network.
    """
    with (
        processes.as_file(stdin) as file,
        containment.wrap(plain, folder) if containment else nullcontext(plain) as start,
    ):
        process = subprocess.Popen(
            start.argv,
            env=start.env,
            cwd=start.cwd,
            pass_fds=start.fds,
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            return processes.collect(process, timeout)
        except TimeoutError:
            raise TimeoutError(f"It took more than {timeout:.0f} seconds and was stopped.") from None


@functools.cache  # a sandbox equals only itself
def program_version(program: str, containment: Containment | None = None) -> str | None:
    """The version that a program reports, in its sandbox if there is one; None if it is missing or reports none."""
    if sys.platform == "win32":
        return None  # nothing runs there that would use it
    try:
        answer = run_to_end(Start([program, "--version"], dict(os.environ)), containment, b"", 10)
    except OSError:
        return None
    found = re.search(r"\d+(?:\.\d+)+", (answer.stdout + answer.stderr).decode("utf-8", "replace"))
    return found.group() if found else None


# -- warm parents ------------------------------------------------------------------------------------------------------

WARM = Path(__file__).with_name("warm.py")
# What Python and libraries look at when they are imported. A parent has these alone, so none of a session's secrets.
IMPORT_VARIABLES = re.compile(
    r"(PYTHON|INTERPRETER_PYTHON|LD_|DYLD_|LC_|XDG_|MPL|OMP_|OPENBLAS_|MKL_|NUMEXPR_|CUDA_)\w*|LANG|HOME|TMPDIR"
)
SEND_TIMEOUT = 10  # seconds for a parent to take a request
END_TIMEOUT = 1  # and to end


def import_environment(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if IMPORT_VARIABLES.fullmatch(name)}


class WarmParent:
    """A process that has imported modules and forks new sessions; shared by all sessions of this process."""

    def __init__(self, python: str, modules: Sequence[str], env: dict[str, str]) -> None:
        ours, theirs = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        ours.settimeout(SEND_TIMEOUT)
        self._socket, self._sending, self.host = ours, threading.Lock(), os.getpid()
        self._said = ""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - it is read when the start has failed
        with theirs:
            self._process = subprocess.Popen(
                [python, str(WARM), str(theirs.fileno()), *modules],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                pass_fds=[theirs.fileno()],
                env={**env, "PATH": os.environ.get("PATH", os.defpath)},
                cwd=os.sep,
                start_new_session=True,
            )

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def was_ready(self) -> bool:
        """Whether it has finished its imports."""
        try:
            return bool(self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        except OSError:
            return False

    def fork(self, launch: Launch, cwd: str | None, control: int) -> bool:
        """Have it fork a supervisor with this control socket; it may still be importing. False if it is gone."""
        data = json.dumps({"worker": launch.worker, "env": launch.env, "cwd": cwd}).encode() + b"\n"
        try:
            with self._sending:
                sent = socket.send_fds(self._socket, [data], [control])
                self._socket.sendall(data[sent:])
        except OSError:
            self._process.kill()  # it may have half of a request
            return False
        return True

    def last_words(self) -> str:
        """Why it ended; nothing if it is alive."""
        try:
            self._process.wait(END_TIMEOUT)  # its connections close a moment before it is gone
        except subprocess.TimeoutExpired:
            return ""
        self.close()
        return f"The process that imports the modules of `computer.preload` ended: {self._said or 'no reason given'}\n"

    def close(self) -> None:
        """End it, and keep nothing open for it. Its sessions have connections of their own."""
        if not self._errors.closed:
            if self.host == os.getpid():
                self._process.kill()
                self._process.wait()
            self._errors.seek(0)
            self._said = self._errors.read()[-4096:].decode("utf-8", "replace").strip()
            self._errors.close()
            self._socket.close()


_parents: dict[tuple[str, tuple[str, ...], str, str], WarmParent] = {}
_starting = threading.Lock()


@atexit.register
def _end_parents() -> None:
    for parent in _parents.values():
        parent.close()


def warm_parent(launch: Launch) -> WarmParent | None:
    """The parent to start this from; None if it must start by itself: in a sandbox, or if its imports could differ."""
    ours = import_environment(os.environ)
    if not launch.preload or launch.containment is not None or import_environment(launch.env) != ours:
        return None
    key = launch.python, launch.preload, launch.worker[1], json.dumps(ours, sort_keys=True)
    with _starting:
        known = _parents.get(key)
        if known is None or known.host != os.getpid() or (not known.is_alive and known.was_ready):
            if known is not None:
                known.close()
            try:
                _parents[key] = known = WarmParent(launch.python, [launch.worker[1], *launch.preload], ours)
            except OSError:
                return None  # the normal start says why
    return known if known.is_alive else None


def nearest_folder(path: str) -> str:
    """The folder itself, or what is left above it when it was deleted."""
    while not os.path.isdir(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def merged_environment(exported: Mapping[str, str | None]) -> dict[str, str]:
    """Our own variables with those that blocks exported or unset."""
    merged: dict[str, str | None] = {**os.environ, **exported}
    return {name: value for name, value in merged.items() if value is not None}


def has_package(folders: Iterable[str], name: str) -> bool:
    """Whether one of these folders has a Python package."""
    return any(os.path.isdir(os.path.join(folder, name)) for folder in folders)


@dataclass
class RuntimeContext:
    """Shared by all languages of a computer; `cd` in one is seen by the others."""

    cwd: str = field(default_factory=os.getcwd)
    exported: dict[str, str | None] = field(default_factory=dict)  # None: unset since
    shared: dict[str, Shared] = field(default_factory=dict)  # values that languages share with each other
    max_shared: int = 10_000_000  # characters of one
    on_input: OnInput | None = None  # (prompt, is it a password) -> the answer, or None for end of file
    cancelled: Callable[[], bool] = lambda: False  # whether the turn that a block belongs to was cancelled
    keyboard: bool = False  # whether the user's keys can reach a shell block
    colors: bool = False
    timeout: float | None = None
    max_output: int = 2800
    last_output: Spool | None = None  # all that the last block wrote
    python: str | None = None
    workspace: str = ""  # whose session environment it is; empty for the directory at the beginning
    shares_environment: bool = False  # with all workspaces
    offline: bool = False
    shell: str | None = None
    shell_rc: bool = False
    preload: Sequence[str] = ()  # modules that Python sessions start with, from a warm parent
    browser: str | None = None  # the program that shows pages; None for one that is installed
    sql: str | None = None  # the address of the database for SQL blocks, which may have a password
    active_lines: bool = True
    table_rows: int = 1000  # of a table that code shows; the page of a longer one leaves out the middle
    snapshots: int = 20  # how many earlier states of a runtime are kept
    size: tuple[int, int] = (80, 24)  # columns, lines
    tools: Tools | None = None  # answers the calls that code makes to `computer`
    skills: Callable[[], list[str]] | None = None  # the names of those that a Python runtime starts with
    action: object = None  # the session's action that is running
    ask: Callable[[Question], None] | None = None  # waits for the answer, for code that can't yield the question
    emit_images: bool = True  # whether the model gets the images that code shows
    containment: Containment | None = None  # the sandbox of new runtimes
    elsewhere: bool = False  # the runtimes and their files are on another machine
    _chosen: tuple[tuple[object, ...], Environment] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.workspace = self.workspace or self.cwd

    def environment(self) -> dict[str, str]:
        """The variables for programs of the session: `python` and `pip` are those of the session's environment."""
        env = self._variables(self.exported)
        return self.containment.environment(env) if self.containment else env

    def visible_environment(self) -> dict[str, str]:
        """The variables that code can see, apart from those that say where Python's packages are."""
        env = merged_environment(self.exported)
        return self.containment.environment(env) if self.containment else env

    def _variables(self, exported: Mapping[str, str | None]) -> dict[str, str]:
        env = merged_environment(exported)
        try:
            chosen = self.python_environment()
        except RuntimeStartError:
            return env  # a Python block says that there is no such Python
        chosen.prepare()
        if self.containment is not None and chosen.is_layer:
            self.containment.admit(chosen.folder, chosen.stack)
        # unless a shell block activated an environment, or left one
        return env if "VIRTUAL_ENV" in exported else chosen.variables(env)

    def own_environment(self) -> dict[str, str]:
        """The environment to look for programs in, which code in a sandbox cannot change."""
        return merged_environment({} if self.containment else self.exported)

    def python_environment(self) -> Environment:
        """The Python of code that starts now, and where its packages go."""
        asked, env = None if self.python == "in-process" else self.python, self.own_environment()
        places = tuple(env.get(name) for name in (*PLACES, "PATH"))
        key = (asked, *places, self.workspace, self.shares_environment, self.containment is None)
        if self._chosen is None or self._chosen[0] != key:
            from interpreter.runtimes.environments import choose

            chosen = choose(asked, env, self.workspace, self.shares_environment, self.containment is not None)
            self._chosen = key, chosen
        return self._chosen[1]

    def package_folder(self, language: str) -> str:
        """Where the packages go that blocks of another language than Python install."""
        from interpreter.runtimes.environments import session_folder

        workspace = "" if self.shares_environment else self.workspace
        return os.path.join(session_folder(workspace, self.containment is not None), "lib", language)

    def has_python_package(self, name: str) -> bool:
        """Whether Python blocks can import a package, found out without starting a runtime."""
        return has_package(self.python_environment().places, name)

    def forget_environment(self) -> None:
        """The user chose another one: find out again which it is."""
        self._chosen = None

    def change_environment(self, before: Environment) -> None:
        """Have runtimes that are alive use the present environment instead of this one."""
        env = merged_environment({**self.exported, **dict.fromkeys(PLACES)})
        old = os.path.join(before.folder, "bin") if before.folder else ""
        path = [each for each in env.get("PATH", os.defpath).split(os.pathsep) if each != old]
        after = self.python_environment().variables({**env, "PATH": os.pathsep.join(path)})
        self.exported.update({name: after.get(name) for name in (*PLACES, "PATH")})

    @property
    def folder_here(self) -> str:
        """The folder of this machine that relative paths in what the user types mean."""
        return os.getcwd() if self.elsewhere else self.cwd

    def return_to(self, cwd: str, exported: dict[str, str | None]) -> None:
        """Return to an earlier directory and exported variables; what was exported since gets its outside value."""
        self.cwd = cwd
        if self.elsewhere:  # the exported variables are kept there
            return
        self.leave_lost_folder()
        outside = self._variables({}) if self.exported else {}
        self.exported = {**{name: outside.get(name) for name in self.exported}, **exported}

    def leave_lost_folder(self) -> None:
        """If the directory was deleted, go to what is left above it; a sandbox cannot be checked from outside."""
        if self.containment is None and not self.elsewhere:
            self.cwd = nearest_folder(self.cwd)
