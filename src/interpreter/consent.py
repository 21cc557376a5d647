"""Whether a block may run: what the rules, the mode, a scan and the user say."""

from __future__ import annotations

import os
from collections.abc import Generator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.blocks import PendingBlock
from interpreter.errors import InterpreterError
from interpreter.messages import Chunk, Message

if TYPE_CHECKING:
    from interpreter.core import OpenInterpreter
    from interpreter.safety.look import Effects
    from interpreter.safety.policy import Mode, Outcome, Policy, ProjectRules, Rule, Sandboxing
    from interpreter.wishes import Wish

FOUND = "A scan of this code found:"
SCOPE_WORDS = {"block": "this block", "session": "this session", "always": "always"}
NOBODY_THERE = "somebody has to say yes to this code, and nobody was there."


class Consent:
    """Asks those who have a say, for the blocks of one turn."""

    def __init__(self, interpreter: OpenInterpreter) -> None:
        self._interpreter = interpreter

    @property
    def workspace(self) -> str:
        return str(self._interpreter.workspace)

    @cached_property
    def _policy(self) -> Policy:
        from interpreter.safety.policy import Policy

        return Policy.load(self.workspace)

    @property
    def policy(self) -> Policy:
        """The rules that hold."""
        return self._policy

    def rules_changed(self) -> None:
        """Have them read again."""
        self.__dict__.pop("_policy", None)

    def obtain(self, pending: PendingBlock, stored: bool = True) -> Generator[Chunk]:
        """Ask whoever has to be asked; `pending` knows the answer then. `stored`: it is the last message."""
        interpreter = self._interpreter
        pending.offers_scan = interpreter.safe_mode == "ask"
        if interpreter.safe_mode == "auto" and not interpreter.cancelled:
            yield from self._scan(pending)
        if interpreter.cancelled:
            return
        outcome = self._judged(pending)
        pending.widening = self._wish(pending)
        pending.only_widening = outcome.action == "run" and not pending.offers_scan
        if outcome.action == "deny":
            yield from self._denied(pending, outcome.reason)
        elif pending.widening is not None and pending.widening.refusal:
            yield from self._denied(pending, pending.widening.refusal, by="sandbox")
        elif not pending.only_widening or pending.asks_for_more:
            yield from self._ask(pending, last_code(interpreter.messages) if stored else None)
        elif pending.allowed_by:
            yield decision("approved", "policy", pending.allowed_by)

    def _judged(self, pending: PendingBlock) -> Outcome:
        """What the rules and the mode make of the code as it is now."""
        from interpreter.safety.policy import decide

        pending.effects = looked_at(self._interpreter, pending.language, pending.code)
        verdict = self._policy.judge(pending.language, pending.code, pending.effects)
        outcome = decide(
            self._mode,
            verdict,
            self._sandboxing(pending),
            alarm="the scan found something" if pending.has_findings else "",
        )
        pending.asked_by_rule = outcome.action == "ask" and verdict.by_rule and verdict.decision == "ask"
        pending.reason = outcome.reason if verdict.by_rule else ""
        pending.allowed_by = outcome.reason if verdict.decision == "allow" else ""
        return outcome

    def looked_at(self, pending: PendingBlock) -> Effects:
        """What the block would do as it is now."""
        return looked_at(self._interpreter, pending.language, pending.code)

    @property
    def _mode(self) -> Mode:
        return mode_of(self._interpreter)

    def _sandboxing(self, pending: PendingBlock) -> Sandboxing | None:
        """What will hold the block when it runs."""
        interpreter, plans = self._interpreter, self._mode == "plan"
        if (interpreter.sandbox == "off" and not plans) or not self._can_be_held(pending):
            return None
        from interpreter.safety.policy import Sandboxing

        if plans:
            return Sandboxing("nowhere", network=False)
        reads = interpreter.sandbox == "read-only" and not any(
            path.endswith(":rw") for path in interpreter.sandbox_paths
        )
        return Sandboxing("nowhere" if reads else "workspace", network=bool(interpreter.sandbox_hosts))

    def _can_be_held(self, pending: PendingBlock) -> bool:
        """Whether the block runs in a process of its own: a language of somebody's own may do anything."""
        from interpreter.languages.live import LiveLanguage

        computer = self._interpreter.computer
        language = computer.get_language(pending.language)
        in_process = language is not None and language.name == "Python" and computer.python == "in-process"
        return language is not None and issubclass(language, LiveLanguage) and not in_process

    def _wish(self, pending: PendingBlock) -> Wish | None:
        """What the block asks its sandbox for."""
        if "need" not in pending.code or self._sandboxing(pending) is None:
            return None
        from interpreter.wishes import wish_of

        computer = self._interpreter.computer
        computer.shut_in()
        containment: Any = computer.surroundings.containment
        return wish_of(containment, self._policy, pending.code) if containment is not None else None

    def _contain(self) -> None:
        """Have this block and those after it run in a sandbox; an error, and nothing is changed, if there is none."""
        interpreter = self._interpreter
        interpreter.sandbox = "workspace"
        try:
            interpreter.computer.shut_in()
        except InterpreterError:
            interpreter.sandbox = "off"
            raise

    def _ask(self, pending: PendingBlock, message: Message | None) -> Generator[Chunk]:
        interpreter = self._interpreter
        interpreter.pending = pending
        policy = self._policy
        pending.rules = RulesAtHand(self)
        if interpreter.sandbox == "off" and self._mode != "plan" and self._can_be_held(pending):
            pending.contain = self._contain
        shown: Chunk = {"type": "code", "format": pending.language, "content": pending.code}
        yield self._question(pending, shown)
        interpreter.pending = None
        if message is not None:
            if not pending.edited:
                pending.code = message["content"]  # the original's way: scripts rewrite the stored message
            message["content"] = pending.code
        yield from self._answered(pending, str(shown["content"]), is_new=self._policy is not policy)

    def _answered(self, pending: PendingBlock, shown: str, is_new: bool) -> Generator[Chunk]:
        """What was decided, and whether that holds: of code that was changed, and with rules that are new."""
        wish = pending.widening
        if pending.nobody and wish is not None and wish.is_open and pending.only_widening:
            pending.declined = False  # the model can go on without it
            yield from self._denied(pending, wish.not_given("nobody was there to give it"), by="sandbox")
        elif pending.declined and pending.nobody and pending.needs_somebody:
            yield decision("denied", "scan" if pending.has_findings else "policy", NOBODY_THERE)
        elif pending.declined:
            yield decision("declined", "user", pending.words or "")
        else:
            if pending.code != shown:
                yield decision("edited", "user", "")
            if pending.code != shown or is_new:
                yield from self._judge_again(pending)
            if pending.denied is None:
                yield from self._widened(pending)

    def _widened(self, pending: PendingBlock) -> Generator[Chunk]:
        """A block that asks for more does not run without it."""
        wish = pending.widening
        if wish is None or not wish.wanted:
            return
        if wish.granted is None:
            yield from self._denied(pending, wish.not_given("that was not given"), by="sandbox")
        else:
            yield decision("approved", "user", f"given for {SCOPE_WORDS[wish.granted]}: {wish}")

    def _question(self, pending: PendingBlock, shown: Chunk) -> Chunk:
        from interpreter.safety.look import reversibility

        question: Chunk = {"role": "computer", "type": "confirmation", "format": "execution", "content": shown}
        if pending.scanned is not None:
            question["findings"] = pending.scanned.as_data()["findings"]
        if pending.effects is not None:
            undo = reversibility(pending.effects, self._interpreter.timeline.left_out)
            question["undo"] = {"kind": undo.kind, "reasons": list(undo.reasons)}
            question["effects"] = pending.effects.lines()
        if pending.reason:
            question["reason"] = pending.reason
        if pending.asks_for_more and pending.widening is not None:
            question["widening"] = pending.widening.lines
        return question

    def _judge_again(self, pending: PendingBlock) -> Generator[Chunk]:
        """What somebody else than the model wrote must not break a rule either, nor a rule that is new."""
        outcome = self._judged(pending)
        before, pending.widening = pending.widening, self._wish(pending)
        wish = pending.widening
        if wish is not None and before is not None and set(wish.wanted) <= set(before.wanted):
            wish.granted = before.granted
        if outcome.action == "deny":
            yield from self._denied(pending, outcome.reason)
        elif wish is not None and wish.refusal:
            yield from self._denied(pending, wish.refusal, by="sandbox")

    def _denied(self, pending: PendingBlock, reason: str, by: str = "policy") -> Generator[Chunk]:
        pending.deny(reason if by == "policy" else f"Not run: {reason}", by_rule=by == "policy")
        if pending.preview is not None:
            pending.preview.discard()
        yield decision("denied", by, reason)

    def _scan(self, pending: PendingBlock) -> Generator[Chunk]:
        """Look for dangers in the block, and tell what was found."""
        status: Chunk = {"role": "computer", "type": "status"}
        yield {**status, "format": "scanning"}
        scanned = pending.scan()
        if scanned.cancelled:
            return
        yield {**status, "format": "scan", "content": {"language": pending.language, **scanned.as_data()}}


