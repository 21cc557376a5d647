"""Server-sent events: from the bytes of a response to the data of each event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

BOM = b"\xef\xbb\xbf"


def event_data(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The data of each event, however the bytes are cut; comments and other fields are passed over.

    httpx-sse does the same on decoded lines; per event it costs as much as reading it from the network.
    """
    lines = _Lines()
    data: list[bytes] = []
    for piece in pieces:
        if not data and lines.nothing_held and (only := _only_data(piece)):
            yield only
            continue
        for line in lines.of(piece):
            if line.startswith(b"data:"):
                data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif not line and data:
                yield b"\n".join(data)
                data = []
    last = lines.rest()
    if last.startswith(b"data:"):
        data.append(last[5:].lstrip(b" "))
    if data:  # the last event of a server that forgets the empty line behind it
        yield b"\n".join(data)


def _only_data(piece: bytes) -> bytes:
    """The data of a piece that is one event with one line of data, as nearly all are; nothing of any other."""
    if not piece.endswith(b"\n\n") or b"\r" in piece:
        return b""
    start = piece.find(b"\n") + 1 if piece.startswith(b"event: ") else 0
    if not piece.startswith(b"data: ", start) or piece.find(b"\n", start) != len(piece) - 2:
        return b""
    return piece[start + 6 : -2]


class _Lines:
    """Lines that end in LF, CRLF or CR."""

    def __init__(self) -> None:
        self._held: list[bytes] = []  # parts of a line whose end has not come
        self._after_return = False
        self._first = True

    @property
    def nothing_held(self) -> bool:
        return not self._held and not self._after_return

    def of(self, piece: bytes) -> list[bytes]:
        """The lines that this piece ends."""
        if self._after_return and piece:
            piece = piece.removeprefix(b"\n")
            self._after_return = False
        if b"\r" in piece:
            self._after_return = piece.endswith(b"\r")
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = piece.split(b"\n")
        if lines:
            self._held.append(lines[0])
            lines[0] = self.rest()
            self._first = False
        if rest:
            self._held.append(rest)
        return lines

    def rest(self) -> bytes:
        """The line that has no end yet."""
        line = b"".join(self._held)
        self._held = []
        return line.removeprefix(BOM) if self._first else line
