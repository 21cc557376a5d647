"""Approval of a block: what waits for an answer, and what the rules, the permission mode, a scan and the user say."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import interpreter.policy as policies
from interpreter.errors import InterpreterError, UsageError
from interpreter.messages import Chunk, Message
from interpreter.questions import APPROVE, EDIT, REFUSE, Answer, Question, Step
from interpreter.session import Block

if TYPE_CHECKING:
    from interpreter.computer_api.runtime_pool import RuntimePool
    from interpreter.policy import Effect, Effects, Grant, Mode, Outcome, Policy, ProjectRules, Rule, Sandboxing
    from interpreter.policy.scanners import Scan, Scanner
    from interpreter.sandbox.requests import SandboxRequest, Scope
    from interpreter.session.checkpoints import Timeline
    from interpreter.session.preview import Preview


_MAX_LISTED = 20  # findings that the model reads
SCOPE_WORDS = {"block": "this block", "session": "this session", "always": "always"}
UNATTENDED = "this code needs approval, and there was no one to ask."


class ModeSettings(Protocol):
    """The settings that make the permission mode."""

    mode: Mode | None
    auto_run: bool


class ApprovalContext(ModeSettings, Protocol):
    """What approval uses of an interpreter: its settings, where its code runs, and what it knows of earlier blocks."""

    sandbox: str
    messages: list[Message]
    known_functions: dict[str, tuple[Effect, ...]]

    workspace: str
    safe_mode: Literal["off", "ask", "auto"]
    sandbox_paths: list[str]
    sandbox_hosts: list[str]
    scanner: Scanner
    timeline: Timeline

    @property
    def cancelled(self) -> bool: ...
    @property
    def runtimes(self) -> RuntimePool: ...


class PendingBlock:
    """A block that waits for approval: the subject of a question of the session, and the object that answers it.

    If only the permission mode asks, a script that reads on in `chat()` consents, as in 0.4.3. If a rule, a scan or a
    sandbox request asks, it doesn't.
    """

    kind = "block"

    def __init__(self, language: str, code: str, scan: Callable[[str, str], Scan]) -> None:
        self.language, self.code = language, code
        self.declined = False
        self.words: str | None = None  # what the user said when declining
        self.unattended = False  # no one was there to answer
        self.denied: str | None = None  # what the model reads if no answer could allow the block
        self.effects: Effects | None = None  # what it would do, from its text
        self.shown: list[str] = []  # the same as text, when it was asked about
        self.asked_by_rule = False  # a rule requires a person's answer
        self.allowed_by = ""  # the rule that lets it run without asking
        self.reason = ""  # what the rules say about it
        self.scanned: Scan | None = None
        self.offers_scan = False  # ask the user about a scan first
        self.contain: Callable[[], None] | None = None  # run it, and what follows, in a sandbox; None if it does
        self.question: Question | None = None  # the open one
        self._scan = scan
        self.rules: RuleEditor | None = None
        self.sandbox_request: SandboxRequest | None = None
        self.only_sandbox_request = False  # the sandbox request is the only reason to ask
        self.dry_run: Preview | None = None  # one that was shown, until the question is answered
        self.preview: Preview | None = None  # a dry run of it, which is to be applied

    def approve(self) -> None:
        """Run it."""
        self._answer(Answer(APPROVE))

    def edit(self, code: str) -> None:
        """Replace its code, which is then judged and asked about again."""
        self.code = code

    def decline(self, words: str | None = None) -> None:
        """Do not run it; words, if given, go to the model at once."""
        self.declined = True
        self.words = words
        self._answer(Answer(REFUSE, words))

    def take(self, answer: Answer) -> None:
        """Apply the answer of a front end. `preview` in its details is a dry run to apply."""
        self.preview = answer.details.get("preview", self.preview)
        if answer.choice == REFUSE:
            self.declined, self.words, self.unattended = True, answer.text, answer.by == "nobody"
        elif answer.choice == EDIT and answer.text is not None:
            self.edit(answer.text)
        elif answer.choice == "grant":
            self.grant(answer.details.get("scope", "block"))

    def _answer(self, answer: Answer) -> None:
        if self.question is not None and self.question.is_open:
            self.question.settle(answer)

    def grant(self, scope: Scope = "block") -> None:
        """Give the sandbox what the block asks for: for this block, this session, or always (saved in the rules)."""
        if self.sandbox_request is None or self.sandbox_request.refusal or scope not in SCOPE_WORDS:
            raise UsageError(f"Nothing that the block asks for can be granted for {scope!r}.")
        if scope == "always":
            assert self.rules is not None
            self.rules.grant_always(self.sandbox_request)
        self.sandbox_request.granted = scope
        self._answer(Answer(APPROVE))

    @property
    def asks_for_more(self) -> bool:
        """Whether it waits for a grant to its sandbox."""
        return self.sandbox_request is not None and self.sandbox_request.is_open

    @property
    def has_findings(self) -> bool:
        """Whether a scan found something that a person should see first."""
        return self.scanned is not None and self.scanned.asks

    @property
    def requires_approval(self) -> bool:
        """Whether a person must say yes, because of a rule, a scan or a sandbox request."""
        return self.asked_by_rule or self.has_findings or self.asks_for_more

    def scan(self) -> Scan:
        """Scan the code as it is now."""
        self.scanned = self._scan(self.language, self.code)
        return self.scanned


class PendingCall:
    """A tool call from a block's code that waits for approval. Continuing without an answer refuses it."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self.name: str = question.subject.tool  # what is called: `computer.mail.send`
        self.words: str = question.text  # what it would do, and why it needs approval

    def approve(self) -> None:
        """Let the code make the call."""
        self._question.settle(Answer(APPROVE))

    def decline(self) -> None:
        """Refuse the call."""
        self._question.settle(Answer(REFUSE))


