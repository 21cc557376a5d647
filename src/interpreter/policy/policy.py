"""The rules that hold in a workspace, their verdict on a block, and what the permission mode makes of it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from interpreter.config.homes import homes
from interpreter.policy.analysis import Effects, Step, look
from interpreter.policy.files import config_folder, user_file
from interpreter.policy.grants import Grant
from interpreter.policy.policy_file import (
    PolicyFile,
    ProjectRules,
    project_rules,
    read_file,
    read_text,
)
from interpreter.policy.rules import DECISIONS, Decision, Folders, Rule
from interpreter.runtimes import BUILT_IN, Registry

BUILTIN = Path(__file__).parent / "builtin.yaml"
NO_RULE = "no rule speaks of it"


@dataclass(frozen=True)
class Part:
    """What the rules say of one step of a block."""

    text: str
    line: int
    decision: Decision
    rule: Rule | None
    """The strictest that matches; None if none does."""

    @property
    def reason(self) -> str:
        return NO_RULE if self.rule is None else self.rule.reason or str(self.rule)


@dataclass(frozen=True)
class Verdict:
    """What the rules say of a block: the strictest of what they say of its parts."""

    decision: Decision
    rules: tuple[Rule, ...]
    reason: str
    parts: tuple[Part, ...]

    @property
    def by_rule(self) -> bool:
        """Does a rule say so? Otherwise the mode decides."""
        return bool(self.rules)


@dataclass(frozen=True)
class Policy:
    """All rules that hold in a workspace."""

    workspace: str
    rules: tuple[Rule, ...]
    untrusted: ProjectRules | None = None
    """The project's own rules, which do not count until the user trusts them."""
    grants: tuple[Grant, ...] = ()
    """What sandboxes are given here beyond the settings: by the user's file alone."""

    @classmethod
    def load(cls, workspace: str | os.PathLike[str], registry: Registry = BUILT_IN) -> Policy:
        """The built-in rules, the user's, and the project's if it is trusted; PolicyError if a file has a mistake."""
        root = os.path.realpath(workspace)
        user = read_file(user_file(), root, registry)
        project = project_rules(root, config_folder())
        rules = [rule for rule in builtin(root).rules if rule.name not in user.without]
        rules += user.rules
        if project is not None and project.trusted:
            rules += read_text(project.text, str(project.path), root, registry).rules
        holding = tuple(rule for rule in rules if rule.holds_in(root))
        grants = tuple(grant for grant in user.grants if grant.holds_in(root))
        return cls(root, holding, None if project is None or project.trusted else project, grants)

    def judge(self, language: str, code: str, effects: Effects | None = None) -> Verdict:
        """What the rules say of a block, step by step."""
        found = effects or look(language, code, self.workspace)
        parts = [self._part(step) for step in found.steps]
        return _whole(_counting(found.steps, parts), parts)

    @cached_property
    def folders(self) -> Folders:
        return folders(self.workspace)

    def _part(self, step: Step) -> Part:
        matching = [rule for rule in self.rules if rule.matches(step, self.folders)]
        strictest = max(matching, key=lambda rule: DECISIONS.index(rule.decision), default=None)
        return Part(step.text, step.line, strictest.decision if strictest else "ask", strictest)


def _counting(steps: Iterable[Step], parts: list[Part]) -> list[Part]:
    """Without what changes nothing by itself, such as `cd`, if there is anything else."""
    counting = [
        part for step, part in zip(steps, parts, strict=True) if part.rule or step.effects or not step.is_command
    ]
    return counting or parts


def _whole(counting: list[Part], parts: list[Part]) -> Verdict:
    if not counting:
        return Verdict("ask", (), "there is nothing in it", ())
    strictest = max(DECISIONS.index(part.decision) for part in counting)
    # A rule that asks is heard before the lack of one: it also holds in a mode that would run the rest.
    deciding = [part for part in counting if DECISIONS.index(part.decision) == strictest]
    ruled = [part for part in deciding if part.rule] if DECISIONS[strictest] != "allow" else deciding
    rules = tuple(dict.fromkeys(part.rule for part in ruled if part.rule))
    reason = "; ".join(dict.fromkeys(part.reason for part in ruled or deciding))
    return Verdict(DECISIONS[strictest], rules, reason, tuple(parts))


def builtin(workspace: str) -> PolicyFile:
    """The rules that come with the package; a test checks their examples."""
    return read_text(BUILTIN.read_text(encoding="utf-8"), "built in", workspace, check=False)


def folders(workspace: str) -> Folders:
    config = os.path.realpath(config_folder())
    own, *account = homes()
    return Folders(os.path.realpath(workspace), config, own, *account)


Mode = Literal["ask", "auto-in-sandbox", "auto", "plan"]
MODES: tuple[Mode, ...] = get_args(Mode)

NO_PLAN = "plan mode runs code only in a read-only sandbox without network (--sandbox read-only), and there is none"
NO_SANDBOX = "there is no sandbox that would hold it"
NOBODY = "nobody is there to ask"


class Sandboxing(NamedTuple):
    """What contains the session that would run the block."""

    writes: Literal["anywhere", "workspace", "nowhere"] = "anywhere"
    network: bool = True
    """Can it reach more than listed hosts?"""

    @property
    def holds(self) -> bool:
        return self.writes != "anywhere"

    @property
    def is_read_only(self) -> bool:
        return self.writes == "nowhere" and not self.network


class Outcome(NamedTuple):
    """What happens with a block, and why."""

    action: Literal["run", "ask", "deny"]
    reason: str


def decide(
    mode: Mode,
    verdict: Verdict,
    sandbox: Sandboxing | None = None,
    *,
    alarm: str = "",
    someone_there: bool = True,
) -> Outcome:
    """Run, ask or deny; `alarm` is what a scan found that a person should see first."""
    outcome = _decided(mode, verdict, sandbox or Sandboxing())
    if outcome.action == "run" and alarm:
        outcome = Outcome("ask", alarm)
    if outcome.action == "ask" and not someone_there:
        return Outcome("deny", f"{outcome.reason}; {NOBODY}")
    return outcome


def _decided(mode: Mode, verdict: Verdict, sandbox: Sandboxing) -> Outcome:
    if verdict.decision == "deny":
        return Outcome("deny", verdict.reason)
    if mode == "plan" and not sandbox.is_read_only:
        return Outcome("deny", NO_PLAN)
    if verdict.decision == "ask" and verdict.by_rule:
        return Outcome("ask", verdict.reason)
    if verdict.decision == "allow":
        return Outcome("run", verdict.reason)
    match mode:
        case "ask":
            return Outcome("ask", verdict.reason)
        case "auto-in-sandbox" if not sandbox.holds:
            return Outcome("ask", NO_SANDBOX)
        case "auto-in-sandbox":
            return Outcome("run", "the sandbox holds it")
        case "plan":
            return Outcome("run", "nothing can be changed: the sandbox is read-only and without network")
    return Outcome("run", "mode auto: nothing speaks against it")
