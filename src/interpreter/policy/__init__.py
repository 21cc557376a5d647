"""What may run without asking, what is asked, and what never runs: rules in files, and the modes."""

from interpreter.policy.modes import (
    MODES,
    Mode,
    Outcome,
    Sandboxing,
    decide,
)
from interpreter.policy.policy import (
    Part,
    Policy,
    Verdict,
)
from interpreter.policy.propose import propose_rule
from interpreter.policy.rules import Decision, Rule
from interpreter.policy.save import save_rule
from interpreter.policy.trust import ProjectRules, trust

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
