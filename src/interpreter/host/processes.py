"""Programs that this process itself starts: nothing else on the host starts one, except for the runtimes of a session.

Code in a session can write files, export variables and change its folder. None of that reaches a program started here.
It gets the environment that we were started with, without the variables that make loaders, interpreters and tools run
other code. It starts in the root folder, and is looked up outside the folders that sandboxed code can write to. Git
finds no repository: what a repository configures (filters, an fsmonitor, submodules) cannot be disabled reliably.

An error is always an OSError: `FileNotFoundError` if there is no such program, `TimeoutError` if it takes too long.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, NamedTuple

from interpreter.host.exposure import is_exposed

if TYPE_CHECKING:
    from subprocess import Popen

    Stream = int | IO[bytes] | None

PIPE, STDOUT = -1, -2  # the values of subprocess, which is only imported when needed
TIMEOUT = 60.0
MAX_OUTPUT_BYTES = 50_000_000
_NEUTRAL_FOLDER = os.path.abspath(os.sep)
_DROPPED = tuple("LD_ DYLD_ PYTHON PERL RUBY GIT_ BASH_ GLIBC_ _JAVA JDK_JAVA JAVA_TOOL LESS".split())
_DROPPED_NAMES = frozenset(
    "ENV SHELLOPTS BASHOPTS PS4 IFS NODE_OPTIONS NODE_PATH CLASSPATH LUA_INIT VIRTUAL_ENV CONDA_PREFIX GCONV_PATH "
    "LOCPATH OPENSSL_CONF OPENSSL_MODULES OPENSSL_ENGINES GTK_MODULES GTK_PATH GIO_EXTRA_MODULES GIO_MODULE_DIR "
    "QT_PLUGIN_PATH RIPGREP_CONFIG_PATH".split()
)


class Completed(NamedTuple):
    returncode: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        return self.stdout.decode("utf-8", "replace")

    @property
    def complaint(self) -> str:
        """Return the last line that the program wrote to standard error, or its exit code if there is none."""
        lines = self.stderr.decode("utf-8", "replace").strip().splitlines()
        return lines[-1].strip() if lines else f"it exited with code {self.returncode}"


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    stdin: bytes = b"",
    timeout: float = TIMEOUT,
    most: int = MAX_OUTPUT_BYTES,
) -> Completed:
    """Run a program to its end. `env` is added to our own environment."""
    with as_file(stdin) as file:
        process = start(argv, env=env, cwd=cwd, stdin=file, stdout=PIPE, stderr=PIPE)
    return collect(process, timeout, most)


@contextmanager
def as_file(content: bytes) -> Iterator[IO[bytes]]:
    """Yield an open file with this content, for a program to read; unlike a pipe, it needs no writer."""
    import tempfile

    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        yield file


def collect(process: Popen[bytes], timeout: float = TIMEOUT, most: int = MAX_OUTPUT_BYTES) -> Completed:
    """Wait for a program and read its pipes.

    Kills it if it takes too long or writes too much, and always kills what it started.
    """
    import threading
    from subprocess import TimeoutExpired

    def read(stream: IO[bytes], kept: bytearray) -> None:
        with stream:
            while piece := os.read(stream.fileno(), 65536):
                kept += piece
                if len(kept) > most:
                    kill(process)
                    return

    outputs = (bytearray(), bytearray())
    pipes = zip((process.stdout, process.stderr), outputs, strict=True)
    readers = [threading.Thread(target=read, args=pipe, daemon=True) for pipe in pipes if pipe[0]]
    try:
        for reader in readers:
            reader.start()
        process.wait(timeout)
    except TimeoutExpired:
        raise TimeoutError(errno.ETIMEDOUT, f"it took more than {timeout:g} seconds") from None
    finally:
        _kill_group(process)
        process.wait()
        for reader in readers:
            reader.join(1.0)
    if any(len(kept) > most for kept in outputs):
        raise OSError(errno.EFBIG, f"it wrote more than {most:,} bytes")
    return Completed(process.returncode, *map(bytes, outputs))


def start(
    argv: Sequence[str],
    *,
    interactive: bool = False,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    stdin: Stream = None,
    stdout: Stream = None,
    stderr: Stream = None,
    pass_fds: Sequence[int] = (),
    inherited: Collection[str] | None = None,
) -> Popen[bytes]:
    """Start a program, by default without input and output.

    `inherited` names the only variables that it gets of our environment, if they are not left out anyway.
    `interactive` is for the user's own programs, such as an editor: they get the terminal, the user's whole environment
    and the folder we are in.
    """
    import subprocess

    program = which(argv[0])
    if program is None:
        reason = "Code can write to its folder" if os.path.isfile(argv[0]) else os.strerror(errno.ENOENT)
        raise FileNotFoundError(errno.ENOENT, reason, argv[0])
    silent = None if interactive else subprocess.DEVNULL
    return subprocess.Popen(
        [program, *argv[1:]],
        env={**os.environ, **(env or {})} if interactive else environment(env, inherited),
        cwd=cwd or (None if interactive else _NEUTRAL_FOLDER),
        start_new_session=not interactive,  # so that Ctrl-C reaches only us, and the whole group can be killed
        stdin=silent if stdin is None else stdin,
        stdout=silent if stdout is None else stdout,
        stderr=silent if stderr is None else stderr,
        pass_fds=pass_fds,
    )


def run_in_terminal(argv: list[str], read: Callable[[int], bytes]) -> int:
    """Run one of the user's programs in a terminal inside ours, in the user's environment. Returns its exit code.

    `read` is called with the descriptor of that terminal when there is output.
    """
    import pty

    return os.waitstatus_to_exitcode(pty.spawn(argv, read)) % 256


def wait(process: Popen[bytes], seconds: float) -> int | None:
    """Wait for a program and return its exit code, or None if it still runs, which is fine for a viewer."""
    from subprocess import TimeoutExpired

    try:
        return process.wait(seconds)
    except TimeoutExpired:
        return None


def kill(process: Popen[bytes]) -> None:
    """Kill a program and what it started, unless it has already been waited for."""
    if process.returncode is None:
        _kill_group(process)


def end(process: Popen[bytes], seconds: float) -> None:
    """Give a program some time to end, then kill it and everything that it started."""
    wait(process, seconds)
    _kill_group(process)
    process.wait()


def _kill_group(process: Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, 9)
    except (AttributeError, ProcessLookupError, PermissionError):  # an interactive one has no own group
        process.kill()


def python(*arguments: str, packages: bool = False) -> list[str]:
    """Build a command line for our own Python that imports only the standard library, or also our `packages`."""
    if not packages:
        return [sys.executable, "-I", "-S", *arguments]
    import site

    is_for_user = __file__.startswith(site.getuserbase() + os.sep)  # else code may have put packages there
    return [sys.executable, "-E", "-P", *(() if is_for_user else ("-s",)), *arguments]


def which(program: str) -> str | None:
    """Find a program on the PATH, skipping any that sandboxed code could have written."""
    import shutil

    for folder in [""] if os.path.dirname(program) else _search_path(os.environ.get("PATH", os.defpath)):
        path = shutil.which(program, path=folder)
        if path and os.path.isabs(path) and not is_exposed(path):
            return path
    return None


def environment(more: Mapping[str, str] | None = None, inherited: Collection[str] | None = None) -> dict[str, str]:
    """Return the environment for our own programs: ours, without variables that change which code runs."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_DROPPED) and name not in _DROPPED_NAMES and (inherited is None or name in inherited)
    }
    for name in {"PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"}.intersection(inherited or os.environ):
        if folders := os.pathsep.join(_search_path(os.environ.get(name, ""))):
            kept[name] = folders
    own = {"GIT_DIR": os.devnull} if inherited is None else {}  # a program of others may use git as it likes
    return {**kept, **own, **(more or {})}


def _search_path(value: str) -> Iterator[str]:
    for folder in value.split(os.pathsep):
        is_one = os.pathsep == ";" or ";" not in folder  # LD_LIBRARY_PATH may be separated by `;` too
        if is_one and os.path.isabs(folder) and not is_exposed(folder):
            yield folder
