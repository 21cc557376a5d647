"""Commands that tell facts: versions and settings, tokens and money."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from interpreter.frontends.terminal.magics.command import Command

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.llm.usage import Usage


def _info(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    import platform

    from interpreter.version import __version__

    llm = interpreter.llm
    facts = {
        "Open Interpreter": __version__,
        "Python": platform.python_version(),
        "System": platform.platform(),
        "Processors": os.cpu_count(),
        "Model": llm.model,
        "Server": llm.api_base or "the provider's own",
        "Context window": _window(interpreter) or "found out when needed",
        "Images": "seen" if llm.vision else "not seen",
        "Tools": llm.supports_functions if llm.supports_functions is not None else "found out when needed",
        "Auto run": "on" if interpreter.auto_run else "off",
        "Safe mode": interpreter.safe_mode,
        "Offline": "yes" if interpreter.offline else "no",
        "Folder": interpreter.computer.surroundings.cwd,
        "Messages": len(interpreter.messages),
        "System message": f"{len(interpreter.system_message):,} characters",
    }
    width = max(map(len, facts))
    terminal.display.line("\n".join(f"{name.ljust(width)}  {value}" for name, value in facts.items()))


def _window(interpreter: OpenInterpreter) -> str:
    window = interpreter.llm.context_used[1]
    return f"{window:,} tokens" if window else ""


def _cost(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.llm.usage import in_dollars

    llm = interpreter.llm
    lines = [f"This session: {_money(llm.usage)}", f"The last turn: {_money(llm.turn_usage)}"]
    if llm.max_budget is not None:
        left = max(0.0, llm.max_budget - llm.usage.cost)
        lines.append(f"Of the budget of {in_dollars(llm.max_budget)}, {in_dollars(left)} is left.")
    terminal.display.line("\n".join(lines))


def _tokens(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.llm.context import estimate_text

    llm = interpreter.llm
    lines = [f"This session: {_spent(llm.usage)}", f"The last turn: {_spent(llm.turn_usage)}"]
    if llm.max_budget is not None:
        lines.append(f"The budget is ${llm.max_budget:,.2f}.")
    used, window = llm.context_used
    share = f" of {window:,} ({used * 100 // window}%)" if window else ""
    lines.append(f"The next request: about {used:,} tokens{share}.")
    if argument:
        lines.append(f"Your message has about {estimate_text(argument):,} tokens.")
    terminal.display.line("\n".join(lines))


def _spent(usage: Usage) -> str:
    cached = f" ({usage.cached_tokens:,} from the cache)" if usage.cached_tokens else ""
    read, written = f"{usage.input_tokens:,} tokens read{cached}", f"{usage.output_tokens:,} written"
    return f"{usage.requests} requests, {read}, {written}, {_money(usage)}"


def _money(usage: Usage) -> str:
    from interpreter.llm.usage import in_dollars

    cost = f"{'about ' if usage.estimated else ''}{in_dollars(usage.cost)}"
    if usage.unpriced_tokens:
        cost = f"{cost}, and some without a known price" if usage.cost else "no known price"
    return f"{cost}."


COMMANDS = (
    Command("cost", "", "what the model has cost", _cost),
    Command("tokens", "[message]", "what the model has read, written and cost, and how full its window is", _tokens),
    Command("info", "", "versions, model and settings", _info),
)
