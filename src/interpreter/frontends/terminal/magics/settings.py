"""Magic commands on settings (%model, %mode, %sandbox, ...) and on facts about the session (%info, %cost, %tokens)."""

from __future__ import annotations

import json
import os
import platform
from typing import Any

from interpreter.api import OpenInterpreter
from interpreter.app.conversations import UndoableReset
from interpreter.app.trust import change_permissions, switch_mode, switch_sandbox
from interpreter.console_text import counted
from interpreter.errors import MissingKeyError, UsageError, WrongKeyError
from interpreter.frontends.terminal.approval import MODES
from interpreter.frontends.terminal.terminal import Terminal
from interpreter.llm.context import estimate_text
from interpreter.llm.providers import with_prefix_in_name
from interpreter.llm.usage import Usage, in_dollars, look_up
from interpreter.policy.policy import mode_of
from interpreter.sandbox.sandbox import Sandbox
from interpreter.session import Actor
from interpreter.version import __version__

_SANDBOXES = {
    "off": "The sandbox is off: code can access everything you can.",
    "read-only": "Code runs in a sandbox: it can't change anything, and can only contact hosts in sandbox_hosts.",
    "workspace": "Code runs in a sandbox: it can only write to the workspace and contact hosts in sandbox_hosts.",
}
NEW_SESSIONS = "The next block in each language starts a new session, without the current variables."
KeyProblem = MissingKeyError | WrongKeyError
_SWITCHES = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}


# -- settings ------------------------------------------------------------------------------------------------------


def _switched(argument: str, now: bool) -> bool:
    """Read on or off as typed; if nothing was typed, return the opposite of `now`."""
    word = argument.lower()
    if word and word not in _SWITCHES:
        raise UsageError(f"Use true or false, not {argument}.")
    return _SWITCHES[word] if word else not now


