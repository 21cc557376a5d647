"""A difference of lines in colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interpreter.frontends.terminal.render.ansi import visible

if TYPE_CHECKING:
    from interpreter.frontends.terminal.render.theme import Theme

_STYLES = {"+": "string", "-": "error", "@": "number", "\\": "hint"}
_HEADS = ("--- ", "+++ ", "rename ", "Binary files ")


def rows(text: str, theme: Theme | None, most: int | None = None) -> tuple[list[str], int]:
    """The lines of a difference, at most so many, and how many are left out; without a theme in no colour."""
    lines = [visible(line) for line in text.removesuffix("\n").split("\n")]
    kept = lines[:most]
    painted = [theme.paint(line, _style(line, number)) for number, line in enumerate(kept)] if theme else kept
    return painted, len(lines) - len(kept)


def _style(line: str, number: int) -> str:
    if line.startswith(_HEADS) and number < 4:
        return "column"
    return _STYLES.get(line[:1], "")