class RulesAtHand:
    """Lets the one who is asked about a block add to the rules."""

    def __init__(self, consent: Consent) -> None:
        self._consent = consent

    @property
    def workspace(self) -> str:
        """Where they hold, links resolved."""
        return os.path.realpath(self._consent.workspace)

    @property
    def untrusted(self) -> ProjectRules | None:
        """The project's own rules, if they do not count."""
        return self._consent.policy.untrusted

    def trust(self, project: ProjectRules) -> None:
        """Have them count from now on."""
        from interpreter.safety.policy import trust

        trust(project)
        self._consent.rules_changed()

    def proposed(self, pending: PendingBlock) -> Rule | None:
        """The narrowest rule that would allow the block as it is now; None if none should."""
        from interpreter.safety.policy import propose_rule

        effects = self._consent.looked_at(pending)
        return propose_rule(pending.language, pending.code, effects, self._consent.workspace)

    def give_always(self, wish: Wish) -> Path:
        """Add what a block asks its sandbox for to the user's file; where that is."""
        from interpreter.safety.policy.grants import save_grant
        from interpreter.safety.rule_files import user_file

        for wanted in wish.wanted:
            save_grant(wanted, self.workspace)
        return user_file()

    def save(self, rule: Rule) -> Path:
        """Add a rule to the user's file; where that is."""
        from interpreter.safety.policy import save_rule

        path = save_rule(rule, self._consent.workspace)
        self._consent.rules_changed()
        return path


