"""The model's text as it streams in: Markdown, and its reasoning. Finished pieces become final rows; only the open
one is drawn again.
"""

from __future__ import annotations

import copy
import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from io import StringIO
from typing import TYPE_CHECKING, Any
from zlib import crc32

from interpreter.console_text import PROSE, visible
from interpreter.frontends.terminal.render.code_block import CodeLines
from interpreter.frontends.terminal.render.latex import readable
from interpreter.frontends.terminal.render.notes import duration
from interpreter.frontends.terminal.render.theme import Theme, safe_address
from interpreter.runtimes import BUILT_IN, Registry

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token
    from rich.console import Console
    from rich.text import Text

MAX_WIDTH = 100  # columns of prose; longer lines are hard to read
_MARKER = re.compile(r"^([-*+]|\d{1,9}[.)])\s*")
_MARKUP = re.compile(r"[$*_`\[\]<~\\&|\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_MIN_COLUMN_WIDTH = 6
_DRAWN_ROWS = 80  # of a table that is still growing
_REASONING_ROWS = 4  # that are shown; shorter reasoning stays
_REASONING_KEPT = 3 * _REASONING_ROWS * MAX_WIDTH  # characters of a line; more are never seen

_FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})\s*([^`]*)$")
_HEADING = re.compile(r"^ {0,3}#{1,6}(\s|$)")
_RULE = re.compile(r"^ {0,3}([-*_])(\s*\1){2,}\s*$")
_SETEXT = re.compile(r"^ {0,3}(=+|-{2,})\s*$")
_ITEM = re.compile(r"^(\s*)([-*+]|\d{1,9}[.)])(\s+|$)")
_QUOTE = re.compile(r"^\s{0,3}>")
_TABLE_RULE = re.compile(r"^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")
_UNDECIDED = re.compile(r"^[\s`~#*+>|=_:-]*$|^\s*\d{1,9}[.)]?$|^\s*(`{3,}|~{3,})[^`]*$")
_MAX_TITLE_LENGTH = 60  # characters of a line that a line of dashes below turns into a title
_LONG_PARAGRAPH = 8  # lines after which a paragraph is shown in parts

_LIKE_ADDRESS = re.compile(r"://|www\.|\w\.\w")
_LINK_ID = re.compile(r"\x1b\]8;id=[^;]*;([^\x1b]+)\x1b")
_PADDING = re.compile(r"\s+((?:\x1b\[[0-9;]*m|\x1b\]8;[^\x1b]*\x1b\\)*)$")
_MAX_CONSOLE_WIDTH = 10_000  # columns; each drawing has its own width
_SPANS = {"strong": "bold", "em": "italic", "s": "strike"}


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
        *lines, self._partial = (self._partial + text).replace("\r\n", "\n").split("\n")
        return self._drawn([piece for line in lines for piece in self._blocks.feed(line)])

    def settle(self) -> list[str]:
        """Return the rows of a long open paragraph that can no longer change: full rows of plain words."""
        pieces = self._blocks.preview(self._partial)
        if len(pieces) != 1 or pieces[0].kind != "text":
            return []
        piece, source = pieces[0], "\n".join(pieces[0].lines)
        if len(piece.lines) == 1 and len(source) <= _MAX_TITLE_LENGTH:
            return []
        gap, at = self._gap(piece), self._settled
        markup = _MARKUP.search(source, at)
        limit = markup.start() if markup else len(source)
        rows: list[str] = []
        for row in self._rows(piece, unfinished=True)[:-1]:
            line = row.strip()
            end = at + len(line)
            end += len(source[end:]) - len(source[end:].lstrip())
            if not line or end >= limit or not source.startswith(line, at):
                break  # the markup that follows may be why the row ends here
            rows.append(row)
            at = end
        self._settled = at
        if not rows:
            return []
        self._last = piece.kind
        return ["", *rows] if gap else rows

    def open_rows(self) -> list[str]:
        if fence := self._blocks.fence:
            may_end = not self._partial.strip(f" {fence[0]}")
            return (
                [] if may_end or self._code is None else [" " * self._code_indent + self._code.preview(self._partial)]
            )
        return copy.copy(self)._drawn(self._blocks.preview(self._partial), unfinished=True)

    def close(self) -> list[str]:
        pieces = self._blocks.feed(self._partial) if self._partial else []
        return self._drawn(pieces + self._blocks.finish())

    def _drawn(self, pieces: list[Piece], unfinished: bool = False) -> list[str]:
        shown: list[str] = []
        for piece in pieces:
            gap, rows = self._gap(piece), self._rows(piece, unfinished)
            shown += ["", *rows] if gap and (rows or piece.kind == "fence") else rows
            self._last, self._settled = piece.kind, 0
        return shown

    def _gap(self, piece: Piece) -> bool:
        """Check whether a piece has an empty row before it."""
        if not self._last or self._settled or piece.kind in ("fence_line", "fence_end"):
            return False
        wide = piece.kind in ("fence", "table", "heading") or self._last in ("fence_end", "table")
        return piece.gap or wide

    def _rows(self, piece: Piece, unfinished: bool) -> list[str]:
        width = max(min(self.width - 1, MAX_WIDTH) - piece.indent, 8)
        theme = self._theme
        match piece.kind:
            case "fence":
                self._code = CodeLines(piece.lines[0], theme, self._languages)
                self._code_indent = piece.indent + 2
                return []
            case "fence_end":
                self._code = None
                return []
            case "fence_line":
                assert self._code
                return [(" " * self._code_indent + self._code.line(piece.lines[0])).rstrip()]
            case "verbatim":
                return ["    " + visible(piece.lines[0], PROSE)]
            case "rule":
                return [theme.paint(theme.symbol("rule") * min(width, 60), "rule")]
            case "quote":
                inner = MarkdownView(theme, self.width - 2, self._languages)
                source = "\n".join(re.sub(r"^\s{0,3}> ?", "", line) for line in piece.lines)
                bar = theme.paint(theme.symbol("quote"), "quote")
                return [f"{bar} {row}" for row in inner.feed(source) + inner.close()]
            case "table":
                lines = piece.lines
                if unfinished and len(lines) > _DRAWN_ROWS:  # more does not fit on a screen
                    lines = lines[:2] + lines[2 - _DRAWN_ROWS :]
                return self._table("\n".join(lines))
        return [" " * piece.indent + row for row in self._prose(piece, width, unfinished)]

    def _prose(self, piece: Piece, width: int, unfinished: bool) -> list[str]:
        theme, source = self._theme, "\n".join(piece.lines)[self._settled :]
        marker, style = "", ""
        if piece.kind == "heading":
            level = len(source) - len(source.lstrip("#"))
            source = source.lstrip("#").strip().rstrip("#").rstrip()
            style = theme.rich_style(f"heading{min(level, 3)}")
        elif piece.kind == "item" and (bullet := _MARKER.match(source)):
            source = source[bullet.end() :]
            marker = theme.symbol("bullet") if bullet[1] in "-*+" else bullet[1]
        if unfinished:  # an open emphasis or code span is closed, so that it does not jump later
            tail = source.rpartition("\n")[2]
            if tail.count("`") % 2:
                source += "`"
            elif tail.count("**") % 2:
                source = source[:-2] if tail.endswith("**") else source.removesuffix("*") + "**"
        text = _inline(readable(source) if theme.unicode else source, theme, style)
        if not marker:
            return rich_rows(text, width, theme)
        first, *others = rich_rows(text, width - len(marker) - 1, theme)
        return [f"{theme.paint(marker, 'bullet')} {first}", *(" " * (len(marker) + 1) + row for row in others)]

    def _table(self, source: str) -> list[str]:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        theme, width = self._theme, self.width - 1
        table: list[list[Text]] = []
        alignment: list[Any] = []
        for token in _parser().parse(readable(source) if theme.unicode else source):
            match token.type:
                case "tr_open":
                    table.append([])
                case "th_open":
                    alignment.append(str(token.attrs.get("style", "")).removeprefix("text-align:") or "left")
                case "inline" if table:
                    table[-1].append(_styled(token.children or [], theme))
        if not table:
            return rich_rows(_inline(source, theme), width, theme)
        header, *body = table
        if len(header) * _MIN_COLUMN_WIDTH > self.width:
            # Too wide for the screen: one cell a line, under the name of its column.
            shown: list[str] = []
            for number, row in enumerate(body):
                shown += [""] if number else []
                for name, cell in zip(header, row, strict=False):
                    shown += rich_rows(Text.assemble((name.plain + ": ", "bold"), cell), width, theme)
            return shown
        drawn = Table(
            box=box.SIMPLE_HEAD if theme.unicode else box.ASCII2,
            pad_edge=False,
            show_edge=False,
            border_style=theme.rich_style("border"),
        )
        for name, side in zip(header, alignment, strict=True):
            drawn.add_column(name, overflow="fold", header_style="bold", justify=side)
        for row in body:
            drawn.add_row(*row)
        return rich_rows(drawn, width, theme)


# -- blocks ------------------------------------------------------------------------------------------------------


@dataclass
class Piece:
    """A part of a text that is drawn as one: a paragraph, a list item, a table, a line inside a fence."""

    kind: str  # text, heading, rule, item, quote, table, verbatim, fence, fence_line, fence_end
    lines: list[str] = field(default_factory=list)
    indent: int = 0
    gap: bool = False  # there is an empty line before it


class Blocks:
    """Cuts whole lines into pieces; `feed` returns a piece as soon as nothing that follows can change it."""

    def __init__(self) -> None:
        self.open: Piece | None = None
        self.fence: tuple[str, int, int] | None = None  # character, length, indent
        self._gap = False
        self._in_list = False

    def feed(self, line: str) -> list[Piece]:
        line = line.expandtabs(4).rstrip()
        if self.fence:
            char, length, indent = self.fence
            stripped = line.strip()
            if len(stripped) >= length and not stripped.strip(char):
                self.fence = None
                return [Piece("fence_end")]
            spaces = len(line) - len(line.lstrip())
            return [Piece("fence_line", [line[min(spaces, indent) :]])]
        if not line:
            self._gap = True
            return self._close()
        if fence := _FENCE.match(line):
            done = self._close()
            self.fence = (fence[2][0], len(fence[2]), len(fence[1]))
            language = (fence[3].split() or [""])[0]
            return [*done, self._new("fence", [language], len(fence[1]) if self._in_list else 0)]
        joined = self._join(self.open, line) if self.open else None
        return self._begin(line) if joined is None else joined

    def finish(self) -> list[Piece]:
        done = self._close()
        if self.fence:
            self.fence = None
            done.append(Piece("fence_end"))
        return done

    def preview(self, line: str) -> list[Piece]:
        """Return the pieces as if the text ended with this unfinished line."""
        if self.fence:
            return []
        ahead = copy.copy(self)
        ahead.open = copy.copy(self.open)
        if ahead.open:
            ahead.open.lines = list(ahead.open.lines)
        done = [] if _UNDECIDED.match(line) else ahead.feed(line)
        return done + ahead.finish()

    def _close(self) -> list[Piece]:
        piece, self.open = self.open, None
        return [piece] if piece else []

    def _new(self, kind: str, lines: list[str], indent: int = 0) -> Piece:
        piece = Piece(kind, lines, indent, self._gap)
        self._gap = False
        return piece

    def _starts(self, line: str) -> bool:
        """Check whether the line begins a new piece even right after a paragraph."""
        if _HEADING.match(line) or _RULE.match(line) or _QUOTE.match(line):
            return True
        item = _ITEM.match(line)
        if not item:
            return False
        return self._in_list or not item[2][0].isdigit() or item[2] in ("1.", "1)")

    def _join(self, piece: Piece, line: str) -> list[Piece] | None:
        """Continue the open piece; return the pieces that this finishes, None if the line does not belong to it."""
        lines = piece.lines
        if piece.kind == "text":
            if len(lines) == 1 and len(lines[0]) <= _MAX_TITLE_LENGTH and _SETEXT.match(line):
                piece.kind = "heading"
                piece.lines = [f"{'#' if '=' in line else '##'} {lines[0].strip()}"]
                return self._close()
            if "|" in line and "|" in lines[-1] and _TABLE_RULE.match(line):
                header = lines.pop()
                self.open = Piece("table", [header, line], piece.indent, piece.gap and not lines)
                return [piece] if lines else []
        joins = "|" in line if piece.kind == "table" else not self._starts(line)
        if not joins and not (piece.kind == "quote" and _QUOTE.match(line)):
            return None
        lines.append(line.strip() if piece.kind in ("text", "item") else line)
        if piece.kind == "text" and len(lines) >= _LONG_PARAGRAPH and "|" not in line:
            # Finish a long paragraph early, unless an emphasis or code span is still open.
            text = "\n".join(lines)
            if not any(text.count(mark) % 2 for mark in ("`", "*", "__", "~~")):
                return self._close()
        return []

    def _begin(self, line: str) -> list[Piece]:
        done = self._close()
        indent = len(line) - len(line.lstrip())
        if _HEADING.match(line):
            return [*done, self._new("heading", [line.strip()])]
        if _RULE.match(line):
            return [*done, self._new("rule", [])]
        if item := _ITEM.match(line):
            self._in_list = True
            self.open = self._new("item", [line.strip()], len(item[1]))
        elif _QUOTE.match(line):
            self.open = self._new("quote", [line])
        elif indent >= 4 and not self._in_list:
            return [*done, self._new("verbatim", [line[4:]])]
        else:
            self._in_list = self._in_list and indent > 0
            self.open = self._new("text", [line.strip()], indent if self._in_list else 0)
        return done


# -- inside a line -----------------------------------------------------------------------------------------------


@cache
def _parser() -> MarkdownIt:
    """Make a parser for CommonMark with tables. HTML is text; so are references, defined in other pieces."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("reference")


def _inline(source: str, theme: Theme, base: str = "") -> Text:
    """Style a paragraph; line breaks stay where the model put them."""
    return _styled(_parser().parseInline(source)[0].children or [], theme, base)


def _styled(tokens: list[Token], theme: Theme, base: str = "") -> Text:
    from rich.style import Style
    from rich.text import Text

    text = Text(style=base)
    styles: list[str] = []
    links: list[tuple[str, int]] = []
    for token in tokens:
        style = " ".join(styles)
        content = visible(token.content, PROSE)  # only now: `&#x202e;` has become a character
        match token.type:
            case "link_open":
                links.append((str(token.attrs.get("href", "")), len(text)))
                styles.append(theme.rich_style("link"))
            case "link_close":
                styles.pop()
                address, start = links.pop()
                label = text.plain[start:]
                clickable = safe_address(address) if theme.links else ""
                if clickable:
                    text.stylize(Style(link=clickable), start)
                # Name the address behind the words if it cannot be clicked or if they might deceive.
                is_plain = clickable and not _LIKE_ADDRESS.search(label)
                if address and not is_plain and address.removeprefix("mailto:") != label:
                    text.append(f" ({visible(address)})", theme.rich_style("hint"))
            case "strong_open" | "em_open" | "s_open":
                styles.append(_SPANS[token.tag])
            case "strong_close" | "em_close" | "s_close":
                styles.pop()
            case "softbreak" | "hardbreak":
                text.append("\n")
            case "code_inline":
                text.append(content, f"{style} {theme.rich_style('code')}".strip())
            case "image":
                text.append(f"{content or 'image'} ({visible(str(token.attrs.get('src', '')))})", style)
            case _:
                text.append(content, style)
    return text


def rich_rows(renderable: Any, width: int, theme: Theme) -> list[str]:
    """Render a rich object as lines with escapes, without the trailing spaces that wrapping and padding leave."""
    console = _console(("256" if theme.depth >= 256 else "standard") if theme.color else None)
    with console.capture() as captured:
        console.print(renderable, width=max(width, 1), end="")
    # The parts of a wrapped link belong together by an id, which must not change between drawings.
    text = _LINK_ID.sub(lambda link: f"\x1b]8;id={crc32(link[1].encode())};{link[1]}\x1b", captured.get())
    return [_PADDING.sub(r"\1", row) for row in text.removesuffix("\n").split("\n")]


@cache
def _console(color_system: Any) -> Console:
    from rich.console import Console

    return Console(
        file=StringIO(),
        width=_MAX_CONSOLE_WIDTH,
        force_terminal=True,
        force_jupyter=False,
        color_system=color_system,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},
    )


# -- reasoning ---------------------------------------------------------------------------------------------------


class ReasoningView:
    """Dimmed reasoning as it arrives. `folds`: long reasoning is replaced by a line that says how long it took."""

    def __init__(self, theme: Theme, width: int, clock: Callable[[], float], folds: bool = True) -> None:
        self._theme = theme
        self.width = width
        self._clock, self._began = clock, clock()
        self._folds = folds
        self._partial = ""
        self._tail: deque[str] = deque(maxlen=_REASONING_ROWS)  # the last whole lines; more cannot be seen
        self._count = 0

    def feed(self, text: str) -> list[str]:
        *lines, self._partial = (self._partial + text).split("\n")
        if not self._folds:
            return self._rows(lines)
        self._tail += [line[-_REASONING_KEPT:] for line in lines]
        self._count += len(lines)
        if len(self._partial) > 4 * _REASONING_KEPT:  # seldom, since it may change the layout of the rows
            self._partial = self._partial[-_REASONING_KEPT:]
        return []

    def open_rows(self) -> list[str]:
        rows = self._rows([*self._tail, self._partial] if self._partial else self._tail)
        return rows[-_REASONING_ROWS:] if self._folds else rows

    def close(self) -> list[str]:
        rows = self._rows([*self._tail, self._partial] if self._partial else self._tail)
        if self._folds and (self._count > _REASONING_ROWS or len(rows) > _REASONING_ROWS):
            return [self._theme.paint(f"Thought for {duration(self._clock() - self._began)}.", "reasoning")]
        return rows

    def _rows(self, lines: Iterable[str]) -> list[str]:
        from rich.text import Text

        rows: list[str] = []
        for line in lines:
            text = Text(visible(line, PROSE), self._theme.rich_style("reasoning"))
            rows += rich_rows(text, min(self.width - 1, MAX_WIDTH), self._theme)
        return rows
