"""The objects behind sys.stdout, sys.stderr and sys.stdin for the user's code."""

from __future__ import annotations

import codecs
import io
from _thread import get_ident

from .hints import Any, AskUser, Callable

MAX_HELD_LENGTH = 8192  # characters of a line that is not finished


def plain_output(name: str, fd: int) -> io.TextIOWrapper:
    """Make a stream that writes to a descriptor line by line, as Python does to a terminal."""
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

    def __init__(self, name: str, fd: int, send: Callable[[str], None]) -> None:
        self.name = "<%s>" % name
        self.buffer = BinaryOutput(self)
        self._fd, self._send = fd, send
        self._unfinished: dict[int, str] = {}

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError("write() argument must be str, not %s" % type(text).__name__)
        thread = get_ident()
        whole = self._unfinished.pop(thread, "") + text if self._unfinished else text
        if "\n" in text or "\r" in text or len(whole) > MAX_HELD_LENGTH:
            self._send(whole)
        elif whole:
            self._unfinished[thread] = whole
        return len(text)

    def flush(self) -> None:
        rest = self._unfinished.pop(get_ident(), None)
        if rest:
            self._send(rest)

    def flush_everything(self) -> None:
        """Send the unfinished lines of all threads, and an incomplete character, at the end of a block."""
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
        """Do nothing: scripts request UTF-8 and line buffering, which is how it works anyway."""

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


class Answers(io.RawIOBase):
    """The user's answers as bytes: a read without input asks for a line."""

    name = "<stdin>"

    def __init__(self, ask: AskUser) -> None:
        self._ask = ask
        self._rest = b""

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            answer = self._ask("")
            self._rest = b"" if answer is None else (answer + "\n").encode("utf-8", "surrogatepass")
        piece = self._rest[: len(buffer)]
        self._rest = self._rest[len(piece) :]
        buffer[: len(piece)] = piece
        return len(piece)

    def fileno(self) -> int:
        return 0

    def readable(self) -> bool:
        return True


class BinaryInput(io.BufferedReader):
    def close(self) -> None:
        """Do nothing: `exit()` closes sys.stdin, which later blocks still need."""


class Input(io.TextIOWrapper):
    mode = "r"

    def __init__(self, ask: AskUser) -> None:
        super().__init__(BinaryInput(Answers(ask)), encoding="utf-8", errors="surrogatepass", newline="\n")

    def close(self) -> None:
        """Do nothing, like the bytes side."""


def make_input(ask: AskUser, name: str = "input", default: str = "", password: bool = False) -> Callable[..., str]:
    """Make a replacement for the built-in input(), or for getpass.getpass()."""

    def read(prompt: object = default, *_: object, **__: object) -> str:
        answer = ask(str(prompt), password)
        if answer is None:
            raise EOFError("%s() needs a user to ask, and there is none" % name)
        return answer

    read.__name__ = read.__qualname__ = name
    return read
