"""`%commit`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interpreter.console_text import visible
from interpreter.repo.commit import MakeCommit, plan_commit, suggested_message

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal


def commit(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    """Commit with the message that was typed, or with one that the model writes, after asking."""
    own, message = argument.startswith("--own"), argument.removeprefix("--own").strip()
    agent = interpreter.agent
    plan = plan_commit(agent, own)
    if not message:
        message = suggested_message(agent, plan)
        terminal.display.line(visible("\n".join([*plan.sentences(), "", message])))
        if not interpreter.auto_run and not terminal.confirm("Commit with this message?"):
            terminal.display.line("Nothing is committed. %commit MESSAGE commits with another message.")
            return
    made = interpreter.session.perform(MakeCommit(agent, message, own), interpreter.user).result()
    terminal.display.line(visible(str(made)))