def looked_at(interpreter: OpenInterpreter, language: str, code: str) -> Effects:
    """What code would do, from its text, where the sessions are now and with the functions that they have."""
    from interpreter.safety.look import look

    shared = interpreter.computer.surroundings
    return look(language, code, interpreter.workspace, cwd=shared.cwd, known=interpreter._defined)


def mode_of(interpreter: OpenInterpreter) -> Mode:
    """The mode that holds: the one that is set, else what `auto_run` means."""
    mode: Mode | None = interpreter.mode
    return mode or ("auto" if interpreter.auto_run else "ask")


def decision(outcome: str, by: str, reason: str) -> Chunk:
    """What was decided about a block, by whom and why."""
    return {
        "role": "computer",
        "type": "decision",
        "format": outcome,
        "content": {"by": by, "reason": reason},
    }


def told_findings(pending: PendingBlock) -> str:
    """What a scan of the block found, for the model; empty if it found nothing or there was none."""
    if pending.scanned is None or not pending.scanned.findings:
        return ""
    from interpreter.safety.scan.findings import told

    return f"{FOUND}\n{told(pending.scanned.findings)}"


def last_code(messages: list[Message]) -> Message | None:
    """The stored message of the block that is being asked about."""
    last = messages[-1] if messages else None
    return last if last is not None and last["role"] == "assistant" and last["type"] == "code" else None
