"""Decides which code runs without asking, which needs approval and which never runs. Names are loaded on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interpreter.policy.analysis import Effect, Effects, EffectStep, analyze, reversibility
    from interpreter.policy.policy import MODES, Mode, Outcome, Policy, Sandboxing, decide
    from interpreter.policy.policy_file import Grant, ProjectRules, grant_text, save_grant, save_rule, trust
    from interpreter.policy.rules import Decision, Rule, StepVerdict, Verdict, propose_rule

__all__ = [
    "MODES",
    "Decision",
    "Effect",
    "EffectStep",
    "Effects",
    "Grant",
    "Mode",
    "Outcome",
    "Policy",
    "ProjectRules",
    "Rule",
    "Sandboxing",
    "StepVerdict",
    "Verdict",
    "analyze",
    "decide",
    "grant_text",
    "propose_rule",
    "reversibility",
    "save_grant",
    "save_rule",
    "trust",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in ("analysis", "policy", "policy_file", "rules"):
            names = vars(import_module(f"interpreter.policy.{module}"))
            if name in names:
                globals()[name] = names[name]
                return names[name]
    raise AttributeError(f"module 'interpreter.policy' has no attribute {name!r}")
