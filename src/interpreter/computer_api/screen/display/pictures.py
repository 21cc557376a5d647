"""Pictures of the screen: scaled for a model, marked, compared, and read with OCR on this machine."""

from __future__ import annotations

import os
import threading
import time
from base64 import b64decode
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2b
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.screen.platforms import Box, Screen, around, merged, needed
from interpreter.computer_api.tool import Picture

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image

    Pixels = NDArray[Any]

MAX_NAME_LENGTH = 1000  # characters of a file; a longer text is the picture itself
_MARK = (220, 20, 60)
_TILE = 16
# Changes as small as a blinking cursor or a spinner are not waited for.
_SMALL_AREA = 40 * 40
_LOOKS_A_SECOND = 10
_MIN_LOOKS = 3


@dataclass(frozen=True)
class PlacedPixels:
    """Pixels, and where they are on the screen."""

    pixels: Pixels
    left: float = 0
    top: float = 0
    scale: float = 1

    def on_screen(self, box: Box) -> Box:
        """Convert a box of these pixels to one of the screen."""
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
    """Scale the picture of a box so that no side is longer; one pixel is exactly `scale` pixels of the screen."""
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


def placed_pixels(screenshot: Any) -> PlacedPixels:
    """Return the pixels of a picture, given as a Picture, a PIL image, a file, base64 or bytes."""
    needed("PIL.Image", "Looking at pictures")
    if isinstance(screenshot, Picture):
        return PlacedPixels(pixels_of(screenshot.pil()), screenshot.left, screenshot.top, screenshot.scale)
    if hasattr(screenshot, "convert"):
        return PlacedPixels(pixels_of(screenshot))
    from PIL import Image, UnidentifiedImageError

    if isinstance(screenshot, bytes | bytearray):
        data = bytes(screenshot)
    elif not isinstance(screenshot, str | Path):
        raise TypeError(f"A screenshot is a Picture, an image file, or base64; not {type(screenshot).__name__}.")
    elif is_file_name(str(screenshot)) and (file := Path(screenshot).expanduser()).is_file():
        data = file.read_bytes()
    else:
        try:
            data = b64decode(str(screenshot).rpartition("base64,")[2], validate=True)
        except ValueError as error:
            raise FileNotFoundError(f"There is no image {str(screenshot)[:200]!r}.") from error
    try:
        return PlacedPixels(pixels_of(Image.open(BytesIO(data))))
    except UnidentifiedImageError as error:
        raise ValueError("This is not an image. Give a Picture, an image file, or the image as base64.") from error


def is_file_name(screenshot: str) -> bool:
    """Return whether a text can be the name of a file, and not a picture as base64."""
    return len(screenshot) < MAX_NAME_LENGTH and not screenshot.startswith("data:")


def numbered(picture: Picture, boxes: Iterable[Box]) -> Picture:
    """Draw a numbered frame around each box of the screen, starting at 1."""
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
        # The label goes beside the frame, inside the picture, and not over another label.
        wide, high = int(draw.textlength(str(number), font=font)) + 6, 17
        corners = ((left - 2, top - high - 2), (left - wide - 2, top), (right + 2, top), (left - 2, bottom + 2))
        label_boxes = [Box(int(x), int(y), wide, high) for x, y in corners]
        free = [
            label_box
            for label_box in label_boxes
            if label_box.within(whole) == label_box and not any(map(label_box.overlaps, taken))
        ]
        x, y = min(max(0, int(left)), whole.width - wide), min(max(0, int(top)), whole.height - high)
        label = free[0] if free else Box(x, y, wide, high)
        taken.append(label)
        draw.rectangle((label.left, label.top, label.right, label.bottom), fill=_MARK)
        draw.text((label.left + 3, label.top + 1), str(number), fill="white", font=font)
    return Picture.of(image, picture.left, picture.top, picture.scale)


# -- changes -----------------------------------------------------------------------------------------------------------


def changed_boxes(changed: Pixels) -> list[Box]:
    """Return boxes around the marked pixels, in tiles; close ones share a box."""
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
    return merged(Box(*(int(side) * _TILE for side in row[:4])).within(whole) for row in stats[1:count])


def wait_until_still(screen: Screen, region: Box, quiet: float, limit: float) -> bool:
    """Return whether the region stayed still for `quiet` seconds before `limit` seconds were over."""
    watch = screen.watch()
    if watch is None:
        return _compare_until_still(screen, region, quiet, limit)
    with watch as wait:
        now = time.monotonic()
        end, changed = now + limit, now
        while now < end:
            rest = changed + quiet - now
            if rest <= 0:
                return True
            boxes = wait(min(rest, end - now))
            now = time.monotonic()
            if any(box.within(region).area > _SMALL_AREA for box in boxes):
                changed = now
        return changed + quiet <= now


