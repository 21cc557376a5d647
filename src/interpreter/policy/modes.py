"""The modes: from a verdict to what happens with the block."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from interpreter.policy.policy import Verdict

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
