"""Whether a block may run: what the rules, the mode, a scan and the user say."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.agent.blocks import PendingBlock
from interpreter.errors import InterpreterError
from interpreter.messages import Chunk, Message
from interpreter.session import APPROVE, EDIT, REFUSE, Block, Question

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.policy import (
        Mode,
        Outcome,
        Policy,
        ProjectRules,
        Rule,
        Sandboxing,
    )
    from interpreter.policy.analysis import Effects
    from interpreter.sandbox.requests import Wish

FOUND = "A scan of this code found:"
SCOPE_WORDS = {"block": "this block", "session": "this session", "always": "always"}
NOBODY_THERE = "somebody has to say yes to this code, and nobody was there."


class Consent:
    """Asks those who have a say, for the blocks of one turn."""

    def __init__(self, interpreter: OpenInterpreter, stored: bool = True) -> None:
        self._interpreter = interpreter
        self._is_stored = stored  # whether the block is the last message
        self.pending: PendingBlock | None = None  # the block that is being judged
        self._asked = False  # and somebody was asked about it

    @property
    def workspace(self) -> str:
        return self._interpreter.workspace

    @cached_property
    def _policy(self) -> Policy:
        from interpreter.policy import Policy

        return Policy.load(self.workspace, self._interpreter.computer.registry)

    @property
    def policy(self) -> Policy:
        """The rules that hold."""
        return self._policy

    def rules_changed(self) -> None:
        """Have them read again."""
        self.__dict__.pop("_policy", None)

    # -- for the pipeline ------------------------------------------------------------------------------------------

    def judge(self, block: Block) -> Iterator[Chunk | Question]:
        """Find out whether a block may run, and ask whoever has to be asked; it knows the answer then."""
        if self.pending is None:
            self.pending = PendingBlock(block.language, block.code, lambda *code: self._interpreter.scanner.scan(*code))
        pending = self.pending
        yield from self.obtain(pending)
        block.refused = pending.denied is not None or pending.declined
        block.code, block.widening = pending.code, pending.widening
        block.runner = self._interpreter.runtimes  # the sandbox may have been changed with the answer
        if pending.preview is not None:
            block.replay = pending.preview.replay
        asked_about = pending.effects.calls if pending.asked_by_rule and pending.effects is not None else ()
        block.approved_calls = frozenset(effect.what for effect in asked_about)
        if not block.refused and pending.effects is not None:
            self._interpreter._defined |= pending.effects.defines

    def still_allowed(self, block: Block) -> bool:
        """Whether nothing that happened meanwhile speaks against a block that was approved.

        A yes covers what was shown: the code has not changed since, but rules, folders and functions may have.
        """
        pending = self.pending
        assert pending is not None
        by_rule, shown = pending.asked_by_rule, pending.effects
        self.rules_changed()
        outcome = self._judged(pending)
        block.runner = self._interpreter.runtimes
        if outcome.action != "ask":
            return outcome.action == "run"
        same = shown is not None and pending.effects is not None and shown.lines() == pending.effects.lines()
        return self._asked and same and pending.asked_by_rule <= by_rule

    def obtain(self, pending: PendingBlock) -> Iterator[Chunk | Question]:
        """Ask whoever has to be asked; `pending` knows the answer then."""
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
            yield from self._ask(pending, self._stored(pending))
        elif pending.allowed_by:
            yield decision("approved", "policy", pending.allowed_by)

    def _stored(self, pending: PendingBlock) -> Message | None:
        """The message of the block that is being asked about, which scripts may rewrite."""
        return last_code(self._interpreter.messages) if self._is_stored else None

    def _judged(self, pending: PendingBlock) -> Outcome:
        """What the rules and the mode make of the code as it is now."""
        from interpreter.policy import decide

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
        from interpreter.policy import Sandboxing

        if plans:
            return Sandboxing("nowhere", network=False)
        reads = interpreter.sandbox == "read-only" and not any(
            path.endswith(":rw") for path in interpreter.sandbox_paths
        )
        return Sandboxing("nowhere" if reads else "workspace", network=bool(interpreter.sandbox_hosts))

    def _can_be_held(self, pending: PendingBlock) -> bool:
        """Whether the block runs in a process of its own: a language of somebody's own may do anything."""
        computer = self._interpreter.runtimes
        language = computer.get_language(pending.language)
        return language is not None and language.variant(computer.surroundings).sandboxable

    def _wish(self, pending: PendingBlock) -> Wish | None:
        """What the block asks its sandbox for."""
        if "need" not in pending.code or self._sandboxing(pending) is None:
            return None
        from interpreter.sandbox.requests import wish_of

        computer = self._interpreter.runtimes
        computer.shut_in()
        containment: Any = computer.surroundings.containment
        return wish_of(containment, self._policy, pending.code) if containment is not None else None

    def _contain(self) -> None:
        """Have this block and those after it run in a sandbox; an error, and nothing is changed, if there is none."""
        interpreter = self._interpreter
        interpreter.sandbox = "workspace"
        try:
            interpreter.runtimes.shut_in()
        except InterpreterError:
            interpreter.sandbox = "off"
            raise

    def _ask(self, pending: PendingBlock, message: Message | None) -> Iterator[Chunk | Question]:
        """Ask until the answer is about the code as it is: an edit is judged and asked about again."""
        interpreter = self._interpreter
        policy = self._policy
        pending.rules = RulesAtHand(self)
        if interpreter.sandbox == "off" and self._mode != "plan" and self._can_be_held(pending):
            pending.contain = self._contain
        while True:
            shown = pending.code
            pending.edited = False
            question = self._question(pending)
            self._asked, pending.question = True, question
            yield question
            pending.question = None
            if message is not None and not pending.edited:
                pending.code = message["content"]  # the original's way: scripts rewrite the stored message
            if question.answer is not None and not (pending.code != shown and question.answer.by == "nobody"):
                pending.take(question.answer)
            if message is not None:
                message["content"] = pending.code
            if question.withdrawn and not interpreter.cancelled:
                pending.declined = True
            if pending.declined:
                yield from self._refused(pending)
                return
            chose_edit = question.answer is not None and question.answer.choice == EDIT
            if pending.code == shown and self._policy is policy and not chose_edit:
                break
            if pending.code != shown:
                yield decision("edited", "user", "")
                yield from self._scan_again(pending)
            asks = yield from self._judge_again(pending)
            if pending.denied is not None:
                return
            if not asks or (pending.code == shown and not chose_edit) or pending.preview is not None:
                break
            policy = self._policy
        yield from self._widened(pending)

    def _refused(self, pending: PendingBlock) -> Iterator[Chunk]:
        wish = pending.widening
        only_sandbox = not (pending.asked_by_rule or pending.has_findings)
        if pending.nobody and wish is not None and wish.is_open and only_sandbox:
            pending.declined = False  # the model can go on without it
            yield from self._denied(pending, wish.not_given("nobody was there to give it"), by="sandbox")
        elif pending.nobody and pending.needs_somebody:
            yield decision("denied", "scan" if pending.has_findings else "policy", NOBODY_THERE)
        else:
            yield decision("declined", "user", pending.words or "")

    def _widened(self, pending: PendingBlock) -> Generator[Chunk]:
        """A block that asks for more does not run without it."""
        wish = pending.widening
        if wish is None or not wish.wanted:
            return
        if wish.granted is None:
            yield from self._denied(pending, wish.not_given("that was not given"), by="sandbox")
        else:
            yield decision("approved", "user", f"given for {SCOPE_WORDS[wish.granted]}: {wish}")

    def _question(self, pending: PendingBlock) -> Question:
        from interpreter.policy.analysis import reversibility

        shown: Chunk = {"type": "code", "format": pending.language, "content": pending.code}
        chunk: Chunk = {"role": "computer", "type": "confirmation", "format": "execution", "content": shown}
        if pending.scanned is not None:
            chunk["findings"] = pending.scanned.as_data()["findings"]
        if pending.effects is not None:
            undo = reversibility(pending.effects, self._interpreter.timeline.left_out)
            chunk["undo"] = {"kind": undo.kind, "reasons": list(undo.reasons)}
            chunk["effects"] = pending.effects.lines()
        if pending.reason:
            chunk["reason"] = pending.reason
        if pending.asks_for_more and pending.widening is not None:
            chunk["widening"] = pending.widening.lines
        choices = (APPROVE, REFUSE, EDIT, *(["grant"] if pending.asks_for_more else []))
        return Question("block", pending, chunk, choices, continuing_is_consent=not pending.needs_somebody)

    def _judge_again(self, pending: PendingBlock) -> Generator[Chunk, None, bool]:
        """Of code that was changed, and with rules that are new: whether somebody has to be asked about it."""
        outcome = self._judged(pending)
        before, pending.widening = pending.widening, self._wish(pending)
        wish = pending.widening
        if wish is not None and before is not None and set(wish.wanted) <= set(before.wanted):
            wish.granted = before.granted
        if outcome.action == "deny":
            yield from self._denied(pending, outcome.reason)
        elif wish is not None and wish.refusal:
            yield from self._denied(pending, wish.refusal, by="sandbox")
        return outcome.action == "ask" or pending.asks_for_more

    def _denied(self, pending: PendingBlock, reason: str, by: str = "policy") -> Generator[Chunk]:
        pending.deny(reason if by == "policy" else f"Not run: {reason}", by_rule=by == "policy")
        if pending.preview is not None:
            pending.preview.discard()
        yield decision("denied", by, reason)

    def _scan_again(self, pending: PendingBlock) -> Generator[Chunk]:
        """What a scan found is about the code as it was."""
        pending.scanned = None
        if self._interpreter.safe_mode == "auto":
            yield from self._scan(pending)

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
        from interpreter.policy import trust

        trust(project)
        self._consent.rules_changed()

    def proposed(self, pending: PendingBlock) -> Rule | None:
        """The narrowest rule that would allow the block as it is now; None if none should."""
        from interpreter.policy import propose_rule

        effects = self._consent.looked_at(pending)
        return propose_rule(pending.language, pending.code, effects, self._consent.workspace)

    def give_always(self, wish: Wish) -> Path:
        """Add what a block asks its sandbox for to the user's file; where that is."""
        from interpreter.policy.files import user_file
        from interpreter.policy.grants import save_grant

        for wanted in wish.wanted:
            save_grant(wanted, self.workspace)
        return user_file()

    def save(self, rule: Rule) -> Path:
        """Add a rule to the user's file; where that is."""
        from interpreter.policy import save_rule

        path = save_rule(rule, self._consent.workspace)
        self._consent.rules_changed()
        return path


def looked_at(interpreter: OpenInterpreter, language: str, code: str) -> Effects:
    """What code would do, from its text, where the sessions are now and with the functions that they have."""
    from interpreter.policy.analysis import look

    runtimes = interpreter.runtimes
    cwd, registry = runtimes.surroundings.cwd, runtimes.registry
    return look(language, code, interpreter.workspace, cwd=cwd, known=interpreter._defined, registry=registry)


def mode_of(interpreter: OpenInterpreter) -> Mode:
    """The mode that holds: the one that is set, else what `auto_run` means."""
    return interpreter.mode or ("auto" if interpreter.auto_run else "ask")


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
    from interpreter.policy.scanners.scanner import told

    return f"{FOUND}\n{told(pending.scanned.findings)}"


def last_code(messages: list[Message]) -> Message | None:
    """The stored message of the block that is being asked about."""
    last = messages[-1] if messages else None
    return last if last is not None and last["role"] == "assistant" and last["type"] == "code" else None
