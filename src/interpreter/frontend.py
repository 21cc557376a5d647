"""The one lazy way up: loads a front end by name when something is to be shown, served, or asked of a server."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


def display() -> Any:
    """The module that shows things for the library: in a Jupyter notebook its own, elsewhere the terminal's."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return import_module("interpreter.frontends.notebook") if hasattr(shell, "kernel") else terminal()


def terminal() -> Any:
    """The terminal, even where another front end is in use."""
    return import_module("interpreter.frontends.terminal.chat")


def client() -> Any:
    """The client of a server."""
    return import_module("interpreter.frontends.client")


def async_interpreter() -> Any:
    """0.4.3's class that serves itself."""
    return import_module("interpreter.frontends.async_interpreter")
