"""The warm parent: a process that has imported modules once, and forks the supervisor of each new Python session.

    python warm.py SOCKET START_FILE MODULE...

The host sends a line of JSON for each runtime, with the supervisor's control socket: its worker, environment and
folder. Lines that come while the imports run wait in the socket. When the socket closes, this process ends; the
runtimes have separate connections and stay. Like the supervisor, this needs only Python 3.8.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]
import ctypes
import gc
import importlib
import json
import os
import socket
import sys
from types import CodeType, FunctionType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FOLDER = os.path.dirname(os.path.abspath(__file__))
SUPERVISOR = os.path.join(FOLDER, "supervisor.py")
NOT_PRELOADED = "INTERPRETER_NOT_PRELOADED"  # tells the driver, as in serve.py
DRIVER = ("serve", "inspection", "pickling", "tables", "ipython", "bare")
LATER = ("completer", "completerlib", "logger", "magics", "oinspect")  # imported by IPython when a runtime starts
LIBRARY = ctypes.PyDLL(None)
NEW_MEMORY = 8192  # bytes: a free range of this size is not a gap
MAX_GAP_BYTES = 100_000  # bytes
MAX_GAPS = 1000  # of one size
TAKEN: list[bytes] = []  # objects that fill the gaps


def preload(supervisor: dict[str, Any], start_file: str, names: list[str]) -> list[str]:
    """Import the driver and the user's modules. Returns what could not be imported, and why."""
    start = supervisor["run_file"](start_file, "interpreter_driver")
    supervisor["run_file"](supervisor["STORE"], "interpreter_snapshot_store")
    supervisor["LIBRARY"].append(LIBRARY)
    ours = ["%s.%s" % (start["PACKAGE"], part) for part in DRIVER] + ["IPython.core." + part for part in LATER]
    for name in ours:
        try:
            importlib.import_module(name)
        except ImportError:
            pass  # IPython is not installed
    failed: list[str] = []
    for name in names:
        if os.path.isabs(name):  # a folder, to search before our packages
            at = next((at for at, entry in enumerate(sys.path) if "-packages" in entry), len(sys.path))
            sys.path.insert(at, name)
            continue
        try:
            importlib.import_module(name)
        except BaseException as error:  # noqa: BLE001 -- a module may raise anything: runtimes do without it
            failed.append("%s (%s: %s)" % (name, type(error).__name__, error))
    threads = sys.modules["threading"].active_count() - 1 if "threading" in sys.modules else 0
    if threads:
        sys.exit("the modules started %d threads, which a copy of this process would not have" % threads)
    sys.modules[ours[0]].prepare(gather)
    return failed


# -- memory --------------------------------------------------------------------------------------------------------
#
# A worker gets its own copy of a page when it writes to it, and it writes to the reference count of everything it
# uses. So what workers use should be close together, and what they make should not be between other things.


def gather(ran: set[int]) -> None:
    """Copy the code with these ids to new memory, where it is close together."""
    fill_gaps()
    for function in gc.get_objects():
        if type(function) is FunctionType and id(function.__code__) in ran:
            function.__code__ = copied(function.__code__)
    if sys.version_info < (3, 12):
        sys._clear_type_cache()  # replacing an entry would write to the memory of the name in it


def copied(code: CodeType) -> CodeType:
    inner = tuple(copied(each) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_consts=inner)


def fill_gaps() -> None:
    """Fill the gaps that freed objects left between others, in Python's pools and in the C library's heap."""
    for size in range(48, 513, 16):
        taken, row = [bytes(size - 33)], 0
        while row < NEW_MEMORY // size and len(taken) < MAX_GAPS:
            taken.append(bytes(size - 33))
            row = row + 1 if id(taken[-1]) == id(taken[-2]) + size else 0
        TAKEN.extend(taken[:-row])
    if sys.platform != "linux":
        return
    LIBRARY.malloc.argtypes, LIBRARY.malloc.restype = [ctypes.c_size_t], ctypes.c_size_t
    size = MAX_GAP_BYTES
    end = LIBRARY.malloc(size)  # usually behind all gaps
    while size > 16:
        for _ in range(MAX_GAPS):
            if LIBRARY.malloc(size) > end:
                break
        size = size * 7 // 8 if size > 2048 else size - 16


def become_supervisor(supervisor: dict[str, Any], request: dict[str, Any], control: int, failed: list[str]) -> None:
    """Run `supervisor.py` in the forked child, as a program would. Returns when the host is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    if request["cwd"] is not None:
        os.chdir(request["cwd"])
    if failed:
        request["env"][NOT_PRELOADED] = "; ".join(failed)
    supervisor["Supervisor"](control, request["worker"], request["env"]).serve()


def reap(*_: object) -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass  # there are none


def serve(supervisor: dict[str, Any], requests: socket.socket, failed: list[str]) -> None:
    """Fork a supervisor for each request until the host is gone. Also returns in the supervisors when they end."""
    pending, fds = b"", []
    while True:
        data, ancillary, _, _ = requests.recvmsg(65536, socket.CMSG_SPACE(4 * 64))
        if not data:
            return
        for _, _, payload in ancillary:
            fds += [int.from_bytes(payload[i : i + 4], sys.byteorder) for i in range(0, len(payload), 4)]
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            control = fds.pop(0)
            # Python's own fork writes to a megabyte of memory, for modules that a supervisor doesn't use.
            if LIBRARY.fork() == 0:
                requests.close()
                for other in fds:
                    os.close(other)
                become_supervisor(supervisor, json.loads(line), control, failed)
                return
            os.close(control)


if __name__ == "__main__":
    requests = socket.socket(fileno=int(sys.argv[1]))
    requests.set_inheritable(False)
    sys.path[:] = [entry for entry in sys.path if entry != FOLDER]  # imports must not find our files
    supervisor: dict[str, Any] = {"__name__": "interpreter_supervisor", "__file__": SUPERVISOR}
    with open(SUPERVISOR, "rb") as file:
        exec(compile(file.read(), SUPERVISOR, "exec"), supervisor)
    not_imported = preload(supervisor, sys.argv[2], sys.argv[3:])
    gc.collect()
    fill_gaps()
    gc.freeze()
    signal.signal(signal.SIGCHLD, reap)
    requests.sendall(b"ready")
    status = 1
    try:
        serve(supervisor, requests, not_imported)
        status = 0
    finally:
        os._exit(status)  # no clean-up of the user's modules in each supervisor