def _compare_until_still(screen: Screen, region: Box, quiet: float, limit: float) -> bool:
    """Compare pictures, on systems that do not report changes."""
    now = time.monotonic()
    end, changed, looks, before = now + limit, now, 0, pixels_of(screen.grab(region))
    while now < end:
        time.sleep(1 / _LOOKS_A_SECOND)
        pixels = pixels_of(screen.grab(region))
        now = time.monotonic()
        if any(box.area > _SMALL_AREA for box in changed_boxes((before != pixels).any(axis=2))):
            before, changed, looks = pixels, now, 0
        looks += 1
        if now - changed >= quiet and looks >= _MIN_LOOKS:
            return True
    return False


def changed_since(screen: Screen, picture: Picture) -> list[Box]:
    """Return the boxes of the screen that differ from a picture of it."""
    whole = Box(0, 0, picture.width, picture.height)
    before = placed_pixels(picture)
    box = Box(*picture.about["box"]) if "box" in picture.about else before.on_screen(whole)
    longest = None if picture.scale == 1 else round(max(box.width, box.height) / picture.scale)
    now = pixels_of(scaled(screen.grab(box), box, longest).pil())
    same_size = before.pixels.shape == now.shape
    boxes = changed_boxes((before.pixels != now).any(axis=2)) if same_size else [whole]
    return [before.on_screen(each) for each in boxes]


Spans = tuple[tuple[str, float, float], ...]  # the text, begin and end of each word in a line, as parts of its width

