"""The table of commands in commands.txt."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent


class Row(NamedTuple):
    verdict: str
    undo: str
    code: str


def sections() -> dict[str, list[Row]]:
    """Read the rows under their headings."""
    rows: dict[str, list[Row]] = {}
    for part in (HERE / "commands.txt").read_text(encoding="utf-8").split("\n\n")[1:]:
        heading, *lines = part.strip().splitlines()
        rows[heading.removeprefix("# ")] = [Row(*line.split(maxsplit=2)) for line in lines]
    return rows


def rows() -> list[Row]:
    return [row for section in sections().values() for row in section]
