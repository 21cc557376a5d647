"""Pictures in the terminal: kitty, iTerm2 and sixel graphics, else charts in characters and half blocks."""

from __future__ import annotations

import base64
import io
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from interpreter.frontends.pictures.charts import chart_of
from interpreter.frontends.terminal.render.ansi import RESET
from interpreter.frontends.terminal.render.saved import png_size
from interpreter.frontends.terminal.render.theme import TRUE_COLOR, Theme, color_depth
from interpreter.frontends.terminal.tty import CELL_SIZE, COLOR_REGISTERS, KITTY_GRAPHICS
from interpreter.host import files

if TYPE_CHECKING:
    from PIL.Image import Image

AUTO = "auto"
SCREEN_SHARE = 0.6  # of the height of the screen that a picture may take
AS_TEXT = "%open shows the figure as an image."
COARSE = "This terminal can only draw images in blocks. %open shows the original."
_DEFAULT_CELL = (9, 18)  # pixels, when neither the system nor the terminal says
_LOW_DPI_CELL = 20  # pixels; higher cells belong to high-resolution screens
_BLOCKS_ENLARGED = 2.0  # blocks are coarse: they may be larger than the picture
_MAX_FILE_BYTES = 200_000_000  # bytes that are read
_MAX_FILE_SENT_BYTES = 2_000_000  # bytes; a larger file is scaled down first
_KITTY_CHUNK = 4096  # bytes of base64 that one escape may carry
_SIXEL_BAND = 6
_SIXEL_RUN = re.compile(rb"(.)\1{3,}", re.DOTALL)


class Pictures:
    """Shows pictures. Before the first one, it queries what the terminal can do."""

    def __init__(
        self,
        ask: Callable[[str], list[bytes]] = lambda queries: [],
        cell: Callable[[], tuple[int, int] | None] = lambda: None,
        environ: Mapping[str, str] = os.environ,
        color: bool = True,
    ) -> None:
        self._ask, self._cell, self._environ, self._color = ask, cell, environ, color
        self.wanted = AUTO  # the setting
        self._found: dict[str, Graphics] = {}
        self._advised = self._advised_charts = False

    def prepare(self) -> None:
        """Query the terminal, once. The caller must not hold the screen lock."""
        if self.wanted != "off" and self.wanted not in self._found:
            self._found[self.wanted] = find_graphics(self.wanted, self._environ, self._cell(), self._ask)

    def rows(self, path: str, columns: int, lines: int, caption: str, theme: Theme) -> list[str]:
        """Return the picture above its caption, or only the caption if the picture can't be shown."""
        graphics = self._found.get(self.wanted)
        if graphics is None or graphics.protocol == "off":
            return [caption]
        try:
            data = files.read_bytes(path, _MAX_FILE_BYTES)
            if graphics.protocol == "blocks":
                if chart := chart_of(data, columns - 1, lines, theme):
                    advised, self._advised_charts = self._advised_charts, True
                    return [*chart, caption, *([] if advised else [AS_TEXT])]
                if not self._color:
                    return [caption]
            drawn, height = _draw(data, graphics, columns, lines)
        except ImportError:
            advised, self._advised = self._advised, True
            return [caption] if advised else [caption, "To show images here: %install images"]
        except (OSError, ValueError, SyntaxError):  # what Pillow raises for a file that is no picture
            return [caption]
        if graphics.protocol == "blocks" and self.wanted == AUTO and not self._advised:
            self._advised = True
            return [*drawn, caption, COARSE]
        if not height:
            return [*drawn, caption]
        # Empty rows come first and the drawing last, so that the screen does not scroll under the picture.
        return [*[""] * height, f"\x1b7\x1b[{height}A\r{''.join(drawn)}\x1b8\r{caption}"]


# -- what the terminal can do ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Graphics:
    protocol: str  # kitty, iterm, sixel, blocks, off
    cell: tuple[int, int] = _DEFAULT_CELL
    colors: int = 16  # of text, for blocks
    registers: int = 256  # colours that one sixel picture may have
    through_tmux: bool = False


