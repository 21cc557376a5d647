"""Approval of a block: what the rules, the permission mode, a scan and the user say about it."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import interpreter.policy as policies
from interpreter.errors import InterpreterError, UsageError
from interpreter.messages import Chunk
from interpreter.policy.files import user_file
from interpreter.questions import APPROVE, EDIT, REFUSE, Answer, Question, RunBlock, Step
from interpreter.session import ActionContext, Block, ToolCall

if TYPE_CHECKING:
    from interpreter.policy import Effect, Effects, Grant, Mode, Outcome, Policy, ProjectRules, Rule, Sandboxing
    from interpreter.policy.scanners import Scan, Scanner
    from interpreter.runtimes import Registry
    from interpreter.runtimes.missing_packages import Verdict
    from interpreter.sandbox.requests import SandboxRequest, Scope
    from interpreter.session.preview import Preview


_MAX_LISTED = 20  # findings that the model reads
SCOPE_WORDS = {"block": "this block", "session": "this session", "always": "always"}
UNATTENDED = "this code needs approval, and there was no one to ask."
SCAN = "scan"  # answers besides yes, no and edit: scan it first, run it in a sandbox, give its sandbox what it asks for
CONTAIN = "contain"
GRANT = "grant"
_STRICTNESS = {"run": 0, "ask": 1, "deny": 2}


class ModeSettings(Protocol):
    """The settings that make the permission mode."""

    mode: Mode | None
    auto_run: bool


@dataclass
class BlockReview:
    """What is known about a block while it is judged, and how that ended."""

    language: str
    code: str
    effects: Effects | None = None  # what it would do, from its text
    shown: list[str] = field(default_factory=list)  # the same as text, when it was asked about
    asked: bool = False
    asked_by_rule: bool = False  # a rule requires a person's answer
    allowed_by: str = ""  # the rule that lets it run without asking
    reason: str = ""  # what the rules say about it
    scanned: Scan | None = None
    sandbox_request: SandboxRequest | None = None
    only_sandbox_request: bool = False  # the sandbox request is the only reason to ask
    preview: Preview | None = None  # a dry run of it, which is to be applied
    denied: str | None = None  # what the model reads if no answer could allow the block
    declined: bool = False
    unattended: bool = False  # no one was there to answer
    words: str | None = None  # what the user said when declining

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

    def take(self, answer: Answer) -> None:
        """Apply an answer to the question about it."""
        self.preview = answer.preview or self.preview
        if answer.choice == REFUSE:
            self.declined, self.words, self.unattended = True, answer.text, answer.by == "nobody"
        elif answer.choice == EDIT and answer.text is not None:
            self.code = answer.text


class Pending:
    """`interpreter.pending`: the block or call that waits for approval, for scripts that answer in their own loop.

    If only the permission mode asks, a script that reads on in `chat()` consents, as in 0.4.3. If a rule, a scan or a
    sandbox request asks, it doesn't.
    """

    def __init__(self, question: Question, scan: Callable[[str, str], Scan]) -> None:
        self.question, self._scan = question, scan

    def __getattr__(self, name: str) -> Any:
        """What is known about a block (`language`, `code`, `effects`, `reason`) or a call (`name`, `words`)."""
        subject, name = self.question.subject, {"name": "tool", "words": "text"}.get(name, name)
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(subject if hasattr(subject, name) else getattr(subject, "details", subject), name)

    def approve(self) -> None:
        """Run it."""
        self._settle(Answer(APPROVE))

    def edit(self, code: str) -> None:
        """Replace its code, which is then judged and asked about again."""
        self.question.subject.details.code = code

    def decline(self, words: str | None = None) -> None:
        """Do not run it; words, if given, go to the model at once."""
        self._settle(Answer(REFUSE, words))

    def grant(self, scope: Scope = "block") -> None:
        """Give the sandbox what the block asks for: for this block, this session, or always (saved in the rules)."""
        if GRANT not in self.question.choices or scope not in SCOPE_WORDS:
            raise UsageError(f"Nothing that the block asks for can be granted for {scope!r}.")
        self._settle(Answer(GRANT, scope=scope))

    def contain(self) -> None:
        """Run it, and what follows, in a sandbox."""
        self._settle(Answer(CONTAIN))

    def _settle(self, answer: Answer) -> None:
        if not self.question.settle(answer):
            raise UsageError("This was answered already.")

    def scan(self) -> Scan:
        """Scan the code. The model reads what was found if the block is declined."""
        review = self.question.subject.details
        review.scanned = self._scan(review.language, review.code)
        return review.scanned  # type: ignore[no-any-return]


class Approver:
    """Decides for a session which blocks may run, and asks the user where that is needed.

    What an actor may do is in its permissions, and in those of everyone it acts for: the strictest verdict counts.
    """

    def __init__(
        self,
        workspace: Callable[[], str],
        registry: Callable[[], Registry],
        scanner: Callable[[], Scanner],
        left_out: Callable[[str], str | None],
    ) -> None:
        self._workspace, self._registry, self._scanner, self._left_out = workspace, registry, scanner, left_out
        self.rules = RuleEditor(workspace, registry)
        self.known_functions: dict[str, tuple[Effect, ...]] = {}  # what functions of blocks that ran would do

    # -- for the pipeline ------------------------------------------------------------------------------------------

    def approve(self, action: Block | ToolCall, context: ActionContext) -> Iterator[Step]:
        """Find out whether it may run, and ask where that is needed; the action has the answer then.

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
        """Whether an approved block may still run after what happened in the meantime.

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
        """Ask where that is needed; the review has the answer then."""
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
        elif review.allowed_by:
            yield decision("approved", "policy", review.allowed_by)

    # -- judging ---------------------------------------------------------------------------------------------------

    def _judge(self, review: BlockReview, context: ActionContext) -> Outcome:
        """What the rules and the permissions of everyone concerned decide about the current code."""
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
        """What rules and mode say about installing packages for a block: run, ask, deny, or `rule` if a rule asks."""
        review = BlockReview("shell", command)
        outcome = self._judge(review, context)
        if context.actor.permissions.mode == "plan":
            return "deny", "plan mode doesn't allow changes"
        return ("rule" if review.asked_by_rule else outcome.action), outcome.reason

    def only_reads(self, language: str, code: str, missing: str) -> bool:
        """Whether all that code did to the machine, as far as it ran without this module, was to read files."""
        effects = self.analyze(language, code).all
        return all(effect.kind == "read" or effect.what.startswith(f"what {missing}.") for effect in effects)

    def analyze(self, language: str, code: str, context: ActionContext | None = None) -> Effects:
        """What code would do, where the runtimes are now and with the functions that they have."""
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
        """What will contain the block when it runs, from the same value that its runtime is started with."""
        sandbox: Any = context.actor.permissions.sandbox
        if sandbox is None or not self._is_sandboxable(review, context):
            return None
        if sandbox.fixed:
            return policies.Sandboxing("nowhere", network=False)
        writes = sandbox.writes_workspace or bool(sandbox.writable)
        return policies.Sandboxing("workspace" if writes else "nowhere", network=bool(sandbox.hosts))

    def _is_sandboxable(self, review: BlockReview, context: ActionContext) -> bool:
        """Whether the block runs in a separate process: a custom language may do anything in ours."""
        language = self._registry().find(review.language)
        return language is not None and language.variant(context.runtimes.context).sandboxable

    # -- asking ----------------------------------------------------------------------------------------------------

    def _ask(self, review: BlockReview, block: Block, context: ActionContext) -> Iterator[Step]:
        """Ask until the answer is about the code as it is: an edit is judged and asked about again."""
        scan = context.actor.permissions.scan
        policy, stored = self.rules.policy, block.message
        while True:
            shown = review.code
            question = self._question(review, context)
            review.asked = True
            yield question
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
                    yield _notice(problem or f"Saved in {user_file()}.")
                if problem:
                    continue
            elif answer is not None and not (review.code != shown and answer.by == "nobody"):
                review.take(answer)
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
        """Have the block run in a sandbox, or give its sandbox more; returns what went wrong."""
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

    def _question(self, review: BlockReview, context: ActionContext) -> Question:
        effects, undo, lines = review.effects, None, tuple[str, ...]()
        if effects is not None:
            left_out = self._left_out_of_undo(review.language)
            undo = policies.reversibility(effects, left_out)
            review.shown = _comparable(effects)
            lines = tuple(effects.lines(left_out))
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

    def left_out(self, path: str) -> str | None:
        """Say of a path why an undo would not bring it back, if that is so."""
        return self._left_out(path)

    def _left_out_of_undo(self, language: str) -> Callable[[str], str | None]:
        place = self._registry().describe(language)
        if place.covered_by_undo:
            return self._left_out
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
        """The narrowest rule that would allow the block as shown, then a wider one; UsageError if none should."""
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
        """What would be added to the user's file to always give this."""
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


def _notice(text: str) -> Chunk:
    return {"role": "computer", "type": "status", "format": "notice", "content": {"text": text}}


def format_findings(review: BlockReview) -> str:
    """What a scan of the block found, for the model; empty if it found nothing or there was none."""
    findings = review.scanned.findings if review.scanned is not None else []
    if not findings:
        return ""
    more = len(findings) - _MAX_LISTED
    lines = [f"- {finding}" for finding in findings[:_MAX_LISTED]] + [f"- and {more} more"] * (more > 0)
    return "\n".join(["A scan of this code found:", *lines])
