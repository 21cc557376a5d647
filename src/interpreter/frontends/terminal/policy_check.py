"""`--policy-check`: what the rules say of a piece of code, and why."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from interpreter.policy import (
    Policy,
    Verdict,
    decide,
    propose_rule,
)
from interpreter.policy.analysis import Effects, look

if TYPE_CHECKING:
    from interpreter.frontends.terminal.flags import Parsed

_LONGEST = 70


def check(parsed: Parsed) -> int:
    """Print the verdict on the code of `--policy_check`; 0 unless it would never run."""
    code = str(parsed.actions["policy_check"])
    language = str(parsed.actions.get("language", "shell"))
    workspace = str(parsed.settings.get("workspace") or os.getcwd())
    policy = Policy.load(workspace)
    effects = look(language, code, workspace)
    verdict = policy.judge(language, code, effects)
    print("\n".join([*lines(policy, verdict, effects), *_always(verdict, language, code, effects)]))
    return 1 if verdict.decision == "deny" else 0


def lines(policy: Policy, verdict: Verdict, effects: Effects) -> Iterator[str]:
    """The verdict, what each part adds to it, and what was seen in the code."""
    yield f"{verdict.decision}: {verdict.reason}"
    yield f"  in mode ask: {decide('ask', verdict).action}; in mode auto (-y): {decide('auto', verdict).action}"
    for part in verdict.parts:
        rule = f" by {part.rule.where}" if part.rule else ""
        yield f"  line {part.line}: {_short(part.text)} -> {part.decision}{rule}"
        if part.rule and part.rule.reason:
            yield f"      {part.rule.reason}"
    yield f"Seen in it, in {effects.language}:"
    yield from (f"  {line}" for line in effects.lines())
    if policy.untrusted is not None:
        yield f"{policy.untrusted.path} does not count: it is not trusted. It says:"
        yield from (f"  {line}" for line in policy.untrusted.lines)


def _always(verdict: Verdict, language: str, code: str, effects: Effects) -> Iterator[str]:
    from interpreter.policy.policy_file import rule_text

    rule = propose_rule(language, code, effects) if verdict.decision == "ask" else None
    if rule is not None:
        yield "A rule that would allow it from now on:"
        yield from (f"  {line}" for line in rule_text(rule).splitlines())


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST else flat[: _LONGEST - 1] + "…"