def reset(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    if argument not in ("", "-y"):
        raise UsageError(f"Unknown option: {argument}. To skip the question: %reset -y")
    question = "Clear the conversation and all variables? Files are not touched."
    if argument != "-y" and terminal.tty.can_type and not terminal.confirm(question):
        terminal.display.line("Nothing changed.")
        return
    terminal.discard_reset()
    terminal.reset = UndoableReset(interpreter)
    terminal.display.line("Cleared. Until you exit, %undo brings the conversation and the variables back.")


def verbose(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    interpreter.verbose = _switched(argument, interpreter.verbose)
    if interpreter.verbose:
        terminal.display.line(json.dumps(interpreter.messages, indent=2, ensure_ascii=False, default=str))
    terminal.display.line(f"verbose is {'on' if interpreter.verbose else 'off'}.")


def debug(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    terminal.display.line("%debug is now %verbose.")
    verbose(terminal, interpreter, argument)


def auto_run(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    wanted = _switched(argument, interpreter.auto_run)
    change_permissions(interpreter, lambda: setattr(interpreter, "auto_run", wanted))
    if interpreter.mode is not None:  # which has priority
        mode(terminal, interpreter, "")
        terminal.display.line(f"To change it: %mode {'auto' if wanted else 'ask'}")
        return
    terminal.display.line("From now on, code runs without asking." if wanted else "I'll ask before running any code.")


def sandbox(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    before = interpreter.sandbox
    if argument:
        Sandbox(argument)  # or an error that says what there is
        switch_sandbox(interpreter, argument)
    kind = interpreter.sandbox
    terminal.display.line(_SANDBOXES.get(kind, f"Code runs in a {kind}."))
    if kind != before:
        terminal.display.line(NEW_SESSIONS)


def mode(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    before = interpreter.sandbox
    if argument:
        switch_mode(interpreter, argument)  # or an error that lists the modes
    is_new = interpreter.sandbox != before
    terminal.display.line(f"Mode {mode_of(interpreter)}: {MODES[mode_of(interpreter)]}." + f"\n{NEW_SESSIONS}" * is_new)


def share_commands(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    interpreter.share_commands = wanted = _switched(argument, interpreter.share_commands)
    sees = "sees" if wanted else "doesn't see"
    terminal.display.line(f"From now on, the model {sees} what you run with ! and >>>.")


def setup(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.frontends.terminal.setup import choose_model

    terminal.display.finish()
    if choose_model(terminal, interpreter, again=True):
        terminal.problem = None
    else:
        terminal.display.line("Nothing changed.")


def install(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.frontends.terminal.setup import install_extra

    terminal.display.finish()
    install_extra(terminal, argument, interpreter.offline)


def model(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.app.models import model_problem

    llm = interpreter.llm
    lines = [f"{llm.model}, at {llm.api_base or 'its own server'}."]
    if argument:
        name, address = [*argument.split(), ""][:2]
        before, window_before = llm.model, llm.context_window
        own, there = address == "own", address or llm.api_base
        chosen = with_prefix_in_name(name, there) if there and not own else name
        llm.switch(chosen, None if own else address or None, own_server=own)
        lines = [f"Now using {name} instead of {before}. It gets the conversation so far."]
        if llm.api_base:
            lines.append(f"Using the server at {llm.api_base}. For the provider's own server: %model {name} own")
        if window_before is not None:
            lines.append(f"The context window of {window_before:,} tokens was set for {before} and no longer applies.")
    if terminal.tty.can_type and isinstance(model_problem(interpreter) or terminal.problem, KeyProblem):
        from interpreter.frontends.terminal.setup import ask_for_key

        terminal.display.line(f"{llm.model} needs another key.")
        terminal.problem = None if ask_for_key(terminal, interpreter) else terminal.problem
    used, window = llm.context_used
    price = look_up(llm.model, llm.api_base).price
    size = f"Context window: {window:,} tokens, about {used:,} used." if window else "Context window: unknown so far."
    cost = f"${price.read:g} / ${price.written:g} per million input / output tokens" if price else "unknown"
    images = "It accepts images." if llm.vision else "It doesn't accept images."
    terminal.display.line("\n".join([*lines, size, f"Price: {cost}. {images}"]))


def compact(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    sizes = interpreter.llm.compact()
    if sizes is None:
        terminal.display.line("Nothing to compact yet: the conversation is short.")
        return
    terminal.display.line(
        f"Compacted from about {sizes[0]:,} tokens to {sizes[1]:,}. The model now gets a short note instead of older "
        f"messages. You keep all of them."
    )


# -- facts ---------------------------------------------------------------------------------------------------------


def info(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    llm = interpreter.llm
    window = llm.context_used[1]
    facts = {
        "Open Interpreter": __version__,
        "Python": platform.python_version(),
        "System": platform.platform(),
        "Processors": os.cpu_count(),
        "Model": llm.model,
        "Server": llm.api_base or "the provider's own",
        "Context window": f"{window:,} tokens" if window else "found out when needed",
        "Images": "seen" if llm.vision else "not seen",
        "Tools": llm.supports_functions if llm.supports_functions is not None else "found out when needed",
        "Auto run": "on" if interpreter.auto_run else "off",
        "Safe mode": interpreter.safe_mode,
        "Offline": "yes" if interpreter.offline else "no",
        **{each.id: _described(each) for each in interpreter.session.actors.values()},
        "Folder": interpreter.computer.context.cwd,
        "Messages": len(interpreter.messages),
        "System message": f"{len(interpreter.system_message):,} characters",
    }
    width = max(map(len, facts))
    terminal.display.line("\n".join(f"{name.ljust(width)}  {value}" for name, value in facts.items()))


def _described(actor: Actor) -> str:
    permissions = actor.permissions
    sandbox: Any = permissions.sandbox
    mode = {"user": "runs its own code unasked", "viewer": "only watches"}.get(actor.kind, f"mode {permissions.mode}")
    parts = [
        mode,
        f"sandbox {sandbox.kind}" if sandbox is not None else "no sandbox",
        *([f"for {actor.parent.id}"] if actor.parent is not None else []),
        *(["revoked"] if actor.is_revoked else []),
    ]
    return ", ".join(parts)


def cost(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    llm = interpreter.llm
    lines = [f"This session: {_money(llm.usage)}", f"The last turn: {_money(llm.turn_usage)}"]
    if llm.max_budget is not None:
        left = max(0.0, llm.max_budget - llm.usage.cost)
        lines.append(f"Left of the budget of {in_dollars(llm.max_budget)}: {in_dollars(left)}.")
    terminal.display.line("\n".join(lines))


def tokens(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
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
    read, written = f"{usage.input_tokens:,} input tokens{cached}", f"{usage.output_tokens:,} output tokens"
    return f"{counted(usage.requests, 'request')}, {read}, {written}, {_money(usage)}"


def _money(usage: Usage) -> str:
    spent = f"{'about ' if usage.estimated else ''}{in_dollars(usage.cost)}"
    if usage.unpriced_tokens:
        spent = f"{spent}, plus some tokens of unknown price" if usage.cost else "price unknown"
    return f"{spent}."
