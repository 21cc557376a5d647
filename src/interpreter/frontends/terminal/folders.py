"""Folders that a user may want to look into: opened in the desktop's file manager, or printed where there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path


def open_models() -> None:
    """`--local_models`: the folder of downloaded models."""
    from interpreter.llm.local.weights import models_folder

    open_folder(models_folder())


def open_folder(folder: Path) -> None:
    """Make it if it is not there, show it if something can, and say where it is."""
    folder.mkdir(parents=True, exist_ok=True)
    print(folder)
    if sys.platform == "win32":
        os.startfile(folder)
        return
    opener = _opener()
    if opener is not None:
        # Not waited for: some file managers stay in the foreground.
        subprocess.Popen(
            [opener, str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def _opener() -> str | None:
    if sys.platform == "darwin":
        return shutil.which("open")
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        return shutil.which("xdg-open")
    return None
