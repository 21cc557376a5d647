"""The examples in a policy file: each rule must do what its author thinks it does."""

from __future__ import annotations

from interpreter.errors import PolicyError
from interpreter.policy.analysis import look
from interpreter.policy.rules import Rule
from interpreter.runtimes import BUILT_IN, Registry


def check_examples(rule: Rule, workspace: str, registry: Registry = BUILT_IN) -> None:
    """PolicyError if an example does not come out as the file says."""
    for wanted, examples in ((True, rule.match), (False, rule.no_match)):
        for code in examples:
            if speaks_of(rule, code, workspace, registry) != wanted:
                what = (
                    f"the rule does not match its example {code!r}"
                    if wanted
                    else f"the rule matches {code!r}, which it should not"
                )
                advice = (
                    f"Change the rule or the example; `interpreter --policy-check {code!r}` tells what is seen in it."
                )
                raise PolicyError(rule.source, rule.line, what, advice)


def speaks_of(rule: Rule, code: str, workspace: str, registry: Registry = BUILT_IN) -> bool:
    """Would the rule, alone, decide about this code?"""
    from interpreter.policy.policy import Policy

    language = rule.language[0] if rule.language else "python" if rule.call else "shell"
    effects = look(language, code, workspace, registry=registry)
    verdict = Policy(workspace, (rule,)).judge(language, code, effects)
    return verdict.by_rule and verdict.decision == rule.decision
