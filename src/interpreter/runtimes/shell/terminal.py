"""Pseudo-terminals: one for each block's output, and one for the keys of somebody at the keyboard."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import termios

from interpreter.runtimes.block import (
    Block,
    Channel,
    Channels,
)
from interpreter.runtimes.spool import Spool, outputs_folder

Size = tuple[int, int]


def output_terminal(size: Size) -> Channels:
    """A terminal for a block to write to: programs stream line by line, their bytes arrive as they are."""
    ours, theirs = os.openpty()
    modes = termios.tcgetattr(theirs)
    modes[1] &= ~termios.OPOST
    modes[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG)
    termios.tcsetattr(theirs, termios.TCSANOW, modes)
    resize(ours, size)
    return Channels(reads=[(ours, "stdout")], held=[theirs], fields={"tty": os.ttyname(theirs)})


def resize(fd: int, size: Size) -> None:
    columns, lines = size
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


class Keyboard(Channel):
    """The controlling terminal of a shell: keys go in, prompts and the echo come out."""

    order = 0  # what was typed comes before what it made the block write

    def __init__(self) -> None:
        ours, self.theirs = os.openpty()
        self._modes = termios.tcgetattr(self.theirs)
        self._modes[1] &= ~termios.OPOST
        self._modes[6][termios.VSUSP] = b"\0"  # a stopped program could not be woken again
        self.path = os.ttyname(self.theirs)
        self._open = True
        super().__init__(Block(0, "", Spool(outputs_folder)), ours, "stdout")  # the session says whose it is

    def prepare(self, size: Size) -> None:
        """Before a block: keys that the last one left are gone, and modes that it set."""
        termios.tcsetattr(self.theirs, termios.TCSANOW, self._modes)
        termios.tcflush(self.theirs, termios.TCIFLUSH)
        resize(self.fd, size)

    def press(self, keys: bytes) -> None:
        """Type; what the program does not take in time is lost, as on any terminal."""
        with contextlib.suppress(OSError):
            os.write(self.fd, keys)

    def echo_off(self) -> bool:
        """Whether the program that runs does not want its input to be seen."""
        return self._open and not termios.tcgetattr(self.theirs)[3] & termios.ECHO

    def hang_up(self) -> None:
        """Nobody is at the keyboard any more; the reader finds the end and lets go."""
        if self._open:
            self._open = False
            os.close(self.theirs)

    def ended(self) -> None:
        self.hang_up()
        os.close(self.fd)
