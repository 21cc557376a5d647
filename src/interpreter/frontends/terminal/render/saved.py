"""What the terminal cannot show is saved to files whose paths it shows; `%open` opens them in other programs."""

from __future__ import annotations

import atexit
import base64
import binascii
import itertools
import os
import struct
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

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
_OPEN_TIMEOUT = 5.0  # seconds in which an opener says that it failed
_NAMES = {"html": "page", "image/svg+xml": "drawing", "traceback": "traceback"}


@cache
def _folder() -> str:
    """Make one folder for all that this process saves. It isn't deleted, because the user has seen its paths."""
    path = tempfile.mkdtemp(prefix="open-interpreter-")

    @atexit.register
    def remove_if_empty() -> None:
        with suppress(OSError):
            os.rmdir(path)

    return path


def new_path(name: str, suffix: str) -> str:
    return os.path.join(_folder(), f"{name}-{next(_number)}{suffix}")


def save_image(content: str, kind: str) -> str | None:
    """Save an image and return its path; None if it is none."""
    path = content
    if kind != "path":
        try:
            data = base64.b64decode(content)
        except (binascii.Error, ValueError):
            return None
        path = new_path("image", _SUFFIXES.get(kind, ".png"))
        Path(path).write_bytes(data)
    shown.append(path)
    return path


def save_text(content: str, kind: str) -> str:
    path = new_path(_NAMES.get(kind, "display"), _SUFFIXES.get(kind, ".txt"))
    Path(path).write_text(content, encoding="utf-8", errors="replace")
    shown.append(path)
    return path


def shown_path(which: str = "", folder: str = "") -> str:
    """Find a saved file: the last one, the n-th from the end, or any path, seen from this folder."""
    which = which.strip("\"' ")
    if which and not which.isdigit():
        path = os.path.abspath(os.path.join(folder, os.path.expanduser(which)))
        if not os.path.exists(path):
            raise UsageError(f"There is no file {path}.")
        return path
    if 1 <= int(which or 1) <= len(shown):
        return os.path.abspath(shown[-int(which or 1)])
    raise UsageError(f"Only {len(shown)} so far." if shown else "There is nothing to open yet.")


def open_in_viewer(path: str) -> None:
    """Open a file in the program that the system has for it; UsageError if there is none."""
    from interpreter.host import processes

    has_display = sys.platform in ("darwin", "win32") or bool({"DISPLAY", "WAYLAND_DISPLAY"}.intersection(os.environ))
    if not has_display and "BROWSER" not in os.environ:
        raise UsageError(f"Can't open it without a display. The file is {path}.")
    opener = "open" if sys.platform == "darwin" else "xdg-open"
    if has_display and processes.which(opener):
        argv = [opener, path]
    else:
        program = "import sys, webbrowser; sys.exit(not webbrowser.open(sys.argv[1]))"
        argv = processes.python("-c", program, Path(path).as_uri())
    if processes.wait(processes.start(argv), _OPEN_TIMEOUT):
        raise UsageError(f"No program on this machine opens it. The file is {path}.")


def png_size(data: bytes) -> tuple[int, int] | None:
    """Read width and height of a PNG from its header; None for anything else."""
    if data[:8] != b"\x89PNG\r\n\x1a\n" or data[12:16] != b"IHDR" or len(data) < 24:
        return None
    width, height = struct.unpack(">II", data[16:24])
    return (width, height) if width and height else None
