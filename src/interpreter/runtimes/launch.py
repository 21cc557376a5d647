"""Starting runtimes: the shared context, the program, its sandbox, and the dialect of the worker."""

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
HELD = 60  # the supervisor's descriptor of the running block's terminal
KEYBOARD = 61  # and of the terminal that the user types in


@dataclass(frozen=True)
class Start:
    argv: list[str]
    env: dict[str, str]
    cwd: str | None = None
    fds: list[int] = field(default_factory=list)  # inherited


class RuntimeSandbox(Protocol):
    """The part of a sandbox that runtimes use."""

    outputs: Path  # the folder for long outputs; readable inside

    def __hash__(self) -> int: ...

    @property
    def within(self) -> RuntimeSandbox | None:
        """Return the narrower sandbox that this one was made from; None if there is none."""

    @property
    def only_reads(self) -> bool:
        """Check that code inside can't change any of the user's files."""

    def environment(self, env: dict[str, str]) -> dict[str, str]:
        """Return the variables that are visible inside."""

    def admit(self, layer: str, stack: str, writable: bool = True) -> None:
        """Mount the data stack, and a session environment that is writable if the workspace and `writable` are."""

    def wrap(self, start: Start, folder: Path | None = None) -> AbstractContextManager[Start]:
        """Wrap a start in the sandbox; the folder is the runtime's own.

        Descriptors are closed when the context ends.
        """

    def close(self) -> None:
        """Clean up, after its runtimes have ended."""

    def denials(self, code: str, done: dict[str, Any]) -> list[str]:
        """List what the sandbox denied a block that has ended, one line each."""

    def door(self) -> int:
        """Return the port of a proxy that gives programs outside the sandbox the same network access as inside."""

    def refusal(self, host: str, port: int) -> str:
        """Say why a host cannot be reached, and how to request it; empty if it can."""

    def may_read(self, path: Path) -> bool:
        """Check whether code inside can read the user's file at a path."""

    def may_write(self, path: Path) -> bool:
        """Check whether code inside can write to a path."""


def path_of(descriptor: int) -> str:
    """Return the path of a supervisor's descriptor for processes inside, where the supervisor is process 1."""
    return f"/proc/1/fd/{descriptor}"


class Dialect(Protocol):
    """Encodes frames for a worker that does not read JSON, although it sends JSON lines."""

    def greet(self, folder: Path) -> bytes:
        """Return the bytes that a new worker receives first."""

    def encode(self, frame: Frame, folder: Path) -> bytes:
        """Encode a frame in the worker's language; the folder is the runtime's, for files that the frame refers to."""


@dataclass(frozen=True)
class Launch:
    # ["driver", path]: a file run in the supervisor's Python; ["exec", program, ...]: a program that gets the data
    # socket's number for {data}; ["stdin", program, ...]: a program whose standard input is the data socket
    worker: list[str]
    dialect: Dialect | None = None
    interrupt_frames: bool = False  # for drivers that can't react to signals while busy
    python: str = sys.executable  # runs the supervisor
    env: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    cwd: str | None = None
    containment: RuntimeSandbox | None = None
    # modules that a warm parent has imported already, and folders to import them from; not in a sandbox
    preload: tuple[str, ...] = ()

    def outputs(self) -> Path:
        return self.containment.outputs if self.containment else outputs_folder()


