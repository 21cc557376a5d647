"""Linux: a sandbox made with bubblewrap and control groups."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from interpreter.errors import SandboxUnavailableError
from interpreter.host import processes
from interpreter.host.files import left_behind
from interpreter.sandbox.places import APART, SandboxPlaces, is_inside
from interpreter.sandbox.sandbox import MEGABYTE, ResourceLimits

# Namespaces alone don't contain root, which must also lose its capabilities and every way to regain them.
NAMESPACES = ("--unshare-all", "--unshare-user", "--disable-userns", "--cap-drop", "ALL")
# The supervisor is the first process: no process inside can stop it, and everything ends with it. Its parent is a shell
# of ours, because --die-with-parent would also fire when a thread that started it ends.
PROCESSES = ("--as-pid-1", "--new-session", "--die-with-parent")
MEMORY_FOLDER = 1024 * MEGABYTE  # /dev/shm
EMPTY_FOLDER = 64 * MEGABYTE
# Files in /proc and /sys that would tell root more about the host than it needs.
KERNEL = ("kcore", "keys", "timer_list", "sched_debug", "latency_stats", "acpi", "scsi", "asound")
# The memory of the first process, which is our supervisor, could be written through these.
FIRST_PROCESS = ("1/mem", "1/task")
# Enters the control groups, then starts bubblewrap and waits for it: killing this shell ends the sandbox.
SHELL = 'n=$1; shift; while [ "$n" -gt 0 ]; do echo $$ >"$1" || exit 125; shift; n=$((n - 1)); done; "$@"; exit $?'
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
    """Build the command line. bubblewrap reads options from a descriptor, so that process lists don't show them."""
    bwrap = [available(), "--args", str(arguments_fd), "--", *argv]
    return ["/bin/sh", "-c", SHELL, "sh", str(len(doors)), *doors, *bwrap]


def arguments(
    places: SandboxPlaces, scratch: Path, own: dict[Path, str], pinned: dict[Path, int], protected: dict[Path, int]
) -> list[str]:
    """Build bubblewrap's options; `own` maps folders of ours that the runtime needs to how they are bound.

    What is protected was opened before: between a check and a mount, code could put a link in its place. Folders that
    are pinned are mounted over themselves, so that code cannot rename them.
    """
    mounts = [*NAMESPACES, *PROCESSES, "--ro-bind", "/", "/"]
    # Private devices, processes and run-time files.
    mounts += ["--dev", "/dev", "--size", str(MEMORY_FOLDER), "--perms", "1777", "--tmpfs", "/dev/shm"]
    mounts += ["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"]
    for name in (*KERNEL, *FIRST_PROCESS):
        if os.path.exists(f"/proc/{name}"):
            mounts += masked(Path("/proc", name))
    mounts += ["--tmpfs", "/run"]
    # Homes are empty; the user's own and the temporary folders belong to the sandbox, and its runtimes share them.
    for folder in places.hidden:
        if folder != places.home:
            mounts += ["--size", str(EMPTY_FOLDER), "--tmpfs", str(folder)]
    for name in ("/tmp", "/var/tmp"):
        mounts += ["--bind", str(scratch / "tmp"), name]
    if places.home in places.hidden:
        mounts += ["--bind", str(scratch / "home"), str(places.home)]
    for path in places.readable:
        if is_inside(path, (*places.hidden, *APART)):  # everything else is visible already
            mounts += ["--ro-bind", str(path), str(path)]
    for path in sorted(places.writable, key=lambda path: len(path.parts)):  # the outermost first
        mounts += ["--dev-bind" if path.is_relative_to("/dev") else "--bind", str(path), str(path)]
    for path, fd in pinned.items():
        mounts += ["--bind-fd", str(fd), str(path)]
    for path, fd in protected.items():
        mounts += ["--ro-bind-fd", str(fd), str(path)]
    for path in places.masked:
        mounts += masked(path)
    for path, option in own.items():
        mounts += [option, str(path), str(path)]
    for path in places.masked:
        mounts += ["--remount-ro", str(path)] if path.is_dir() else []
    return mounts


