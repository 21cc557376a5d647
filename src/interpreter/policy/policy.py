"""The rules in force in a workspace, their verdict on a block, and how the permission mode applies it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from interpreter.config.homes import our_folder
from interpreter.config.settings import InterpreterSettings
from interpreter.policy.analysis import Effects, EffectStep, analyze
from interpreter.policy.files import project_file, user_file
from interpreter.policy.policy_file import Grant, PolicyFile, ProjectRules, project_rules, read_file, read_text
from interpreter.policy.rules import OUR_OWN, Folders, Rule, Verdict, folders_for, holds_in, judge_steps, matches_path
from interpreter.runtimes import BUILT_IN, Registry
from interpreter.session.actor import Mode

BUILTIN = Path(__file__).parent / "builtin.yaml"
# Code that uses exactly the access that a sandbox would grant; its analysis shows which rules apply to that access.
_CODE_FOR_ACCESS = {
    "read": "open({value!r})",
    "write": "open({value!r}, 'w')",
    "host": "import urllib.request\nurllib.request.urlopen('https://{value}')",
    "env": "import os\nos.environ[{value!r}]",
}
_EFFECTS_OF_ACCESS = {"read": {"read", "secret"}, "write": {"read", "secret", "write"}}


@dataclass(frozen=True)
class Policy:
    """All rules in force in a workspace."""

    workspace: str
    rules: tuple[Rule, ...]
    untrusted: ProjectRules | None = None  # the project's own rules, which do not count until the user trusts them
    grants: tuple[Grant, ...] = ()  # what sandboxes are given here beyond the settings: by the user's file alone

    @classmethod
    def load(cls, workspace: str | os.PathLike[str], registry: Registry = BUILT_IN) -> Policy:
        """Combine the built-in rules, the user's, and the project's if trusted; PolicyError if a file has a mistake."""
        root = os.path.realpath(workspace)
        user = read_file(user_file(), root, registry)
        project = project_rules(root, our_folder())
        rules = [rule for rule in builtin().rules if rule.name not in user.without]
        rules += user.rules
        if project is not None and project.trusted:
            rules += read_text(project.text, str(project.path), root, registry).rules
        holding = tuple(rule for rule in rules if holds_in(rule.folder, root))
        grants = tuple(grant for grant in user.grants if holds_in(grant.folder, root))
        return cls(root, holding, None if project is None or project.trusted else project, grants)

    def judge(self, language: str, code: str, effects: Effects | None = None) -> Verdict:
        """Return the rules' verdict on a block, step by step."""
        effects = effects or analyze(language, code, self.workspace)
        return judge_steps(self.rules, effects.steps, self.folders)

    @cached_property
    def folders(self) -> Folders:
        return folders_for(self.workspace)

    def access_refusal(self, kind: str, value: str) -> str:
        """Return why the rules deny a sandbox this host, path or variable; empty if they allow it."""
        effects = analyze("python", _CODE_FOR_ACCESS[kind].format(value=value), self.workspace).all
        concerned = tuple(effect for effect in effects if effect.kind not in ("program", "unknown"))
        step = EffectStep("", f"{kind} {value}", 1, (), concerned)
        for rule in self.rules:
            if rule.decision == "deny" and (rule.matches(step, self.folders) or self._protects(rule, kind, value)):
                return rule.reason or str(rule)
        return ""

    def _protects(self, rule: Rule, kind: str, folder: str) -> bool:
        """Return whether the rule covers anything in the folder."""
        if kind not in _EFFECTS_OF_ACCESS or rule.command or rule.language or rule.host:
            return False
        if rule.does and not _EFFECTS_OF_ACCESS[kind] & set(rule.does):
            return False
        return any(matches_path(folder, path, self.folders, above_too=True, in_both=True) for path in rule.path)


@cache
def builtin() -> PolicyFile:
    """Read the rules that come with the package; a test checks their examples."""
    return read_text(BUILTIN.read_text(encoding="utf-8"), OUR_OWN, "", check=False)


# -- what sandboxes are always given ------------------------------------------------------------------------------

_granted: dict[tuple[str, str], tuple[object, list[tuple[str, str]]]] = {}  # what the files said, and their stamps


def granted_access(workspace: str) -> list[tuple[str, str]]:
    """Return what the user's file grants sandboxes in this workspace, as (kind, value), without what a rule denies."""
    path = user_file()
    stamp = _stamp(path), _stamp(project_file(workspace))
    if stamp[0] is None:
        return []
    key = (str(path), workspace)
    if key not in _granted or _granted[key][0] != stamp:
        policy = Policy.load(workspace)
        plain = [
            (kind, os.path.realpath(os.path.expanduser(value)) if kind in ("read", "write") else value)
            for kind, value, _ in policy.grants
        ]
        _granted[key] = stamp, [access for access in plain if not policy.access_refusal(*access)]
    return _granted[key][1]


def _stamp(path: Path) -> object:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


# -- the permission mode ------------------------------------------------------------------------------------------


def mode_of(settings: InterpreterSettings) -> Mode:
    """Return the mode in effect: as set, or otherwise as `auto_run` implies."""
    return settings.mode or ("auto" if settings.auto_run else "ask")


class Sandboxing(NamedTuple):
    """The access that the sandbox of a block's session allows."""

    writes: Literal["anywhere", "workspace", "nowhere"] = "anywhere"
    network: bool = True  # can it reach more than listed hosts?


class Outcome(NamedTuple):
    """The decision on a block, with its reason."""

    action: Literal["run", "ask", "deny"]
    reason: str


_WHY_RUN: dict[Mode, str] = {
    "auto-in-sandbox": "it runs in a sandbox",
    "plan": "it can't change anything: the sandbox is read-only and has no network",
    "auto": "mode auto: no rule forbids it",
}


def decide(
    mode: Mode,
    verdict: Verdict,
    sandbox: Sandboxing | None = None,
    *,
    alarm: str = "",
) -> Outcome:
    """Run, ask or deny; `alarm` is a scanner's finding that the user should see first."""
    sandbox = sandbox or Sandboxing()
    if verdict.decision == "deny":
        return Outcome("deny", verdict.reason)
    if mode == "plan" and (sandbox.writes != "nowhere" or sandbox.network):
        return Outcome(
            "deny",
            "plan mode only runs code in a read-only sandbox without network (--sandbox read-only), and there isn't "
            "one",
        )
    if verdict.decision == "ask" and (verdict.by_rule or mode == "ask"):
        return Outcome("ask", verdict.reason)
    if verdict.decision == "ask" and mode == "auto-in-sandbox" and sandbox.writes == "anywhere":
        return Outcome("ask", "it would run outside a sandbox")
    if alarm:
        return Outcome("ask", alarm)
    return Outcome("run", verdict.reason if verdict.decision == "allow" else _WHY_RUN[mode])
