"""The user's home folders: where `$HOME` is, and the one that the system has for the account, which may be another."""

from __future__ import annotations

import os
from functools import cache


def home() -> str:
    """The one that `~` means, links resolved."""
    return os.path.realpath(os.path.expanduser("~"))


def homes() -> tuple[str, ...]:
    """Both, or the one that they are: keys may be in either."""
    return tuple(dict.fromkeys(folder for folder in (home(), account_home()) if folder))


@cache
def account_home() -> str:
    """Of the account that this runs as; empty if the system knows of none."""
    try:
        import pwd

        return os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)
    except (ImportError, KeyError):  # Windows; a number that nobody has, as in many containers
        return ""
