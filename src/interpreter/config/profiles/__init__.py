"""Profiles: files that say how the interpreter is set; found, read, checked, and then applied."""

from interpreter.config.profiles.load import load
from interpreter.config.profiles.places import (
    builtin_names,
    find,
    folder,
    user_names,
)
from interpreter.config.profiles.profile import Profile
from interpreter.config.profiles.reset import make_default, reset

__all__ = ["Profile", "builtin_names", "find", "folder", "load", "make_default", "reset", "user_names"]
