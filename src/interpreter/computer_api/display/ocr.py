"""Reading text from pixels, on this machine alone: RapidOCR, or tesseract where that is what there is."""

from __future__ import annotations

import os
import shutil
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from interpreter.computer_api.display.boxes import Box, around
from interpreter.computer_api.display.failures import INSTALL, MissingPartError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Pixels = NDArray[Any]

# The user's own programs need the others.
_THREADS = max(1, min(4, (os.cpu_count() or 1) // 2))
# Longer sides are made smaller before lines are looked for: the model's memory grows with the area.
_LONGEST_SIDE = 3200
_MOST_KNOWN = 4000
_SURE_ENOUGH = 0.5


@dataclass(frozen=True)
class Word:
    """A word and where it is."""

    text: str
    box: Box


@dataclass(frozen=True)
class Line:
    """A line of text and its words."""

    words: tuple[Word, ...]

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)

    @property
    def box(self) -> Box:
        return around(word.box for word in self.words)

    def moved(self, across: int, down: int) -> Line:
        return Line(tuple(replace(word, box=word.box.moved(across, down)) for word in self.words))


class Engine(Protocol):
    """Reads the lines of a picture (rows of RGB pixels)."""

    def read(self, pixels: Pixels) -> list[Line]: ...


@cache
def engine() -> Engine:
    """The engine of this process, made when it is first needed."""
    if find_spec("rapidocr") and find_spec("onnxruntime"):
        return Rapid()
    if shutil.which("tesseract"):
        return Tesseract()
    raise MissingPartError(f"Reading text from the screen needs an OCR engine: {INSTALL}, or install tesseract.")


class Rapid:
    """RapidOCR, whose models come inside its package; what one line's pixels say is read once."""

    def __init__(self) -> None:
        from rapidocr import RapidOCR
        from rapidocr.ch_ppocr_rec import TextRecInput

        runtime = "EngineConfig.onnxruntime."
        self._engine: Any = RapidOCR(
            params={
                "Global.log_level": "critical",
                "Global.use_cls": False,
                "Global.max_side_len": _LONGEST_SIDE,
                "Global.return_word_box": True,
                "Det.limit_type": "min",
                "Det.limit_side_len": 32,
                # Short words are most of what a screen has: as wide as 320, each would cost three times as much.
                "Rec.rec_img_shape": [3, 48, 64],
                runtime + "intra_op_num_threads": _THREADS,
                runtime + "inter_op_num_threads": 1,
            }
        )
        self._input = TextRecInput
        self._known: OrderedDict[bytes, tuple[tuple[str, float, float], ...]] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, pixels: Pixels) -> list[Line]:
        with self._lock:
            boxes = self._boxes(pixels)
            crops = [pixels[box.top : box.bottom, box.left : box.right] for box in boxes]
            said = self._said(crops)
        lines = [_line(box, words) for box, words in zip(boxes, said, strict=True) if words]
        return in_reading_order(lines)

    def _boxes(self, pixels: Pixels) -> list[Box]:
        """Where lines of text are."""
        import numpy

        height, width = pixels.shape[:2]
        # The model wants some room around text that fills the whole crop.
        room = 8 if min(height, width) < 64 else 0
        framed = numpy.pad(pixels, ((room, room), (room, room), (0, 0)), mode="edge") if room else pixels
        found: Any = self._engine(
            numpy.ascontiguousarray(framed[:, :, ::-1]), use_det=True, use_cls=False, use_rec=False
        )
        whole = Box(0, 0, width, height)
        corners = [] if found.boxes is None else list(found.boxes)
        boxes = [_box_of(each).moved(-room, -room).within(whole) for each in corners]
        return [box for box in boxes if box.width > 2 and box.height > 4]

    def _said(self, crops: list[Pixels]) -> list[tuple[tuple[str, float, float], ...]]:
        """The words of each crop with their place in it, as parts of its width."""
        keys = [_key(crop) for crop in crops]
        new = {key: crop for key, crop in zip(keys, crops, strict=True) if key not in self._known}
        if new:
            for key, words in zip(new, self._recognised(list(new.values())), strict=True):
                self._known[key] = words
        said = [self._known[key] for key in keys]
        for key in keys:
            self._known.move_to_end(key)
        while len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        return said

    def _recognised(self, crops: list[Pixels]) -> list[tuple[tuple[str, float, float], ...]]:
        import numpy

        recognise = self._engine.text_rec or self._engine._load_rec_model()
        turned = [numpy.ascontiguousarray(crop[:, :, ::-1]) for crop in crops]
        out = recognise(self._input(img=turned, return_word_box=True))
        return [
            _placed(text, info) if score >= _SURE_ENOUGH else ()
            for text, score, info in zip(out.txts, out.scores, out.word_results, strict=True)
        ]


