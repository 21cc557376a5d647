"""The driver protocol's frames: JSON lines, split and joined without copying long ones twice."""

from __future__ import annotations

import json
from typing import Any

Frame = dict[str, Any]

# What a driver may say, and what has to be in it. A worker runs code that may mean harm: it must not be able to speak
# as the host does (`call_asks`, `exited`), nor to end the reader with something that nobody expects.
_OF_BLOCK: dict[str, type] = {"block": int}
SAID: dict[str, dict[str, type]] = {
    "ready": {},
    "answer": {},
    "sync": {},
    "turn": {},
    "stream": {**_OF_BLOCK, "name": str, "text": str},
    "display": {**_OF_BLOCK, "data": dict},
    "clear": _OF_BLOCK,
    "active_line": {**_OF_BLOCK, "line": int},
    "input_request": {**_OF_BLOCK, "prompt": str},
    "done": {**_OF_BLOCK, "status": str},
    "call": {**_OF_BLOCK, "call": int, "path": str, "how": str},
    "call_off": {"call": int},
}


LONGEST = 1 << 28  # bytes of a frame


def encode(frame: Frame) -> bytes:
    return json.dumps(frame, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def decode(line: bytes) -> Frame | None:
    """The frame of a line, or None for a line that is not one (a driver killed in the middle of it)."""
    try:
        frame = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return frame if isinstance(frame, dict) and is_frame(frame) else None


def is_frame(frame: Frame) -> bool:
    event = frame.get("event")
    needed = SAID.get(event) if isinstance(event, str) else None
    return needed is not None and all(isinstance(frame.get(name), kind) for name, kind in needed.items())


class Lines:
    """Splits a byte stream into lines; a long unfinished line is held in pieces, so the cost stays linear."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._open: list[bytes] = []
        self._held, self._longest = 0, longest

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are whole now; one that is too long is dropped, as code may mean to fill our memory."""
        head, newline, rest = data.partition(b"\n")
        self._held += len(head)
        if self._held > self._longest:
            self._open = []
        else:
            self._open.append(head)
        if not newline:
            return []
        begun = [b"".join(self._open)] if self._held <= self._longest else []
        *whole, last = rest.split(b"\n")
        self._open, self._held = [last] if last else [], len(last)
        return [*begun, *whole]
