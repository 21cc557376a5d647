"""Markdown as it streams in: finished pieces become final rows, only the open one is drawn again."""

from __future__ import annotations

import re
from typing import Any

from interpreter.terminal.render.ansi import visible
from interpreter.terminal.render.code import CodeLines
from interpreter.terminal.render.markdown_blocks import Blocks, Piece
from interpreter.terminal.render.theme import Theme

WIDEST = 100  # columns of prose; longer lines are hard to read
_MARKER = re.compile(r"^([-*+]|\d{1,9}[.)])\s*")
_NARROWEST_COLUMN = 6
_DRAWN_ROWS = 80


class MarkdownView:
    """The text of one message: `feed` what arrives, commit the rows it gives, draw `open_rows` below them."""

    def __init__(self, theme: Theme, width: int) -> None:
        self.width = width
        self._theme = theme
        self._blocks = Blocks()
        self._partial = ""
        self._code: CodeLines | None = None
        self._code_indent = 0
        self._last = ""  # kind of the last piece drawn

    def feed(self, text: str) -> list[str]:
        """The rows that are final now."""
        *lines, self._partial = (self._partial + text).replace("\r\n", "\n").split("\n")
        return [row for line in lines for piece in self._blocks.feed(line) for row in self._draw(piece)]

    def open_rows(self) -> list[str]:
        """The rows that may still change."""
        if self._blocks.in_fence:
            return self._open_code()
        last, code, indent = self._last, self._code, self._code_indent
        pieces = self._blocks.preview(self._partial)
        shown = [row for piece in pieces for row in self._draw(piece, unfinished=True)]
        self._last, self._code, self._code_indent = last, code, indent
        return shown

    def close(self) -> list[str]:
        """The text ends here: all that is left."""
        partial, self._partial = self._partial, ""
        pieces = self._blocks.feed(partial) if partial else []
        return [row for piece in pieces + self._blocks.finish() for row in self._draw(piece)]

    def _open_code(self) -> list[str]:
        if not self._partial or self._blocks.may_end_fence(self._partial) or self._code is None:
            return []
        return [" " * self._code_indent + self._code.preview(self._partial)]

    def _draw(self, piece: Piece, unfinished: bool = False) -> list[str]:
        wide = piece.kind in ("fence", "table", "heading") or self._last in ("fence_end", "table")
        gap = self._last and (piece.gap or wide) and piece.kind not in ("fence_line", "fence_end")
        self._last = piece.kind
        drawn = self._rows(piece, unfinished)
        return ["", *drawn] if gap and (drawn or piece.kind == "fence") else drawn

    def _rows(self, piece: Piece, unfinished: bool) -> list[str]:
        width = max(min(self.width - 1, WIDEST) - piece.indent, 8)
        match piece.kind:
            case "fence":
                self._code = CodeLines(piece.lines[0], self._theme)
                self._code_indent = piece.indent + 2
                return []
            case "fence_end":
                self._code = None
                return []
            case "fence_line":
                assert self._code
                return [(" " * self._code_indent + self._code.line(piece.lines[0])).rstrip()]
            case "verbatim":
                return ["    " + visible(piece.lines[0])]
            case "rule":
                return [self._theme.paint(self._theme.symbol("rule") * min(width, 60), "rule")]
            case "quote":
                return self._quote(piece)
            case "table":
                return self._table(piece.lines if not unfinished else _recent(piece.lines))
        return [" " * piece.indent + row for row in self._prose(piece, width, unfinished)]

    def _prose(self, piece: Piece, width: int, unfinished: bool) -> list[str]:
        from interpreter.terminal.render.inline import close_spans, inline, rows

        source = "\n".join(piece.lines)
        marker, style = "", ""
        if piece.kind == "heading":
            level = len(source) - len(source.lstrip("#"))
            source = source.lstrip("#").strip().rstrip("#").rstrip()
            style = self._theme.rich_style(f"heading{min(level, 3)}")
        elif piece.kind == "item" and (found := _MARKER.match(source)):
            source, marker = source[found.end() :], found[1]
        if unfinished:
            source = close_spans(source)
        shown = rows(inline(source, self._theme, style), width - len(marker) - bool(marker), self._theme)
        return _hang(shown or [""], self._bullet(marker)) if marker else shown

    def _bullet(self, marker: str) -> str:
        marker = self._theme.symbol("bullet") if marker in "-*+" else marker
        return self._theme.paint(marker, "bullet") + " "

    def _quote(self, piece: Piece) -> list[str]:
        inner = MarkdownView(self._theme, self.width - 2)
        source = "\n".join(re.sub(r"^\s{0,3}> ?", "", line) for line in piece.lines)
        bar = self._theme.paint(self._theme.symbol("quote"), "quote")
        return [f"{bar} {row}" for row in inner.feed(source) + inner.close()]

    def _table(self, lines: list[str]) -> list[str]:
        from interpreter.terminal.render.inline import inline, parser, rows, styled

        source = visible("\n".join(lines))
        tokens = parser().parse(source)
        table = _cells(tokens)
        if len(table) < 1 or not any(token.type == "table_open" for token in tokens):
            return rows(inline(source, self._theme), self.width - 1, self._theme)
        texts = [[styled(cell, self._theme) for cell in row] for row in table]
        if len(texts[0]) * _NARROWEST_COLUMN > self.width:
            return self._records(texts)
        return rows(_rich_table(texts, self._theme), self.width - 1, self._theme)

    def _records(self, texts: list[list[Any]]) -> list[str]:
        """A table that is too wide for the screen: one cell a line, under the name of its column."""
        from rich.text import Text

        from interpreter.terminal.render.inline import rows

        shown: list[str] = []
        for number, row in enumerate(texts[1:]):
            shown += [""] if number else []
            for name, cell in zip(texts[0], row, strict=False):
                line = Text.assemble((name.plain + ": ", "bold"), cell)
                shown += rows(line, self.width - 1, self._theme)
        return shown


def _recent(lines: list[str]) -> list[str]:
    """Head and end of a table that is still growing: more does not fit on a screen."""
    return lines if len(lines) <= _DRAWN_ROWS else lines[:2] + lines[2 - _DRAWN_ROWS :]


def _hang(shown: list[str], bullet: str) -> list[str]:
    from interpreter.terminal.render.ansi import cells

    return [bullet + shown[0], *(" " * cells(bullet) + row for row in shown[1:])]


def _cells(tokens: list[Any]) -> list[list[list[Any]]]:
    """The inline tokens of each cell, row by row."""
    table: list[list[list[Any]]] = []
    for token in tokens:
        if token.type == "tr_open":
            table.append([])
        elif token.type == "inline" and table:
            table[-1].append(token.children or [])
    return table


def _rich_table(texts: list[list[Any]], theme: Theme) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD if theme.unicode else box.ASCII2,
        pad_edge=False,
        show_edge=False,
        border_style="dim",
    )
    for name in texts[0]:
        table.add_column(name, overflow="fold", header_style="bold")
    for row in texts[1:]:
        table.add_row(*row)
    return table
