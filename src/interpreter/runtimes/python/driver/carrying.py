"""Carries the variables that can be pickled from a snapshot that cannot go on into a fresh worker."""

from __future__ import annotations

import os
import pickle
import select
import sys
from signal import SIGKILL

from .by_value import ByValue
from .variables import type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional

STALLED = 20.0  # seconds for one variable: its library may wait for a thread that is not there


class Nowhere:
    """A file for those who only want to know whether it works."""

    def write(self, data: Any) -> int:
        return len(data)


def pack(namespace: Dict[str, Any], hidden: Dict[str, Any], path: str) -> List[str]:
    """Put into a file what can be; the names of what cannot."""
    users = {name: value for name, value in namespace.items() if is_carried(name, value, hidden)}
    good = picklable(users)
    with open(path, "wb") as file:
        pickle.dump((place(), dict(os.environ), sys.path), file)
        ByValue(file, protocol=4).dump({name: users[name] for name in good})
    return ["%s (%s)" % (name, type_name(value)) for name, value in users.items() if name not in good]


def place() -> Optional[str]:
    try:
        return os.getcwd()
    except OSError:
        return None  # somebody removed it


def is_carried(name: str, value: Any, hidden: Dict[str, Any]) -> bool:
    return not name.startswith("_") and not (name in hidden and hidden[name] is value)


def picklable(users: Dict[str, Any]) -> List[str]:
    """Which of them can be pickled, found out in another process, since a try may never come back."""
    names, good = list(users), []
    position = 0
    while position < len(names):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            try_all([users[name] for name in names[position:]], writer)
        os.close(writer)
        poll = select.poll()
        poll.register(reader, select.POLLIN)
        while position < len(names) and poll.poll(STALLED * 1000):
            verdict = os.read(reader, 1)
            if not verdict:
                break  # it died of this one
            good += [names[position]] if verdict == b"+" else []
            position += 1
        position += 1  # the one that it got stuck with
        os.close(reader)
        os.kill(pid, SIGKILL)
        os.waitpid(pid, 0)
    return good


def try_all(values: List[Any], writer: int) -> None:
    """In the other process: a sign for each."""
    for value in values:
        try:
            ByValue(Nowhere(), protocol=4).dump(value)
            os.write(writer, b"+")
        except BaseException:  # noqa: BLE001 -- whatever a user's __reduce__ raises
            os.write(writer, b"-")
    os._exit(0)


def unpack(namespace: Dict[str, Any], path: str) -> List[str]:
    """Take from a file what is there; what is lost: nothing more."""
    try:
        with open(path, "rb") as file:
            folder, environ, sys.path[:] = pickle.load(file)
            try:
                os.chdir(folder or ".")
            except OSError:
                pass  # a sandbox does not show it
            os.environ.clear()
            os.environ.update(environ)
            namespace.update(pickle.load(file))
    finally:
        os.unlink(path)
    return []
