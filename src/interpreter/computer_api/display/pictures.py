"""Pictures of the screen: scaled to what a model sees best, marked, read back from a call, and compared."""

from __future__ import annotations

import time
from base64 import b64decode
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.platforms import Box, Screen, merged, needed
from interpreter.computer_api.tool import Picture

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image

    Pixels = NDArray[Any]

LONGEST_NAME = 1000  # characters of a file; a longer text is the picture itself
_MARK = (220, 20, 60)
_TILE = 16
# A blinking cursor or a small spinner is no change to wait for.
_SMALL = 40 * 40
_LOOKS_A_SECOND = 10
_LEAST_LOOKS = 3


@dataclass(frozen=True)
class PlacedPixels:
    """Pixels, and where they are on the screen."""

    pixels: Pixels
    left: float = 0
    top: float = 0
    scale: float = 1

    def on_screen(self, box: Box) -> Box:
        """A box of these pixels as one of the screen."""
        return Box.between(
            self.left + box.left * self.scale,
            self.top + box.top * self.scale,
            self.left + box.right * self.scale,
            self.top + box.bottom * self.scale,
        )


def pixels_of(image: Image) -> Pixels:
    import numpy

    return numpy.asarray(image.convert("RGB"))


def scaled(image: Image, box: Box, longest: int | None) -> Picture:
    """The picture of a box, no side longer than that; one pixel of it is exactly `scale` pixels of the screen."""
    from PIL import Image

    side = max(image.size)
    if not longest or side <= longest:
        return Picture.of(image.convert("RGB"), box.left, box.top)
    scale = side / longest
    width, height = max(1, int(image.width / scale)), max(1, int(image.height / scale))
    # The rest at the edges is less than one pixel of the picture: so both directions have one scale.
    part = (0, 0, width * scale, height * scale)
    small = image.convert("RGB").resize((width, height), Image.Resampling.LANCZOS, box=part, reducing_gap=2.0)
    return Picture.of(small, box.left, box.top, scale)


def quadrant_of(box: Box, quadrant: int) -> Box:
    """A quarter of a box: 1 and 2 are the upper ones from left to right, 3 and 4 the lower ones."""
    if quadrant not in (1, 2, 3, 4):
        raise ValueError("quadrant is 1 (upper left), 2 (upper right), 3 (lower left) or 4 (lower right).")
    x, y = box.left + box.width // 2, box.top + box.height // 2
    left, right = (x, box.right) if quadrant in (2, 4) else (box.left, x)
    top, bottom = (y, box.bottom) if quadrant in (3, 4) else (box.top, y)
    return Box.between(left, top, right, bottom)


def placed_pixels(screenshot: Any) -> PlacedPixels:
    """The pixels of a picture however it is given: a Picture, a PIL image, a file, base64 or bytes."""
    needed("PIL.Image", "Looking at pictures")
    if isinstance(screenshot, Picture):
        return PlacedPixels(pixels_of(screenshot.pil()), screenshot.left, screenshot.top, screenshot.scale)
    if hasattr(screenshot, "convert"):
        return PlacedPixels(pixels_of(screenshot))
    from PIL import Image, UnidentifiedImageError

    if isinstance(screenshot, str | Path):
        data = _file_or_base64(str(screenshot))
    elif isinstance(screenshot, bytes | bytearray):
        data = bytes(screenshot)
    else:
        raise TypeError(f"A screenshot is a Picture, an image file, or base64; not {type(screenshot).__name__}.")
    try:
        return PlacedPixels(pixels_of(Image.open(BytesIO(data))))
    except UnidentifiedImageError as error:
        raise ValueError("This is no picture: give a Picture, an image file, or the image as base64.") from error


def is_file_name(screenshot: str) -> bool:
    """Whether a text can be the name of a file, and not a picture as base64."""
    return len(screenshot) < LONGEST_NAME and not screenshot.startswith("data:")


def _file_or_base64(screenshot: str) -> bytes:
    if is_file_name(screenshot) and (file := Path(screenshot).expanduser()).is_file():
        return file.read_bytes()
    try:
        return b64decode(screenshot.rpartition("base64,")[2], validate=True)
    except ValueError as error:
        raise FileNotFoundError(f"There is no picture {screenshot[:200]!r}.") from error


