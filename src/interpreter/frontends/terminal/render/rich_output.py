"""What code shows besides text: pictures, tables and pages as rows, and short tracebacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interpreter.frontends.terminal.render import words
from interpreter.frontends.terminal.render.saved import save_image, save_text
from interpreter.frontends.terminal.render.theme import Theme

if TYPE_CHECKING:
    from interpreter.frontends.terminal.render.images import Pictures


def picture_rows(content: str, kind: str, pictures: Pictures, theme: Theme, columns: int, lines: int) -> list[str]:
    """A picture, and below it where it is kept."""
    path = save_image(content, kind) if kind != "description" else None
    if path is None:
        return []
    caption = theme.paint(words.shown_in("image", theme.path(path)), "hint")
    return pictures.rows(path, columns, lines, caption)


def table_rows(html: str, theme: Theme, width: int) -> list[str] | None:
    """The table that a page is, and where the whole is if it does not fit; None for any other page."""
    from interpreter.frontends.terminal.render.html_table import table_in
    from interpreter.frontends.terminal.render.tables import fitted

    table = table_in(html)
    if table is None:
        return None
    rows, cut = fitted(table, width - 1, theme)
    if cut:
        rows.append(theme.paint(f"Whole table: {theme.path(save_text(html, 'html'))}", "hint"))
    return rows


def file_row(content: str, kind: str, theme: Theme) -> str:
    """Something that only another program can show: the path of its file."""
    return theme.paint(words.shown_in(kind, theme.path(save_text(content, kind))), "hint")


def traceback_row(text: str, theme: Theme) -> str:
    """Where the whole of a traceback is that was shortened."""
    path = theme.path(save_text(text, "traceback"))
    return theme.paint(f"{theme.symbol('more')} whole traceback: {path}", "hint")
