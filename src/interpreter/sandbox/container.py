"""A sandbox that is a container of Docker or Podman."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path

from interpreter.errors import SandboxUnavailableError
from interpreter.host import processes
from interpreter.runtimes.launch import Start
from interpreter.sandbox.places import DRIVERS, programs_in
from interpreter.sandbox.proxy import Proxy
from interpreter.sandbox.sandbox import ENTER, LATER, PORT, Sandbox
from interpreter.sandbox.system_calls import seccomp_filter

ENGINES = ("podman", "docker")
LINE, NETWORK = "control", "network"  # socket names in the runtime's folder
# Variables of the host that would be wrong inside the image.
HOSTS_OWN = ("PATH", "HOME", "SHELL", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "LD_PRELOAD")
# A shell that holds the descriptor open, because engines close inherited descriptors in the processes they start.
WAITING = ("/bin/sh", "-c", '"$@"; exit $?', "sh")
CHUNK = 64 * 1024
MAX_DESCRIPTORS = 16
START_TIMEOUT = 300.0  # seconds for a container to start, including the download


def available() -> str:
    engines = {name: program for name in ENGINES if (program := processes.which(name))}
    for program in engines.values():
        if not trouble_with(program):
            return program
    if not engines:
        raise SandboxUnavailableError(
            "A container sandbox needs Podman or Docker. To install one: apt-get install podman (Debian, Ubuntu), "
            "dnf install podman (Fedora), brew install podman (macOS)."
        )
    name, program = next(iter(engines.items()))
    raise SandboxUnavailableError(
        f"{name} does not answer: {trouble_with(program)}. To start it: sudo systemctl start {name}"
    )


@cache
def trouble_with(program: str) -> str:
    try:
        done = processes.run([program, "info"], timeout=20)
    except OSError as error:
        return str(error)
    return "" if done.returncode == 0 else done.complaint


def command(
    engine: str, sandbox: Sandbox, start: Start, mounts: dict[Path, str], argv: list[str], env_file: str
) -> list[str]:
    """Build the engine's command line: no network, no rights, and only the workspace and these mounts from the host."""
    workspace = sandbox.workspace
    line = [
        *(engine, "run", "--rm", "--interactive", "--network", "none", "--cap-drop", "ALL"),
        *("--security-opt", "no-new-privileges"),
        *("--read-only", "--tmpfs", "/tmp:rw,exec,mode=1777", "--ipc", "private", "--pull", "missing"),
        *("--user", f"{os.getuid()}:{os.getgid()}"),
        *(("--userns", "keep-id") if Path(engine).name == "podman" and os.getuid() != 0 else ()),
    ]
    if sandbox.limits.memory is not None:
        line += ["--memory", f"{sandbox.limits.memory}m", "--memory-swap", f"{sandbox.limits.memory}m"]
    if sandbox.limits.processes is not None:
        line += ["--pids-limit", str(sandbox.limits.processes)]
    volumes = [(Path(workspace), "rw"), *((path, "ro") for path in sandbox.readable)]
    volumes += [(path, "rw") for path in sandbox.writable]
    for path, option in (*volumes, *mounts.items()):
        line += ["--volume", f"{path}:{path}:{option}"]
    cwd = start.cwd if start.cwd and Path(start.cwd).is_relative_to(workspace) else workspace
    line += ["--env-file", env_file]
    return [*line, "--env", "HOME=/tmp", "--workdir", cwd, "--entrypoint", argv[0], sandbox.image, *argv[1:]]


def wrapped(
    sandbox: Sandbox,
    proxy: Proxy,
    scratch: Path,
    outputs: Path,
    protected: list[Path],
    start: Start,
    folder: Path | None,
    stack: contextlib.ExitStack,
) -> Start:
    """Wrap a start in a container.

    Descriptors can't be passed in, so the supervisor connects to a socket in its folder.
    """
    python, *rest = [inside(argument) for argument in start.argv]
    mounts = dict.fromkeys((*protected, outputs), "ro")
    argv, fds = [python, *rest], []
    if folder is not None:
        supervisor, control, *worker = rest
        mounts |= {folder: "rw"} | dict.fromkeys(DRIVERS, "ro")
        lives, held = os.pipe()  # the engine holds one end as long as it lives
        stack.callback(os.close, held)
        with proxy.expect() as network:
            lines = {LINE: os.dup(int(control)), NETWORK: os.dup(network.fileno())}
        for name, end in lines.items():
            carry(folder / name, end, os.dup(lives))
        os.close(lives)
        fds = [held]
        line, connection = f"connect={folder / LINE}", f"connect={folder / NETWORK}:{PORT}"
        # The engine's filter allows Unix sockets. In a virtual machine, as on macOS, the host's sockets can't be
        # reached.
        filters = seccomp_filter(sandbox.unix_sockets) if sys.platform == "linux" else None
        calls = (filters or b"").hex() or "-"
        argv = [python, str(ENTER), "0", sandbox.limits.as_argument(), connection, calls, supervisor, line, *worker]
    # In a file that only we can read: in the engine's own environment, a variable that code exported could name a
    # library or a configuration for the engine.
    given = [f"{name}={value}" for name, value in start.env.items() if name.removeprefix(LATER) not in HOSTS_OWN]
    descriptor, env_file = tempfile.mkstemp(dir=scratch)
    with open(descriptor, "wb") as file:
        file.writelines(os.fsencode(line) + b"\n" for line in given if "\n" not in line)
    full = [*WAITING, *command(available(), sandbox, start, mounts, argv, env_file)]
    return Start(full, processes.environment(), "/", fds)


def inside(word: str) -> str:
    """Replace the path of a host program by its bare name, because the image has its own."""
    if not programs_in([word]):
        return word
    name = os.path.basename(word)
    return "python3" if name.startswith("python") else name


def carry(path: Path, control: int, lives: int) -> None:
    """Wait for a connection at the path, and carry everything between it and the descriptor, including descriptors.

    Stops waiting if the engine ends first, which `lives` signals.
    """
    listening = socket.socket(socket.AF_UNIX)
    path.unlink(missing_ok=True)
    listening.bind(str(path))
    listening.listen(1)
    ours = socket.socket(fileno=control)
    threading.Thread(target=_carry, args=(listening, ours, lives), name="sandbox line", daemon=True).start()


def _carry(listening: socket.socket, ours: socket.socket, lives: int) -> None:
    with listening, ours, contextlib.suppress(OSError):
        try:
            ready, _, _ = select.select([listening.fileno(), lives], [], [], START_TIMEOUT)
        finally:
            os.close(lives)
        if listening.fileno() not in ready:
            return  # the engine has failed and reported why, such as a missing image
        theirs, _ = listening.accept()
        with theirs:
            back = threading.Thread(target=_pass_on, args=(theirs, ours), daemon=True)
            back.start()
            _pass_on(ours, theirs)
            back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            data, fds, _, _ = socket.recv_fds(source, CHUNK, MAX_DESCRIPTORS)
            if not data:
                break
            socket.send_fds(target, [data], fds)
            for fd in fds:
                os.close(fd)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
