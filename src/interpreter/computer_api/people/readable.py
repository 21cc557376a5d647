"""Files that may be sent: only regular ones that can be read, and with a sandbox only what is seen in it."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from interpreter.computer_api.at_session import surroundings
from interpreter.errors import ComputerError

if TYPE_CHECKING:
    from interpreter.computer_api.computer import Computer
    from interpreter.runtimes.containment import Containment

MOST_BYTES = 50 * 1024 * 1024


@dataclass(frozen=True)
class Attachment:
    """A file as it was when it was read."""

    path: str
    content: bytes

    @property
    def name(self) -> str:
        return os.path.basename(self.path)


def attached(computer: Computer, paths: str | Sequence[str] | None) -> list[Attachment]:
    """The files at these paths, which may begin at the folder that the sessions are in."""
    given = [] if paths is None else [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found: list[Attachment] = []
    shared = surroundings(computer)
    for path in given:
        found.append(_read(shared.containment, os.path.join(shared.cwd, os.path.expanduser(path))))
        if sum(len(each.content) for each in found) > MOST_BYTES:
            raise ComputerError(f"The attachments have more than {MOST_BYTES >> 20} MB. Send a link, or fewer of them.")
    return found


def _read(containment: Containment | None, path: str) -> Attachment:
    try:
        # A FIFO would keep us waiting for somebody who writes.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ComputerError(f"{path} cannot be attached: {error.strerror}.") from None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ComputerError(f"{path} cannot be attached: it is no file. Of a folder, attach an archive.")
        # What was opened counts, not what the path may lead to by now.
        if containment is not None and not containment.shows(_real(fd, path)):
            raise ComputerError(
                f"{path} cannot be attached: the sandbox does not show it. Copy it into the workspace first."
            )
        with os.fdopen(fd, "rb", closefd=False) as file:
            return Attachment(path, file.read(MOST_BYTES + 1))
    finally:
        os.close(fd)


def _real(fd: int, path: str) -> str:
    known = f"/proc/self/fd/{fd}"
    return os.path.realpath(known if os.path.exists(known) else path)
