"""Decides which code runs without asking, which needs approval and which never runs."""

from interpreter.policy.analysis import Effect, Effects, EffectStep, analyze, reversibility
from interpreter.policy.policy import Outcome, Policy, Sandboxing, decide
from interpreter.policy.policy_file import Grant, ProjectRules, grant_text, save_grant, save_rule, trust
from interpreter.policy.rules import Decision, Rule, StepVerdict, Verdict, propose_rule
from interpreter.session.actor import MODES, Mode

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
