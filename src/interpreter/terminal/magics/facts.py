"""Commands that tell facts: versions and settings, tokens and money."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interpreter.terminal.magics.command import Command

if TYPE_CHECKING:
    from interpreter.core import OpenInterpreter
    from interpreter.llm.money import Usage
    from interpreter.terminal.terminal import Terminal


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
    Command("tokens", "[message]", "what the model has read, written and cost", _tokens),
    Command("info", "", "versions, model and settings", _info),
)
