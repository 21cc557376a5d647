"""Opening what the terminal cannot show: pages, drawings and pictures, in the user's own programs, when they say so."""

from __future__ import annotations

import os
from pathlib import Path

from interpreter.errors import UsageError
from interpreter.frontends.terminal.render.saved import shown


def open_shown(which: str = "") -> str:
    """Open a file that was shown: the last one, the one of that number from the end, or a path; gives its path."""
    path = _found(which.strip())
    if not _opened(path):
        raise UsageError(f"No program here opens it. It is in {path}.")
    return path


def _found(which: str) -> str:
    if which and not which.isdigit():
        path = os.path.abspath(os.path.expanduser(which))
        if not os.path.exists(path):
            raise UsageError(f"There is no file {path}.")
        return path
    number = int(which or 1)
    if not 1 <= number <= len(shown):
        raise UsageError(
            "Nothing was shown yet that could be opened." if not shown else f"Only {len(shown)} were shown."
        )
    return os.path.abspath(shown[-number])


def _opened(path: str) -> bool:
    import webbrowser

    return webbrowser.open(Path(path).as_uri())
