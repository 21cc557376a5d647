"""The model's reasoning: plain, dimmed, line by line."""

from __future__ import annotations

from interpreter.terminal.render.ansi import visible
from interpreter.terminal.render.markdown import WIDEST
from interpreter.terminal.render.theme import Theme


class ReasoningView:
    """Shows thoughts as they come; a line is final when the next one begins."""

    def __init__(self, theme: Theme, width: int) -> None:
        self._theme = theme
        self.width = width
        self._partial = ""

    def feed(self, text: str) -> list[str]:
        """The rows that are final now."""
        *lines, self._partial = (self._partial + text).split("\n")
        return [row for line in lines for row in self._wrapped(line)]

    def open_rows(self) -> list[str]:
        """The line that is still being written."""
        return self._wrapped(self._partial) if self._partial else []

    def close(self) -> list[str]:
        """The rest."""
        rest, self._partial = self._partial, ""
        return self._wrapped(rest) if rest else []

    def _wrapped(self, line: str) -> list[str]:
        from rich.text import Text

        from interpreter.terminal.render.inline import rows

        text = Text(visible(line), self._theme.rich_style("reasoning"))
        return rows(text, min(self.width - 1, WIDEST), self._theme) or [""]
