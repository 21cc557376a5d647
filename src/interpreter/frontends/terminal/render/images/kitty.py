"""The graphics protocol of kitty, which Ghostty, Konsole and others speak too."""

from __future__ import annotations

import base64

_CHUNK = 4096  # bytes of base64 that one escape may carry


def escapes(png: bytes, columns: int, rows: int) -> list[str]:
    """Draw the picture at the cursor in so many cells, and leave the cursor where it is."""
    data = base64.standard_b64encode(png).decode()
    chunks = [data[at : at + _CHUNK] for at in range(0, len(data), _CHUNK)] or [""]
    last = len(chunks) - 1
    keys = f"a=T,f=100,q=2,C=1,c={columns},r={rows},"
    return [
        f"\x1b_G{keys if number == 0 else 'q=2,'}m={int(number < last)};{chunk}\x1b\\"
        for number, chunk in enumerate(chunks)
    ]
