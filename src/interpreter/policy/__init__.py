"""What may run without asking, what is asked, and what never runs. The names are loaded when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interpreter.policy.policy import MODES, Mode, Outcome, Policy, Sandboxing, decide
    from interpreter.policy.policy_file import ProjectRules, save_rule, trust
    from interpreter.policy.rules import Decision, Rule, StepVerdict, Verdict, propose_rule

__all__ = [
    "MODES",
    "Decision",
    "Mode",
    "Outcome",
    "Policy",
    "ProjectRules",
    "Rule",
    "Sandboxing",
    "StepVerdict",
    "Verdict",
    "decide",
    "propose_rule",
    "save_rule",
    "trust",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in ("policy", "policy_file", "rules"):
            found = vars(import_module(f"interpreter.policy.{module}"))
            if name in found:
                globals()[name] = found[name]
                return found[name]
    raise AttributeError(f"module 'interpreter.policy' has no attribute {name!r}")
