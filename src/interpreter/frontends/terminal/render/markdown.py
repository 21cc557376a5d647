"""Markdown as it streams in: finished pieces become final rows, only the open one is drawn again."""

from __future__ import annotations

import re
from typing import Any

from interpreter.frontends.terminal.render.ansi import visible
from interpreter.frontends.terminal.render.code import CodeLines
from interpreter.frontends.terminal.render.markdown_blocks import (
    LONGEST_TITLE,
    Blocks,
    Piece,
)
from interpreter.frontends.terminal.render.theme import Theme
from interpreter.runtimes import BUILT_IN, Registry

WIDEST = 100  # columns of prose; longer lines are hard to read
_MARKER = re.compile(r"^([-*+]|\d{1,9}[.)])\s*")
_MARKUP = re.compile(r"[*_`\[\]<~\\&|\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_NARROWEST_COLUMN = 6
_DRAWN_ROWS = 80


class MarkdownView:
    """The text of one message: `feed` what arrives, commit the rows it gives, draw `open_rows` below them."""

    def __init__(self, theme: Theme, width: int, languages: Registry = BUILT_IN) -> None:
        self.width = width
        self._languages = languages
        self._theme = theme
        self._blocks = Blocks()
        self._partial = ""
        self._code: CodeLines | None = None
        self._code_indent = 0
        self._last = ""  # kind of the last piece drawn
        self._settled = 0  # characters of the open paragraph whose rows are final already

    def feed(self, text: str) -> list[str]:
        """The rows that are final now."""
        *lines, self._partial = (self._partial + text).replace("\r\n", "\n").split("\n")
        return self._drawn([piece for line in lines for piece in self._blocks.feed(line)])

    def settle(self) -> list[str]:
        """The rows of a long open paragraph that nothing can change any more: full ones of plain words."""
        pieces = [] if self._blocks.in_fence else self._blocks.preview(self._partial)
        if len(pieces) != 1 or pieces[0].kind != "text":
            return []
        piece, source = pieces[0], "\n".join(pieces[0].lines)
        if len(piece.lines) == 1 and len(source) <= LONGEST_TITLE:
            return []
        gap = self._gap(piece)
        rows, self._settled = self._plain_rows(piece, source)
        self._last = piece.kind if rows else self._last
        return ["", *rows] if gap and rows else rows

    def open_rows(self) -> list[str]:
        """The rows that may still change."""
        if self._blocks.in_fence:
            return self._open_code()
        kept = self._last, self._code, self._code_indent, self._settled
        shown = self._drawn(self._blocks.preview(self._partial), unfinished=True)
        self._last, self._code, self._code_indent, self._settled = kept
        return shown

    def close(self) -> list[str]:
        """The text ends here: all that is left."""
        partial, self._partial = self._partial, ""
        pieces = self._blocks.feed(partial) if partial else []
        return self._drawn(pieces + self._blocks.finish())

    def _plain_rows(self, piece: Piece, source: str) -> tuple[list[str], int]:
        """The next rows up to the first markup, all but the last, and where in the source they end."""
        plain = _MARKUP.search(source, self._settled)
        limit = plain.start() if plain else len(source)
        rows: list[str] = []
        at = self._settled
        for row in self._rows(piece, unfinished=True)[:-1]:
            words = row.strip()
            end = at + len(words)
            end += len(source[end:]) - len(source[end:].lstrip())
            if not words or end >= limit or not source.startswith(words, at):
                break  # a row may end where it does because of the markup that follows it
            rows.append(row)
            at = end
        return rows, at

    def _open_code(self) -> list[str]:
        if not self._partial or self._blocks.may_end_fence(self._partial) or self._code is None:
            return []
        return [" " * self._code_indent + self._code.preview(self._partial)]

    def _drawn(self, pieces: list[Piece], unfinished: bool = False) -> list[str]:
        shown: list[str] = []
        for piece in pieces:
            gap, rows = self._gap(piece), self._rows(piece, unfinished)
            shown += ["", *rows] if gap and (rows or piece.kind == "fence") else rows
            self._last, self._settled = piece.kind, 0
        return shown

    def _gap(self, piece: Piece) -> bool:
        """Whether an empty row stands before a piece."""
        if not self._last or self._settled or piece.kind in ("fence_line", "fence_end"):
            return False
        wide = piece.kind in ("fence", "table", "heading") or self._last in ("fence_end", "table")
        return piece.gap or wide

    def _rows(self, piece: Piece, unfinished: bool) -> list[str]:
        width = max(min(self.width - 1, WIDEST) - piece.indent, 8)
        match piece.kind:
            case "fence":
                self._code = CodeLines(piece.lines[0], self._theme, self._languages)
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
        from interpreter.frontends.terminal.render.inline import (
            close_spans,
            inline,
            rows,
        )

        source = "\n".join(piece.lines)[self._settled :]
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
        inner = MarkdownView(self._theme, self.width - 2, self._languages)
        source = "\n".join(re.sub(r"^\s{0,3}> ?", "", line) for line in piece.lines)
        bar = self._theme.paint(self._theme.symbol("quote"), "quote")
        return [f"{bar} {row}" for row in inner.feed(source) + inner.close()]

    def _table(self, lines: list[str]) -> list[str]:
        from interpreter.frontends.terminal.render.inline import (
            inline,
            parser,
            rows,
            styled,
        )

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

        from interpreter.frontends.terminal.render.inline import rows

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
    from interpreter.frontends.terminal.render.ansi import cells

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
        border_style=theme.rich_style("border"),
    )
    for name in texts[0]:
        table.add_column(name, overflow="fold", header_style="bold")
    for row in texts[1:]:
        table.add_row(*row)
    return table