def masked(path: Path) -> list[str]:
    if path.is_dir():
        return ["--size", str(EMPTY_FOLDER), "--tmpfs", str(path)]
    return ["--ro-bind", "/dev/null", str(path)]


def available() -> str:
    """Return the path of bubblewrap. Raises SandboxUnavailableError if it is missing or can't make a sandbox."""
    installed = [f"{folder}/bwrap" for folder in (*os.defpath.split(":"), "/usr/local/bin")]
    program = next(filter(None, map(processes.which, [*installed, "bwrap"])), None)
    if program is None:
        raise SandboxUnavailableError(
            f"The sandbox needs bubblewrap, which is not installed. To install it: {PACKAGES}."
        )
    if trouble := trouble_with(program):
        raise SandboxUnavailableError(trouble)
    return program


@cache
def trouble_with(program: str) -> str:
    """Try to make a sandbox, and say why that fails; empty if it works."""
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
        done = processes.run(probe, timeout=20)
    except OSError as error:
        return f"Can't start the sandbox: {program}: {error}"
    if done.returncode == 0:
        return ""
    remedy = (
        "It needs bubblewrap 0.8 or later and user namespaces. If this is a container, start it with `docker run "
        "--security-opt seccomp=unconfined --security-opt apparmor=unconfined`, or use --sandbox container:IMAGE."
    )
    for name, bad, command in SWITCHES:
        with contextlib.suppress(OSError):
            if Path("/proc/sys", name).read_text().strip() == bad:
                remedy = f"User namespaces are disabled on this machine. To enable them: {command}"
    return f"Can't start the sandbox. bubblewrap says: {done.complaint}. {remedy}"


ROOT = Path("/sys/fs/cgroup")
NAME = "interpreter-"

# The limit files of each controller, by cgroup version.
MEMORY_FILES = {1: "memory.limit_in_bytes", 2: "memory.max"}
PROCESSES_FILES = {1: "pids.max", 2: "pids.max"}


class ControlGroups:
    """The control groups of one sandbox: as many as the system allows, which may be none."""

    def __init__(self, limits: ResourceLimits) -> None:
        self.folders: list[Path] = []
        if limits.memory is not None:
            self._make("memory", MEMORY_FILES, limits.memory * MEGABYTE)
        if limits.processes is not None:
            self._make("pids", PROCESSES_FILES, limits.processes)

    def _make(self, controller: str, files: dict[int, str], value: int) -> None:
        for parent, version in parents(controller):
            folder = parent / f"{NAME}{os.getpid()}-{id(self):x}"
            try:
                for left in left_behind(parent, NAME):
                    with contextlib.suppress(OSError):
                        left.rmdir()
                folder.mkdir(exist_ok=True)
                (folder / files[version]).write_text(f"{value}\n")
            except OSError:
                with contextlib.suppress(OSError):
                    folder.rmdir()
                continue
            if folder not in self.folders:
                self.folders.append(folder)
            return

    @property
    def doors(self) -> list[str]:
        """List the files that a process enters the groups by, writing its number to them."""
        return [str(folder / "cgroup.procs") for folder in self.folders]

    def close(self) -> None:
        for folder in self.folders:
            with contextlib.suppress(OSError):
                folder.rmdir()  # fails while a process is in the group


def parents(controller: str) -> Iterator[tuple[Path, int]]:
    """Yield folders where a group with this controller might be created (beside ours or below it), with the version."""
    try:
        own_groups = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in own_groups:
        number, names, path = line.split(":", 2)
        if controller in names.split(","):
            yield ROOT / names.split(",")[0] / path.lstrip("/"), 1
            yield ROOT / controller, 1
        elif number == "0" and names == "":
            own = ROOT / path.lstrip("/")
            yield own.parent if own != ROOT else own, 2
            yield own, 2