class BlockApproval:
    """Judges the blocks of one turn, and asks the user where that is needed."""

    def __init__(self, context: ApprovalContext, stored: bool = True) -> None:
        self._context = context
        self._rules = RuleEditor(context)
        self._is_stored = stored  # whether the block is the last message
        self.pending: PendingBlock | None = None  # the block that is being judged
        self._asked = False  # about that block

    # -- for the pipeline ------------------------------------------------------------------------------------------

    def judge(self, block: Block) -> Iterator[Step]:
        """Find out whether a block may run, and ask where that is needed; the block has the answer then."""
        if self.pending is None:
            self.pending = PendingBlock(block.language, block.code, lambda *code: self._context.scanner.scan(*code))
        pending = self.pending
        yield from self._obtain(pending)
        block.refused = pending.denied is not None or pending.declined
        block.code, block.sandbox_request = pending.code, pending.sandbox_request
        block.runner = self._context.runtimes  # the sandbox may have been changed with the answer
        if pending.preview is not None:
            block.replay = pending.preview.replay
        asked_about = pending.effects.calls if pending.asked_by_rule and pending.effects is not None else ()
        block.approved_calls = frozenset(effect.what for effect in asked_about)
        if not block.refused and pending.effects is not None:
            self._context.known_functions.update(pending.effects.defines)

    def still_allowed(self, block: Block) -> bool:
        """Whether an approved block may still run after what happened in the meantime.

        A yes covers what was shown: the code has not changed since, but rules, folders and functions may have.
        """
        pending = self.pending
        assert pending is not None
        by_rule = pending.asked_by_rule
        self._rules.reload()
        outcome = self._judge(pending)
        block.runner = self._context.runtimes
        if outcome.action != "ask":
            return outcome.action == "run"
        is_same = pending.effects is not None and _comparable(pending.effects) == pending.shown
        return self._asked and is_same and pending.asked_by_rule <= by_rule

    def _obtain(self, pending: PendingBlock) -> Iterator[Step]:
        """Ask where that is needed; `pending` has the answer then."""
        context = self._context
        pending.offers_scan = context.safe_mode == "ask"
        if context.safe_mode == "auto" and not context.cancelled:
            yield from self._scan(pending)
        if context.cancelled:
            return
        pending.sandbox_request = None  # what was granted to another run is not granted to this one
        outcome = yield from self._judge_with_request(pending)
        pending.only_sandbox_request = outcome.action == "run" and not pending.offers_scan
        if pending.denied is not None:
            return
        if not pending.only_sandbox_request or pending.asks_for_more:
            last = context.messages[-1] if self._is_stored and context.messages else None
            is_code = last is not None and last["role"] == "assistant" and last["type"] == "code"
            yield from self._ask(pending, last if is_code else None)
        elif pending.allowed_by:
            yield decision("approved", "policy", pending.allowed_by)

    # -- judging ---------------------------------------------------------------------------------------------------

    def _judge(self, pending: PendingBlock) -> Outcome:
        """What the rules and the mode decide about the current code."""
        pending.effects = analyze_block(self._context, pending.language, pending.code)
        verdict = self._rules.policy.judge(pending.language, pending.code, pending.effects)
        alarm = "the scan found something" if pending.has_findings else ""
        outcome = policies.decide(mode_of(self._context), verdict, self._sandboxing(pending), alarm=alarm)
        pending.asked_by_rule = outcome.action == "ask" and verdict.by_rule and verdict.decision == "ask"
        pending.reason = outcome.reason if verdict.by_rule else ""
        pending.allowed_by = outcome.reason if verdict.decision == "allow" else ""
        return outcome

    def _judge_with_request(self, pending: PendingBlock) -> Generator[Chunk, None, Outcome]:
        """Judge the code as it is now and what it asks its sandbox for; deny it if one of them cannot be.

        What was granted stays granted if the code has changed and asks for no more.
        """
        outcome = self._judge(pending)
        before, request = pending.sandbox_request, None
        if "need" in pending.code and self._sandboxing(pending) is not None:
            runtimes = self._context.runtimes
            runtimes.apply_sandbox()
            containment: Any = runtimes.context.containment
            request = containment.request_of(pending.code) if containment is not None else None
        pending.sandbox_request = request
        if request is not None and before is not None and set(request.wanted) <= set(before.wanted):
            request.granted = before.granted
        if outcome.action == "deny":
            yield from self._deny(pending, outcome.reason)
        elif request is not None and request.refusal:
            yield from self._deny(pending, request.refusal, by="sandbox")
        return outcome

    def _sandboxing(self, pending: PendingBlock) -> Sandboxing | None:
        """What will contain the block when it runs."""
        context, plans = self._context, mode_of(self._context) == "plan"
        if (context.sandbox == "off" and not plans) or not self._is_sandboxable(pending):
            return None
        if plans:
            return policies.Sandboxing("nowhere", network=False)
        reads = context.sandbox == "read-only" and not any(path.endswith(":rw") for path in context.sandbox_paths)
        return policies.Sandboxing("nowhere" if reads else "workspace", network=bool(context.sandbox_hosts))

    def _is_sandboxable(self, pending: PendingBlock) -> bool:
        """Whether the block runs in a separate process: a custom language may do anything in ours."""
        runtimes = self._context.runtimes
        language = runtimes.registry.find(pending.language)
        return language is not None and language.variant(runtimes.context).sandboxable

    # -- asking ----------------------------------------------------------------------------------------------------

    def _ask(self, pending: PendingBlock, message: Message | None) -> Iterator[Step]:
        """Ask until the answer is about the code as it is: an edit is judged and asked about again.

        `message` is the stored one of the block, which scripts may rewrite.
        """
        context = self._context
        policy = self._rules.policy
        pending.rules = self._rules
        if context.sandbox == "off" and mode_of(context) != "plan" and self._is_sandboxable(pending):
            pending.contain = self._contain
        while True:
            shown = pending.code
            question = self._question(pending)
            self._asked, pending.question = True, question
            yield question
            pending.question = None
            trial, pending.dry_run = pending.dry_run, None
            if trial is not None and (question.answer is None or question.answer.details.get("preview") is not trial):
                trial.discard()
            if message is not None and pending.code == shown:
                pending.code = message["content"]  # as in 0.4.3: scripts rewrite the stored message
            if question.answer is not None and not (pending.code != shown and question.answer.by == "nobody"):
                pending.take(question.answer)
            if message is not None:
                message["content"] = pending.code
            if question.withdrawn and not context.cancelled:
                pending.declined = True
            if pending.declined:
                yield from self._decline(pending)
                return
            chose_edit = question.answer is not None and question.answer.choice == EDIT
            if pending.code == shown and self._rules.policy is policy and not chose_edit:
                break
            if pending.code != shown:
                yield decision("edited", "user", "")
                pending.scanned = None  # what a scan found is about the code as it was
                if context.safe_mode == "auto":
                    yield from self._scan(pending)
            outcome = yield from self._judge_with_request(pending)
            if pending.denied is not None:
                return
            asks = outcome.action == "ask" or pending.asks_for_more or chose_edit
            if not asks or (pending.code == shown and not chose_edit) or pending.preview is not None:
                break
            policy = self._rules.policy
        request = pending.sandbox_request
        if request is not None and request.wanted and request.granted is None:
            yield from self._deny(pending, request.not_given("it was not granted"), by="sandbox")
        elif request is not None and request.wanted and request.granted is not None:
            yield decision("approved", "user", f"granted for {SCOPE_WORDS[request.granted]}: {request}")

    def _contain(self) -> None:
        """Have this block and those after it run in a sandbox; an error, and nothing is changed, if there is none."""
        self._context.sandbox = "workspace"
        try:
            self._context.runtimes.apply_sandbox()
        except InterpreterError:
            self._context.sandbox = "off"
            raise

    def _question(self, pending: PendingBlock) -> Question:
        chunk: Chunk = {
            "role": "computer",
            "type": "confirmation",
            "format": "execution",
            "content": {"type": "code", "format": pending.language, "content": pending.code},
        }
        if pending.scanned is not None:
            chunk["findings"] = pending.scanned.as_data()["findings"]
        if pending.effects is not None:
            left_out = self._left_out(pending.language)
            undo = policies.reversibility(pending.effects, left_out)
            chunk["undo"] = {"kind": undo.kind, "reasons": list(undo.reasons)}
            pending.shown = _comparable(pending.effects)
            chunk["effects"] = pending.effects.lines(left_out)
        if pending.reason:
            chunk["reason"] = pending.reason
        if pending.asks_for_more and pending.sandbox_request is not None:
            chunk["widening"] = pending.sandbox_request.lines
        choices = (APPROVE, REFUSE, EDIT, *(["grant"] if pending.asks_for_more else []))
        return Question(pending, choices, chunk, consent=not pending.requires_approval)

    def _left_out(self, language: str) -> Callable[[str], str | None]:
        """Says of a path why an undo would not bring it back, if that is so."""
        found = self._context.runtimes.registry.describe(language)
        if found.covered_by_undo:
            return self._context.timeline.left_out
        return lambda path: f"on {found.runs_on}, not covered by undo"

    def _decline(self, pending: PendingBlock) -> Iterator[Chunk]:
        request = pending.sandbox_request
        only_sandbox = not (pending.asked_by_rule or pending.has_findings)
        if pending.unattended and request is not None and request.is_open and only_sandbox:
            pending.declined = False  # the model can continue without it
            yield from self._deny(pending, request.not_given("there was no one to ask"), by="sandbox")
        elif pending.unattended and pending.requires_approval:
            yield decision("denied", "scan" if pending.has_findings else "policy", UNATTENDED)
        else:
            yield decision("declined", "user", pending.words or "")

    def _deny(self, pending: PendingBlock, reason: str, by: str = "policy") -> Generator[Chunk]:
        why = "Not run, because the rules don't allow it" if by == "policy" else "Not run"
        pending.denied = f"{why}: {reason}"
        if pending.preview is not None:
            pending.preview.discard()
        yield decision("denied", by, reason)

    def _scan(self, pending: PendingBlock) -> Generator[Chunk]:
        status: Chunk = {"role": "computer", "type": "status"}
        yield {**status, "format": "scanning"}
        scanned = pending.scan()
        if not scanned.cancelled:
            yield {**status, "format": "scan", "content": {"language": pending.language, **scanned.as_data()}}


