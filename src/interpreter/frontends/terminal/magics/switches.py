"""Commands that change how the chat behaves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from interpreter.config.settings import apply
from interpreter.errors import InterpreterError
from interpreter.frontends.terminal.intro import MODES
from interpreter.frontends.terminal.magics.command import Command

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal

_KINDS = {
    "off": "There is no sandbox: code can reach what you can.",
    "read-only": "Code runs in a sandbox: it can change nothing, and has no network but sandbox_hosts.",
    "workspace": "Code runs in a sandbox: it can write to the workspace only, and has no network but sandbox_hosts.",
}


def _reset(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    interpreter.reset()
    terminal.display.line("The conversation is empty, and all sessions are ended.")


def _verbose(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    wanted = _switch(terminal, argument, interpreter.verbose)
    if wanted is None:
        return
    interpreter.verbose = wanted
    if wanted:
        terminal.display.line(json.dumps(interpreter.messages, indent=2, ensure_ascii=False, default=str))
    terminal.display.line(f"verbose is {'on' if wanted else 'off'}.")


def _debug(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    terminal.display.line("%debug is now %verbose.")
    _verbose(terminal, interpreter, argument)


def _auto_run(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    wanted = _switch(terminal, argument, interpreter.auto_run)
    if wanted is None:
        return
    interpreter.auto_run = wanted
    if interpreter.mode is not None:  # which is heard first
        _mode(terminal, interpreter, "")
        terminal.display.line(f"To change that, say %mode {'auto' if wanted else 'ask'}.")
        return
    terminal.display.line("Code runs without asking from now on." if wanted else "You are asked before code runs.")


def _sandbox(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    before = interpreter.sandbox
    if argument:
        from interpreter.sandbox import Sandbox

        Sandbox(argument)  # or an error that says what there is
        interpreter.sandbox = argument
        try:
            interpreter.computer.shut_in()
        except InterpreterError:
            interpreter.sandbox = before
            raise
    kind = interpreter.sandbox
    terminal.display.line(_KINDS.get(kind, f"Code runs in a {kind}."))
    if kind != before:
        terminal.display.line("The next block of each language starts a new session, without the variables of before.")


def _mode(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.policy.approval import mode_of

    if argument:
        apply(interpreter, {"mode": argument}, "code")  # or an error that lists the modes
    terminal.display.line(f"The mode is {mode_of(interpreter)}: {MODES[mode_of(interpreter)]}.")


def _see(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    wanted = _switch(terminal, argument, interpreter.share_commands)
    if wanted is not None:
        interpreter.share_commands = wanted
        sees = "sees" if wanted else "does not see"
        terminal.display.line(f"The model {sees} what you run with ! and >>> from now on.")


def _model(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    llm = interpreter.llm
    if not argument:
        terminal.display.line(
            "\n".join([f"{llm.model}, at {llm.api_base or 'its own server'}.", *_known_of(interpreter)])
        )
        return
    name, address = [*argument.split(), ""][:2]
    before, window_before = llm.model, llm.context_window
    llm.switch(name, None if address in ("", "own") else address, own_server=address == "own")
    lines = [f"{name} answers from now on, in place of {before}; it is given the conversation so far."]
    if llm.api_base:
        lines.append(f"It is asked at {llm.api_base}; %model {name} own goes to the provider's own server.")
    if window_before is not None:
        lines.append(f"The context window of {window_before:,} tokens was set for {before} and no longer holds.")
    terminal.display.line("\n".join([*lines, *_known_of(interpreter)]))


def _known_of(interpreter: OpenInterpreter) -> list[str]:
    """What is known of the model: its window, its price, what it can do."""
    from interpreter.llm.usage import price_of

    llm = interpreter.llm
    used, window = llm.context_used
    price = price_of(llm.model, llm.api_base)
    size = f"Window: {window:,} tokens, of which about {used:,} are used." if window else "Its window is not known yet."
    cost = f"${price.read:g} / ${price.written:g} for a million tokens read / written" if price else "not known"
    images = "It can look at images." if llm.vision else "It cannot look at images."
    return [size, f"Price: {cost}. {images}"]


def _switch(terminal: Terminal, argument: str, now: bool) -> bool | None:
    """True or false as it was said, the other of the two if nothing was; None if it cannot be understood."""
    words = {"": not now, "true": True, "on": True, "false": False, "off": False, "yes": True, "no": False}
    if argument.lower() not in words:
        terminal.display.line(f"Write true or false, not {argument}.")
    return words.get(argument.lower())


COMMANDS = (
    Command("model", "[name] [address]", "ask another model from now on; without a name, tell which it is", _model),
    Command("see", "[on/off]", "whether the model sees what you run with ! and >>>", _see),
    Command("reset", "", "forget the conversation and end all sessions", _reset),
    Command("mode", "[ask/auto/auto-in-sandbox/plan]", "when you are asked before code runs; tells which it is", _mode),
    Command("sandbox", "[off/read-only/workspace]", "what code can reach; without a word, tell which it is", _sandbox),
    Command("auto_run", "[true/false]", "run code without asking", _auto_run),
    Command("verbose", "[true/false]", "tell more; shows the messages as they are", _verbose),
    Command("debug", "[true/false]", "the old name of %verbose", _debug),
)
