"""Python's tracebacks, short: the user's own frames, and of the libraries' only how many there were."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from interpreter.frontends.terminal.render.ansi import without_styles
from interpreter.frontends.terminal.render.code import CodeLines
from interpreter.frontends.terminal.render.theme import Theme

_HEADER = re.compile(r"^\S.* {2,}Traceback \(most recent call last\)$|^Traceback \(most recent call last\):$")
_DASHES = re.compile(r"^-{20,}$")
_FRAME = re.compile(
    r"^File (?P<ipython>.+?):\d+(?:, in .*)?$"  # as IPython writes it
    r'|^  File "(?P<python>.+?)", line \d+(?:, in .*)?$'
    r"|^Cell In\[\d+\], line \d+.*$"
)
_LIBRARIES = (
    re.compile(r"[/\\](?:site|dist)-packages[/\\]([^/\\]+)"),
    re.compile(r"[/\\]lib[/\\]python\d[\d.]*[/\\]([^/\\]+)", re.IGNORECASE),
    re.compile(r"^<frozen ([\w.]+)>$"),
    re.compile(r"^([^/\\<]+)[/\\].*\.p(?:yx|xi|xd)$"),
)
_SOURCE = re.compile(r"^((?:-+> |   )? *\d+ )(.*)$")
_WHAT = re.compile(r"^([\w.]+)(?=:|$)")


@dataclass
class _Frame:
    lines: list[str]
    library: str  # the package that it is in; empty for the user's own


@dataclass
class _Error:
    """One traceback of a chain: its frames, and what stands below them."""

    frames: list[_Frame] = field(default_factory=list)
    tail: list[str] = field(default_factory=list)


def shortened(text: str, theme: Theme) -> tuple[str, bool] | None:
    """The text in our own colours, and whether anything was left out; None if it is no traceback."""
    if "Traceback (most recent call last)" not in text:
        return None
    before, errors = _parsed(without_styles(text).split("\n"))
    if not any(error.frames for error in errors):
        return None
    lines = list(before)
    for error in _without_echoes(errors):
        lines += _frames(error.frames, theme) + _tail(error.tail, theme)
    cut = any(frame.library for error in errors for frame in error.frames)
    return "\n".join(lines), cut


def _parsed(lines: list[str]) -> tuple[list[str], list[_Error]]:
    before: list[str] = []
    errors: list[_Error] = []
    for line in lines:
        if _DASHES.match(line):
            continue  # a rule of ours stands above already
        if _HEADER.match(line):
            errors.append(_Error())
        elif not errors:
            before.append(line)
        elif (frame := _FRAME.match(line)) and not errors[-1].tail:
            errors[-1].frames.append(_Frame([line], _library(frame)))
        elif errors[-1].frames and not errors[-1].tail and _of_frame(line):
            errors[-1].frames[-1].lines.append(line)
        else:
            errors[-1].tail.append(line)
    return before, errors


def _of_frame(line: str) -> bool:
    """Whether the line is source under a frame; the error itself begins at the margin, with a letter."""
    return not line or line[0] in " -" or line.startswith("[... ")


def _library(frame: re.Match[str]) -> str:
    path = frame["ipython"] or frame["python"] or ""
    found = next((found for each in _LIBRARIES if (found := each.search(path))), None)
    return found[1].removesuffix(".py") if found else ""


def _without_echoes(errors: list[_Error]) -> list[_Error]:
    """Without causes that were the library's own affair and say no more than what came of them."""
    kept = []
    for error, result in zip(errors, [*errors[1:], None], strict=True):
        own = any(not frame.library for frame in error.frames)
        if own or result is None or error.tail[:1] != result.tail[:1]:
            kept.append(error)
    return kept


def _frames(frames: list[_Frame], theme: Theme) -> list[str]:
    lines: list[str] = []
    folded: list[str] = []
    for frame in [*frames, None]:
        if frame is not None and frame.library:
            folded.append(frame.library)
            continue
        if folded:
            lines.append(theme.paint(_count(folded, theme), "hint"))
            folded = []
        lines += _frame(frame, theme) if frame else []
    return lines


def _frame(frame: _Frame, theme: Theme) -> list[str]:
    code = CodeLines("python", theme)
    lines = [theme.paint(frame.lines[0], "builtin")]
    for line in frame.lines[1:]:
        if source := _SOURCE.match(line):
            place = theme.paint(source[1], "error" if ">" in source[1] else "hint")
            lines.append(place + code.preview(source[2]))
        else:
            lines.append(line)
    return lines


def _tail(tail: list[str], theme: Theme) -> list[str]:
    """What went wrong, in red; and the words that join two errors."""
    if not tail:
        return []
    return [_WHAT.sub(lambda name: theme.paint(name[1], "error"), tail[0]), *tail[1:]]


def _count(libraries: list[str], theme: Theme) -> str:
    names = list(dict.fromkeys(libraries))
    named = ", ".join(names[:3]) + (" and others" if len(names) > 3 else "")
    return f"{theme.symbol('more')} {len(libraries)} frame{'s' if len(libraries) > 1 else ''} in {named}"
