"""What the rules say of something that a sandbox would give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interpreter.policy.analysis import (
    Effect,
    Step,
    look,
)
from interpreter.policy.rules import matches_path

if TYPE_CHECKING:
    from interpreter.policy.policy import Policy
    from interpreter.policy.rules import Rule
    from interpreter.sandbox.sandbox import Widening

# Code that does no more than this, so that the look at it tells what that means.
MEANS = {
    "read": "open({value!r})",
    "write": "open({value!r}, 'w')",
    "host": "import urllib.request\nurllib.request.urlopen('https://{value}')",
    "env": "import os\nos.environ[{value!r}]",
}
KINDS = {"read": ("read", "secret"), "write": ("read", "secret", "write")}


def refusal(policy: Policy, wanted: Widening) -> str:
    """Why the rules do not let anybody give this; empty if they do."""
    seen = look("python", MEANS[wanted.kind].format(value=wanted.value), policy.workspace)
    step = Step("", str(wanted), 1, (), without_programs(seen.all))
    for rule in policy.rules:
        if rule.decision == "deny" and (rule.matches(step, policy.folders) or lies_in(rule, policy, wanted)):
            return rule.reason or str(rule)
    return ""


def without_programs(effects: tuple[Effect, ...]) -> tuple[Effect, ...]:
    return tuple(effect for effect in effects if effect.kind not in ("program", "unknown"))


def lies_in(rule: Rule, policy: Policy, wanted: Widening) -> bool:
    """Whether the rule keeps something that is in the folder."""
    if wanted.kind not in KINDS or rule.command or rule.language or rule.host:
        return False
    if rule.does and not set(rule.does) & set(KINDS[wanted.kind]):
        return False
    return any(
        matches_path(wanted.value, pattern, policy.folders, above_too=True, in_both=True) for pattern in rule.path
    )
