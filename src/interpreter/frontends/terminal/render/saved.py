"""What cannot be shown in the terminal is kept in a file whose path can."""

from __future__ import annotations

import atexit
import base64
import binascii
import itertools
import os
import tempfile
from contextlib import suppress
from functools import cache
from typing import TextIO

_number = itertools.count(1)
shown: list[str] = []  # the files that the user was told of, the newest last
_SUFFIXES = {
    "base64": ".png",
    "base64.png": ".png",
    "base64.jpeg": ".jpg",
    "html": ".html",
    "image/svg+xml": ".svg",
    "application/javascript": ".js",
}
_NAMES = {"traceback": "traceback"}


@cache
def folder() -> str:
    """One folder for all that this process shows; it stays, since its paths were given to the user."""
    path = tempfile.mkdtemp(prefix="open-interpreter-")
    atexit.register(_remove_if_empty, path)
    return path


def _remove_if_empty(path: str) -> None:
    with suppress(OSError):
        os.rmdir(path)


def new_path(name: str, suffix: str) -> str:
    return os.path.join(folder(), f"{name}-{next(_number)}{suffix}")


def save_image(content: str, kind: str) -> str | None:
    """The path of the saved image; None if it is none."""
    if kind == "path":
        shown.append(content)
        return content
    try:
        data = base64.b64decode(content)
    except (binascii.Error, ValueError):
        return None
    path = new_path("image", _SUFFIXES.get(kind, ".png"))
    with open(path, "wb") as file:
        file.write(data)
    shown.append(path)
    return path


def picture_size(path: str) -> tuple[int, int] | None:
    """Width and height in pixels, as far as that is known without decoding."""
    from interpreter.frontends.terminal.render.images.size import png_size

    try:
        with open(path, "rb") as file:
            return png_size(file.read(32))
    except OSError:
        return None


def save_text(content: str, kind: str) -> str:
    """The path of a page, drawing, script or traceback."""
    suffix = _SUFFIXES.get(kind, ".txt")
    path = new_path({".html": "page", ".svg": "drawing"}.get(suffix, _NAMES.get(kind, "display")), suffix)
    with open(path, "w", encoding="utf-8", errors="replace") as file:
        file.write(content)
    shown.append(path)
    return path


def output_file() -> TextIO:
    return open(new_path("output", ".txt"), "w", encoding="utf-8", errors="replace")
