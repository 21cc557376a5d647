"""How a process that the supervisor forked becomes the worker: a driver in this very interpreter, or a program.

The supervisor runs this file before it forks the first one; like that one it needs nothing but Python 3.8.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def become(worker: list[str], fds: list[int], origin: tuple[Any, ...], run_file: Callable[..., dict[str, Any]]) -> None:
    """Put the descriptors in place and run the driver or the program; never returns."""
    data, *streams = fds
    if worker[0] == "stdin":
        os.close(streams[0])
        streams[0] = data
    for target, fd in enumerate(streams):
        os.dup2(fd, target, inheritable=True)
        os.close(fd)
    if worker[0] == "driver":
        os.set_inheritable(data, False)
        run_driver(worker[1], data, origin, run_file)
    if worker[0] == "exec":
        os.set_inheritable(data, True)
    argv = [word.replace("{data}", str(data)) for word in worker[1:]]
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(2, ("%s: %s\n" % (argv[0], error.strerror)).encode())
        os._exit(127)


def run_driver(path: str, data_fd: int, origin: tuple[Any, ...], run_file: Callable[..., dict[str, Any]]) -> None:
    """Run a Python driver in this very process, as if it had been started by itself."""
    sys.argv = [""]
    folder = os.path.dirname(origin[1])
    sys.path[:] = [entry for entry in sys.path if entry != folder]  # the user's imports must not find our files
    scope = run_file(path, "interpreter_driver")
    status = 0
    try:
        status = scope["main"](data_fd, (*origin, ["driver", path])) or 0
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                pass
        if sys.exc_info()[0] is None:
            os._exit(status)
