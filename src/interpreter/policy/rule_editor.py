"""The rules in force, and how a user who is asked about a block adds to them."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import interpreter.policy as policies
from interpreter.errors import UsageError

if TYPE_CHECKING:
    from interpreter.policy import Grant, Policy, ProjectRules, Rule
    from interpreter.policy.review import BlockReview
    from interpreter.runtimes import Registry
    from interpreter.sandbox.requests import SandboxRequest


class RuleEditor:
    """The rules in force. A user who is asked about a block can add to them."""

    def __init__(self, workspace: Callable[[], str], registry: Callable[[], Registry]) -> None:
        self.allowed_tools = set[str]()  # that the user has allowed for the session
        self._workspace, self._registry = workspace, registry

    @cached_property
    def policy(self) -> Policy:
        return policies.Policy.load(self._workspace(), self._registry())

    def reload(self) -> None:
        """Read the rules again when they are next used."""
        self.__dict__.pop("policy", None)

    def trust(self, project: ProjectRules) -> None:
        """Have them count from now on."""
        policies.trust(project)
        self.reload()

    def proposed(self, review: BlockReview) -> list[Rule]:
        """Return the narrowest rule that would allow the block as shown, then a wider one; UsageError if none may."""
        if review.asked_by_rule:
            raise UsageError("One of your rules asks about this code every time. See which: interpreter --policy-check")
        assert review.effects is not None
        given = review.language, review.code, review.effects, self._workspace()
        rules = (policies.propose_rule(*given), policies.propose_rule(*given, wider=True))
        proposed = [rule for rule in dict.fromkeys(rules) if rule is not None]
        if not proposed:
            raise UsageError("Can't tell everything this code does, so no rule can safely allow it.")
        return proposed

    def grant_lines(self, request: SandboxRequest) -> list[str]:
        """Return the lines that would be added to the user's file to always give this."""
        return ["sandbox:", *(policies.grant_text(grant).rstrip() for grant in self._grants(request))]

    def grant_always(self, request: SandboxRequest) -> None:
        """Add what a block asks its sandbox for to the user's file."""
        for grant in self._grants(request):
            policies.save_grant(grant)

    def _grants(self, request: SandboxRequest) -> list[Grant]:
        folder = os.path.realpath(self._workspace())
        return [policies.Grant(wanted.kind, wanted.value, folder) for wanted in request.wanted]

    def save(self, rule: Rule) -> Path:
        """Add a rule to the user's file and return its path."""
        path = policies.save_rule(rule, self._workspace())
        self.reload()
        return path
