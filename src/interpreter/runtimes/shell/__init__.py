"""Shell: bash or zsh in a live runtime."""

from interpreter.runtimes.shell.language import Shell

__all__ = ["Shell"]