def numbered(picture: Picture, boxes: Iterable[Box]) -> Picture:
    """The picture with a numbered frame around each box of the screen, from 1 on."""
    from PIL import ImageDraw, ImageFont

    image = picture.pil().convert("RGB")
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(size=14)
    whole = Box(0, 0, *image.size)
    taken: list[Box] = []
    for number, box in enumerate(boxes, 1):
        left, top = ((box.left - picture.left) / picture.scale, (box.top - picture.top) / picture.scale)
        right, bottom = left + box.width / picture.scale, top + box.height / picture.scale
        draw.rectangle((left - 2, top - 2, right + 1, bottom + 1), outline=_MARK, width=2)
        # Beside the frame, in the picture, and on no other label.
        wide, high = int(draw.textlength(str(number), font=font)) + 6, 17
        corners = ((left - 2, top - high - 2), (left - wide - 2, top), (right + 2, top), (left - 2, bottom + 2))
        places = [Box(int(x), int(y), wide, high) for x, y in corners]
        free = [place for place in places if place.within(whole) == place and not any(map(place.overlaps, taken))]
        x, y = min(max(0, int(left)), whole.width - wide), min(max(0, int(top)), whole.height - high)
        label = free[0] if free else Box(x, y, wide, high)
        taken.append(label)
        draw.rectangle((label.left, label.top, label.right, label.bottom), fill=_MARK)
        draw.text((label.left + 3, label.top + 1), str(number), fill="white", font=font)
    return Picture.of(image, picture.left, picture.top, picture.scale)


# -- changes -----------------------------------------------------------------------------------------------------------


def changed_boxes(changed: Pixels) -> list[Box]:
    """Boxes around the marked pixels, in tiles; close ones share a box."""
    import cv2
    import numpy

    height, width = changed.shape
    rows, columns = -(-height // _TILE), -(-width // _TILE)
    padded = numpy.zeros((rows * _TILE, columns * _TILE), numpy.uint8)
    padded[:height, :width] = changed
    tiles = padded.reshape(rows, _TILE, columns, _TILE).max(axis=(1, 3))
    if not tiles.any():
        return []
    near = cv2.dilate(tiles, numpy.ones((3, 3), numpy.uint8))
    count, _, stats, _ = cv2.connectedComponentsWithStats(near, connectivity=8)
    whole = Box(0, 0, width, height)
    found = [Box(*(int(value) * _TILE for value in stats[number][:4])).within(whole) for number in range(1, count)]
    return merged(found)


def wait_until_still(screen: Screen, region: Box, quiet: float, limit: float) -> bool:
    """Whether nothing of any size changed in the region for `quiet` seconds, before `limit` seconds were over."""
    watch = screen.watch()
    if watch is None:
        return _compare_until_still(screen, region, quiet, limit)
    try:
        now = time.monotonic()
        end, changed = now + limit, now
        while now < end:
            rest = changed + quiet - now
            if rest <= 0:
                return True
            boxes = watch.wait(min(rest, end - now))
            now = time.monotonic()
            if any(box.within(region).area > _SMALL for box in boxes):
                changed = now
        return changed + quiet <= now
    finally:
        watch.close()


def _compare_until_still(screen: Screen, region: Box, quiet: float, limit: float) -> bool:
    """For systems that do not report changes: compare pictures."""
    now = time.monotonic()
    end, changed, looks, before = now + limit, now, 0, pixels_of(screen.grab(region))
    while now < end:
        time.sleep(1 / _LOOKS_A_SECOND)
        pixels = pixels_of(screen.grab(region))
        now = time.monotonic()
        if any(box.area > _SMALL for box in changed_boxes((before != pixels).any(axis=2))):
            before, changed, looks = pixels, now, 0
        looks += 1
        if now - changed >= quiet and looks >= _LEAST_LOOKS:
            return True
    return False


def changed_since(screen: Screen, picture: Picture) -> list[Box]:
    """The boxes of the screen that differ from a picture of it."""
    whole = Box(0, 0, picture.width, picture.height)
    before = placed_pixels(picture)
    box = Box(*picture.about["box"]) if "box" in picture.about else before.on_screen(whole)
    longest = None if picture.scale == 1 else round(max(box.width, box.height) / picture.scale)
    now = pixels_of(scaled(screen.grab(box), box, longest).pil())
    same_size = before.pixels.shape == now.shape
    found = changed_boxes((before.pixels != now).any(axis=2)) if same_size else [whole]
    return [before.on_screen(each) for each in found]
