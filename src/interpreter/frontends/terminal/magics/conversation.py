"""Commands on the conversation: save, load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interpreter.errors import ConversationFileError
from interpreter.frontends.terminal.magics.command import Command

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal


def _save_message(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.app.conversations import save_messages

    try:
        path = save_messages(interpreter, argument.strip("\"'"))
    except ConversationFileError as error:
        terminal.display.line(str(error), "error")
        return
    terminal.display.line(f"The conversation is in {path}.")


def _load_message(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.app import result_of
    from interpreter.app.conversations import load_messages

    try:
        path = result_of(load_messages(interpreter, argument.strip("\"'")))
    except ConversationFileError as error:
        terminal.display.line(str(error), "error")
        return
    terminal.display.line(f"{len(interpreter.messages)} messages from {path}.")


COMMANDS = (
    Command("save_message", "[path]", "save the conversation as JSON (messages.json)", _save_message),
    Command("load_message", "[path]", "replace the conversation by a saved one", _load_message),
)
