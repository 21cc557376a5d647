"""Less of an output for a model that gets lost in more: the heart of a traceback, the ends of a long text."""

from __future__ import annotations

import re

_TRACEBACK = "Traceback (most recent call last)"
_FRAME = re.compile(r'^\s*(?:File|Cell) ["<]?(?P<file>[^"\n,]*)')
_LONGEST = 300  # of a line


def digest(text: str) -> str:
    """Each traceback without the frames of libraries; the rest as it is."""
    before, found, trace = text.rpartition(_TRACEBACK)
    if not found:
        return text
    # IPython writes a line of dashes and the error's name before it.
    said = before.rstrip(" ").rpartition("-" * 20)[0].rstrip("-\n") if before.endswith(" ") else before
    return f"{said}\n{_without_libraries(trace.lstrip(':- ').splitlines())}".strip()


def _without_libraries(lines: list[str]) -> str:
    kept: list[str] = []
    is_kept = True
    for line in lines:
        frame = _FRAME.match(line)
        if frame:
            is_kept = not _is_library(frame["file"])
        elif line[:1].strip() and not line.startswith("-"):
            is_kept = True  # what the error says stands at the margin
        if is_kept and (line.strip() or (kept and kept[-1].strip())):
            kept.append(line[:_LONGEST])
    return "\n".join(kept)


def _is_library(file: str) -> bool:
    return "site-packages" in file or "/lib/python" in file or "\\lib\\" in file.lower() or file.startswith("frozen")


def shortened(text: str, most: int) -> str:
    """Beginning and end of a text, with a word on what is missing."""
    head, tail = most // 3, most - most // 3
    return f"{text[:head]}\n[... {len(text) - most:,} characters left out ...]\n{text[-tail:]}"
