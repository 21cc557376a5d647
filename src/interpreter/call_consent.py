"""Whether a call that a block's code makes to the computer's tools may be made: what rules, mode and user say."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from interpreter.computer_api.answering import LONGEST_SHOWN, Use, asked_first, cut, said_yes
from interpreter.consent import mode_of

if TYPE_CHECKING:
    from interpreter.core import OpenInterpreter
    from interpreter.safety.policy import Policy, Verdict

Ask = Callable[[str], "str | None"]

PLANNING = "this is plan mode, in which nothing may be changed"
READ_ONLY = "the sandbox is read-only, and nothing may be changed from inside"
# What reaches nothing but the model, to which everything that code prints goes anyway; and what works inside the
# sandbox itself, or only gives the user's skills to run there.
FREE_IN_SANDBOX = frozenset({"vision", "ai", "help", "files", "docs", "skills"})
# The screen may show what a sandbox hides. In OS mode it is what the user has given.
SEES_THE_SCREEN = frozenset({"display", "view", "screenshot"})
# A yes to one program is none to another.
ASKED_ANEW = frozenset({"computer.os.launch"})
FOR_THE_BLOCK = " A yes is for all such calls of this block."


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
        same = use.in_full if use.name in ASKED_ANEW else use.name
        with self._asking:
            if same not in self._allowed:
                self._ask(use, reason, ask)
                self._allowed.add(same)
        return "user"

    def _refuse_where_code_only_looks(self, use: Use) -> None:
        reason = PLANNING if mode_of(self._interpreter) == "plan" else ""
        if use.only_reads:
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
        asks = verdict.by_rule and verdict.decision == "ask"
        if asks and use.name not in self._interpreter._approved_calls:
            return verdict.reason
        if use.contained and (use.acts or not self._is_free(use.tool)):
            return "The code runs in a sandbox, and this reaches out of it."
        return ""

    def _is_free(self, tool: str) -> bool:
        return tool in FREE_IN_SANDBOX or (tool in SEES_THE_SCREEN and bool(self._interpreter.os))

    def _ask(self, use: Use, reason: str, ask: Ask) -> None:
        hint = "" if use.name in ASKED_ANEW else FOR_THE_BLOCK
        answer = ask(f"{reason}\nLet the code use {cut(use.in_full, LONGEST_SHOWN)}?{hint} (y/n) ")
        if answer is None:
            raise PermissionError(f"{use.name} was not called: somebody has to allow it, and nobody was there to ask.")
        if not said_yes(answer):
            raise PermissionError(f"{use.name} was not called: the user said no.")