def find_graphics(
    wanted: str,
    environ: Mapping[str, str],
    cell: tuple[int, int] | None,
    ask: Callable[[str], list[bytes]],
) -> Graphics:
    """Determine how this terminal shows pictures: from the environment, else from its answers to `ask`."""
    protocol = _known_protocol(environ) if wanted == AUTO else wanted
    in_tmux = bool(environ.get("TMUX"))
    queries = "" if cell else CELL_SIZE
    if protocol == AUTO and not in_tmux:
        queries += KITTY_GRAPHICS
    if protocol in (AUTO, "sixel"):
        queries += COLOR_REGISTERS
    answers = ask(queries) if protocol in (AUTO, "sixel", "kitty", "iterm") and queries else []
    if protocol == AUTO:
        attributes = next((answer[3:-1].split(b";") for answer in answers if answer.endswith(b"c")), [])
        protocol = "sixel" if b"4" in attributes else "blocks"
        if any(answer.startswith(b"\x1b_G") and b";OK" in answer for answer in answers):
            protocol = "kitty"
    registers = 256
    for answer in answers:
        if size := re.fullmatch(rb"\x1b\[6;(\d+);(\d+)t", answer):
            height, width = int(size[1]), int(size[2])
            cell = cell or ((width, height) if width and height else None)
        elif count := re.fullmatch(rb"\x1b\[\?1;0;(\d+)S", answer):
            registers = max(2, min(256, int(count[1])))
    through_tmux = in_tmux and protocol in ("kitty", "iterm")
    return Graphics(protocol, cell or _DEFAULT_CELL, color_depth(environ), registers, through_tmux)


def _known_protocol(environ: Mapping[str, str]) -> str:
    """Read the protocol from the environment. tmux inherits its environment from another terminal: ask it."""
    program, term = environ.get("TERM_PROGRAM", ""), environ.get("TERM", "")
    if environ.get("TMUX"):
        return AUTO
    if term.startswith("screen") or program == "Apple_Terminal":  # the latter shows a query as text
        return "blocks"
    if term in ("xterm-kitty", "xterm-ghostty") or environ.get("KITTY_WINDOW_ID") or program == "ghostty":
        return "kitty"
    if program in ("iTerm.app", "WezTerm") or environ.get("LC_TERMINAL") == "iTerm2":
        return "iterm"
    return AUTO


# -- size --------------------------------------------------------------------------------------------------------


