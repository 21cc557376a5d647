"""Sixel graphics: six rows of pixels at a time, one pass for each colour in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

_BAND = 6
_RUN = re.compile(rb"(.)\1{3,}", re.DOTALL)


def escapes(image: Image, colors: int = 256) -> list[str]:
    """Draw the picture, pixel by pixel, from the cursor on; the cursor ends up below it."""
    from PIL.Image import Dither

    paletted = image.quantize(colors, dither=Dither.NONE if colors > 16 else Dither.FLOYDSTEINBERG)
    width, height = paletted.size
    pixels = paletted.tobytes()
    used = sorted(set(pixels))
    parts = [f'\x1bP0;1q"1;1;{width};{height}', *_palette(paletted, used)]
    for top in range(0, height, _BAND):
        rows = [pixels[at : at + width] for at in range(top * width, min(top + _BAND, height) * width, width)]
        parts += [b"$".join(_passes(rows, width)).decode("ascii"), "-"]
    parts[-1] = "\x1b\\"
    return ["".join(parts)]


def _palette(paletted: Image, used: list[int]) -> Iterator[str]:
    palette = paletted.getpalette() or []
    for number in used:
        red, green, blue = (round(value * 100 / 255) for value in palette[3 * number : 3 * number + 3])
        yield f"#{number};2;{red};{green};{blue}"


def _passes(rows: list[bytes], width: int) -> Iterator[bytes]:
    """One line of sixels for each colour; the work on the pixels is done by translate and big integers."""
    base = int.from_bytes(b"?" * width, "big")
    for color in sorted(set(b"".join(rows))):
        table = bytes(256)
        table = table[:color] + b"\x01" + table[color + 1 :]
        bits = 0
        for number, row in enumerate(rows):
            bits |= int.from_bytes(row.translate(table), "big") << number
        line = (bits + base).to_bytes(width, "big").rstrip(b"?")
        yield b"#%d" % color + _RUN.sub(_shortened, line)


def _shortened(run: re.Match[bytes]) -> bytes:
    return b"!%d%c" % (len(run[0]), run[1][0])
