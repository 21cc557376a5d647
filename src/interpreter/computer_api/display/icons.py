"""Finding an icon by a picture of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from interpreter.computer_api.display.boxes import Box

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Pixels = NDArray[Any]

# Below this it is another icon.
_ALIKE = 0.85
_SIZES = (0.5, 0.67, 0.75, 1.25, 1.5, 2.0)
_MOST = 50
# A larger screen is made smaller for the search among many sizes.
_COARSE = 640


class Spot(NamedTuple):
    """A place that looks like the icon."""

    box: Box
    similarity: float


def icon_in(pixels: Pixels, icon: Pixels) -> list[Spot]:
    """Where the icon is, the best first; as large as its picture, or else in some other sizes."""
    if icon.std() < 1:
        raise ValueError("The picture of the icon has only one colour: nothing can be found by it.")
    return _spots(pixels, icon) or _in_other_sizes(pixels, icon)


def _in_other_sizes(pixels: Pixels, icon: Pixels) -> list[Spot]:
    import cv2

    coarse = max(1.0, max(pixels.shape[:2]) / _COARSE)
    small = cv2.resize(pixels, None, fx=1 / coarse, fy=1 / coarse, interpolation=cv2.INTER_AREA)
    tried = []
    for size in _SIZES:
        factor = size / coarse
        if min(icon.shape[:2]) * factor < 6:
            factor, screen = size, pixels
        else:
            screen = small
        found = _spots(screen, _resized(icon, factor), _ALIKE - 0.2)
        tried += [(spot.similarity, size) for spot in found[:1]]
    for _, size in sorted(tried, reverse=True)[:2]:
        if spots := _spots(pixels, _resized(icon, size), _ALIKE - 0.05):
            return spots
    return []


def _resized(icon: Pixels, factor: float) -> Pixels:
    import cv2

    way = cv2.INTER_AREA if factor < 1 else cv2.INTER_CUBIC
    resized: Pixels = cv2.resize(icon, None, fx=factor, fy=factor, interpolation=way)
    return resized


def _spots(pixels: Pixels, icon: Pixels, alike: float = _ALIKE) -> list[Spot]:
    import cv2
    import numpy

    high, wide = icon.shape[:2]
    if high > pixels.shape[0] or wide > pixels.shape[1]:
        return []
    scores = cv2.matchTemplate(pixels, icon, cv2.TM_CCOEFF_NORMED)
    # Over one colour there is nothing to compare, and the sum is no number.
    scores = numpy.nan_to_num(scores, nan=0.0, posinf=0.0, neginf=0.0)
    found: list[Spot] = []
    while len(found) < _MOST:
        _, best, _, (x, y) = cv2.minMaxLoc(scores)
        if best < alike or best > 1.01:
            break
        found.append(Spot(Box(x, y, wide, high), min(1.0, float(best))))
        top, left = max(0, y - high // 2), max(0, x - wide // 2)
        scores[top : y + high // 2 + 1, left : x + wide // 2 + 1] = 0
    return found
