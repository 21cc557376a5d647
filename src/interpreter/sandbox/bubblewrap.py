"""Linux: the sandbox as a command line of bubblewrap."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from interpreter.errors import SandboxUnavailableError
from interpreter.sandbox.places import (
    Places,
    is_inside,
    listening_sockets,
)
from interpreter.sandbox.sandbox import MEGABYTE

# For root the namespaces alone are no sandbox: the capabilities have to go, and so has the way to new ones.
NAMESPACES = ("--unshare-all", "--unshare-user", "--disable-userns", "--cap-drop", "ALL")
# The supervisor is the first process: nobody inside can stop it, and when it ends, so does everything.
# Its parent is a shell of ours and not a thread, so that dying with the parent is no accident.
PROCESSES = ("--as-pid-1", "--new-session", "--die-with-parent")
MEMORY_FOLDER = 1024 * MEGABYTE  # /dev/shm
EMPTY_FOLDER = 64 * MEGABYTE
# Of the kernel's own files, those that tell root more than it has to know in there.
KERNEL = ("kcore", "keys", "timer_list", "sched_debug", "latency_stats", "acpi", "scsi", "asound")
# Through these its memory could be written to, and the first process is our supervisor.
FIRST_PROCESS = ("1/mem", "1/task")
# Enters the control groups, then starts bubblewrap and waits for it: killing this shell ends the sandbox.
SHELL = 'n=$1; shift; while [ "$n" -gt 0 ]; do echo $$ >"$1" || exit 125; shift; n=$((n - 1)); done; "$@"; exit $?'
APART = tuple(map(Path, ("/tmp", "/var/tmp", "/run", "/var/run", "/dev", "/proc")))  # others are mounted there
PACKAGES = "apt-get install bubblewrap (Debian, Ubuntu), dnf install bubblewrap (Fedora), pacman -S bubblewrap (Arch)"
SWITCHES = (
    ("kernel/unprivileged_userns_clone", "0", "sudo sysctl -w kernel.unprivileged_userns_clone=1"),
    ("user/max_user_namespaces", "0", "sudo sysctl -w user.max_user_namespaces=15000"),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 (or an AppArmor profile for bwrap)",
    ),
)


def command(doors: list[str], arguments_fd: int, argv: list[str]) -> list[str]:
    """The command line; bubblewrap reads the rest from a descriptor, so that no value is seen from outside."""
    bwrap = [available(), "--args", str(arguments_fd), "--", *argv]
    return ["/bin/sh", "-c", SHELL, "sh", str(len(doors)), *doors, *bwrap]


def arguments(places: Places, scratch: Path, own: dict[Path, str], protected: dict[Path, int]) -> list[str]:
    """Everything that makes the sandbox; `own` are folders of ours that the session needs, and how they are bound.

    What is protected was opened before: between a look and a mount, code could put a link in its place.
    """
    mounts = [*NAMESPACES, *PROCESSES, "--ro-bind", "/", "/", *system(), *emptied(places, scratch)]
    for path in places.readable:
        if is_inside(path, (*places.hidden, *APART)):  # the rest is seen anyway
            mounts += ["--ro-bind", str(path), str(path)]
    for path in outermost_first(places.writable):
        mounts += ["--dev-bind" if path.is_relative_to("/dev") else "--bind", str(path), str(path)]
    for path, fd in protected.items():
        mounts += ["--ro-bind-fd", str(fd), str(path)]
    for path in (*places.masked, *sockets(places)):
        mounts += masked(path)
    for path, way in own.items():
        mounts += [way, str(path), str(path)]
    for path in places.masked:
        mounts += ["--remount-ro", str(path)] if path.is_dir() else []
    return mounts


def surroundings(env: dict[str, str], cwd: str) -> list[str]:
    variables = [word for name, value in env.items() for word in ("--setenv", name, value)]
    return ["--chdir", cwd, "--clearenv", *variables]


def system() -> Iterator[str]:
    """Devices, processes and run-time files of its own."""
    yield from ("--dev", "/dev", "--size", str(MEMORY_FOLDER), "--perms", "1777", "--tmpfs", "/dev/shm")
    yield from ("--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys")
    for name in (*KERNEL, *FIRST_PROCESS):
        if os.path.exists(f"/proc/{name}"):
            yield from masked(Path("/proc", name))
    yield from ("--tmpfs", "/run")


def emptied(places: Places, scratch: Path) -> Iterator[str]:
    """Homes are empty; one's own, and the folders for temporary files, are the sandbox's and shared by its sessions."""
    for folder in places.hidden:
        if folder != places.home:
            yield from ("--size", str(EMPTY_FOLDER), "--tmpfs", str(folder))
    for name in ("/tmp", "/var/tmp"):
        yield from ("--bind", str(scratch / "tmp"), name)
    if places.home in places.hidden:
        yield from ("--bind", str(scratch / "home"), str(places.home))


def masked(path: Path) -> list[str]:
    if path.is_dir():
        return ["--size", str(EMPTY_FOLDER), "--tmpfs", str(path)]
    return ["--ro-bind", "/dev/null", str(path)]


def sockets(places: Places) -> list[Path]:
    """Where programs outside listen, in places that are seen: a read-only mount does not keep anybody from talking."""
    listed = [path for path in listening_sockets() if not places.is_hidden(path) and not places.is_writable(path)]
    return [path for path in listed if is_inside(path, places.readable) or not is_inside(path, APART)]


def outermost_first(paths: Iterable[Path]) -> list[Path]:
    return sorted(paths, key=lambda path: len(path.parts))


def available() -> str:
    """The program, if a sandbox can really be made with it."""
    program = shutil.which("bwrap", path=os.defpath + ":/usr/local/bin") or shutil.which("bwrap")
    if program is None:
        raise SandboxUnavailableError(f"The sandbox needs bubblewrap, which is not installed: {PACKAGES}.")
    if trouble := trouble_with(program):
        raise SandboxUnavailableError(trouble)
    return program


@cache
def trouble_with(program: str) -> str:
    """Why no sandbox can be made, found out by making one; nothing if it can."""
    probe = [
        program,
        *NAMESPACES,
        "--as-pid-1",
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--",
        "/bin/true",
    ]
    try:
        done = subprocess.run(probe, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, env={})
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"The sandbox cannot be made: {program}: {error}"
    if done.returncode == 0:
        return ""
    said = done.stderr.strip() or f"exit code {done.returncode}"
    return f"The sandbox cannot be made; bubblewrap says: {said}. {remedy()}"


def remedy() -> str:
    for name, bad, command in SWITCHES:
        try:
            value = Path("/proc/sys", name).read_text().strip()
        except OSError:
            continue
        if value == bad:
            return f"User namespaces are switched off here. To switch them on: {command}"
    return (
        "It needs bubblewrap 0.8 or later and user namespaces. In a container, start that with `docker run "
        "--security-opt seccomp=unconfined --security-opt apparmor=unconfined`, or use --sandbox container:IMAGE."
    )
