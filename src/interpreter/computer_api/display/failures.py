"""What can be wrong with seeing the screen, each in words that say what to do."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from interpreter.errors import ComputerError

INSTALL = "pip install 'open-interpreter[os]'"


class NoDisplayError(ComputerError):
    """There is no screen that can be seen from here."""


class NotFoundOnScreenError(ComputerError):
    """What was looked for is not on the screen."""


class MissingPartError(ComputerError):
    """A package that is needed for the screen is not installed."""


def needed(module: str, what: str) -> Any:
    """A module of the `os` extra, or one sentence on how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingPartError(f"{what} needs the package {package}, which is not installed: {INSTALL}") from error
