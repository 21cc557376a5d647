"""The commands of the chat: lines that begin with a percent sign."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from interpreter.core import OpenInterpreter
    from interpreter.llm.money import Usage
    from interpreter.messages import Message
    from interpreter.terminal.terminal import Terminal

_PREVIEW = 30


class Command(NamedTuple):
    """A row of the table: what is typed, what it does, and the words of %help."""

    name: str
    arguments: str
    help: str
    run: Callable[[Terminal, OpenInterpreter, str], None]


def run(terminal: Terminal, interpreter: OpenInterpreter, line: str) -> None:
    """Obey a line such as `%verbose true`."""
    if line.startswith("%%"):
        _shell(terminal, interpreter, line[2:].strip())
        return
    name, _, argument = line[1:].partition(" ")
    command = next((row for row in COMMANDS if row.name == name.lower()), None)
    if command is None:
        from difflib import get_close_matches

        close = get_close_matches(name.lower(), [row.name for row in COMMANDS], n=1)
        advice = f"Did you mean %{close[0]}?" if close else "%help lists the commands."
        terminal.display.line(f"There is no command %{name}. {advice}")
    else:
        command.run(terminal, interpreter, argument.strip())


def _help(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    rows = [(f"%{row.name} {row.arguments}".rstrip(), row.help) for row in COMMANDS]
    rows.insert(0, ("%% command", "run a shell command; the model does not see it"))
    width = max(len(left) for left, _ in rows)
    terminal.display.line("\n".join(f"{left.ljust(width)}  {right}" for left, right in rows))


def _shell(terminal: Terminal, interpreter: OpenInterpreter, command: str) -> None:
    from interpreter.terminal.turn import show_block

    if not command:
        terminal.display.line("Write the command after %%, as in %% ls.")
        return
    for _ in show_block(terminal, interpreter, interpreter.computer.stream("shell", command)):
        pass


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
    if wanted is not None:
        interpreter.auto_run = wanted
        told = "Code runs without asking from now on." if wanted else "You are asked before code runs."
        terminal.display.line(told)


def _switch(terminal: Terminal, argument: str, now: bool) -> bool | None:
    """True or false as it was said, the other of the two if nothing was; None if it cannot be understood."""
    words = {"": not now, "true": True, "on": True, "false": False, "off": False}
    if argument.lower() not in words:
        terminal.display.line(f"Write true or false, not {argument}.")
    return words.get(argument.lower())


def _undo(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    messages = interpreter.messages
    at = max((index for index, message in enumerate(messages) if message.get("role") == "user"), default=None)
    if at is None:
        terminal.display.line("There is nothing to undo.")
        return
    removed = messages[at:]
    del messages[at:]
    lines = [f"{message['role']} {message.get('type', '')}: {_preview(message)}" for message in removed]
    terminal.display.line("Taken back:\n" + "\n".join(lines))


def _preview(message: Message) -> str:
    content = message.get("content")
    text = content if isinstance(content, str) else json.dumps(content, default=str)
    text = " ".join(text.split())
    return text if len(text) <= _PREVIEW else text[:_PREVIEW] + "..."


def _message_file(argument: str) -> str:
    path = os.path.expanduser(argument or "messages.json")
    return path if path.endswith(".json") else path + ".json"


def _save_message(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    path = _message_file(argument)
    try:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(interpreter.messages, file, indent=2, ensure_ascii=False)
    except OSError as error:
        terminal.display.line(f"Could not write {path}: {error.strerror}.", "error")
        return
    terminal.display.line(f"The conversation is in {os.path.abspath(path)}.")


def _load_message(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    path = _message_file(argument)
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


def _info(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    import platform

    from interpreter.version import __version__

    llm = interpreter.llm
    facts = {
        "Open Interpreter": __version__,
        "Python": platform.python_version(),
        "System": platform.platform(),
        "Model": llm.model,
        "Server": llm.api_base or "the provider's own",
        "Context window": llm.context_window or "found out when needed",
        "Tools": llm.supports_functions if llm.supports_functions is not None else "found out when needed",
        "Auto run": "on" if interpreter.auto_run else "off",
        "Folder": interpreter.computer.surroundings.cwd,
        "Messages": len(interpreter.messages),
    }
    width = max(map(len, facts))
    terminal.display.line("\n".join(f"{name.ljust(width)}  {value}" for name, value in facts.items()))


def _tokens(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.llm.tokens import estimate_text

    llm = interpreter.llm
    lines = [f"This session: {_spent(llm.usage)}", f"The last turn: {_spent(llm.turn_usage)}"]
    if llm.max_budget is not None:
        lines.append(f"The budget is ${llm.max_budget:,.2f}.")
    if argument:
        lines.append(f"Your message has about {estimate_text(argument):,} tokens.")
    terminal.display.line("\n".join(lines))


def _spent(usage: Usage) -> str:
    from interpreter.llm.money import in_dollars

    cached = f" ({usage.cached_tokens:,} from the cache)" if usage.cached_tokens else ""
    read, written = f"{usage.input_tokens:,} tokens read{cached}", f"{usage.output_tokens:,} written"
    cost = f"{'about ' if usage.estimated else ''}{in_dollars(usage.cost)}"
    if usage.unpriced_tokens:
        cost = f"{cost}, and some without a known price" if usage.cost else "no known price"
    return f"{usage.requests} requests, {read}, {written}, {cost}."


COMMANDS = (
    Command("help", "", "list the commands", _help),
    Command("reset", "", "forget the conversation and end all sessions", _reset),
    Command("undo", "", "take back your last message and what came of it in the conversation", _undo),
    Command("auto_run", "[true/false]", "run code without asking", _auto_run),
    Command("verbose", "[true/false]", "tell more; shows the messages as they are", _verbose),
    Command("save_message", "[path]", "save the conversation as JSON (messages.json)", _save_message),
    Command("load_message", "[path]", "replace the conversation by a saved one", _load_message),
    Command("tokens", "[message]", "what the model has read, written and cost", _tokens),
    Command("info", "", "versions, model and settings", _info),
    Command("debug", "[true/false]", "the old name of %verbose", _debug),
)
