"""What a terminal can do with pictures and colours: from its environment, else from its own answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from interpreter.frontends.terminal.questions import (
    CELL_SIZE,
    COLOR_REGISTERS,
    KITTY_GRAPHICS,
)
from interpreter.frontends.terminal.render.images.blocks import TRUE_COLOR

AUTO, OFF = "auto", "off"
_CELL = (9, 18)  # pixels, where nobody says
_TRUE_COLOR_PROGRAMS = frozenset({"iTerm.app", "WezTerm", "ghostty", "vscode", "Hyper", "rio", "mintty"})
_KITTY_TERMS = ("xterm-kitty", "xterm-ghostty")
_NO_GRAPHICS = frozenset({"Apple_Terminal"})  # it shows a question about graphics as text


@dataclass(frozen=True)
class Graphics:
    """The way to show a picture, and with what."""

    way: str  # kitty, iterm, sixel, blocks, off
    cell: tuple[int, int] = _CELL
    colors: int = 16  # of text, for blocks
    registers: int = 256  # colours that one sixel picture may have
    through_tmux: bool = False


def find_graphics(
    wanted: str,
    environ: Mapping[str, str],
    cell: tuple[int, int] | None,
    ask: Callable[[str], list[bytes]],
) -> Graphics:
    """How pictures are shown on this terminal; `ask` puts questions to it and gives its answers."""
    colors = color_depth(environ)
    way = wanted if wanted != AUTO else _known(environ)
    questions = "" if cell else CELL_SIZE
    if way == AUTO:
        questions += KITTY_GRAPHICS if not environ.get("TMUX") else ""
    if way in (AUTO, "sixel"):
        questions += COLOR_REGISTERS
    answers = ask(questions) if way in (AUTO, "sixel", "kitty", "iterm") and questions else []
    if way == AUTO:
        way = _answered(answers)
    tmux = bool(environ.get("TMUX")) and way in ("kitty", "iterm")
    return Graphics(way, cell or _cell(answers) or _CELL, colors, _registers(answers), tmux)


def _known(environ: Mapping[str, str]) -> str:
    """What the environment says; a multiplexer inherits it from a terminal that it stands before."""
    program, term = environ.get("TERM_PROGRAM", ""), environ.get("TERM", "")
    if environ.get("TMUX"):
        return AUTO
    if term.startswith("screen") or program in _NO_GRAPHICS:
        return "blocks"
    if term in _KITTY_TERMS or environ.get("KITTY_WINDOW_ID") or program == "ghostty":
        return "kitty"
    if program in ("iTerm.app", "WezTerm") or environ.get("LC_TERMINAL") == "iTerm2":
        return "iterm"
    return AUTO


def _answered(answers: list[bytes]) -> str:
    if any(answer.startswith(b"\x1b_G") and b";OK" in answer for answer in answers):
        return "kitty"
    attributes = next((answer[3:-1].split(b";") for answer in answers if answer.endswith(b"c")), [])
    return "sixel" if b"4" in attributes else "blocks"


def _cell(answers: list[bytes]) -> tuple[int, int] | None:
    for answer in answers:
        if found := re.fullmatch(rb"\x1b\[6;(\d+);(\d+)t", answer):
            height, width = int(found[1]), int(found[2])
            return (width, height) if width and height else None
    return None


def _registers(answers: list[bytes]) -> int:
    for answer in answers:
        if found := re.fullmatch(rb"\x1b\[\?1;0;(\d+)S", answer):
            return max(2, min(256, int(found[1])))
    return 256


def color_depth(environ: Mapping[str, str]) -> int:
    """How many colours text can have."""
    term = environ.get("TERM", "")
    true = environ.get("COLORTERM", "") in ("truecolor", "24bit") or environ.get("WT_SESSION")
    if true or environ.get("TERM_PROGRAM") in _TRUE_COLOR_PROGRAMS or "direct" in term or term in _KITTY_TERMS:
        return TRUE_COLOR
    return 256 if "256" in term or environ.get("TERM_PROGRAM") == "Apple_Terminal" else 16
