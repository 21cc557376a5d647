"""Inline images of iTerm2, which WezTerm and others show too."""

from __future__ import annotations

import base64


def escapes(data: bytes, columns: int, rows: int) -> list[str]:
    """Draw the picture, in any format that the terminal knows, from the cursor on in so many cells."""
    keys = f"inline=1;size={len(data)};width={columns};height={rows};preserveAspectRatio=1"
    return [f"\x1b]1337;File={keys}:{base64.standard_b64encode(data).decode()}\x07"]
