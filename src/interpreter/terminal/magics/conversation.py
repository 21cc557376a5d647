"""Commands on the conversation: save, load."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from interpreter.terminal.magics.command import Command

if TYPE_CHECKING:
    from interpreter.core import OpenInterpreter
    from interpreter.terminal.terminal import Terminal


def _message_file(interpreter: OpenInterpreter, argument: str) -> str:
    """Relative to the folder that the sessions are in."""
    path = os.path.expanduser(argument.strip("\"'") or "messages.json")
    path = os.path.join(interpreter.computer.surroundings.cwd, path)
    return path if path.endswith(".json") else path + ".json"


def _save_message(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    path = _message_file(interpreter, argument)
    try:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(interpreter.messages, file, indent=2, ensure_ascii=False, default=str)
    except OSError as error:
        terminal.display.line(f"Could not write {path}: {error.strerror}.", "error")
        return
    terminal.display.line(f"The conversation is in {os.path.abspath(path)}.")


def _load_message(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    path = _message_file(interpreter, argument)
    try:
        with open(path, encoding="utf-8") as file:
            messages = json.load(file)
    except OSError as error:
        terminal.display.line(f"Could not read {path}: {error.strerror}.", "error")
        return
    except ValueError:
        messages = None
    listed = isinstance(messages, list)
    if not listed or not all(isinstance(item, dict) and "role" in item for item in messages):
        terminal.display.line(f"{path} is not a conversation: it must hold a JSON list of messages.", "error")
        return
    interpreter.messages = messages
    terminal.display.line(f"{len(messages)} messages from {os.path.abspath(path)}.")


COMMANDS = (
    Command("save_message", "[path]", "save the conversation as JSON (messages.json)", _save_message),
    Command("load_message", "[path]", "replace the conversation by a saved one", _load_message),
)
