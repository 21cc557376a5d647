"""Linux: a sandbox made with bubblewrap, a seccomp filter and control groups."""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from interpreter.errors import SandboxUnavailableError
from interpreter.host import processes
from interpreter.host.files import left_behind
from interpreter.runtimes.seccomp_notify import CALLS
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


ALLOW, ERRNO = 0x7FFF0000, 0x00050000
LOAD, EQUAL, AT_LEAST, HAS_BITS, RETURN, AND = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54
X32 = 0x40000000  # numbers from here on are aliases of the same system calls
# A Unix socket reaches any program on the host whose socket file is visible, even on a read-only mount, and the filter
# cannot see which one. So only socket pairs are allowed, but none of datagrams, which can be sent to any address.
UNIX, FAMILIES = 1, (2, 10, 16)  # IPv4, IPv6, netlink
STREAMS, KIND_OF_SOCKET = (1, 5), 0xF  # stream and seqpacket; the other bits of the argument are flags
INTO_TERMINALS = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
FIRST = 1  # the number of the first process
OWNERS_RIGHTS = 0o6000  # set-user-ID and set-group-ID
CREATES = 0o100 | 0o20000000  # O_CREAT, O_TMPFILE


# System call numbers on x86_64 and on aarch64; None where a call does not exist.
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # the kernel's constants, in that order
SOCKET, SOCKETPAIR, IOCTL = (41, 198), (53, 199), (16, 29)
_MORE_CALLS = {
    "request_key": (249, 218),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "open_by_handle_at": (304, 265),
    "chroot": (161, 51),
    "open_tree_attr": (467, 467),
}
_REFUSED = (
    "add_key request_key keyctl bpf perf_event_open userfaultfd init_module delete_module finit_module kexec_load "
    "kexec_file_load mount umount2 pivot_root open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr setns "
    "unshare open_by_handle_at swapon swapoff reboot chroot acct quotactl pidfd_getfd open_tree_attr"
)
REFUSED = {name: (CALLS | _MORE_CALLS)[name] for name in _REFUSED.split()}
# Pretend that the kernel is older: the filter can't see the arguments of io_uring and openat2. Same on every machine.
MISSING = (425, 426, 427, 437)
# Calls with a mode: their numbers, the index of the mode, and the index of the flags that make it count.
MODES: dict[str, tuple[tuple[int | None, int | None], int, int | None]] = {
    "chmod": ((90, None), 1, None),
    "fchmod": ((91, 52), 1, None),
    "mknod": ((133, None), 1, None),
    "creat": ((85, None), 1, None),
    "fchmodat": ((268, 53), 2, None),
    "fchmodat2": ((452, 452), 2, None),
    "mknodat": ((259, 33), 2, None),
    "open": ((2, None), 2, 1),
    "openat": ((257, 56), 3, 2),
}
# Calls that act on another process: their numbers, and the index of the argument that names it.
REACHING = {
    "ptrace": ((101, 117), 1),
    "process_vm_readv": ((310, 270), 0),
    "process_vm_writev": ((311, 271), 0),
    "prlimit64": ((302, 261), 0),
}

NUMBER, MACHINE, ARGUMENTS = 0, 4, 16  # offsets in the data that the filter sees


def seccomp_filter(unix_sockets: bool = False) -> bytes | None:
    """Build the filter for this machine. None if there is no filter for it and Unix sockets are allowed anyway."""
    if platform.machine() not in MACHINES:
        if not unix_sockets:
            raise SandboxUnavailableError(
                f"The sandbox can't block Unix sockets on this processor ({platform.machine()}), so code could reach "
                f"other programs on this machine. To accept that, set sandbox_unix_sockets: true."
            )
        return None
    column = list(MACHINES).index(platform.machine())
    lines = [
        instruction(LOAD, MACHINE),
        instruction(EQUAL, MACHINES[platform.machine()], 1, 0),
        instruction(RETURN, ERRNO | errno.ENOSYS),
        instruction(LOAD, NUMBER),
    ]
    lines += [instruction(AT_LEAST, X32, 0, 1), instruction(RETURN, ERRNO | errno.ENOSYS)]
    for number in MISSING:
        lines += [instruction(EQUAL, number, 0, 1), instruction(RETURN, ERRNO | errno.ENOSYS)]
    for numbers in REFUSED.values():
        lines += [instruction(EQUAL, numbers[column], 0, 1), instruction(RETURN, ERRNO | errno.EPERM)]
    lines += only(SOCKET[column], ARGUMENTS, (UNIX, *FAMILIES) if unix_sockets else FAMILIES)
    if not unix_sockets:
        lines += only(SOCKETPAIR[column], ARGUMENTS + 8, STREAMS, KIND_OF_SOCKET)
    for found, mode, flags in MODES.values():
        if (call := found[column]) is not None:
            lines += without_rights(call, mode, flags)
    for numbers, process in REACHING.values():
        lines += none_of(numbers[column], ARGUMENTS + 8 * process, (FIRST,))
    lines += none_of(IOCTL[column], ARGUMENTS + 8, INTO_TERMINALS)
    return b"".join([*lines, instruction(RETURN, ALLOW)])


def only(number: int, argument: int, values: tuple[int, ...], mask: int = 0xFFFFFFFF) -> list[bytes]:
    """Allow the call only if an argument, under the mask, has one of these values."""
    tests = [instruction(EQUAL, value, len(values) - place, 0) for place, value in enumerate(values)]
    inside = [instruction(LOAD, argument), instruction(AND, mask), *tests]
    inside += [instruction(RETURN, ERRNO | errno.EAFNOSUPPORT), instruction(LOAD, NUMBER)]
    return [instruction(EQUAL, number, 0, len(inside)), *inside]


def none_of(number: int, argument: int, values: tuple[int, ...]) -> list[bytes]:
    """Allow the call unless an argument has one of these values."""
    tests = [
        line for value in values for line in (instruction(EQUAL, value, 0, 1), instruction(RETURN, ERRNO | errno.EPERM))
    ]
    inside = [instruction(LOAD, argument), *tests, instruction(LOAD, NUMBER)]
    return [instruction(EQUAL, number, 0, len(inside)), *inside]


def without_rights(number: int, mode: int, flags: int | None) -> list[bytes]:
    """Allow the call unless its mode has one of the set-ID bits and its flags make the mode count."""
    inside = [
        instruction(LOAD, ARGUMENTS + 8 * mode),
        instruction(HAS_BITS, OWNERS_RIGHTS, 0, 1),
        instruction(RETURN, ERRNO | errno.EPERM),
    ]
    if flags is not None:
        inside = [instruction(LOAD, ARGUMENTS + 8 * flags), instruction(HAS_BITS, CREATES, 0, len(inside)), *inside]
    inside.append(instruction(LOAD, NUMBER))
    return [instruction(EQUAL, number, 0, len(inside)), *inside]


def instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """Encode one instruction of the filter; a test skips `if_true` or `if_false` instructions."""
    return struct.pack("HBBI", code, if_true, if_false, value)


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
