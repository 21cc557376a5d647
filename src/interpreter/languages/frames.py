"""The driver protocol's frames: JSON lines, split and joined without copying long ones twice."""

from __future__ import annotations

import json
from typing import Any

Frame = dict[str, Any]


def encode(frame: Frame) -> bytes:
    return json.dumps(frame, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def decode(line: bytes) -> Frame | None:
    """The frame of a line, or None for a line that is not one (a driver killed in the middle of it)."""
    try:
        frame = json.loads(line)
    except ValueError:
        return None
    return frame if isinstance(frame, dict) and "event" in frame else None


class Lines:
    """Splits a byte stream into lines; a long unfinished line is held in pieces, so the cost stays linear."""

    def __init__(self) -> None:
        self._open: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        head, newline, rest = data.partition(b"\n")
        if not newline:
            self._open.append(data)
            return []
        lines = [b"".join([*self._open, head]), *rest.split(b"\n")]
        last = lines.pop()
        self._open = [last] if last else []
        return lines
