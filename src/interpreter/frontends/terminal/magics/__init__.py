"""The commands of the chat, one file per subject."""

from interpreter.frontends.terminal.magics.dispatch import (
    COMMANDS,
    SIGNS,
    run,
)

__all__ = ["COMMANDS", "SIGNS", "run"]
