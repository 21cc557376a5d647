"""The one table of an HTML display, such as pandas and polars make, as plain cells."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

_LONGEST = 400_000  # characters that are read
_MOST_CELLS = 20_000
_LAYOUT = frozenset("div table thead tbody tfoot tr th td p small br b strong i em span caption colgroup col".split())
_UNSEEN = frozenset({"style", "title"})


@dataclass
class Table:
    """Rows of text under a header; `notes` is what stood around the table, such as its shape."""

    header: list[list[str]] = field(default_factory=list)  # one row for each level
    rows: list[list[str]] = field(default_factory=list)
    index: int = 0  # how many columns at the left name the rows
    notes: list[str] = field(default_factory=list)


def table_in(html: str) -> Table | None:
    """The table, if the display is just that and not too large; None otherwise."""
    if len(html) > _LONGEST or "<table" not in html:
        return None
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.result()


class _Reader(HTMLParser):
    """Gathers cells; anything that is more than text in a table makes it give up."""

    def __init__(self) -> None:
        super().__init__()
        self.table = Table()
        self._tables = self._cells = 0
        self._given_up = False
        self._unseen = 0
        self._in_head = False
        self._row: list[str] | None = None
        self._names = 0  # header cells at the beginning of the row
        self._text: list[str] | None = None
        self._span = (1, 1)
        self._below: dict[int, int] = {}  # column -> rows that a cell from above still covers
        self._note: list[str] = []

    def result(self) -> Table | None:
        filled = any(any(row) for row in [*self.table.header, *self.table.rows])
        if self._given_up or self._tables != 1 or not filled:
            return None
        width = max(len(row) for row in [*self.table.header, *self.table.rows])
        for row in [*self.table.header, *self.table.rows]:
            row += [""] * (width - len(row))
        self._end_note()
        return self.table

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _UNSEEN:
            self._unseen += 1
        elif tag not in _LAYOUT:
            self._given_up = True
        elif tag == "table":
            self._tables += 1
            self._end_note()
        elif tag in ("thead", "tbody"):
            self._in_head = tag == "thead"
        elif tag == "tr":
            self._row, self._names = [], 0
        elif tag in ("td", "th") and self._row is not None:
            self._begin_cell(tag, dict(attrs))
        elif tag == "br" and self._text is not None:
            self._text.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in _UNSEEN:
            self._unseen -= 1
        elif tag in ("td", "th"):
            self._end_cell()
        elif tag == "tr" and self._row is not None:
            self._end_row()
        elif tag == "thead":
            self._in_head = False
        elif tag in ("p", "small", "div", "caption"):
            self._end_note()

    def handle_data(self, data: str) -> None:
        if self._unseen:
            return
        if self._text is not None:
            self._text.append(data)
        elif self._row is None:
            self._note.append(data)

    def _begin_cell(self, tag: str, attributes: dict[str, str | None]) -> None:
        assert self._row is not None
        self._cover()
        if tag == "th" and self._names == len(self._row):
            self._names += 1
        self._span = (_count(attributes.get("colspan")), _count(attributes.get("rowspan")))
        self._text = []
        self._cells += self._span[0]
        self._given_up = self._given_up or self._cells > _MOST_CELLS

    def _end_cell(self) -> None:
        if self._text is None or self._row is None:
            return
        columns, rows = self._span
        at = len(self._row)
        self._row += [" ".join("".join(self._text).split()), *[""] * (columns - 1)]
        self._text = None
        if rows > 1:
            self._below.update(dict.fromkeys(range(at, at + columns), rows - 1))

    def _cover(self) -> None:
        """Leave out the cells that one from a row above still covers."""
        assert self._row is not None
        while left := self._below.get(len(self._row)):
            self._below[len(self._row)] = left - 1
            if self._names == len(self._row):
                self._names += 1
            self._row.append("")

    def _end_row(self) -> None:
        assert self._row is not None
        self._end_cell()
        self._cover()
        if self._in_head:
            self.table.header.append(self._row)
        else:
            names = self._names if self._names < len(self._row) else 0
            self.table.index = max(self.table.index, names)
            self.table.rows.append(self._row)
        self._row = None

    def _end_note(self) -> None:
        note = " ".join("".join(self._note).split())
        self._note = []
        if note and self._row is None:
            self.table.notes.append(note)


def _count(value: str | None) -> int:
    return max(1, min(int(value), 1000)) if value and value.isdigit() else 1
