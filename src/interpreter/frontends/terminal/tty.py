"""The terminal as the system sees it: what it can do, how large it is, how keys are read, and queries to it."""

from __future__ import annotations

import atexit
import os
import re
import select
import struct
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, TextIO

from interpreter.sigint import call_blocking

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl
    import termios

PASTE_ON, PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"

# Queries. The answers arrive among the keys.
KITTY_GRAPHICS = "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\"
CELL_SIZE = "\x1b[16t"
COLOR_REGISTERS = "\x1b[?1;1;0S"
BACKGROUND = "\x1b]11;?\x1b\\"
_ATTRIBUTES = "\x1b[c"  # every terminal answers this one, and in order: its answer ends the wait for the others
_MUTE = ("linux", "vt", "cons25", "eterm", "sun", "screen")
_LOCAL_TIMEOUT, _REMOTE_TIMEOUT = 0.25, 1.5  # seconds that a terminal has to answer
_ANSWER = re.compile(
    rb"\x1b_G[^\x1b]*\x1b\\"  # kitty graphics
    rb"|\x1b\[\?[0-9;]*[cS]"  # device attributes; colour registers
    rb"|\x1b\[[468];\d+;\d+t"  # sizes
    rb"|\x1b\]1[01];[^\x07\x1b]*(?:\x07|\x1b\\)"  # colours
)
_LAST = re.compile(rb"\x1b\[\?[0-9;]*c")
_BEGUN = re.compile(rb"\x1b(?:_G|\[\?[0-9;]|\]1[01];)[^\x07\x1b]*\x1b?\Z")


