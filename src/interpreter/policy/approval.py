"""Approval of a block: what the rules, the permission mode, a scan and the user say about it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

import interpreter.policy as policies
from interpreter.errors import InterpreterError
from interpreter.messages import Chunk, notice
from interpreter.policy.files import user_file
from interpreter.policy.review import CONTAIN, GRANT, SCAN, SCOPE_WORDS, UNATTENDED, BlockReview, Forecast, decision
from interpreter.policy.rule_editor import RuleEditor
from interpreter.questions import APPROVE, EDIT, REFUSE, Answer, Question, RunBlock, Step
from interpreter.session import ActionContext, Block, ToolCall

if TYPE_CHECKING:
    from interpreter.policy import Effect, Effects, Outcome, Sandboxing
    from interpreter.policy.scan import BlockScanner
    from interpreter.runtimes import Registry
    from interpreter.runtimes.missing_packages import Verdict


_STRICTNESS = {"run": 0, "ask": 1, "deny": 2}


class Approver:
    """Decides for a session which blocks may run, and asks the user where that is needed.

    What an actor may do is in its permissions, and in those of everyone it acts for: the strictest verdict counts.
    """

    def __init__(
        self,
        workspace: Callable[[], str],
        registry: Callable[[], Registry],
        scanner: Callable[[], BlockScanner],
        left_out: Callable[[str], str | None],
        forecast: Callable[[BlockReview, ActionContext], Forecast | None],
    ) -> None:
        self._forecast = forecast
        self._workspace, self._registry, self._scanner = workspace, registry, scanner
        self.left_out = left_out  # says of a path why an undo would not bring it back, if that is so
        self.rules = RuleEditor(workspace, registry)
        self.known_functions: dict[str, tuple[Effect, ...]] = {}  # what functions of blocks that ran would do

    # -- for the pipeline ------------------------------------------------------------------------------------------

    def approve(self, action: Block | ToolCall, context: ActionContext) -> Iterator[Step]:
        """Decide whether an action may run, asking if necessary, and store the answer in the action.

        PermissionError if a call may not be made.
        """
        if isinstance(action, ToolCall):
            from interpreter.policy.call_approval import approve_call

            language = self._registry().canonical(action.origin.language) if action.origin is not None else "tool"
            action.by = yield from approve_call(action, self.rules, language, context.actor)
        else:
            yield from self._approve_block(action, context)

    def _approve_block(self, block: Block, context: ActionContext) -> Iterator[Step]:
        review = block.review
        if review is None:
            review = block.review = BlockReview(block.language, block.code)
        review.denied, review.declined = None, False
        self.rules.reload()
        yield from self._obtain(review, block, context)
        block.refused = review.denied is not None or review.declined
        block.code, block.sandbox_request = review.code, review.sandbox_request
        if review.preview is not None:
            block.replay = review.preview.replay
        asked_about = review.effects.calls if review.asked_by_rule and review.effects is not None else ()
        block.approved_calls = frozenset(effect.what for effect in asked_about)
        if not block.refused and review.effects is not None:
            self.known_functions.update(review.effects.defines)

    def still_allowed(self, block: Block, context: ActionContext) -> bool:
        """Check whether an approved block may still run after what happened in the meantime.

        A yes covers what was shown: the code has not changed since, but rules, folders and functions may have.
        """
        review = block.review
        assert review is not None
        by_rule = review.asked_by_rule
        self.rules.reload()
        outcome = self._judge(review, context)
        if outcome.action != "ask":
            return outcome.action == "run"
        is_same = review.effects is not None and _comparable(review.effects) == review.shown
        return bool(review.asked and is_same and review.asked_by_rule <= by_rule)

    def _obtain(self, review: BlockReview, block: Block, context: ActionContext) -> Iterator[Step]:
        """Ask if necessary, and store the answer in the review."""
        scan = context.actor.permissions.scan
        if scan == "auto" and not context.is_cancelled():
            yield from self._scan(review)
        if context.is_cancelled():
            return
        review.sandbox_request = None  # what was granted to another run is not granted to this one
        outcome = yield from self._judge_with_request(review, context)
        review.only_sandbox_request = outcome.action == "run" and scan != "ask"
        if review.denied is not None:
            return
        if not review.only_sandbox_request or review.asks_for_more:
            yield from self._ask(review, block, context)
        elif (forecast := self._forecast(review, context)) is not None and forecast.refusal:
            yield from self._deny(review, forecast.refusal, by="repository")
        elif review.allowed_by:
            yield decision("approved", "policy", review.allowed_by)

    # -- judging ---------------------------------------------------------------------------------------------------

    def _judge(self, review: BlockReview, context: ActionContext) -> Outcome:
        """Decide on the current code by the rules and the permissions of everyone concerned."""
        review.effects = self.analyze(review.language, review.code, context)
        verdict = self.rules.policy.judge(review.language, review.code, review.effects)
        alarm = "the scan found something" if review.has_findings else ""
        sandboxing = self._sandboxing(review, context)
        outcomes: list[Outcome] = []
        for actor in context.actor.chain():
            outcome = policies.decide(actor.own_permissions.mode, verdict, sandboxing, alarm=alarm)
            if not actor.has_permissions_of(context.actor) and outcome.action != "run" and not verdict.by_rule:
                outcome = outcome._replace(reason=f"{outcome.reason} (permissions of {actor.id})")
            outcomes.append(outcome)
        outcome = max(outcomes, key=lambda each: _STRICTNESS[each.action])
        review.asked_by_rule = outcome.action == "ask" and verdict.by_rule and verdict.decision == "ask"
        review.reason = outcome.reason if verdict.by_rule else ""
        review.allowed_by = outcome.reason if verdict.decision == "allow" else ""
        return outcome

    def judge_installation(self, command: str, context: ActionContext) -> tuple[Verdict, str]:
        """Decide on installing packages for a block by rules and mode: run, ask, deny, or `rule` if a rule asks."""
        review = BlockReview("shell", command)
        outcome = self._judge(review, context)
        if context.actor.permissions.mode == "plan":
            return "deny", "plan mode doesn't allow changes"
        return ("rule" if review.asked_by_rule else outcome.action), outcome.reason

    def only_reads(self, language: str, code: str, missing: str) -> bool:
        """Return whether the code did nothing but read files until it missed this module."""
        effects = self.analyze(language, code).all
        return all(effect.kind == "read" or effect.what.startswith(f"what {missing}.") for effect in effects)

    def analyze(self, language: str, code: str, context: ActionContext | None = None) -> Effects:
        """Predict what code would do, where the runtimes are now and with the functions that they have."""
        registry, workspace = self._registry(), self._workspace()
        machine = getattr(registry.find(language), "machine", None)
        shared = context.runtimes.context if context is not None else None
        cwd, database = (shared.cwd, shared.sql or "") if shared is not None else (None, "")
        if machine is not None:  # its files are elsewhere, and so is the session there
            workspace, cwd = machine.workspace, machine.place or machine.workspace
        known = self.known_functions
        return policies.analyze(language, code, workspace, cwd=cwd, known=known, registry=registry, database=database)

    def _judge_with_request(self, review: BlockReview, context: ActionContext) -> Generator[Chunk, None, Outcome]:
        """Judge the code as it is now and what it asks its sandbox for; deny it if one of them cannot be.

        What was granted stays granted if the code has changed and asks for no more.
        """
        outcome = self._judge(review, context)
        before, request = review.sandbox_request, None
        if "need" in review.code and self._sandboxing(review, context) is not None:
            runtimes = context.runtimes
            runtimes.apply_sandbox()
            containment: Any = runtimes.context.containment
            request = containment.request_of(review.code) if containment is not None else None
        review.sandbox_request = request
        if request is not None and before is not None and set(request.wanted) <= set(before.wanted):
            request.granted = before.granted
        if outcome.action == "deny":
            yield from self._deny(review, outcome.reason)
        elif request is not None and request.refusal:
            yield from self._deny(review, request.refusal, by="sandbox")
        return outcome

    def _sandboxing(self, review: BlockReview, context: ActionContext) -> Sandboxing | None:
        """Return the sandbox that will contain the block, from the same value that its runtime is started with."""
        sandbox: Any = context.actor.permissions.sandbox
        if sandbox is None or not self._is_sandboxable(review, context):
            return None
        if sandbox.fixed:
            return policies.Sandboxing("nowhere", network=False)
        writes = sandbox.writes_workspace or bool(sandbox.writable)
        return policies.Sandboxing("workspace" if writes else "nowhere", network=bool(sandbox.hosts))

    def _is_sandboxable(self, review: BlockReview, context: ActionContext) -> bool:
        """Check whether the block runs in a separate process: a custom language may do anything in ours."""
        language = self._registry().find(review.language)
        return language is not None and language.variant(context.runtimes.context).sandboxable

    # -- asking ----------------------------------------------------------------------------------------------------

    def _ask(self, review: BlockReview, block: Block, context: ActionContext) -> Iterator[Step]:
        """Ask until the answer is for the present code: after an edit, judge the new code and ask again."""
        scan = context.actor.permissions.scan
        policy, stored = self.rules.policy, block.message
        while True:
            shown = review.code
            forecast = self._forecast(review, context)
            question = self._question(review, context, forecast)
            review.asked, applied = True, None
            try:
                yield question
            finally:
                if forecast is not None:
                    applied = forecast.end(question.approved and getattr(question.answer, "preview", None) is None)
            for trial in question.dry_runs:
                if question.answer is None or question.answer.preview is not trial:
                    trial.discard()
            if stored is not None and review.code == shown:
                review.code = stored["content"]  # as in 0.4.3: scripts rewrite the stored message
            answer = question.answer
            if answer is not None and answer.choice == SCAN:
                yield from self._scan(review)
                if review.scanned is not None and not review.scanned.cancelled:
                    continue
                review.declined = True
            elif answer is not None and answer.choice in (CONTAIN, GRANT):
                problem = self._give(review, answer, context)
                if problem or answer.scope == "always":
                    yield notice(problem or f"Saved in {user_file()}.")
                if problem:
                    continue
            elif answer is not None and not (review.code != shown and answer.by == "nobody"):
                review.take(answer)
                review.preview = applied or review.preview
            if stored is not None:
                stored["content"] = review.code
            if question.withdrawn and not context.is_cancelled():
                review.declined = True
            if review.declined:
                yield from self._decline(review)
                return
            chose_edit = answer is not None and answer.choice == EDIT
            if review.code == shown and self.rules.policy is policy and not chose_edit:
                break
            if review.code != shown:
                yield decision("edited", "user", "")
                review.scanned = None  # what a scan found is about the code as it was
                if scan == "auto":
                    yield from self._scan(review)
            outcome = yield from self._judge_with_request(review, context)
            if review.denied is not None:
                return
            asks = outcome.action == "ask" or review.asks_for_more or chose_edit
            if not asks or (review.code == shown and not chose_edit) or review.preview is not None:
                break
            policy = self.rules.policy
        request = review.sandbox_request
        if request is not None and request.wanted and request.granted is None:
            yield from self._deny(review, request.not_given("it was not granted"), by="sandbox")
        elif request is not None and request.wanted and request.granted is not None:
            yield decision("approved", "user", f"granted for {SCOPE_WORDS[request.granted]}: {request}")

    def _give(self, review: BlockReview, answer: Answer, context: ActionContext) -> str:
        """Move the block to a sandbox, or grant its sandbox the requested access. Return the problem, if any."""
        try:
            if answer.choice == CONTAIN:
                assert context.actor.contain is not None
                context.actor.contain()
            else:
                request = review.sandbox_request
                assert request is not None
                scope = answer.scope if answer.scope in SCOPE_WORDS else "block"
                if scope == "always":
                    self.rules.grant_always(request)
                request.granted = scope  # type: ignore[assignment]
        except (InterpreterError, OSError) as error:
            return str(error)
        return ""

    def _question(self, review: BlockReview, context: ActionContext, forecast: Forecast | None) -> Question:
        effects, undo, lines = review.effects, None, tuple[str, ...]()
        if effects is not None:
            left_out = self._left_out_of_undo(review.language)
            undo = policies.reversibility(effects, left_out)
            review.shown = _comparable(effects)
            lines = tuple(effects.lines(left_out))
        if forecast is not None:
            lines = (*lines, *forecast.note.splitlines())
        request = review.sandbox_request
        subject = RunBlock(
            review.language,
            review.code,
            lines,
            undo={"kind": undo.kind, "reasons": list(undo.reasons)} if undo is not None else None,
            reason=review.reason,
            findings=tuple(review.scanned.as_data()["findings"]) if review.scanned is not None else None,
            wants=tuple(request.lines) if request is not None and request.is_open else (),
            requires_approval=review.requires_approval,
            only_sandbox_request=review.only_sandbox_request,
            diff=forecast.diff if forecast is not None else "",
            details=review,
        )
        permissions = context.actor.permissions
        choices = [APPROVE, REFUSE, EDIT]
        choices += [GRANT] if review.asks_for_more else []
        can_scan = permissions.scan == "ask" or self._scanner().can_scan(review.language, review.code)
        choices += [SCAN] if review.scanned is None and can_scan else []
        can_contain = context.actor.contain is not None and permissions.sandbox is None
        choices += [CONTAIN] if can_contain and self._is_sandboxable(review, context) else []
        return Question(subject, choices, consent=not review.requires_approval)

    def _left_out_of_undo(self, language: str) -> Callable[[str], str | None]:
        place = self._registry().describe(language)
        if place.covered_by_undo:
            return self.left_out
        return lambda path: f"on {place.runs_on}, not covered by undo"

    def _decline(self, review: BlockReview) -> Iterator[Chunk]:
        request = review.sandbox_request
        only_sandbox = not (review.asked_by_rule or review.has_findings)
        if review.unattended and request is not None and request.is_open and only_sandbox:
            review.declined = False  # the model can continue without it
            yield from self._deny(review, request.not_given("there was no one to ask"), by="sandbox")
        elif review.unattended and review.requires_approval:
            yield decision("denied", "scan" if review.has_findings else "policy", UNATTENDED)
        else:
            yield decision("declined", "user", review.words or "")

    def _deny(self, review: BlockReview, reason: str, by: str = "policy") -> Generator[Chunk]:
        why = "Not run, because the rules don't allow it" if by == "policy" else "Not run"
        review.denied = f"{why}: {reason}"
        if review.preview is not None:
            review.preview.discard()
        yield decision("denied", by, reason)

    def _scan(self, review: BlockReview) -> Generator[Chunk]:
        status: Chunk = {"role": "computer", "type": "status"}
        yield {**status, "format": "scanning"}
        scanned = review.scanned = self._scanner().scan(review.language, review.code)
        if not scanned.cancelled:
            yield {**status, "format": "scan", "content": {"language": review.language, **scanned.as_data()}}


def _comparable(effects: Effects) -> list[str]:
    """Return the effects as text, without details that change on their own, such as counts of rows."""
    from interpreter.policy.analysis.effects import existing

    return effects.lines(look=lambda path: existing(effects.workspace, path, count_rows=False))
