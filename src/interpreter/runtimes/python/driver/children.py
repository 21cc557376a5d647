"""Snapshots are children of the process that they are taken of; code that waits for any child must not see them."""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, List, Optional, Set

ANY = (-1, 0)
waitpid, wait3, wait4 = os.waitpid, os.wait3, os.wait4
waitid: Optional[Callable[..., Any]] = getattr(os, "waitid", None)


class Children:
    """Stands before the functions of `os` that wait for whichever child ends first."""

    def __init__(self) -> None:
        self.hidden: Set[int] = set()

    def install(self) -> None:
        if waitid is None:
            return
        os.wait = lambda: self.waitpid(-1, 0)
        os.waitpid, os.wait4, os.waitid = self.waitpid, self.wait4, self.waitid
        os.wait3 = lambda options: self.wait4(-1, options)

    def reap(self) -> None:
        """Let go of the snapshots that have ended."""
        for pid in list(self.hidden):
            try:
                ended = waitpid(pid, os.WNOHANG)[0]
            except ChildProcessError:
                ended = pid  # it is another process's child, or nobody is told of children's ends
            if ended:
                self.hidden.discard(pid)

    def waitpid(self, pid: int, options: int, /) -> Any:
        """As os.waitpid."""
        if pid not in ANY or not self.hidden:
            return waitpid(pid, options)
        return self._first(options, lambda found: waitpid(found, options | os.WNOHANG), (0, 0))

    def wait4(self, pid: int, options: int) -> Any:
        """As os.wait4."""
        if pid not in ANY or not self.hidden:
            return wait4(pid, options)
        nothing = wait4(next(iter(self.hidden)), os.WNOHANG)
        return self._first(options, lambda found: wait4(found, options | os.WNOHANG), (0, 0, nothing[2]))

    def waitid(self, kind: Any, pid: int, options: int, /) -> Any:
        """As os.waitid."""
        assert waitid is not None
        if kind != os.P_ALL or not self.hidden:
            return waitid(kind, pid, options)
        return self._first(options, lambda found: waitid(os.P_PID, found, options | os.WNOHANG), None)

    def _first(self, options: int, take: Callable[[int], Any], nothing: Any) -> Any:
        assert waitid is not None
        looking = os.WEXITED | os.WNOWAIT
        looking |= options & (os.WNOHANG | os.WCONTINUED)
        looking |= os.WSTOPPED if options & os.WUNTRACED else 0
        while True:
            self.reap()
            others = own_children()
            if others is not None and not set(others) - self.hidden:
                raise ChildProcessError(errno.ECHILD, os.strerror(errno.ECHILD))
            found = waitid(os.P_ALL, 0, looking)
            if found is None:
                return nothing
            if found.si_pid not in self.hidden:
                taken = take(found.si_pid)
                if taken and (not isinstance(taken, tuple) or taken[0]):  # else another thread was faster
                    return taken


def own_children() -> Optional[List[int]]:
    """The processes that this one could wait for; None where that cannot be known."""
    found: List[int] = []
    try:
        names = os.listdir("/proc")
    except OSError:
        return None
    for name in names:
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue  # it ended while we looked
            if parent == os.getpid():
                found.append(int(name))
    return found
