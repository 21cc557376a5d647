"""Pictures out of half blocks: two pixels above each other in every cell, for terminals without graphics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interpreter.frontends.terminal.render.theme import RESET

if TYPE_CHECKING:
    from PIL.Image import Image

UPPER = "▀"
TRUE_COLOR = 1 << 24
# The sixteen colours as most terminals show them.
_SIXTEEN = (
    *((0, 0, 0), (205, 0, 0), (0, 205, 0), (205, 205, 0), (0, 0, 238), (205, 0, 205), (0, 205, 205), (229, 229, 229)),
    *((127, 127, 127), (255, 0, 0), (0, 255, 0), (255, 255, 0), (92, 92, 255), (255, 0, 255), (0, 255, 255)),
    (255, 255, 255),
)
_LEVELS = (0, 95, 135, 175, 215, 255)


def lines(image: Image, columns: int, rows: int, colors: int) -> list[str]:
    """The picture as so many rows of text."""
    from PIL.Image import Resampling

    small = _inked(image, columns).resize((columns, rows * 2), Resampling.LANCZOS)
    codes = _codes(small, colors)
    return [_row(codes[2 * row], codes[2 * row + 1]) for row in range(rows)]


def _inked(image: Image, columns: int) -> Image:
    """A drawing on white paper with thicker lines, which would be lost in so few pixels."""
    from PIL import ImageFilter, ImageStat

    shrinks = image.size[0] / columns
    brightness = ImageStat.Stat(image.convert("L")).mean[0]
    if shrinks < 2 or brightness < 200:
        return image
    return image.filter(ImageFilter.MinFilter(3 if shrinks < 8 else 5))


def _row(upper: list[tuple[str, str]], lower: list[tuple[str, str]]) -> str:
    parts: list[str] = []
    last = ""
    for (front, same), (_, back) in zip(upper, lower, strict=True):
        # A space has no seam in the middle, which some fonts leave between the halves.
        style, shown = (f"\x1b[{back}m", " ") if same == back else (f"\x1b[{front};{back}m", UPPER)
        parts += [shown] if style == last else [style, shown]
        last = style
    return "".join(parts) + RESET


def _codes(image: Image, colors: int) -> list[list[tuple[str, str]]]:
    """For every pixel the codes that make it the colour of the text and of what is behind it."""
    width, height = image.size
    if colors >= TRUE_COLOR:
        data = image.tobytes()
        rgb = [tuple(data[at : at + 3]) for at in range(0, len(data), 3)]
        pairs = [(f"38;2;{r};{g};{b}", f"48;2;{r};{g};{b}") for r, g, b in rgb]
    elif colors >= 256:
        pairs = [(f"38;5;{16 + n}", f"48;5;{16 + n}") for n in _nearest(image, _cube_and_greys())]
    else:
        pairs = [_sixteen(n) for n in _nearest(image, list(_SIXTEEN))]
    return [pairs[row * width : (row + 1) * width] for row in range(height)]


def _nearest(image: Image, palette: list[tuple[int, int, int]]) -> bytes:
    """The number of the nearest colour for each pixel."""
    from PIL.Image import Dither, new

    holder = new("P", (1, 1))
    flat = [value for color in palette for value in color]
    holder.putpalette(flat + flat[-3:] * (256 - len(palette)))
    numbers = image.quantize(palette=holder, dither=Dither.NONE).tobytes()  # dots would hide the lines of a plot
    return bytes(min(number, len(palette) - 1) for number in numbers)


def _cube_and_greys() -> list[tuple[int, int, int]]:
    cube = [(r, g, b) for r in _LEVELS for g in _LEVELS for b in _LEVELS]
    return cube + [(8 + 10 * n, 8 + 10 * n, 8 + 10 * n) for n in range(24)]


def _sixteen(number: int) -> tuple[str, str]:
    return (f"{30 + number}", f"{40 + number}") if number < 8 else (f"{82 + number}", f"{92 + number}")
