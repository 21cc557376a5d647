"""How a snapshot becomes a session of its own: it forks the worker, and is that one's supervisor from then on."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import sys
from signal import SIGKILL

from .descriptors import open_descriptors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, List, Tuple

    # the supervisor's Python, its file, the environment and the folder that it began with, what its worker is
    Origin = Tuple[str, str, Dict[str, str], str, List[str]]

PR_SET_CHILD_SUBREAPER = 36


def split(fork: Callable[[], int], origin: Origin, line: int, fds: List[int]) -> List[int]:
    """Returns in the worker only, with its descriptors."""
    control, *rest = fds
    reader, writer = os.pipe()
    worker = fork()
    if worker == 0:
        os.close(writer)
        os.close(control)
        os.setpgid(0, 0)
        os.read(reader, 1)  # until it has a supervisor: what it starts must not get lost
        os.close(reader)
        return rest
    for fd in (*rest, reader):
        os.close(fd)
    try:
        become_supervisor(origin, control, line, worker)
    finally:
        os.kill(worker, SIGKILL)  # there is no such program any more, or no memory for it
    return []


def become_supervisor(origin: Origin, control: int, line: int, worker: int) -> None:
    """The same program as that of the session that was, with nothing of the user's; the line shows that it lives."""
    python, file, environ, folder, kind = origin
    adopt_orphans()
    for fd in open_descriptors():
        if fd > 2:
            try:
                os.set_inheritable(fd, fd in (control, line))
            except OSError:
                pass  # the folder's own
    for number in _signal.valid_signals():
        if _signal.getsignal(number) == _signal.SIG_IGN:
            _signal.signal(number, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, [])
    try:
        os.chdir(folder)
    except OSError:
        pass  # somebody removed it
    os.execve(python, [python, file, "%d,%d,%d" % (control, worker, line), *kind], environ)


def adopt_orphans() -> None:
    """As the supervisor does it, which keeps this when it takes over."""
    if sys.platform == "linux":
        from .imports import trusted_import

        trusted_import("ctypes").CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
