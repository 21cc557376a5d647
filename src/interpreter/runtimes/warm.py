"""The warm parent: a process that has imported modules once, and forks the supervisor of each new Python session.

    python warm.py SOCKET START_FILE MODULE...

The host sends a line of JSON for each session, with the supervisor's control socket: its worker, environment and
folder. Lines that come while the imports run wait in the socket. When the socket closes, this process ends; the
sessions have connections of their own and stay. Like the supervisor, this needs only Python 3.8.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import socket
import sys
import time
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FOLDER = os.path.dirname(os.path.abspath(__file__))
SUPERVISOR = os.path.join(FOLDER, "supervisor.py")
COMPILED: dict[str, Any] = {}  # our files, by path: each session would need milliseconds and memory to compile them
NOT_PRELOADED = "INTERPRETER_NOT_PRELOADED"  # tells the driver, as in serve.py
DRIVER = ("serve", "inspection", "pickling", "tables", "ipython", "bare")
LATER = ("completer", "completerlib", "logger", "magics", "oinspect")  # what IPython imports when a session starts


def run_file(path: str) -> dict[str, Any]:
    scope: dict[str, Any] = {"__name__": "interpreter_" + os.path.basename(path), "__file__": path}
    if path not in COMPILED:
        with open(path, "rb") as file:
            COMPILED[path] = compile(file.read(), path, "exec")
    exec(COMPILED[path], scope)
    return scope


def preload(start_file: str, names: list[str]) -> list[str]:
    """Import the driver and the user's modules; what could not be imported, and why."""
    start = run_file(start_file)
    ours = ["%s.%s" % (start["PACKAGE"], part) for part in DRIVER] + ["IPython.core." + part for part in LATER]
    for name in [*ours, "ctypes"]:  # the last is for the supervisors
        try:
            importlib.import_module(name)
        except ImportError:
            pass  # there is no IPython
    failed: list[str] = []
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException as error:  # noqa: BLE001 -- whatever a module raises: the session does without it
            failed.append("%s (%s: %s)" % (name, type(error).__name__, error))
    threads = sys.modules["threading"].active_count() - 1 if "threading" in sys.modules else 0
    if threads:
        sys.exit("the modules started %d threads, which a copy of this process would not have" % threads)
    sys.modules[ours[0]].prepare()
    return failed


def become_supervisor(request: dict[str, Any], control: int, failed: list[str]) -> None:
    """In the forked child: be what `supervisor.py` is as a program; returns when the host is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    if request["cwd"] is not None:
        os.chdir(request["cwd"])
    supervisor = run_file(SUPERVISOR)
    supervisor["COMPILED"].update(COMPILED)
    if failed:
        os.environ[NOT_PRELOADED] = "; ".join(failed)
    supervisor["Supervisor"](control, request["worker"]).serve()


def reap(*_: object) -> None:
    """Collect the supervisors that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass  # there is none


def serve(requests: socket.socket, failed: list[str]) -> None:
    """Fork a supervisor for each request, until the host is gone; returns in the supervisors, too, when they end."""
    run_file(run_file(SUPERVISOR)["STORE"])
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
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # libraries stop their own threads for a fork
                pid = os.fork()
            if pid == 0:
                requests.close()
                for other in fds:
                    os.close(other)
                become_supervisor(json.loads(line), control, failed)
                return
            os.close(control)


if __name__ == "__main__":
    requests = socket.socket(fileno=int(sys.argv[1]))
    requests.set_inheritable(False)
    sys.path[:] = [entry for entry in sys.path if entry != FOLDER]  # imports must not find our files
    not_imported = preload(sys.argv[2], sys.argv[3:])
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, reap)
    requests.sendall(b"ready")
    status = 1
    try:
        serve(requests, not_imported)
        status = 0
    finally:
        os._exit(status)  # no clean-up of the user's modules in each session's supervisor
