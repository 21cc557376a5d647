"""A picture as rows for the scrollback, in the best way that this terminal has."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from interpreter.frontends.terminal.render.images.size import fitted, png_size

if TYPE_CHECKING:
    from PIL.Image import Image

    from interpreter.frontends.terminal.render.images.graphics import Graphics

_BLOCK_CELL = (8, 16)
_ENLARGED = 2.0  # blocks are coarse: they may be larger than the picture
_SENT_WHOLE = 2_000_000  # bytes; a larger file is made smaller before it is sent
NEEDS_PILLOW = "`pip install Pillow` shows pictures here."


class Pictures:
    """Shows pictures; what the terminal can do is found out when the first one comes."""

    def __init__(
        self,
        ask: Callable[[str], list[bytes]] = lambda questions: [],
        cell: Callable[[], tuple[int, int] | None] = lambda: None,
        environ: Mapping[str, str] = os.environ,
        color: bool = True,
    ) -> None:
        self._ask, self._cell, self._environ, self._color = ask, cell, environ, color
        self.wanted = "auto"  # the setting
        self._found: dict[str, Graphics] = {}
        self._told = False

    def prepare(self) -> None:
        """Ask the terminal what it can, once; nothing may hold the screen meanwhile."""
        if self.wanted != "off" and self.wanted not in self._found:
            from interpreter.frontends.terminal.render.images.graphics import find_graphics

            self._found[self.wanted] = find_graphics(self.wanted, self._environ, self._cell(), self._ask)

    def rows(self, path: str, columns: int, lines: int, caption: str) -> list[str]:
        """The picture with a line below it, or the line alone where it cannot be shown."""
        graphics = self._found.get(self.wanted)
        if graphics is None or graphics.way == "off" or (graphics.way == "blocks" and not self._color):
            return [caption]
        try:
            with open(path, "rb") as file:
                drawn = _drawn(file.read(), graphics, columns, lines)
        except ImportError:
            return [caption, *self._advice()]
        except (OSError, ValueError, SyntaxError):  # what Pillow raises for a file that is no picture
            return [caption]
        return _above(caption, *drawn)

    def _advice(self) -> list[str]:
        told, self._told = self._told, True
        return [] if told else [NEEDS_PILLOW]


def _drawn(data: bytes, graphics: Graphics, columns: int, lines: int) -> tuple[list[str], int]:
    """The escapes that draw it and its height, or rows of text and nothing."""
    if graphics.way == "blocks":
        return _as_blocks(data, graphics, columns, lines), 0
    if graphics.way in ("kitty", "iterm"):
        return _as_file(data, graphics, columns, lines)
    from interpreter.frontends.terminal.render.images import sixel

    image = _opened(data)
    _, rows, scale = fitted(image.size, graphics.cell, columns, lines)
    return sixel.escapes(_scaled(image, scale), graphics.registers), rows


def _as_blocks(data: bytes, graphics: Graphics, columns: int, lines: int) -> list[str]:
    from interpreter.frontends.terminal.render.images import blocks

    image = _opened(data)
    wide, rows, _ = fitted(image.size, _BLOCK_CELL, columns, lines, _ENLARGED)
    return blocks.lines(image, wide, rows, graphics.colors)


def _as_file(data: bytes, graphics: Graphics, columns: int, lines: int) -> tuple[list[str], int]:
    """The terminal decodes and scales: a PNG goes as it is, anything else as a PNG."""
    from interpreter.frontends.terminal.render.images import iterm, kitty

    size = png_size(data)
    if size is None or len(data) > _SENT_WHOLE:
        image = _opened(data)
        _, _, scale = fitted(image.size, graphics.cell, columns, lines)
        data, size = _as_png(_scaled(image, min(scale, 1.0))), image.size
    wide, rows, _ = fitted(size, graphics.cell, columns, lines)
    escapes = (kitty if graphics.way == "kitty" else iterm).escapes(data, wide, rows)
    return [_through_tmux(escape) if graphics.through_tmux else escape for escape in escapes], rows


def _above(caption: str, drawn: list[str], rows: int) -> list[str]:
    """Room is made first and drawn into last, so that the screen does not scroll under the picture."""
    if not rows:
        return [*drawn, caption]
    return [*[""] * rows, f"\x1b7\x1b[{rows}A\r{''.join(drawn)}\x1b8\r{caption}"]


def _opened(data: bytes) -> Image:
    """The picture on white paper, where it lets something through."""
    import io

    from PIL import Image as images

    try:
        image: Image = images.open(io.BytesIO(data))
    except images.DecompressionBombError as error:
        raise ValueError(str(error)) from error
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        paper = images.new("RGBA", image.size, "white")
        return images.alpha_composite(paper, image).convert("RGB")
    return image.convert("RGB")


def _scaled(image: Image, scale: float) -> Image:
    from PIL.Image import Resampling

    if scale == 1:
        return image
    width, height = image.size
    return image.resize((max(1, int(width * scale)), max(1, int(height * scale))), Resampling.LANCZOS)


def _as_png(image: Image) -> bytes:
    import io

    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def _through_tmux(escape: str) -> str:
    return "\x1bPtmux;" + escape.replace("\x1b", "\x1b\x1b") + "\x1b\\"