def run_to_end(
    plain: Start, containment: RuntimeSandbox | None, stdin: bytes, timeout: float, folder: Path | None = None
) -> processes.Completed:
    """Run a program where the runtimes run: in the sandbox, if there is one. OSError if it can't start or times out.

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
def program_version(program: str, containment: RuntimeSandbox | None = None) -> str | None:
    """Return the version that a program reports, run in its sandbox if there is one; None if it reports none."""
    if sys.platform == "win32":
        return None  # no runtimes there that need it
    try:
        answer = run_to_end(Start([program, "--version"], dict(os.environ)), containment, b"", 10)
    except OSError:
        return None
    version = re.search(r"\d+(?:\.\d+)+", (answer.stdout + answer.stderr).decode("utf-8", "replace"))
    return version.group() if version else None


# -- warm parents ------------------------------------------------------------------------------------------------------

WARM = Path(__file__).with_name("warm.py")
# The variables that Python and libraries read on import. A parent gets only these, so no secrets.
IMPORT_VARIABLES = re.compile(
    r"(PYTHON|INTERPRETER_PYTHON|LD_|DYLD_|LC_|XDG_|MPL|OMP_|OPENBLAS_|MKL_|NUMEXPR_|CUDA_)\w*|LANG|HOME|TMPDIR"
)
SEND_TIMEOUT = 10  # seconds for a parent to accept a request
END_TIMEOUT = 1  # and to end


def import_environment(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if IMPORT_VARIABLES.fullmatch(name)}


class WarmParent:
    """A process that has imported modules and forks new runtimes; shared by all sessions of this process."""

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
        try:
            return bool(self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        except OSError:
            return False

    def fork(self, launch: Launch, cwd: str | None, control: int) -> bool:
        """Fork a supervisor with this control socket; the parent may still be importing. False if it is gone."""
        data = json.dumps({"worker": launch.worker, "env": launch.env, "cwd": cwd}).encode() + b"\n"
        try:
            with self._sending:
                sent = socket.send_fds(self._socket, [data], [control])
                self._socket.sendall(data[sent:])
        except OSError:
            self._process.kill()  # it may have received half of a request
            return False
        return True

    def last_words(self) -> str:
        """Return the reason why it ended; empty if it is alive."""
        try:
            self._process.wait(END_TIMEOUT)  # its connections close just before it ends
        except subprocess.TimeoutExpired:
            return ""
        self.close()
        return f"The process that imports the modules of `computer.preload` ended: {self._said or 'no reason given'}\n"

    def close(self) -> None:
        """End the process and release everything. Its runtimes have separate connections."""
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
    """Find or start the parent for a launch. None in a sandbox, or if the environment could change its imports."""
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
    """Return the folder, or the nearest existing one above it if it was deleted."""
    while not os.path.isdir(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def merged_environment(exported: Mapping[str, str | None]) -> dict[str, str]:
    """Merge our own variables with those that blocks exported or unset."""
    merged: dict[str, str | None] = {**os.environ, **exported}
    return {name: value for name, value in merged.items() if value is not None}


def has_package(folders: Iterable[str], name: str) -> bool:
    return any(os.path.isdir(os.path.join(folder, name)) for folder in folders)


@dataclass
class RuntimeContext:
    """The context that all languages of a computer share: a `cd` in one language changes it for the others."""

    cwd: str = field(default_factory=os.getcwd)
    exported: dict[str, str | None] = field(default_factory=dict)  # None: unset since
    shared: dict[str, Shared] = field(default_factory=dict)  # values that languages share with each other
    max_shared: int = 10_000_000  # characters per value
    on_input: OnInput | None = None  # (prompt, is_password) -> the answer, or None for end of file
    cancelled: Callable[[], bool] = lambda: False  # whether the turn that a block belongs to was cancelled
    keyboard: bool = False  # whether the user's keys can reach a shell block
    colors: bool = False
    timeout: float | None = None
    max_output: int = 2800
    last_output: Spool | None = None  # everything the last block wrote
    python: str | None = None
    workspace: str = ""  # the owner of the session environment; empty for the initial directory
    shares_environment: bool = False  # whether all workspaces share one
    offline: bool = False
    shell: str | None = None
    shell_rc: bool = False
    preload: Sequence[str] = ()  # modules that a warm parent imports for Python runtimes
    browser: str | None = None  # the program that shows pages; None for an installed one
    sql: str | None = None  # the URL of the database for SQL blocks, which may contain a password
    active_lines: bool = True
    table_rows: int = 1000  # shown of a table; a longer one is cut in the middle
    snapshots: int = 20  # how many earlier states of a runtime are kept
    size: tuple[int, int] = (80, 24)  # columns, lines
    tools: Tools | None = None  # answers the calls that code makes to `computer`
    # Makes what code in this process finds as `computer` or under another name of ours; it gets what makes each call.
    stand_in: Callable[[Callable[[str, str], Any], str], Any] | None = None
    names: Sequence[str] = ()  # that code finds like builtins, and whose code comes from the host
    skills: Callable[[], list[str]] | None = None  # the names of the skills in a new Python runtime
    action: object = None  # the session's action that is running
    ask: Callable[[Question], None] | None = None  # waits for the answer, for code that can't yield the question
    emit_images: bool = True  # whether the model gets the images that code shows
    containment: RuntimeSandbox | None = None  # the sandbox of new runtimes
    elsewhere: bool = False  # the runtimes and their files are on another machine
    _chosen: tuple[tuple[object, ...], Environment] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.workspace = self.workspace or self.cwd

    def environment(self) -> dict[str, str]:
        """Return the variables for programs of the session, whose `python` and `pip` are those of its environment."""
        env = self._variables(self.exported)
        return self.containment.environment(env) if self.containment else env

    def visible_environment(self) -> dict[str, str]:
        """Return the variables that code can see, except those that say where Python's packages are."""
        env = merged_environment(self.exported)
        return self.containment.environment(env) if self.containment else env

    def _variables(self, exported: Mapping[str, str | None]) -> dict[str, str]:
        env = merged_environment(exported)
        try:
            chosen = self.python_environment()
        except RuntimeStartError:
            return env  # a Python block will report that this Python does not exist
        chosen.prepare()
        if self.containment is not None and chosen.is_layer:
            self.containment.admit(chosen.folder, chosen.stack)
        # Keep `env` if a shell block activated an environment, or left one.
        return env if "VIRTUAL_ENV" in exported else chosen.variables(env)

    def own_environment(self) -> dict[str, str]:
        """Return the environment to look for programs in, which code in a sandbox cannot change."""
        return merged_environment({} if self.containment else self.exported)

    def python_environment(self) -> Environment:
        """Choose the Python of code that starts now, and where its packages go."""
        asked, env = None if self.python == "in-process" else self.python, self.own_environment()
        places = tuple(env.get(name) for name in (*PLACES, "PATH"))
        key = (asked, *places, self.workspace, self.shares_environment, self.containment is None)
        if self._chosen is None or self._chosen[0] != key:
            from interpreter.runtimes.environments import choose

            chosen = choose(asked, env, self.workspace, self.shares_environment, self.containment is not None)
            self._chosen = key, chosen
        return self._chosen[1]

    def package_folder(self, language: str) -> str:
        """Return the folder for packages that blocks in another language than Python install."""
        from interpreter.runtimes.environments import session_folder

        workspace = "" if self.shares_environment else self.workspace
        return os.path.join(session_folder(workspace, self.containment is not None), "lib", language)

    def has_python_package(self, name: str) -> bool:
        """Check, without starting a runtime, whether Python blocks can import a package."""
        return has_package(self.python_environment().places, name)

    def forget_environment(self) -> None:
        self._chosen = None

    def change_environment(self, before: Environment) -> None:
        """Make running runtimes use the present environment instead of `before`."""
        env = merged_environment({**self.exported, **dict.fromkeys(PLACES)})
        old = os.path.join(before.folder, "bin") if before.folder else ""
        path = [each for each in env.get("PATH", os.defpath).split(os.pathsep) if each != old]
        after = self.python_environment().variables({**env, "PATH": os.pathsep.join(path)})
        self.exported.update({name: after.get(name) for name in (*PLACES, "PATH")})

    @property
    def folder_here(self) -> str:
        """Return the folder on this machine that relative paths typed by the user refer to."""
        return os.getcwd() if self.elsewhere else self.cwd

    def return_to(self, cwd: str, exported: dict[str, str | None]) -> None:
        """Restore an earlier directory and exported variables; variables exported since get their outside value."""
        self.cwd = cwd
        if self.elsewhere:  # that machine keeps the exported variables
            return
        self.leave_lost_folder()
        outside = self._variables({}) if self.exported else {}
        self.exported = {**{name: outside.get(name) for name in self.exported}, **exported}

    def leave_lost_folder(self) -> None:
        """Change from a deleted directory to its nearest existing parent.

        Does nothing with a sandbox, inside which a directory cannot be checked from here.
        """
        if self.containment is None and not self.elsewhere:
            self.cwd = nearest_folder(self.cwd)