class RuleEditor:
    """The rules in force. A user who is asked about a block can add to them."""

    def __init__(self, context: ApprovalContext) -> None:
        self._context = context

    @cached_property
    def policy(self) -> Policy:
        return policies.Policy.load(self._context.workspace, self._context.runtimes.registry)

    def reload(self) -> None:
        """Read the rules again when they are next used."""
        self.__dict__.pop("policy", None)

    def trust(self, project: ProjectRules) -> None:
        """Have them count from now on."""
        policies.trust(project)
        self.reload()

    def proposed(self, pending: PendingBlock) -> Rule:
        """The narrowest rule that would allow the block as it is now; UsageError if none should."""
        if pending.asked_by_rule:
            raise UsageError("One of your rules asks about this code every time. See which: interpreter --policy-check")
        effects = analyze_block(self._context, pending.language, pending.code)
        rule = policies.propose_rule(pending.language, pending.code, effects, self._context.workspace)
        if rule is None:
            raise UsageError("Can't tell everything this code does, so no rule can safely allow it.")
        return rule

    def grant_lines(self, request: SandboxRequest) -> list[str]:
        """What would be added to the user's file to always give this."""
        return ["sandbox:", *(policies.grant_text(grant).rstrip() for grant in self._grants(request))]

    def grant_always(self, request: SandboxRequest) -> None:
        """Add what a block asks its sandbox for to the user's file."""
        for grant in self._grants(request):
            policies.save_grant(grant)

    def _grants(self, request: SandboxRequest) -> list[Grant]:
        folder = os.path.realpath(self._context.workspace)
        return [policies.Grant(wanted.kind, wanted.value, folder) for wanted in request.wanted]

    def save(self, rule: Rule) -> Path:
        """Add a rule to the user's file and return its path."""
        path = policies.save_rule(rule, self._context.workspace)
        self.reload()
        return path


