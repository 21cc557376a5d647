"""The terminal as the system sees it: what it can do, how large it is, and the mode its keys come in."""

from __future__ import annotations

import atexit
import os
import re
import select
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TextIO

try:
    import termios
except ImportError:  # Windows, untested: keys are then read line by line
    termios = None  # type: ignore[assignment]

PASTE_ON, PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"


class Tty:
    """Standard input and output, and whether a person sits at them."""

    def __init__(self, stdin: TextIO | None = None, stdout: TextIO | None = None) -> None:
        self.stdin = stdin or sys.stdin
        self.stdout = stdout or sys.stdout
        self.can_type = _is_tty(self.stdin)
        self.can_show = _is_tty(self.stdout)
        self._mode: list[object] | None = None  # the one for keys, while it is on
        self.dumb = os.environ.get("TERM", "dumb") in ("", "dumb", "unknown")

    def type_at_terminal(self) -> None:
        """Standard input was a pipe and is read: from now on keys come from the terminal that shows us, if any."""
        if self.can_type or not self.can_show:
            return
        with suppress(OSError):  # there is none, and so nobody to ask
            self.stdin = open("/dev/tty", encoding="utf-8", errors="replace")  # noqa: SIM115 - open as long as we run
            self.can_type = True

    @property
    def can_draw(self) -> bool:
        """Whether rows can be drawn again in place."""
        return self.can_show and not self.dumb

    @property
    def color(self) -> bool:
        return not os.environ.get("NO_COLOR") and os.environ.get("CLICOLOR") != "0" and self.can_draw

    @property
    def forced_color(self) -> bool:
        """Whether colours are wanted even where nobody may be looking."""
        return not os.environ.get("NO_COLOR") and os.environ.get("CLICOLOR_FORCE", "0") not in ("", "0")

    @property
    def unicode(self) -> bool:
        encoding = getattr(self.stdout, "encoding", None) or "ascii"
        return encoding.lower().replace("-", "").startswith("utf")

    def size(self) -> tuple[int, int]:
        """Columns and lines."""
        try:
            columns, lines = os.get_terminal_size(self.stdout.fileno())
        except (OSError, ValueError):
            columns, lines = 0, 0
        return columns or 80, lines or 24

    def cell(self) -> tuple[int, int] | None:
        """Width and height of a character in pixels, where the system knows them."""
        if sys.platform == "win32":
            return None
        import fcntl
        import struct

        try:
            told = fcntl.ioctl(self.stdout.fileno(), termios.TIOCGWINSZ, bytes(8))
        except (OSError, ValueError):
            return None
        lines, columns, width, height = struct.unpack("HHHH", told)
        cell = (width // columns, height // lines) if lines and columns else (0, 0)
        return cell if min(cell) >= 2 else None

    def write(self, text: str) -> None:
        """Write at once; what this output cannot encode becomes question marks."""
        try:
            self.stdout.write(text)
        except UnicodeEncodeError:
            encoding = self.stdout.encoding or "ascii"
            self.stdout.write(text.encode(encoding, "replace").decode(encoding))
        self.stdout.flush()

    def forget_typed(self) -> None:
        """Throw away what was typed and not read yet."""
        if self.can_type and termios is not None:
            termios.tcflush(self.stdin.fileno(), termios.TCIFLUSH)

    @property
    def in_foreground(self) -> bool:
        """Whether changing the mode would not stop us, as it does a job in the background."""
        try:
            return self.can_type and os.tcgetpgrp(self.stdin.fileno()) == os.getpgrp()
        except (OSError, AttributeError):
            return False

    @contextmanager
    def keys(self, marks: bool) -> Iterator[None]:
        """Keys come one by one and unseen, while Ctrl-C and Ctrl-Z still work; with marks around a paste."""
        fd = self.stdin.fileno()
        before = termios.tcgetattr(fd)
        restore = _Restore(self, fd, before, marks)
        atexit.register(restore)
        self._mode = key_mode(before)
        _set(fd, self._mode)
        if marks:
            self.write(PASTE_ON)
        try:
            yield
        finally:
            self._mode = None
            restore()
            atexit.unregister(restore)

    def keys_again(self) -> None:
        """After a stop and a continue: a shell has had the terminal meanwhile."""
        if self._mode is not None and self.in_foreground:
            _set(self.stdin.fileno(), self._mode)

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """A line is typed that is not to be seen."""
        if sys.platform == "win32":
            yield
            return
        fd = self.stdin.fileno()
        before = termios.tcgetattr(fd)
        mode = list(before)
        mode[3] &= ~termios.ECHO
        _set(fd, mode)
        try:
            yield
        finally:
            _set(fd, before)


class _Restore:
    """Gives the terminal back as it was; also at exit, if nothing else did."""

    def __init__(self, tty: Tty, fd: int, mode: list[object], marks: bool) -> None:
        self._tty, self._fd, self._mode, self._marks = tty, fd, mode, marks

    def __call__(self) -> None:
        with suppress(OSError, ValueError, termios.error):  # a terminal that is gone needs nothing back
            _set(self._fd, self._mode)
            if self._marks:
                self._tty.write(PASTE_OFF)


def read_line(tty: Tty) -> str:
    """A line as the terminal itself lets it be edited; empty at the end of input."""
    try:
        return tty.stdin.readline()
    except KeyboardInterrupt:
        tty.write("\n")  # the terminal has shown ^C
        raise


def key_mode(before: list[object]) -> list[object]:
    """The mode in which each key is read at once, not shown, and Enter is told from Ctrl-J."""
    iflag, oflag, cflag, lflag, ispeed, ospeed, cc = before
    assert isinstance(iflag, int)
    assert isinstance(lflag, int)
    assert isinstance(cc, list)
    cc = list(cc)
    cc[termios.VMIN], cc[termios.VTIME] = 1, 0
    cc[termios.VQUIT] = b"\x00"
    lflag &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
    return [iflag & ~termios.ICRNL, oflag, cflag, lflag, ispeed, ospeed, cc]


def _set(fd: int, mode: list[object]) -> None:
    # Not TCSAFLUSH: what was typed meanwhile must not be lost.
    termios.tcsetattr(fd, termios.TCSADRAIN, mode)  # type: ignore[arg-type]


def _is_tty(file: TextIO) -> bool:
    try:
        return file.isatty()
    except (ValueError, AttributeError):
        return False


KITTY_GRAPHICS = "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\"
CELL_SIZE = "\x1b[16t"
COLOR_REGISTERS = "\x1b[?1;1;0S"
BACKGROUND = "\x1b]11;?\x1b\\"
_ATTRIBUTES = "\x1b[c"  # every terminal answers this, and answers in order: it ends the others' time

NEAR, FAR = 0.25, 1.5  # seconds that a terminal has, here and at the other end of a line
_MUTE = ("linux", "vt", "cons25", "eterm", "sun", "screen")
_ANSWER = re.compile(
    rb"\x1b_G[^\x1b]*\x1b\\"  # kitty graphics
    rb"|\x1b\[\?[0-9;]*[cS]"  # device attributes; colour registers
    rb"|\x1b\[[468];\d+;\d+t"  # sizes
    rb"|\x1b\]1[01];[^\x07\x1b]*(?:\x07|\x1b\\)"  # colours
)
_LAST = re.compile(rb"\x1b\[\?[0-9;]*c")
_BEGUN = re.compile(rb"\x1b(?:_G|\[\?[0-9;]|\]1[01];)[^\x07\x1b]*\x1b?\Z")


def answers_questions(environ: Mapping[str, str]) -> bool:
    """Whether the terminal is of a kind that may be asked."""
    return bool(environ.get("TMUX")) or not environ.get("TERM", "").startswith(_MUTE)


def time_limit(environ: Mapping[str, str]) -> float:
    return FAR if environ.get("SSH_CONNECTION") or environ.get("SSH_TTY") else NEAR


def interview(tty: Tty, questions: str, limit: float) -> tuple[list[bytes], bytes]:
    """The terminal's answers, none if it is mute, and the keys that were typed; keys must come one by one."""
    # What a terminal might show of a question that it does not know is wiped out again.
    tty.write(f"\x1b7{questions}\x1b8\x1b[K{_ATTRIBUTES}")
    data, end = b"", time.monotonic() + limit
    while not _LAST.search(data) and (left := end - time.monotonic()) > 0:
        if not select.select([tty.stdin], [], [], left)[0]:
            break
        read = os.read(tty.stdin.fileno(), 4096)
        if not read:
            break
        data += read
    return _ANSWER.findall(data), _BEGUN.sub(b"", _ANSWER.sub(b"", data))
