"""Rules that are made or trusted at the question before a block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interpreter.errors import InterpreterError

if TYPE_CHECKING:
    from interpreter.agent.blocks import PendingBlock
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.policy.approval import RulesAtHand

SAVE = "Save this rule, and run the code?"
TRUST = "Do you trust these rules?"
_ASKED = "A rule says that you are asked about this code, and no other rule can change that: interpreter --policy-check"
_NONE = "No rule is made of this: its text does not tell all that it does."


def always(terminal: Terminal, pending: PendingBlock, rules: RulesAtHand) -> bool:
    """Show the rule that would allow the block, and save it if that is wanted; True if the block is to run."""
    from interpreter.policy.policy_file import rule_text

    rule = rules.proposed(pending)
    if rule is None or pending.asked_by_rule:
        terminal.display.line(_ASKED if pending.asked_by_rule else _NONE)
        return False
    terminal.display.line(rule_text(rule).rstrip())
    if not terminal.confirm(SAVE):
        return False
    try:
        path = rules.save(rule)
    except (InterpreterError, OSError) as error:
        terminal.display.line(str(error), "error")
        return False
    terminal.display.line(f"Saved in {path}.")
    return True


def offer_trust(terminal: Terminal, rules: RulesAtHand) -> None:
    """Ask whether the project's own rules are to count, once."""
    project = rules.untrusted
    if project is None or project.digest in terminal.shown_rules:
        return
    terminal.shown_rules.add(project.digest)
    shown = "\n".join(f"  {line}" for line in project.lines)
    terminal.display.line(f"This project has rules of its own, which do not count yet ({project.path}):\n{shown}")
    if terminal.confirm(TRUST):
        rules.trust(project)
