"""Whether a call that a block's code makes to the computer's tools may be made: what rules, mode and user say."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from interpreter.computer_api.answering import Use, asked_first, said_yes
from interpreter.consent import mode_of

if TYPE_CHECKING:
    from interpreter.core import OpenInterpreter
    from interpreter.safety.policy import Policy, Verdict

Ask = Callable[[str], "str | None"]

PLANNING = "this is plan mode, in which nothing may be changed"
READ_ONLY = "the sandbox is read-only, and nothing may be changed from inside"
# What reaches nothing but the screen's picture and the model, to which everything that code prints goes anyway; and
# what works inside the sandbox itself, or only gives the user's skills to run there.
FREE_IN_SANDBOX = frozenset({"display", "vision", "ai", "help", "view", "screenshot", "files", "docs", "skills"})


class CallConsent:
    """For the calls of one block."""

    def __init__(self, interpreter: OpenInterpreter) -> None:
        self._interpreter = interpreter
        self._allowed: set[str] = set()  # by the user, for as long as the block runs
        self._loaded: Policy | None = None
        self._loading, self._asking = threading.Lock(), threading.Lock()

    def permit(self, use: Use, ask: Ask) -> str:
        """Who lets it be made; PermissionError if nobody does."""
        if use.acts or use.sends:
            self._refuse_where_code_only_looks(use)
        verdict = self._verdict(use)
        if verdict.decision == "deny":
            raise PermissionError(f"The rules here do not allow {use.name}: {verdict.reason}")
        if use.sends:
            return asked_first(use, ask)
        if verdict.decision == "allow":
            return "policy"
        reason = self._reason_to_ask(use, verdict)
        if not reason:
            return "block"  # who let the block run
        with self._asking:
            if use.name not in self._allowed:
                self._ask(use, reason, ask)
                self._allowed.add(use.name)
        return "user"

    def _refuse_where_code_only_looks(self, use: Use) -> None:
        interpreter = self._interpreter
        reason = PLANNING if mode_of(interpreter) == "plan" else ""
        if use.contained and interpreter.sandbox == "read-only":
            reason = reason or READ_ONLY
        if reason:
            raise PermissionError(f"{use.name} was not called: {reason}.")

    def _verdict(self, use: Use) -> Verdict:
        from interpreter.safety.look.effects import Effect, Effects, Step
        from interpreter.safety.look.look import canonical

        language = canonical(use.language)
        effect = Effect("computer", use.name, 1, how="sends" if use.sends else "acts" if use.acts else "looks")
        step = Step(language, str(use), 1, (use.name,), (effect,), fixed=False)
        effects = Effects(language, str(self._interpreter.workspace), (step,))
        return self._policy().judge(language, str(use), effects)

    def _policy(self) -> Policy:
        from interpreter.safety.policy import Policy

        with self._loading:
            if self._loaded is None:
                self._loaded = Policy.load(str(self._interpreter.workspace))
            return self._loaded

    def _reason_to_ask(self, use: Use, verdict: Verdict) -> str:
        """Why the user's yes to the block is not enough; empty if it is."""
        if verdict.by_rule and verdict.decision == "ask":
            return "" if use.name in self._interpreter._approved_calls else verdict.reason
        if use.contained and (use.acts or use.tool not in FREE_IN_SANDBOX):
            return "The code runs in a sandbox, and this reaches out of it."
        return ""

    def _ask(self, use: Use, reason: str, ask: Ask) -> None:
        answer = ask(f"{reason}\nLet the code use {use}? (y/n) ")
        if answer is None:
            raise PermissionError(f"{use.name} was not called: somebody has to allow it, and nobody was there to ask.")
        if not said_yes(answer):
            raise PermissionError(f"{use.name} was not called: the user said no.")