class Tty:
    def __init__(self, stdin: TextIO | None = None, stdout: TextIO | None = None) -> None:
        self.stdin = stdin or sys.stdin
        self.stdout = stdout or sys.stdout
        self.can_type = _is_tty(self.stdin)
        self.can_show = _is_tty(self.stdout)
        # On Windows nothing reads single keys, so nothing is redrawn: input and output are plain lines.
        self.dumb = sys.platform == "win32" or os.environ.get("TERM", "dumb") in ("", "dumb", "unknown")
        self._key_mode: list[object] | None = None  # while it is on

    def type_at_terminal(self) -> None:
        """Read keys from the controlling terminal, if there is one, after standard input was read from a pipe."""
        if self.can_type or not self.can_show:
            return
        with suppress(OSError):
            self.stdin = open("/dev/tty", encoding="utf-8", errors="replace")  # noqa: SIM115 - open as long as we run
            self.can_type = True

    @property
    def can_draw(self) -> bool:
        return self.can_show and not self.dumb

    @property
    def color(self) -> bool:
        return not os.environ.get("NO_COLOR") and os.environ.get("CLICOLOR") != "0" and self.can_draw

    @property
    def unicode(self) -> bool:
        encoding = getattr(self.stdout, "encoding", None) or "ascii"
        return encoding.lower().replace("-", "").startswith("utf")

    def size(self) -> tuple[int, int]:
        try:
            columns, lines = os.get_terminal_size(self.stdout.fileno())
        except (OSError, ValueError):
            columns, lines = 0, 0
        return columns or 80, lines or 24

    def cell(self) -> tuple[int, int] | None:
        """Return width and height of a character in pixels, if the system knows them."""
        try:
            answer = fcntl.ioctl(self.stdout.fileno(), termios.TIOCGWINSZ, bytes(8))
        except (OSError, ValueError):
            return None
        lines, columns, width, height = struct.unpack("HHHH", answer)
        cell = (width // columns, height // lines) if lines and columns else (0, 0)
        return cell if min(cell) >= 2 else None

    def write(self, text: str) -> None:
        """Write at once. Characters that this output cannot encode become question marks."""
        try:
            self.stdout.write(text)
        except UnicodeEncodeError:
            encoding = self.stdout.encoding or "ascii"
            self.stdout.write(text.encode(encoding, "replace").decode(encoding))
        self.stdout.flush()

    def read_line(self, prompt: str = "") -> str:
        """Read a line, edited by the terminal itself; empty at the end of input."""
        _early.close()  # before the prompt, since what is typed after it belongs to the line
        try:
            self.write(prompt)
            line: str = call_blocking(self.stdin.readline)
            return line
        except KeyboardInterrupt:
            self.write("\n")  # the terminal has shown ^C
            raise

    def has_typed(self) -> bool:
        if sys.platform == "win32":
            return msvcrt.kbhit()
        return bool(select.select([self.stdin], [], [], 0)[0])

    def discard_typed(self) -> None:
        if sys.platform == "win32":
            while self.can_type and msvcrt.kbhit():
                msvcrt.getwch()
        elif self.can_type:
            termios.tcflush(self.stdin.fileno(), termios.TCIFLUSH)

    @property
    def in_foreground(self) -> bool:
        """Check whether we may change the mode: a job in the background would be stopped for it. On Windows never."""
        if sys.platform == "win32":
            return False
        try:
            return self.can_type and os.tcgetpgrp(self.stdin.fileno()) == os.getpgrp()
        except OSError:
            return False

    @contextmanager
    def keys(self, marks: bool) -> Iterator[None]:
        """Read keys one by one without echo; Ctrl-C and Ctrl-Z still work. `marks` surround a paste."""
        iflag, oflag, cflag, lflag, ispeed, ospeed, cc = termios.tcgetattr(self.stdin.fileno())
        cc = list(cc)
        cc[termios.VMIN], cc[termios.VTIME] = 1, 0
        cc[termios.VQUIT] = b"\x00"
        lflag &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
        # Without ICRNL, Enter differs from Ctrl-J.
        self._key_mode = [iflag & ~termios.ICRNL, oflag, cflag, lflag, ispeed, ospeed, cc]
        with self._mode(self._key_mode, PASTE_OFF if marks else ""):
            if marks:
                self.write(PASTE_ON)
            try:
                yield
            finally:
                self._key_mode = None

    def resume_keys(self) -> None:
        """Set the mode again after a stop and a continue: a shell used the terminal in between."""
        if self._key_mode is not None and self.in_foreground:
            _set_mode(self.stdin.fileno(), self._key_mode)

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Do not echo the line that is typed now."""
        _early.close()
        mode = termios.tcgetattr(self.stdin.fileno())
        mode[3] &= ~termios.ECHO
        with self._mode(mode):
            yield

    @contextmanager
    def _mode(self, mode: list[object], after: str = "") -> Iterator[None]:
        """Set a mode, and restore the old one and write `after`, at exit at the latest."""
        fd = self.stdin.fileno()
        before = termios.tcgetattr(fd)

        def restore() -> None:
            with suppress(OSError, ValueError, termios.error):  # the terminal may be gone
                _set_mode(fd, before)
                self.write(after)

        atexit.register(restore)
        _set_mode(fd, mode)
        try:
            yield
        finally:
            restore()
            atexit.unregister(restore)

    def query(self, queries: str, limit: float | None = None) -> tuple[list[bytes], bytes]:
        """Return the terminal's answers, none if it is mute, and keys typed in between. Use it inside `keys`."""
        if limit is None:
            is_remote = os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY")
            limit = _REMOTE_TIMEOUT if is_remote else _LOCAL_TIMEOUT
        # A terminal may show a query that it does not know as text: that is erased.
        self.write(f"\x1b7{queries}\x1b8\x1b[K{_ATTRIBUTES}")
        data, end = b"", time.monotonic() + limit
        while not _LAST.search(data) and (left := end - time.monotonic()) > 0:
            if not select.select([self.stdin], [], [], left)[0]:
                break
            read = os.read(self.stdin.fileno(), 4096)
            if not read:
                break
            data += read
        return _ANSWER.findall(data), _BEGUN.sub(b"", _ANSWER.sub(b"", data))


# -- keys before the first prompt ------------------------------------------------------------------------------------

_early = ExitStack()  # the mode of the terminal until then
_early_keys = bytearray()


def hide_early_keys() -> None:
    """Keep what is typed from now to the first prompt, and erase what the terminal has shown of it."""
    tty = Tty()
    if not (tty.in_foreground and tty.can_draw):
        return
    _early.enter_context(tty.keys(marks=False))
    _early.callback(lambda: _early_keys.extend(unread_keys(tty)))
    if typed := unread_keys(tty):
        _early_keys.extend(typed.replace(b"\n", b"\r"))  # in line mode, Enter is a line feed
        width = tty.size()[0]
        rows = sum(len(line.decode("utf-8", "replace")) // width for line in typed.split(b"\n")) + typed.count(b"\n")
        tty.write("\r" + (f"\x1b[{rows}A" if rows else "") + "\x1b[J")


def early_keys() -> bytes:
    """Stop reading early keys, restore the terminal, and return what was typed until now."""
    _early.close()
    typed = bytes(_early_keys)
    _early_keys.clear()
    return typed


def unread_keys(tty: Tty) -> bytes:
    return os.read(tty.stdin.fileno(), 65536) if tty.has_typed() else b""


def prompt_toolkit_options(tty: Tty) -> dict[str, Any]:
    """Return input, output and colours for an application of prompt_toolkit."""
    from prompt_toolkit.input import create_input
    from prompt_toolkit.output import ColorDepth, create_output

    output = create_output(stdout=tty.stdout)
    if hasattr(output, "enable_cpr"):
        output.enable_cpr = False  # answers to cursor position requests would end up in what is typed next
        # Without an answer, the line under the prompt would not be drawn.
        output.get_rows_below_cursor_position = lambda: 1  # type: ignore[method-assign]
    color_depth = None if tty.color else ColorDepth.DEPTH_1_BIT
    return {"input": create_input(tty.stdin), "output": output, "color_depth": color_depth}


def answers_queries(environ: Mapping[str, str]) -> bool:
    """Check whether the terminal is of a kind that answers queries."""
    return bool(environ.get("TMUX")) or not environ.get("TERM", "").startswith(_MUTE)


def notification(environ: Mapping[str, str]) -> str:
    """Return the escape that shows a text as a desktop notification in this terminal; empty if none is known."""
    term, program = environ.get("TERM", ""), environ.get("TERM_PROGRAM", "")
    if environ.get("TMUX") or term.startswith(("screen", "tmux")):
        return ""  # they don't pass it on
    if environ.get("KITTY_WINDOW_ID") or term == "xterm-kitty":
        return "\x1b]99;;{}\x1b\\"
    if program in ("iTerm.app", "WezTerm", "ghostty"):
        return "\x1b]9;{}\x1b\\"
    return "\x1b]777;notify;Open Interpreter;{}\x1b\\" if term.startswith(("foot", "rxvt")) else ""


def _set_mode(fd: int, mode: list[object]) -> None:
    # Not TCSAFLUSH: it would lose keys typed in between.
    termios.tcsetattr(fd, termios.TCSADRAIN, mode)  # type: ignore[arg-type]


def _is_tty(file: TextIO) -> bool:
    try:
        return file.isatty()
    except (ValueError, AttributeError):
        return False
