"""The objects that are sys.stdout, sys.stderr and sys.stdin for the user's code."""

from __future__ import annotations

import codecs
import io
from _thread import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

    Send = Callable[[str], None]
    Ask = Callable[..., Optional[str]]

HELD_AT_MOST = 8192  # characters of a line that is not finished


def plain_output(name: str, fd: int) -> io.TextIOWrapper:
    """A stream that writes to a descriptor line by line, as Python does to a terminal."""
    raw = io.FileIO(fd, "w", closefd=False)
    raw.name = "<%s>" % name
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8", errors="backslashreplace", line_buffering=True)


class Output(io.TextIOBase):
    """Sends its text line by line; each thread has its own unfinished line."""

    encoding = "utf-8"
    errors = "replace"
    line_buffering = True
    write_through = False
    mode = "w"

    def __init__(self, name: str, fd: int, send: Send) -> None:
        self.name = "<%s>" % name
        self.buffer = BinaryOutput(self)
        self._fd, self._send = fd, send
        self._unfinished: dict[int, str] = {}

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError("write() argument must be str, not %s" % type(text).__name__)
        thread = get_ident()
        whole = self._unfinished.pop(thread, "") + text if self._unfinished else text
        if "\n" in text or "\r" in text or len(whole) > HELD_AT_MOST:
            self._send(whole)
        elif whole:
            self._unfinished[thread] = whole
        return len(text)

    def flush(self) -> None:
        rest = self._unfinished.pop(get_ident(), None)
        if rest:
            self._send(rest)

    def flush_everything(self) -> None:
        """At the end of a block: send the unfinished lines of all threads, and an incomplete character."""
        self.buffer.write(b"", final=True)
        for thread in list(self._unfinished):
            rest = self._unfinished.pop(thread, None)
            if rest:
                self._send(rest)

    def fileno(self) -> int:
        return self._fd

    def writable(self) -> bool:
        return True

    def reconfigure(self, **_: object) -> None:
        """Accepted, because scripts request UTF-8 and line buffering, which is how it works anyway."""

    def close(self) -> None:
        self.flush()  # the stream is still needed in later blocks


class BinaryOutput(io.BufferedIOBase):
    """The bytes side of an output; invalid UTF-8 is replaced."""

    def __init__(self, text: Output) -> None:
        self._text = text
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def write(self, data: Any, final: bool = False) -> int:
        data = bytes(data)
        self._text.write(self._decoder.decode(data, final))
        return len(data)

    def flush(self) -> None:
        self._text.flush()

    def fileno(self) -> int:
        return self._text.fileno()

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        self.flush()


class Input(io.TextIOBase):
    """Asks the user for each line."""

    encoding = "utf-8"
    errors = "replace"
    name = "<stdin>"
    mode = "r"

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._rest = ""
        self.buffer = BinaryInput(self)

    def readline(self, size: Optional[int] = -1) -> str:  # type: ignore[override]
        if not self._rest:
            answer = self._ask("")
            self._rest = "" if answer is None else answer + "\n"
        line = self._rest if size is None or size < 0 else self._rest[:size]
        self._rest = self._rest[len(line) :]
        return line

    def read(self, size: Optional[int] = -1) -> str:
        if size is not None and size >= 0:
            return self.readline(size)
        return "".join(iter(self.readline, ""))

    def fileno(self) -> int:
        return 0

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        """Does nothing: `exit()` closes sys.stdin, which later blocks still need."""


class BinaryInput(io.BufferedIOBase):
    """The bytes side of the input."""

    def __init__(self, text: Input) -> None:
        self._text = text

    def readline(self, size: Optional[int] = -1) -> bytes:
        return self._text.readline(size).encode()

    def read(self, size: Optional[int] = -1) -> bytes:
        return self._text.read(size).encode()

    def fileno(self) -> int:
        return 0

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        """Does nothing, like the text side."""


def make_input(ask: Ask) -> Callable[..., str]:
    """A replacement for the built-in input()."""

    def input(prompt: object = "", /) -> str:  # noqa: A001
        """Read a line from the user; EOFError if no answer is possible."""
        answer = ask(str(prompt))
        if answer is None:
            raise EOFError("input() found nobody to ask")
        return answer

    return input


def make_getpass(ask: Ask) -> Callable[..., str]:
    """A replacement for getpass.getpass()."""

    def getpass(prompt: str = "Password: ", stream: object = None, **_: object) -> str:
        """Read a line from the user that is not shown; EOFError if no answer is possible."""
        answer = ask(prompt, True)
        if answer is None:
            raise EOFError("getpass() found nobody to ask")
        return answer

    return getpass
