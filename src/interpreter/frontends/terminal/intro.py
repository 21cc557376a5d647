"""The first words, and what to do when there is no model."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from interpreter.errors import (
    InterpreterError,
    LiteLLMMissingError,
    MissingKeyError,
    PolicyError,
    ProviderNotFoundError,
)

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal

WAYS = """\
Ways to a model:
  export OPENAI_API_KEY=...     a key; other providers have their own variables
  interpreter --setup           paste a key, or choose a model on this machine
  interpreter --api_base http://localhost:8000/v1 --model NAME
                                any server that speaks OpenAI's format"""

MODES = {
    "ask": "you are asked before code runs",
    "auto": "code runs without asking",
    "auto-in-sandbox": "code runs without asking where a sandbox holds it, and you are asked where there is none",
    "plan": "code can look, in a sandbox without network, and change nothing",
}


def greet(terminal: Terminal, interpreter: OpenInterpreter) -> None:
    """A line or two at the start of a chat."""
    from interpreter.policy.approval import mode_of
    from interpreter.version import __version__

    asked = MODES[mode_of(interpreter)]
    terminal.display.line(
        f"Open Interpreter {__version__}, model {interpreter.llm.model}\n"
        f"{asked[0].upper()}{asked[1:]}. %help lists the commands, Ctrl-D leaves."
    )
    if interpreter.os:
        _tell_of_the_screen(terminal, interpreter)
    terminal.display.finish()


def tell_of_rules(terminal: Terminal, interpreter: OpenInterpreter) -> None:
    """A mistake in the rules, before somebody has written a message."""
    try:
        check_rules(interpreter)
    except PolicyError as error:
        terminal.tell(f"{error} No code runs until that is mended.", "error")
        terminal.display.finish()


def check_rules(interpreter: OpenInterpreter) -> None:
    """PolicyError if the rules have a mistake, before it stops the first block; nothing is loaded if there are none."""
    from interpreter.policy import files as rule_files

    if rule_files.are_there(interpreter.workspace):
        from interpreter.policy import Policy

        Policy.load(interpreter.workspace)


def _tell_of_the_screen(terminal: Terminal, interpreter: OpenInterpreter) -> None:
    """OS mode, or why there can be none here, before somebody has written a message."""
    try:
        interpreter.computer.display.size()
    except InterpreterError as error:
        terminal.display.line(f"OS mode cannot begin. {error}", "error")
    else:
        terminal.display.line("OS mode: the model sees the screen, and code can use mouse and keyboard.")


def ask_for_key(terminal: Terminal, interpreter: OpenInterpreter) -> bool:
    """Let the user type a key for the model they named, and keep it if they like; False to leave."""
    try:
        key = terminal.ask("API key, hidden while you type (Enter to leave): ", password=True)
    except KeyboardInterrupt:
        return False
    if not key or not key.strip():
        return False
    interpreter.llm.api_key = key.strip()
    _offer_to_keep(interpreter, key.strip())
    return True


def _offer_to_keep(interpreter: OpenInterpreter, key: str) -> None:
    from interpreter.frontends.terminal import local, setup
    from interpreter.llm.providers import ROWS, identify

    row = ROWS.get(identify(interpreter.llm.model)[0])
    if row is not None and row.key_variables and local.can_ask():
        setup.offer_to_keep(row, key, interpreter.plain_text_display)


def explained(error: InterpreterError) -> str:
    """An error's words, and for a model that cannot be asked what was found and what to do."""
    if isinstance(error, MissingKeyError | ProviderNotFoundError) and not isinstance(error, LiteLLMMissingError):
        return "\n".join([str(error), found_keys(), WAYS])
    return str(error)


def found_keys() -> str:
    """The keys in the environment, by name alone."""
    from interpreter.llm.providers import PROVIDERS

    names = [name for row in PROVIDERS for name in row.key_variables if os.environ.get(name)]
    return f"Keys in the environment: {', '.join(dict.fromkeys(names)) or 'none'}."
