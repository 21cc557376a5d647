"""The user's home folders, by `$HOME` and by the account, which may differ; and our own folders in them."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Literal


def home() -> str:
    """Return the folder that `~` means, with links resolved."""
    return os.path.realpath(os.path.expanduser("~"))


def homes() -> tuple[str, ...]:
    """Return both home folders, or one if they are the same: keys may be in either."""
    return tuple(dict.fromkeys(folder for folder in (home(), account_home()) if folder))


def our_folder(kind: Literal["config", "cache", "data"] = "config") -> Path:
    """Return our folder in the user's home. It has keys and conversations, so access by others is removed."""
    import platformdirs

    path = Path(getattr(platformdirs, f"user_{kind}_dir")("open-interpreter"))
    with suppress(OSError):  # it does not exist yet, or is not ours to change
        if path.stat().st_mode & 0o077:
            path.chmod(0o700)
    return path


def make_folder(path: str | os.PathLike[str]) -> None:
    """Create one of our folders, and missing parents, readable only by the owner."""
    for folder in reversed([Path(path), *Path(path).parents]):
        if not folder.is_dir():
            folder.mkdir(mode=0o700, exist_ok=True)


@cache
def account_home() -> str:
    """Return the home folder of the account that this runs as; empty if the system has none."""
    try:
        import pwd

        return os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)
    except (ImportError, KeyError):  # Windows; a user id without an account, as in many containers
        return ""
