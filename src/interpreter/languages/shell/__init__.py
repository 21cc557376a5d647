"""Shell: bash or zsh in a live session."""

from interpreter.languages.shell.language import Shell

__all__ = ["Shell"]
