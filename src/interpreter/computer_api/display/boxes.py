"""Boxes on the screen, in whole screen pixels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple


class Box(NamedTuple):
    """A rectangle: its left upper corner, and its size."""

    left: int
    top: int
    width: int
    height: int

    @classmethod
    def given(cls, region: Any) -> Box:
        """A region as somebody has named it."""
        numbers = [] if isinstance(region, str) or not isinstance(region, Iterable) else list(region)
        if len(numbers) != 4 or not all(isinstance(number, int | float) for number in numbers):
            raise ValueError(f"A region is [left, top, width, height] in pixels of the screen, not {region!r:.80}.")
        return cls(*(round(number) for number in numbers))

    @classmethod
    def between(cls, left: float, top: float, right: float, bottom: float) -> Box:
        return cls(round(left), round(top), max(0, round(right) - round(left)), max(0, round(bottom) - round(top)))

    @property
    def right(self) -> int:
        return self.left + self.width

    @property
    def bottom(self) -> int:
        return self.top + self.height

    @property
    def area(self) -> int:
        return max(0, self.width) * max(0, self.height)

    @property
    def center(self) -> tuple[int, int]:
        return self.left + self.width // 2, self.top + self.height // 2

    def has(self, x: float, y: float) -> bool:
        return self.left <= x < self.right and self.top <= y < self.bottom

    def within(self, other: Box) -> Box:
        """The part of it that lies in the other; of no size if they do not meet."""
        left, top = max(self.left, other.left), max(self.top, other.top)
        right, bottom = min(self.right, other.right), min(self.bottom, other.bottom)
        return Box(left, top, max(0, right - left), max(0, bottom - top))

    def meets(self, other: Box) -> bool:
        return self.within(other).area > 0

    def grown(self, across: int, down: int | None = None) -> Box:
        down = across if down is None else down
        return Box(self.left - across, self.top - down, self.width + 2 * across, self.height + 2 * down)

    def moved(self, across: int, down: int) -> Box:
        return Box(self.left + across, self.top + down, self.width, self.height)

    def likeness(self, other: Box) -> float:
        """How much two boxes are the same one: the part that they share of what they cover."""
        shared = self.within(other).area
        covered = self.area + other.area - shared
        return shared / covered if covered else 0.0


def around(boxes: Iterable[Box]) -> Box:
    """The smallest box that has them all in it."""
    each = [box for box in boxes if box.area]
    if not each:
        return Box(0, 0, 0, 0)
    left, top = min(box.left for box in each), min(box.top for box in each)
    return Box(left, top, max(box.right for box in each) - left, max(box.bottom for box in each) - top)


def merged(boxes: Iterable[Box]) -> list[Box]:
    """Boxes that meet put together, until none meet."""
    apart: list[Box] = []
    for box in boxes:
        while met := next((other for other in apart if other.meets(box)), None):
            apart.remove(met)
            box = around((box, met))
        apart.append(box)
    return apart
