"""Where console scripts of earlier installations look for the command line."""

from interpreter.frontends.cli import main

__all__ = ["main"]
