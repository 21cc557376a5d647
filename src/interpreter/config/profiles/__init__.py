"""Profiles: files with settings for the interpreter. Find, read, check and apply them."""

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
