"""Pictures of the screen: taken, made as large as a model sees best, read back from what a call gives, and marked."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.display.boxes import Box
from interpreter.computer_api.display.failures import needed
from interpreter.computer_api.tool import Picture

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image

    Pixels = NDArray[Any]

QUADRANTS = (1, 2, 3, 4)
LONGEST_NAME = 1000  # characters of a file; what is longer is the picture itself
_MARK = (220, 20, 60)


@dataclass(frozen=True)
class Sight:
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
    """The picture of a box, no side longer than said; one pixel of it is exactly `scale` pixels of the screen."""
    from PIL import Image

    side = max(image.size)
    if not longest or side <= longest:
        return Picture.of(image.convert("RGB"), box.left, box.top)
    scale = side / longest
    width, height = max(1, int(image.width / scale)), max(1, int(image.height / scale))
    # What is left over at the edges is less than one pixel of the picture: so both directions have one scale.
    part = (0, 0, width * scale, height * scale)
    small = image.convert("RGB").resize((width, height), Image.Resampling.LANCZOS, box=part, reducing_gap=2.0)
    return Picture.of(small, box.left, box.top, scale)


def quadrant_of(box: Box, quadrant: int) -> Box:
    """A quarter of a box: 1 and 2 are the upper ones from left to right, 3 and 4 the lower ones."""
    if quadrant not in QUADRANTS:
        raise ValueError("quadrant is 1 (upper left), 2 (upper right), 3 (lower left) or 4 (lower right).")
    right, lower = quadrant in (2, 4), quadrant in (3, 4)
    wide, high = box.width // 2, box.height // 2
    return Box(
        box.left + (wide if right else 0),
        box.top + (high if lower else 0),
        box.width - wide if right else wide,
        box.height - high if lower else high,
    )


def sight_of(screenshot: Any) -> Sight:
    """The pixels of a picture however it is given: a Picture, an image of PIL, a file, base64 or bytes."""
    needed("PIL.Image", "Looking at pictures")
    if isinstance(screenshot, Picture):
        return Sight(pixels_of(screenshot.pil()), screenshot.left, screenshot.top, screenshot.scale)
    if hasattr(screenshot, "convert"):
        return Sight(pixels_of(screenshot))
    from PIL import Image, UnidentifiedImageError

    try:
        return Sight(pixels_of(Image.open(BytesIO(_bytes_of(screenshot)))))
    except UnidentifiedImageError as error:
        raise ValueError("This is no picture: give a Picture, an image file, or the image as base64.") from error


def _bytes_of(screenshot: Any) -> bytes:
    if isinstance(screenshot, bytes | bytearray):
        return bytes(screenshot)
    if isinstance(screenshot, str | Path):
        is_name = len(str(screenshot)) < LONGEST_NAME and not str(screenshot).startswith("data:")
        if is_name and Path(screenshot).expanduser().is_file():
            return Path(screenshot).expanduser().read_bytes()
        try:
            return b64decode(str(screenshot).rpartition("base64,")[2], validate=True)
        except (binascii.Error, ValueError) as error:
            raise FileNotFoundError(f"There is no picture {str(screenshot)[:200]!r}.") from error
    raise TypeError(f"A screenshot is a Picture, an image file, or base64; not {type(screenshot).__name__}.")


def numbered(picture: Picture, boxes: Iterable[Box]) -> Picture:
    """The picture with a numbered frame around each box of the screen, from 1 on."""
    from PIL import ImageDraw, ImageFont

    image = picture.pil().convert("RGB")
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(size=14)
    taken: list[Box] = []
    for number, box in enumerate(boxes, 1):
        left, top = ((box.left - picture.left) / picture.scale, (box.top - picture.top) / picture.scale)
        right, bottom = left + box.width / picture.scale, top + box.height / picture.scale
        draw.rectangle((left - 2, top - 2, right + 1, bottom + 1), outline=_MARK, width=2)
        label = _label_place(draw, font, str(number), (left, top, right, bottom), image.size, taken)
        taken.append(label)
        draw.rectangle((label.left, label.top, label.right, label.bottom), fill=_MARK)
        draw.text((label.left + 3, label.top + 1), str(number), fill="white", font=font)
    return Picture.of(image, picture.left, picture.top, picture.scale)


def _label_place(
    draw: Any, font: Any, text: str, frame: tuple[float, ...], size: tuple[int, int], taken: list[Box]
) -> Box:
    """Beside the frame, in the picture, and on no other label."""
    left, top, right, bottom = frame
    wide, high = int(draw.textlength(text, font=font)) + 6, 17
    corners = ((left - 2, top - high - 2), (left - wide - 2, top), (right + 2, top), (left - 2, bottom + 2))
    places = [Box(int(x), int(y), wide, high) for x, y in corners]
    whole = Box(0, 0, *size)
    free = [place for place in places if place.within(whole) == place and not any(place.meets(t) for t in taken)]
    if free:
        return free[0]
    x, y = min(max(0, int(left)), size[0] - wide), min(max(0, int(top)), size[1] - high)
    return Box(x, y, wide, high)
