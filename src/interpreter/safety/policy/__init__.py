"""What may run without asking, what is asked, and what never runs: rules in files, and the modes."""

from interpreter.safety.policy.modes import MODES, Mode, Outcome, Sandboxing, decide
from interpreter.safety.policy.policy import Part, Policy, Verdict
from interpreter.safety.policy.propose import propose_rule
from interpreter.safety.policy.rules import Decision, Rule
from interpreter.safety.policy.save import save_rule
from interpreter.safety.policy.trust import ProjectRules, trust

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
