"""What the terminal cannot show is saved to files whose paths it shows; `%open` opens them in other programs."""

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

from interpreter.errors import UsageError

_number = itertools.count(1)
shown: list[str] = []  # the files whose paths were shown, the newest last
_SUFFIXES = {
    "base64": ".png",
    "base64.png": ".png",
    "base64.jpeg": ".jpg",
    "html": ".html",
    "image/svg+xml": ".svg",
    "application/javascript": ".js",
}
_NAMES = {"html": "page", "image/svg+xml": "drawing", "traceback": "traceback"}


@cache
def _folder() -> str:
    """One folder for all that this process saves. It stays, because the user has seen its paths."""
    path = tempfile.mkdtemp(prefix="open-interpreter-")

    @atexit.register
    def remove_if_empty() -> None:
        with suppress(OSError):
            os.rmdir(path)

    return path


def _new_path(name: str, suffix: str) -> str:
    return os.path.join(_folder(), f"{name}-{next(_number)}{suffix}")


def save_image(content: str, kind: str) -> str | None:
    """The path of the saved image; None if it is none."""
    path = content
    if kind != "path":
        try:
            data = base64.b64decode(content)
        except (binascii.Error, ValueError):
            return None
        path = _new_path("image", _SUFFIXES.get(kind, ".png"))
        with open(path, "wb") as file:
            file.write(data)
    shown.append(path)
    return path


def save_text(content: str, kind: str) -> str:
    """The path of a page, drawing, script or traceback."""
    path = _new_path(_NAMES.get(kind, "display"), _SUFFIXES.get(kind, ".txt"))
    with open(path, "w", encoding="utf-8", errors="replace") as file:
        file.write(content)
    shown.append(path)
    return path


def output_file() -> TextIO:
    return open(_new_path("output", ".txt"), "w", encoding="utf-8", errors="replace")


def open_shown(which: str = "") -> str:
    """Open a saved file: the last one, the n-th from the end, or a path. Returns its path."""
    from pathlib import Path

    from interpreter.host import processes

    which = which.strip()
    if which and not which.isdigit():
        path = os.path.abspath(os.path.expanduser(which))
        if not os.path.exists(path):
            raise UsageError(f"There is no file {path}.")
    elif 1 <= int(which or 1) <= len(shown):
        path = os.path.abspath(shown[-int(which or 1)])
    else:
        raise UsageError(f"Only {len(shown)} were shown." if shown else "Nothing was shown yet that could be opened.")
    program = "import sys, webbrowser; sys.exit(not webbrowser.open(sys.argv[1]))"
    if processes.start(processes.python("-c", program, Path(path).as_uri())).wait():
        raise UsageError(f"No program here opens it. It is in {path}.")
    return path