# The other processors are left to the user's programs.
_THREADS = max(1, min(4, (os.cpu_count() or 1) // 2))
# Longer sides are shrunk before the search for lines: the model's memory grows with the area.
_MAX_SIDE = 3200
_MAX_CACHED = 4000
_MIN_CONFIDENCE = 0.5
# Beyond this part of a region, reading all of it is as quick as reading what changed.
_NEARLY_ALL = 0.6


@dataclass(frozen=True)
class Word:
    text: str
    box: Box


@dataclass(frozen=True)
class Line:
    words: tuple[Word, ...]

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)

    @property
    def box(self) -> Box:
        return around(word.box for word in self.words)

    def moved(self, across: int, down: int) -> Line:
        return Line(tuple(replace(word, box=word.box.moved(across, down)) for word in self.words))


class ScreenText:
    """The desktop as it was last read: its pixels, which of them were read, and the lines found there."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._desktop = Box(0, 0, 0, 0)
        self._pixels: Pixels | None = None
        self._known: Pixels | None = None
        self._lines: list[Line] = []

    def read(self, pixels: Pixels, region: Box, desktop: Box) -> list[Line]:
        """Return the lines of a region of the desktop with these pixels; their boxes are on the desktop."""
        import numpy

        with self._lock:
            if self._pixels is None or self._known is None or desktop != self._desktop:
                self._desktop, self._lines = desktop, []
                self._pixels = numpy.zeros((desktop.height, desktop.width, 3), numpy.uint8)
                self._known = numpy.zeros((desktop.height, desktop.width), bool)
            inside = region.moved(-desktop.left, -desktop.top)
            area = slice(inside.top, inside.bottom), slice(inside.left, inside.right)
            new = (self._pixels[area] != pixels).any(axis=2) | ~self._known[area]
            for box in self._boxes_to_read(new, region):
                part = _cut(pixels, box.moved(-region.left, -region.top))
                lines_read = [line.moved(box.left, box.top) for line in read(part)]
                self._lines = [line for line in self._lines if not line.box.overlaps(box)] + lines_read
            self._pixels[area] = pixels
            self._known[area] = True
            return in_reading_order([line for line in self._lines if region.has(*line.box.center)])

    def _boxes_to_read(self, new: Pixels, region: Box) -> list[Box]:
        """Return the boxes to read again; no line of text crosses their edges."""
        boxes = [box.moved(region.left, region.top) for box in changed_boxes(new)]
        lines = [line.box.grown(line.box.height, 2) for line in self._lines]
        whole: list[Box] = []
        while boxes != whole:  # until they contain all lines that they touch
            whole = boxes
            boxes = merged(
                around((box, *(line for line in lines if line.overlaps(box)))).within(region) for box in boxes
            )
        return [region] if sum(box.area for box in boxes) > _NEARLY_ALL * region.area else boxes


def read(pixels: Pixels) -> list[Line]:
    """Return the lines of a picture; areas of one color are skipped."""
    high, wide = pixels.shape[:2]
    boxes = changed_boxes((pixels[1:, 1:] != pixels[:-1, :-1]).any(axis=2))
    if sum(box.area for box in boxes) > _NEARLY_ALL * high * wide:
        boxes = [Box(0, 0, wide, high)]
    return [line.moved(box.left, box.top) for box in boxes for line in engine().read(_cut(pixels, box))]


def _cut(pixels: Pixels, box: Box) -> Pixels:
    return pixels[box.top : box.bottom, box.left : box.right]


def in_reading_order(lines: list[Line]) -> list[Line]:
    """Sort lines from top to bottom, and in one row from left to right."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: line.box.top + line.box.height / 2):
        middle = line.box.top + line.box.height / 2
        if rows and rows[-1][0].box.top <= middle < rows[-1][0].box.bottom:
            rows[-1].append(line)
        else:
            rows.append([line])
    return [line for row in rows for line in sorted(row, key=lambda line: line.box.left)]


class RapidOcr:
    """RapidOCR, whose models come inside its package; the same pixels of a line are recognised only once."""

    def __init__(self) -> None:
        needed("onnxruntime", "Reading text from the screen")
        package = needed("rapidocr", "Reading text from the screen")
        runtime = "EngineConfig.onnxruntime."
        self._engine: Any = package.RapidOCR(
            params={
                "Global.log_level": "critical",
                "Global.use_cls": False,
                "Global.max_side_len": _MAX_SIDE,
                "Global.return_word_box": True,
                "Det.limit_type": "min",
                "Det.limit_side_len": 32,
                # Short words are most of what a screen has: as wide as 320, each would cost three times as much.
                "Rec.rec_img_shape": [3, 48, 64],
                runtime + "intra_op_num_threads": _THREADS,
                runtime + "inter_op_num_threads": 1,
            }
        )
        self._input = import_module("rapidocr.ch_ppocr_rec").TextRecInput
        self._known: dict[bytes, Spans] = {}
        self._lock = threading.Lock()

    def read(self, pixels: Pixels) -> list[Line]:
        with self._lock:
            boxes = self._find_lines(pixels)
            recognised = self._recognise([_cut(pixels, box) for box in boxes])
        lines = []
        for box, spans in zip(boxes, recognised, strict=True):
            word_edges = [
                (text, box.left + begin * box.width, box.left + end * box.width) for text, begin, end in spans
            ]
            words = [Word(text, Box.between(left, box.top, right, box.bottom)) for text, left, right in word_edges]
            lines += [Line(tuple(words))] if words else []
        return in_reading_order(lines)

    def _find_lines(self, pixels: Pixels) -> list[Box]:
        import numpy

        height, width = pixels.shape[:2]
        # The model needs some room around text that fills the whole crop.
        room = 8 if min(height, width) < 64 else 0
        framed = numpy.pad(pixels, ((room, room), (room, room), (0, 0)), mode="edge") if room else pixels
        detection: Any = self._engine(
            numpy.ascontiguousarray(framed[:, :, ::-1]), use_det=True, use_cls=False, use_rec=False
        )
        boxes = []
        for corners in [] if detection.boxes is None else detection.boxes:
            (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
            box = Box.between(left, top, right + 1, bottom + 1).moved(-room, -room).within(Box(0, 0, width, height))
            if box.width > 2 and box.height > 4:
                boxes.append(box)
        return boxes

    def _recognise(self, crops: list[Pixels]) -> list[Spans]:
        """Return the words of each crop with their positions in it, as parts of its width."""
        import numpy

        keys = [blake2b(crop.tobytes() + repr(crop.shape).encode(), digest_size=16).digest() for crop in crops]
        new = {key: crop for key, crop in zip(keys, crops, strict=True) if key not in self._known}
        if len(self._known) + len(new) > _MAX_CACHED:
            self._known.clear()
            new = dict(zip(keys, crops, strict=True))
        if new:
            recognise = self._engine.text_rec or self._engine._load_rec_model()
            turned = [numpy.ascontiguousarray(crop[:, :, ::-1]) for crop in new.values()]
            out = recognise(self._input(img=turned, return_word_box=True))
            for key, text, score, info in zip(new, out.txts, out.scores, out.word_results, strict=True):
                self._known[key] = _spans(text, info) if score >= _MIN_CONFIDENCE else ()
        return [self._known[key] for key in keys]


engine = cache(RapidOcr)  # one for this process, loaded when it is first needed


def _spans(text: str, info: Any) -> Spans:
    """Return the words of a recognised line, each with its begin and end as a part of the line's width."""
    columns = [column for word in info.word_cols for column in word]
    letters = text.replace(" ", "")
    words: list[tuple[str, float, float]] = []
    if not letters or not info.line_txt_len or len(columns) < len(letters):
        offset = 0  # as if all letters had one width
        for word in text.split(" "):
            if word:
                words.append((word, offset / len(text), (offset + len(word)) / len(text)))
            offset += len(word) + 1
        return tuple(words)
    next_columns = iter(columns)
    # A space may have its own column: then there are as many columns as the text has characters.
    spaces = len(columns) >= len(text)
    gap = 0.5 * (columns[-1] - columns[0]) / max(1, len(text) - 1) + 0.5
    for word in text.split(" "):
        own = [next(next_columns) for _ in word]
        if spaces:
            next(next_columns, None)
        if own:
            begin, end = (own[0] + 0.5 - gap) / info.line_txt_len, (own[-1] + 0.5 + gap) / info.line_txt_len
            words.append((word, max(0.0, begin), min(1.0, end)))
    return tuple(words)
