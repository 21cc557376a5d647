"""The commands of the chat, one file per subject."""

from interpreter.terminal.magics.dispatch import COMMANDS, run

__all__ = ["COMMANDS", "run"]
