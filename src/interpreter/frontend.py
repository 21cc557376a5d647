"""The one lazy way up: loads a front end by name when something is to be shown."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from interpreter.leaves import exists

_NOTEBOOK = "interpreter.frontends.notebook"


def display() -> Any:
    """Import what shows things for the library: in a Jupyter notebook its own module, elsewhere the terminal's."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return load("notebook" if hasattr(shell, "kernel") and exists(_NOTEBOOK) else "terminal.chat")


def load(name: str) -> Any:
    """Import a module of `frontends`, such as `terminal.chat`."""
    return import_module(f"interpreter.frontends.{name}")