def analyze_block(context: ApprovalContext, language: str, code: str) -> Effects:
    """What code would do, where the sessions are now and with the functions that they have."""
    cwd, registry = context.runtimes.context.cwd, context.runtimes.registry
    workspace, machine = context.workspace, getattr(registry.find(language), "machine", None)
    if machine is not None:  # its files are elsewhere, and so is the session there
        workspace, cwd = machine.workspace, machine.place or machine.workspace
    return policies.analyze(language, code, workspace, cwd=cwd, known=context.known_functions, registry=registry)


def _comparable(effects: Effects) -> list[str]:
    """What it would do, as text, without what changes on its own: rows, and whether undo has read the folder."""
    from interpreter.policy.analysis.effects import existing

    return effects.lines(look=lambda path: existing(effects.workspace, path, count_rows=False))


def mode_of(settings: ModeSettings) -> Mode:
    """The mode in effect: the one that is set, otherwise what `auto_run` means."""
    return settings.mode or ("auto" if settings.auto_run else "ask")


def decision(outcome: str, by: str, reason: str) -> Chunk:
    return {
        "role": "computer",
        "type": "decision",
        "format": outcome,
        "content": {"by": by, "reason": reason},
    }


def format_findings(pending: PendingBlock) -> str:
    """What a scan of the block found, for the model; empty if it found nothing or there was none."""
    findings = pending.scanned.findings if pending.scanned is not None else []
    if not findings:
        return ""
    more = len(findings) - _MAX_LISTED
    lines = [f"- {finding}" for finding in findings[:_MAX_LISTED]] + [f"- and {more} more"] * (more > 0)
    return "\n".join(["A scan of this code found:", *lines])
