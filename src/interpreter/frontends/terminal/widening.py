"""The question about a block that asks its sandbox for more than it gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interpreter.errors import InterpreterError

if TYPE_CHECKING:
    from interpreter.agent.blocks import PendingBlock
    from interpreter.frontends.terminal.terminal import Terminal

QUESTION = "Run it with that: y this block, s this session, a always, n not?"
SAVE = "Save this, and run the code?"
EXPLANATION = (
    "y runs it with what it wants, s also gives it to what comes later in this session, a always, in this folder; "
    "n does not run it, n and some words tell the model why not, e lets you edit it first."
)
_SCOPES = {"y": "block", "yes": "block", "s": "session", "session": "session"}


def given(terminal: Terminal, pending: PendingBlock, word: str) -> bool | None:
    """Whether an answer gives what the block wants, so that it runs; None if it says nothing of that."""
    if word in _SCOPES:
        pending.grant(_SCOPES[word])  # type: ignore[arg-type]
        return True
    if word in ("a", "always"):
        return _always(terminal, pending)
    return None


def _always(terminal: Terminal, pending: PendingBlock) -> bool:
    """Show what would be saved, and save it if that is wanted."""
    from interpreter.policy.files import user_file
    from interpreter.policy.grants import grant_text

    assert pending.widening is not None and pending.rules is not None
    lines = [grant_text(wanted, pending.rules.workspace).rstrip() for wanted in pending.widening.wanted]
    terminal.display.line("\n".join(["sandbox:", *lines]))
    if not terminal.confirm(SAVE):
        return False
    try:
        pending.grant("always")
    except (InterpreterError, OSError) as error:
        terminal.display.line(str(error), "error")
        return False
    terminal.display.line(f"Saved in {user_file()}.")
    return True
