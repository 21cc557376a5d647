"""Profiles: files that say how the interpreter is set; found, read, checked, and then applied."""

from interpreter.profiles.load import load
from interpreter.profiles.places import builtin_names, find, folder, user_names
from interpreter.profiles.profile import Profile
from interpreter.profiles.reset import make_default, reset

__all__ = ["Profile", "builtin_names", "find", "folder", "load", "make_default", "reset", "user_names"]
