"""How many cells of the screen a picture gets, and how large it is without decoding it."""

from __future__ import annotations

import struct

SHARE = 0.6  # of the height of the screen that a picture may take
_PLAIN_CELL = 20  # pixels; higher cells belong to screens whose pixels are small


def fitted(
    pixels: tuple[int, int], cell: tuple[int, int], columns: int, lines: int, enlarge: float = 1.0
) -> tuple[int, int, float]:
    """Columns and rows, and how much the picture is scaled for them."""
    room = max(columns - 1, 1)
    most = max(min(int(lines * SHARE), lines - 3), 2)
    width, height = pixels[0] / cell[0], pixels[1] / cell[1]
    scale = min(max(enlarge, cell[1] / _PLAIN_CELL), room / width, most / height)
    return _cells(width * scale, room), _cells(height * scale, most), scale


def _cells(size: float, most: int) -> int:
    return max(1, min(most, -int(-(size - 0.01) // 1)))


def png_size(data: bytes) -> tuple[int, int] | None:
    """Width and height of a PNG; None if it is none."""
    if data[:8] != b"\x89PNG\r\n\x1a\n" or data[12:16] != b"IHDR" or len(data) < 24:
        return None
    width, height = struct.unpack(">II", data[16:24])
    return (width, height) if width and height else None