def fitted(
    pixels: tuple[int, int], cell: tuple[int, int], columns: int, lines: int, enlarge: float = 1.0
) -> tuple[int, int, float]:
    """Return columns and rows for a picture, and the scale that makes it fit."""
    most_columns = max(columns - 1, 1)
    most_rows = max(min(int(lines * SCREEN_SHARE), lines - 3), 2)
    width, height = pixels[0] / cell[0], pixels[1] / cell[1]
    scale = min(max(enlarge, cell[1] / _LOW_DPI_CELL), most_columns / width, most_rows / height)

    def cells(size: float, most: int) -> int:
        return max(1, min(most, -int(-(size * scale - 0.01) // 1)))

    return cells(width, most_columns), cells(height, most_rows), scale


# -- drawing -----------------------------------------------------------------------------------------------------


def _draw(data: bytes, graphics: Graphics, columns: int, lines: int) -> tuple[list[str], int]:
    """Return the escapes that draw the picture, and its height in rows; for blocks, rows of text and 0."""
    if graphics.protocol == "blocks":
        image = _open(data)
        width, height, _ = fitted(image.size, (8, 16), columns, lines, _BLOCKS_ENLARGED)
        return block_rows(image, width, height, graphics.colors), 0
    if graphics.protocol == "sixel":
        image = _open(data)
        _, height, scale = fitted(image.size, graphics.cell, columns, lines)
        return [sixel_escape(_scaled(image, scale), graphics.registers)], height
    # The terminal decodes and scales: a PNG is sent unchanged, anything else as a PNG.
    size = png_size(data)
    if size is None or len(data) > _MAX_FILE_SENT_BYTES:
        image = _open(data)
        _, _, scale = fitted(image.size, graphics.cell, columns, lines)
        file = io.BytesIO()
        _scaled(image, min(scale, 1.0)).save(file, "PNG")
        data, size = file.getvalue(), image.size
    width, height, _ = fitted(size, graphics.cell, columns, lines)
    if graphics.protocol == "kitty":
        escapes = kitty_escapes(data, width, height)
    else:  # inline images of iTerm2 and WezTerm, in any format that the terminal knows
        keys = f"inline=1;size={len(data)};width={width};height={height};preserveAspectRatio=1"
        escapes = [f"\x1b]1337;File={keys}:{base64.standard_b64encode(data).decode()}\x07"]
    if graphics.through_tmux:
        escapes = ["\x1bPtmux;" + escape.replace("\x1b", "\x1b\x1b") + "\x1b\\" for escape in escapes]
    return escapes, height


def _open(data: bytes) -> Image:
    """Open the picture as RGB; transparent parts become white."""
    from PIL import Image as images

    try:
        image: Image = images.open(io.BytesIO(data))
    except images.DecompressionBombError as error:
        raise ValueError(str(error)) from error
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        image = images.alpha_composite(images.new("RGBA", image.size, "white"), image)
    return image.convert("RGB")


def _scaled(image: Image, scale: float) -> Image:
    from PIL.Image import Resampling

    if scale == 1:
        return image
    width, height = image.size
    return image.resize((max(1, int(width * scale)), max(1, int(height * scale))), Resampling.LANCZOS)


def kitty_escapes(png: bytes, columns: int, rows: int) -> list[str]:
    """Encode a PNG for the graphics protocol of kitty, Ghostty and Konsole. The cursor does not move."""
    data = base64.standard_b64encode(png).decode()
    chunks = [data[at : at + _KITTY_CHUNK] for at in range(0, len(data), _KITTY_CHUNK)] or [""]
    keys = f"a=T,f=100,q=2,C=1,c={columns},r={rows},"
    return [
        f"\x1b_G{'q=2,' if number else keys}m={int(number < len(chunks) - 1)};{chunk}\x1b\\"
        for number, chunk in enumerate(chunks)
    ]


def sixel_escape(image: Image, colors: int) -> str:
    """Encode sixel graphics: six rows of pixels at a time, one pass for each colour. The cursor ends up below."""
    from PIL.Image import Dither

    paletted = image.quantize(colors, dither=Dither.NONE if colors > 16 else Dither.FLOYDSTEINBERG)
    width, height = paletted.size
    pixels, palette = paletted.tobytes(), paletted.getpalette() or []
    parts = [f'\x1bP0;1q"1;1;{width};{height}']
    for number in sorted(set(pixels)):
        red, green, blue = (round(value * 100 / 255) for value in palette[3 * number : 3 * number + 3])
        parts.append(f"#{number};2;{red};{green};{blue}")
    for top in range(0, height, _SIXEL_BAND):
        rows = [pixels[at : at + width] for at in range(top * width, min(top + _SIXEL_BAND, height) * width, width)]
        passes = []
        for color in sorted(set(b"".join(rows))):  # `translate` and big integers do the work on the pixels
            table = bytes(number == color for number in range(256))
            bits = int.from_bytes(b"?" * width, "big")
            for number, row in enumerate(rows):
                bits += int.from_bytes(row.translate(table), "big") << number
            line = bits.to_bytes(width, "big").rstrip(b"?")
            line = _SIXEL_RUN.sub(lambda run: b"!%d%c" % (len(run[0]), run[1][0]), line)
            passes.append(b"#%d" % color + line)
        parts += [b"$".join(passes).decode("ascii"), "-"]
    parts[-1] = "\x1b\\"
    return "".join(parts)


def block_rows(image: Image, columns: int, rows: int, colors: int) -> list[str]:
    """Draw half blocks, two pixels above each other in every cell, for terminals without graphics."""
    from PIL import ImageFilter, ImageStat
    from PIL.Image import Resampling
    from rich.color import Color, ColorSystem

    shrinks = image.size[0] / columns
    if shrinks >= 2 and ImageStat.Stat(image.convert("L")).mean[0] >= 200:
        # A drawing on white paper gets thicker lines: thin ones would be lost in so few pixels.
        image = image.filter(ImageFilter.MinFilter(3 if shrinks < 8 else 5))
    image = image.resize((columns, rows * 2), Resampling.LANCZOS)
    # For every pixel the codes that make it the colour of the text and of the background. No dithering: dots would
    # hide the lines of a plot.
    system = (
        ColorSystem.TRUECOLOR if colors >= TRUE_COLOR else (ColorSystem.STANDARD, ColorSystem.EIGHT_BIT)[colors >= 256]
    )
    data = image.tobytes()
    shades = [Color.from_rgb(*data[at : at + 3]).downgrade(system) for at in range(0, len(data), 3)]
    codes = [(";".join(shade.get_ansi_codes()), ";".join(shade.get_ansi_codes(foreground=False))) for shade in shades]
    lines: list[str] = []
    for top in range(0, rows * 2 * columns, 2 * columns):
        parts: list[str] = []
        last = ""
        upper, lower = codes[top : top + columns], codes[top + columns : top + 2 * columns]
        for (front, same), (_, back) in zip(upper, lower, strict=True):
            # Some fonts leave a seam between the halves. A space has none.
            style, char = (f"\x1b[{back}m", " ") if same == back else (f"\x1b[{front};{back}m", "▀")
            parts += [char] if style == last else [style, char]
            last = style
        lines.append("".join(parts) + RESET)
    return lines
