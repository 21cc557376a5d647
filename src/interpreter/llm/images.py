"""Images as parts of a chat message."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from interpreter.messages import Message

LARGEST = 5 * 1024 * 1024
_MIME = {"jpg": "jpeg", "": "png"}


def image_url(message: Message, shrink: bool = True) -> str | None:
    """The image as a data URI; None if it cannot be read."""
    if message.get("format") == "path":
        found = _from_file(str(message["content"]))
        if found is None:
            return None
        kind, data = found
    else:
        kind, data = str(message.get("format", "")).partition(".")[2], str(message["content"])
    if shrink and len(data) * 3 // 4 > LARGEST:
        kind, data = _shrunk(kind, data)
    return f"data:image/{_MIME.get(kind, kind)};base64,{data}"


def image_part(url: str, detail: str = "low") -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, "detail": detail}}


def _from_file(path: str) -> tuple[str, str] | None:
    file = Path(path).expanduser()
    try:
        content = file.read_bytes()
    except OSError:
        return None
    return file.suffix.lstrip(".").lower(), base64.b64encode(content).decode()


def _shrunk(kind: str, data: str) -> tuple[str, str]:
    """The image scaled until it fits; as it is where Pillow is missing or cannot read it."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        return kind, data
    from io import BytesIO

    try:
        image: Image.Image = Image.open(BytesIO(base64.b64decode(data)))
    except (UnidentifiedImageError, ValueError):
        return kind, data
    saved_as = "JPEG" if kind in ("jpg", "jpeg") else "PNG"
    while len(data) * 3 // 4 > LARGEST:
        scale = min(0.9, (LARGEST / (len(data) * 3 // 4)) ** 0.5)
        image = image.resize((max(1, int(image.width * scale)), max(1, int(image.height * scale))))
        buffer = BytesIO()
        image.save(buffer, saved_as, compress_level=1)
        data = base64.b64encode(buffer.getvalue()).decode()
    return saved_as.lower(), data
