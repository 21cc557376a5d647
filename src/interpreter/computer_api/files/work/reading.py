"""Parts of a file, by their lines."""

from __future__ import annotations

import base64
from typing import List, Optional

from .texts import Text, content_of

MOST = 100_000  # characters


def read(
    folder: str, path: str, start: Optional[int], end: Optional[int], numbers: bool, most: Optional[int] = None
) -> str:
    """The lines from `start` to `end`, both counted from 1 and included; what is left out is said at the end."""
    content = Text(content_of(folder, path), path).content.replace("\r\n", "\n")
    lines = content.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    first, last = _range(start, end, len(lines), path)
    shown = lines[first - 1 : last]
    kept = _fitting(shown, MOST if most is None else most)
    text = _joined(shown[:kept], first if numbers else None)
    if start is None and end is None and kept == len(shown) and not numbers:
        return content  # also without an end of line at its end
    if kept < len(shown):
        rest = first + kept
        text += f"[Lines {rest} to {last} of {len(lines)} are left out: read({path!r}, start={rest}) goes on.]\n"
    return text


def _range(start: Optional[int], end: Optional[int], count: int, path: str) -> "tuple[int, int]":
    first = 1 if start is None else start if start > 0 else max(1, count + 1 + start)
    last = count if end is None else end if end >= 0 else count + 1 + end
    if start == 0 or (first > max(count, 1)) or last < first - 1:
        raise ValueError(f"{path} has the lines 1 to {count}: there is no start={start}, end={end}.")
    return first, min(last, count)


def _fitting(lines: List[str], most: int) -> int:
    """How many lines fit; the first one always counts as fitting."""
    size = 0
    for number, line in enumerate(lines):
        size += len(line) + 1
        if size > most:
            return max(1, number)
    return len(lines)


def _joined(lines: List[str], first: Optional[int]) -> str:
    if first is None:
        return "".join(line + "\n" for line in lines)
    width = len(str(first + len(lines) - 1))
    return "".join(f"{first + at:>{width}}  {line}\n" for at, line in enumerate(lines))


def content(folder: str, path: str) -> str:
    """All bytes of a file, as base64."""
    return base64.b64encode(content_of(folder, path)).decode("ascii")


def whole(folder: str, path: str) -> str:
    """All of a text."""
    return Text(content_of(folder, path), path).content
