"""Profiles: files that say how the interpreter is set; found, read, checked, and then applied."""

from interpreter.config.profiles.load import load
from interpreter.config.profiles.profile import (
    Profile,
    builtin_names,
    find,
    folder,
    make_default,
    reset,
    user_names,
)

__all__ = ["Profile", "builtin_names", "find", "folder", "load", "make_default", "reset", "user_names"]
