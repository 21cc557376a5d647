"""The first process of a sandbox: sets its limits, hands the proxy a socket, then is the supervisor of the runtime.

    python enter.py PROTECTED LIMITS PROXY FILTER SUPERVISOR ARGUMENTS...

SUPERVISOR may also be another script, or a program: that runs as a child of this one.

PROTECTED is how many files and folders must be mounted read-only over themselves.

LIMITS is `name=value,...` with the names of the resource module; PROXY is the number of a socket that wants a
listening one for the port, as `FD:PORT`, or `-`; with `connect=PATH` for that number, or for one of the arguments, it
is a connection to the socket at that path. FILTER is a filter of system calls in hexadecimal, or `-`. It runs on
Python 3.8 and later and imports next to nothing.
"""

from __future__ import annotations

import os
import sys


def limit(spec: str) -> None:
    """Set limits that no process inside can raise.

    The time limit is for children only, since this process must last.
    """
    for each in filter(None, spec.split(",")):
        name, value = each.split("=")
        if name == "CPU":
            os.register_at_fork(after_in_child=lambda seconds=int(value): lower("CPU", seconds))
        else:
            lower(name, int(value))


def lower(name: str, wanted: int) -> None:
    """Set a limit, soft and hard, so that it can't be raised again."""
    import resource

    kind = getattr(resource, "RLIMIT_" + name, None)
    if kind is not None:
        hard = resource.getrlimit(kind)[1]
        wanted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (wanted, wanted))


def lend_port(spec: str) -> None:
    """Listen in this network namespace, where no other process is yet, and hand the socket to the proxy outside."""
    import _socket

    way, _, port = spec.rpartition(":")
    line = _socket.socket(fileno=int(connected(way)))
    listening = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listening.bind(("127.0.0.1", int(port)))
    listening.listen(64)
    rights = listening.fileno().to_bytes(4, sys.byteorder)
    line.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
    listening.close()
    line.close()


def connected(argument: str) -> str:
    """Resolve `connect=PATH` to the number of a new connection; other arguments stay as they are."""
    if not argument.startswith("connect="):
        return argument
    import _socket

    line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    line.connect(argument[len("connect=") :])
    return str(line.detach())


def check_mounts(expected: int) -> None:
    """Exit unless protected files are mounted over themselves: code could divert a mount by moving a folder."""
    mounts = {}
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            number, parent, _, root, point, options = line.split(b" ")[:6]
            mounts[number] = (parent, root.rstrip(b"/"), point.rstrip(b"/"), b"ro" in options.split(b","))
    protected = 0
    for parent, root, point, is_read_only in mounts.values():
        _, above, place, is_closed = mounts.get(parent, (b"", b"", b"", True))
        is_over_itself = root == above + point[len(place) :] and not point.startswith((b"/proc/", b"/dev/"))
        protected += is_read_only and not is_closed and is_over_itself and point != place
    if protected < expected:
        sys.exit("Can't start the sandbox: folders in the workspace were moved at the same time. Try again.")


def filter_calls(program: bytes) -> None:
    """Install a system call filter for this process and everything that it starts."""
    import ctypes

    lines = ctypes.create_string_buffer(program, len(program))
    whole = (ctypes.c_uint64 * 2)(len(program) // 8, ctypes.addressof(lines))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, whole, 0, 0):  # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP
        raise OSError(ctypes.get_errno(), "can't install the system call filter")


def follow(program: list[str]) -> None:
    """Run another program as a child, and end as it ends. This process stays first, so that everything ends with it."""
    pid = os.fork()
    if pid == 0:
        env = dict(os.environ)
        env.pop("PYTHONUSERBASE", None)
        for name in [name for name in env if name.startswith("SANDBOX_LATER_")]:  # as in sandbox.py
            env[name[len("SANDBOX_LATER_") :]] = env.pop(name)
        os.execve(program[0], program, env)
    while True:
        ended, status = os.wait()
        if ended == pid:
            os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


def main() -> None:
    protected, limits, proxy, calls, supervisor, *arguments = sys.argv[1:]
    if protected != "0":
        check_mounts(int(protected))
    os.dup2(1, 2)  # nothing from here on may write to the caller's stderr
    try:
        with open("/proc/self/oom_score_adj", "wb") as file:
            file.write(b"500")  # if memory runs out, kill us before the user's own programs
    except OSError:
        pass  # not Linux
    if proxy != "-":
        lend_port(proxy)
    limit(limits)
    sys.argv = [supervisor, *map(connected, arguments)]
    if calls != "-":
        filter_calls(bytes.fromhex(calls))
    sys.path[0] = os.path.dirname(supervisor)
    if os.path.basename(supervisor) != "supervisor.py":
        program = [sys.executable, supervisor] if supervisor.endswith(".py") else [supervisor]
        follow([*program, *sys.argv[1:]])
    scope = {"__name__": "__main__", "__file__": supervisor, "__builtins__": __builtins__}
    with open(supervisor, "rb") as file:
        source = file.read()
    exec(compile(source, supervisor, "exec"), scope)


if __name__ == "__main__":
    main()
