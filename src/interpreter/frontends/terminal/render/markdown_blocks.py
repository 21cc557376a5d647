"""Cutting a stream of Markdown lines into pieces that can be shown one by one and never change again."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field

_FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})\s*([^`]*)$")
_HEADING = re.compile(r"^ {0,3}#{1,6}(\s|$)")
_RULE = re.compile(r"^ {0,3}([-*_])(\s*\1){2,}\s*$")
_SETEXT = re.compile(r"^ {0,3}(=+|-{2,})\s*$")
_ITEM = re.compile(r"^(\s*)([-*+]|\d{1,9}[.)])(\s+|$)")
_QUOTE = re.compile(r"^\s{0,3}>")
_TABLE_RULE = re.compile(r"^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")
_UNDECIDED = re.compile(r"^[\s`~#*+>|=_:-]*$|^\s*\d{1,9}[.)]?$|^\s*(`{3,}|~{3,})[^`]*$")
LONGEST_TITLE = 60  # characters of a line that one of dashes below makes a title
_LONG = 8  # lines after which an ordinary paragraph is shown in parts


@dataclass
class Piece:
    """A part of a text that is drawn as one: a paragraph, a list item, a table, a line inside a fence."""

    kind: str  # text, heading, rule, item, quote, table, verbatim, fence, fence_line, fence_end
    lines: list[str] = field(default_factory=list)
    indent: int = 0
    gap: bool = False  # an empty line stands before it


class Blocks:
    """Takes whole lines; gives pieces as soon as nothing that follows can change them."""

    def __init__(self) -> None:
        self.open: Piece | None = None
        self._fence: tuple[str, int, int] | None = None  # character, length, indent
        self._gap = False
        self._in_list = False

    @property
    def in_fence(self) -> bool:
        return self._fence is not None

    def feed(self, line: str) -> list[Piece]:
        """The pieces that this line finishes."""
        line = line.expandtabs(4).rstrip()
        if self._fence:
            return self._inside_fence(line)
        if not line:
            return self._blank()
        if fence := _FENCE.match(line):
            return self._begin_fence(fence)
        if self.open and self._joins(line):
            return self._join(line)
        return self._begin(line)

    def finish(self) -> list[Piece]:
        """The text ends here."""
        done = self._close()
        if self._fence:
            self._fence = None
            done.append(Piece("fence_end"))
        return done

    def preview(self, line: str) -> list[Piece]:
        """What would be shown if the text ended with this unfinished line."""
        if self._fence:
            return []
        ahead = copy.copy(self)
        ahead.open = copy.copy(self.open)
        if ahead.open:
            ahead.open.lines = list(ahead.open.lines)
        done = [] if _UNDECIDED.match(line) else ahead.feed(line)
        return done + ahead.finish()

    def may_end_fence(self, line: str) -> bool:
        return self._fence is not None and not line.strip(f" {self._fence[0]}")

    def _blank(self) -> list[Piece]:
        done = self._close()
        self._gap = True
        return done

    def _close(self) -> list[Piece]:
        piece, self.open = self.open, None
        return [piece] if piece else []

    def _new(self, kind: str, lines: list[str], indent: int = 0) -> Piece:
        piece = Piece(kind, lines, indent, self._gap)
        self._gap = False
        return piece

    def _begin_fence(self, fence: re.Match[str]) -> list[Piece]:
        done = self._close()
        indent = len(fence[1]) if self._in_list else 0
        self._fence = (fence[2][0], len(fence[2]), len(fence[1]))
        words = fence[3].split()
        return [*done, self._new("fence", [words[0] if words else ""], indent)]

    def _inside_fence(self, line: str) -> list[Piece]:
        assert self._fence
        char, length, indent = self._fence
        stripped = line.strip()
        if len(stripped) >= length and not stripped.strip(char):
            self._fence = None
            return [Piece("fence_end")]
        spaces = len(line) - len(line.lstrip())
        return [Piece("fence_line", [line[min(spaces, indent) :]])]

    def _joins(self, line: str) -> bool:
        """Whether the line goes on with the open piece."""
        assert self.open
        kind = self.open.kind
        if kind == "quote":
            return bool(_QUOTE.match(line)) or not self._starts(line)
        if kind == "table":
            return "|" in line
        if kind == "text" and (self._underlines(line) or self._heads_table(line)):
            return True
        return not self._starts(line)

    def _underlines(self, line: str) -> bool:
        """Whether the line makes a title of the one above it."""
        assert self.open
        above = self.open.lines
        return len(above) == 1 and len(above[0]) <= LONGEST_TITLE and bool(_SETEXT.match(line))

    def _heads_table(self, line: str) -> bool:
        assert self.open
        return "|" in line and "|" in self.open.lines[-1] and bool(_TABLE_RULE.match(line))

    def _starts(self, line: str) -> bool:
        """Whether the line begins a piece of its own even right after a paragraph."""
        if _HEADING.match(line) or _RULE.match(line) or _QUOTE.match(line):
            return True
        item = _ITEM.match(line)
        if not item:
            return False
        return self._in_list or not item[2][0].isdigit() or item[2] in ("1.", "1)")

    def _join(self, line: str) -> list[Piece]:
        assert self.open
        piece = self.open
        if piece.kind == "text" and self._underlines(line):
            piece.kind = "heading"
            level = "#" if "=" in line else "##"
            piece.lines = [f"{level} {piece.lines[0].strip()}"]
            return self._close()
        if piece.kind == "text" and self._heads_table(line):
            return self._become_table(line)
        piece.lines.append(line.strip() if piece.kind in ("text", "item") else line)
        if piece.kind == "text" and len(piece.lines) >= _LONG and "|" not in line:
            return self._split_long()
        return []

    def _become_table(self, line: str) -> list[Piece]:
        assert self.open
        before = self.open
        header = before.lines.pop()
        gap = before.gap and not before.lines
        self.open = Piece("table", [header, line], before.indent, gap)
        return [before] if before.lines else []

    def _split_long(self) -> list[Piece]:
        """Let go of a long paragraph's lines, unless an emphasis or code span is still open in it."""
        assert self.open
        text = "\n".join(self.open.lines)
        still_open = any(text.count(mark) % 2 for mark in ("`", "*", "__", "~~"))
        return [] if still_open else self._close()

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
