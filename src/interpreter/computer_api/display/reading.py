"""What has been read of the screen stays known: only what has changed since is read again."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.display.boxes import Box, around, merged
from interpreter.computer_api.display.ocr import Line, engine, in_reading_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Pixels = NDArray[Any]

TILE = 16
# Beyond this part of a region, reading all of it is as quick as reading what changed.
_NEARLY_ALL = 0.6


class Reading:
    """The desktop as it was last read: its pixels, which of them were read, and the lines found there."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._desktop = Box(0, 0, 0, 0)
        self._pixels: Pixels | None = None
        self._known: Pixels | None = None
        self._lines: list[Line] = []

    def read(self, pixels: Pixels, region: Box, desktop: Box) -> list[Line]:
        """The lines of a region of the desktop, whose pixels are these; their boxes are on the desktop."""
        with self._lock:
            if self._pixels is None or desktop != self._desktop:
                self._start(desktop)
            for box in self._to_read(pixels, region):
                part = cut(pixels, box.moved(-region.left, -region.top))
                found = [line.moved(box.left, box.top) for line in read(part)]
                self._lines = [line for line in self._lines if not line.box.meets(box)] + found
            self._remember(pixels, region)
            return in_reading_order([line for line in self._lines if region.has(*line.box.center)])

    def _start(self, desktop: Box) -> None:
        import numpy

        self._desktop = desktop
        self._pixels = numpy.zeros((desktop.height, desktop.width, 3), numpy.uint8)
        self._known = numpy.zeros((desktop.height, desktop.width), bool)
        self._lines = []

    def _slices(self, region: Box) -> tuple[slice, slice]:
        inside = region.moved(-self._desktop.left, -self._desktop.top)
        return slice(inside.top, inside.bottom), slice(inside.left, inside.right)

    def _to_read(self, pixels: Pixels, region: Box) -> list[Box]:
        """The boxes to read again; no line of text crosses their edges."""
        assert self._pixels is not None and self._known is not None
        place = self._slices(region)
        new = (self._pixels[place] != pixels).any(axis=2) | ~self._known[place]
        boxes = [box.moved(region.left, region.top) for box in changed_boxes(new)]
        lines = [line.box.grown(line.box.height, 2) for line in self._lines]
        whole: list[Box] = []
        while boxes != whole:  # until they have all lines in them that they touch
            whole = boxes
            boxes = merged(around((box, *(line for line in lines if line.meets(box)))).within(region) for box in boxes)
        if sum(box.area for box in boxes) > _NEARLY_ALL * region.area:
            return [region]
        return boxes

    def _remember(self, pixels: Pixels, region: Box) -> None:
        assert self._pixels is not None and self._known is not None
        place = self._slices(region)
        self._pixels[place] = pixels
        self._known[place] = True


def read(pixels: Pixels) -> list[Line]:
    """The lines of a picture; where it is of one colour, no reader is asked."""
    high, wide = pixels.shape[:2]
    detail = (pixels[1:, 1:] != pixels[:-1, :-1]).any(axis=2)
    boxes = changed_boxes(detail)
    if sum(box.area for box in boxes) > _NEARLY_ALL * high * wide:
        boxes = [Box(0, 0, wide, high)]
    return [line.moved(box.left, box.top) for box in boxes for line in engine().read(cut(pixels, box))]


def cut(pixels: Pixels, box: Box) -> Pixels:
    return pixels[box.top : box.bottom, box.left : box.right]


def changed_boxes(changed: Pixels) -> list[Box]:
    """Boxes around what is marked, in tiles; marks that are nearly neighbours share one."""
    import cv2
    import numpy

    height, width = changed.shape
    rows, columns = -(-height // TILE), -(-width // TILE)
    padded = numpy.zeros((rows * TILE, columns * TILE), numpy.uint8)
    padded[:height, :width] = changed
    tiles = padded.reshape(rows, TILE, columns, TILE).max(axis=(1, 3))
    if not tiles.any():
        return []
    near = cv2.dilate(tiles, numpy.ones((3, 3), numpy.uint8))
    count, _, stats, _ = cv2.connectedComponentsWithStats(near, connectivity=8)
    whole = Box(0, 0, width, height)
    found = [Box(*(int(value) * TILE for value in stats[number][:4])).within(whole) for number in range(1, count)]
    return merged(found)
