"""The one lazy way up: loads the terminal by name when something is to be shown."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def terminal() -> Any:
    """The module that shows things for the library."""
    return import_module("interpreter.frontends.terminal.turn")
