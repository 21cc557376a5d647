"""The outcome of a task: the folder, the messages and the output; and helpers for checks."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Message = Mapping[str, Any]

_GROUPED = re.compile(r"-?\d{1,3}(?:[,_' ]\d{3})+(?:\.\d+)?")
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_DRAWN = 100  # pixels: the thinnest curve has many times more, empty axes have fewer
_CONTRAST = 90  # of the three channels together


class Missed(Exception):
    """The task failed; the message says what is missing, short enough for the table."""


def expect(holds: object, otherwise: str) -> None:
    """Raise Missed unless it holds."""
    if not holds:
        raise Missed(otherwise)


def numbers(text: str) -> set[float]:
    """Every number in a text, with or without thousands separators."""
    grouped = {re.sub(r"[,_' ]", "", number) for number in _GROUPED.findall(text)}
    return {float(number) for number in grouped.union(_PLAIN.findall(text))}


@dataclass(frozen=True)
class Outcome:
    """The folder and the messages as the task left them."""

    folder: Path
    messages: list[Message]

    @property
    def answer(self) -> str:
        """Return the assistant's last message."""
        messages = [each for each in self.messages if each.get("role") == "assistant" and each.get("type") == "message"]
        return str(messages[-1].get("content") or "") if messages else ""

    @property
    def outputs(self) -> list[str]:
        """Return the output of each block."""
        return [str(each.get("content") or "") for each in self.messages if each.get("type") == "console"]

    @property
    def shown(self) -> str:
        """All text in which the user can find a value: the output, and the last message."""
        return "\n".join([*self.outputs, self.answer])

    # -- what the user sees --------------------------------------------------------------------------------------

    def expect_number(self, value: float, within: float = 0.0, what: str = "") -> None:
        """Expect the number to be printed or said, in any format; `within` allows for rounding."""
        is_shown = any(abs(number - value) <= within + 1e-9 for number in numbers(self.shown))
        expect(is_shown, f"nothing says {what or 'that it is'} {value:g}")

    def expect_beside(self, name: str, value: float, within: float = 0.0) -> None:
        """Expect the number soon after the name, as in a line of a table."""
        for match in re.finditer(rf"\b{re.escape(name)}\b", self.shown, re.IGNORECASE):
            after = self.shown[match.end() : match.end() + 40].partition("\n")[0]
            if any(abs(number - value) <= within + 1e-9 for number in numbers(after)):
                return
        raise Missed(f"nothing says that {name} has {value:g}")

    def expect_pick(self, right: str, others: Iterable[str]) -> None:
        """Only the right one of several names is given: in the answer, or else in the last output with any of them."""
        others = [name for name in others if name != right]
        for text in [self.answer, *reversed(self.outputs)]:
            named = {name for name in [right, *others] if re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE)}
            if named:
                expect(named == {right}, f"named {', '.join(sorted(named))}, not just {right}")
                return
        raise Missed(f"nothing says that it is {right}")

    # -- files ---------------------------------------------------------------------------------------------------

    def text(self, name: str) -> str:
        """Read a file's text, with Python's line endings."""
        path = self.folder / name
        expect(path.is_file(), f"there is no {name}")
        return path.read_text(encoding="utf-8-sig")

    def lines(self, name: str) -> list[str]:
        """Read a file's non-blank lines, stripped."""
        return [line.strip() for line in self.text(name).splitlines() if line.strip()]

    def data(self, name: str) -> Any:
        """Read a JSON file."""
        try:
            return json.loads(self.text(name))
        except ValueError:
            raise Missed(f"{name} is not JSON") from None

    def rows(self, name: str) -> list[dict[str, str]]:
        """Read the rows of a CSV file, by column names in lower case."""
        reader = csv.DictReader(self.text(name).splitlines())
        return [
            {str(key or "").strip().lower(): str(value or "").strip() for key, value in row.items()} for row in reader
        ]

    def column(self, name: str, column: str) -> list[str]:
        """One column of a CSV file."""
        rows = self.rows(name)
        expect(rows, f"{name} has no rows")
        expect(column in rows[0], f"{name} has no column {column}")
        return [row[column] for row in rows]

    def amounts(self, name: str, column: str) -> list[float]:
        """One column of a CSV file, as numbers."""
        cells = self.column(name, column)
        try:
            return [float(cell) for cell in cells]
        except ValueError:
            raise Missed(f"{column} in {name} has what is no number") from None

    def expect_picture(self, name: str, size: tuple[int, int] | None = None) -> None:
        """Expect an image with something drawn in the middle, not empty or with empty axes."""
        from PIL import Image, UnidentifiedImageError

        path = self.folder / name
        expect(path.is_file(), f"there is no {name}")
        try:
            with Image.open(path) as image:
                picture = image.convert("RGB")
        except (UnidentifiedImageError, OSError):
            raise Missed(f"{name} is no picture") from None
        expect(size is None or picture.size == size, f"{name} is {picture.width} by {picture.height} pixels")
        expect(_drawn(picture) >= _DRAWN, f"nothing is drawn in {name}")


def _drawn(picture: Any) -> int:
    """Count the pixels in the middle that differ from the most common colour there."""
    width, height = picture.size
    middle = picture.crop((int(width * 0.2), int(height * 0.2), int(width * 0.8), int(height * 0.8)))
    colours = sorted(middle.getcolors(maxcolors=width * height), reverse=True)
    paper = colours[0][1]
    return sum(
        count
        for count, colour in colours
        if sum(abs(one - other) for one, other in zip(colour, paper, strict=True)) > _CONTRAST
    )
