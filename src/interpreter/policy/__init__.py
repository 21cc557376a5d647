"""What may run without asking, what is asked, and what never runs: rules in files, and the modes."""

from interpreter.policy.policy import (
    MODES,
    Mode,
    Outcome,
    Part,
    Policy,
    Sandboxing,
    Verdict,
    decide,
)
from interpreter.policy.policy_file import ProjectRules, save_rule, trust
from interpreter.policy.rules import Decision, Rule, propose_rule

__all__ = [
    "MODES",
    "Decision",
    "Mode",
    "Outcome",
    "Part",
    "Policy",
    "ProjectRules",
    "Rule",
    "Sandboxing",
    "Verdict",
    "decide",
    "propose_rule",
    "save_rule",
    "trust",
]
