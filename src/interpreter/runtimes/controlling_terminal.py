"""The controlling terminal of a session, which is its supervisor's and not its worker's.

The supervisor runs this file when there is somebody at the keyboard; like that one it needs nothing but Python 3.8.
"""

from __future__ import annotations

import fcntl
import os
import sys

TIOCSCTTY = 0x540E if sys.platform == "linux" else 0x20007461
TIOCNOTTY = 0x5422 if sys.platform == "linux" else 0x20007471


def take(terminal: int, worker: int | None) -> None:
    fcntl.ioctl(terminal, TIOCSCTTY, 0)
    if worker:
        os.tcsetpgrp(terminal, worker)


def leave(terminal: int) -> None:
    os.tcsetpgrp(terminal, os.getpgrp())  # the group in front is hung up on
    fcntl.ioctl(terminal, TIOCNOTTY)
    os.close(terminal)