def _box_of(corners: Any) -> Box:
    return Box.between(corners[:, 0].min(), corners[:, 1].min(), corners[:, 0].max() + 1, corners[:, 1].max() + 1)


def _key(pixels: Pixels) -> bytes:
    return blake2b(pixels.tobytes() + repr(pixels.shape).encode(), digest_size=16).digest()


def _placed(text: str, info: Any) -> tuple[tuple[str, float, float], ...]:
    """The words of a recognised line, each with where it begins and ends as a part of the line's width."""
    columns = [column for word in info.word_cols for column in word]
    letters = text.replace(" ", "")
    if not letters or not info.line_txt_len or len(columns) < len(letters):
        return tuple(_spread(text))
    places = iter(columns)
    # A space may be a column of its own: then the columns are as many as the text is long.
    spaces = len(columns) >= len(text)
    words: list[tuple[str, float, float]] = []
    gap = 0.5 * (columns[-1] - columns[0]) / max(1, len(text) - 1) + 0.5
    for word in text.split(" "):
        mine = [next(places) for _ in word]
        if spaces:
            next(places, None)
        if mine:
            begin, end = (mine[0] + 0.5 - gap) / info.line_txt_len, (mine[-1] + 0.5 + gap) / info.line_txt_len
            words.append((word, max(0.0, begin), min(1.0, end)))
    return tuple(words)


def _spread(text: str) -> list[tuple[str, float, float]]:
    """Words placed as if all letters were of one width."""
    words, place = [], 0
    for word in text.split(" "):
        if word:
            words.append((word, place / len(text), (place + len(word)) / len(text)))
        place += len(word) + 1
    return words


def _line(box: Box, words: tuple[tuple[str, float, float], ...]) -> Line:
    return Line(
        tuple(
            Word(text, Box.between(box.left + begin * box.width, box.top, box.left + end * box.width, box.bottom))
            for text, begin, end in words
        )
    )


class Tesseract:
    """The tesseract program, which finds less of what is written small."""

    # Letters of screens are smaller than those it was trained on.
    _LARGER = 3

    def read(self, pixels: Pixels) -> list[Line]:
        import subprocess
        from io import BytesIO

        from PIL import Image

        image = Image.fromarray(pixels)
        image = image.resize((image.width * self._LARGER, image.height * self._LARGER), Image.Resampling.BICUBIC)
        buffer = BytesIO()
        image.save(buffer, "PNG", compress_level=1)
        command = ["tesseract", "stdin", "stdout", "--psm", "11", "tsv"]
        limits = os.environ | {"OMP_THREAD_LIMIT": str(_THREADS)}
        done = subprocess.run(command, input=buffer.getvalue(), capture_output=True, env=limits, check=False)
        if done.returncode:
            raise MissingPartError(f"tesseract failed: {done.stderr.decode('utf-8', 'replace').strip()[:200]}")
        return in_reading_order(self._lines(done.stdout.decode("utf-8", "replace")))

    def _lines(self, table: str) -> list[Line]:
        lines: dict[tuple[str, ...], list[Word]] = {}
        for row in table.splitlines()[1:]:
            cells = row.split("\t")
            if len(cells) == 12 and cells[11].strip() and float(cells[10]) > 30:
                left, top, width, height = (int(cell) // self._LARGER for cell in cells[6:10])
                lines.setdefault(tuple(cells[1:5]), []).append(Word(cells[11].strip(), Box(left, top, width, height)))
        return [Line(tuple(words)) for words in lines.values()]


def in_reading_order(lines: list[Line]) -> list[Line]:
    """From top to bottom, and in one row from left to right."""
    ordered = sorted(lines, key=lambda line: line.box.top + line.box.height / 2)
    rows: list[list[Line]] = []
    for line in ordered:
        middle = line.box.top + line.box.height / 2
        if rows and rows[-1][0].box.top <= middle < rows[-1][0].box.bottom:
            rows[-1].append(line)
        else:
            rows.append([line])
    return [line for row in rows for line in sorted(row, key=lambda line: line.box.left)]
