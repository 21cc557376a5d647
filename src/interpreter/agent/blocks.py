"""A block on its way to being run: what the user decides about it, and what the turn allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from interpreter.errors import UsageError
from interpreter.sandbox.requests import (
    SCOPES,
    Scope,
    Wish,
)
from interpreter.session import APPROVE, EDIT, REFUSE, Answer, Question

if TYPE_CHECKING:
    from interpreter.policy.analysis import Effects
    from interpreter.policy.approval import RulesAtHand
    from interpreter.policy.scanners import Scan
    from interpreter.session.preview import Preview


class PendingBlock:
    """A block that waits for a decision: the subject of a question of the session, and a way to answer it.

    If only the permission mode asks, going on without an answer is consent. If a rule, a scan or a sandbox request
    asks, it is not.
    """

    def __init__(self, language: str, code: str, scan: Callable[[str, str], Scan] | None = None) -> None:
        self.language, self.code = language, code
        self.edited = False
        self.declined = False
        self.words: str | None = None
        self.nobody = False  # the question came to nobody
        self.denied: str | None = None  # what the model is told, if nobody can have it run
        self.effects: Effects | None = None  # what it would do, from its text
        self.asked_by_rule = False  # a rule says that a person must be asked
        self.allowed_by = ""  # the rule that lets it run without asking
        self.reason = ""  # what the rules say of it
        self.scanned: Scan | None = None
        self.offers_scan = False  # the user is to be asked about a scan first
        self.contain: Callable[[], None] | None = None  # have it, and what follows, run in a sandbox; None if it does
        self.question: Question | None = None  # the one that is open
        self._scan = scan
        self.rules: RulesAtHand | None = None  # for whoever wants to add to them
        self.widening: Wish | None = None  # what it asks its sandbox for
        self.only_widening = False  # nobody would be asked if it were not for that
        self.preview: Preview | None = None  # it was tried out, and that is to be applied

    def approve(self) -> None:
        """Run it."""
        self._answer(Answer(APPROVE))

    def edit(self, code: str) -> None:
        """Have this instead; it is judged, and asked about, again."""
        self.code = code
        self.edited = True

    def decline(self, words: str | None = None) -> None:
        """Do not run it; words, if given, go to the model at once."""
        self.declined = True
        self.words = words
        self._answer(Answer(REFUSE, words))

    def take(self, answer: Answer) -> None:
        """What an answer, from whichever front end, means for it; `preview` in its details is what is applied."""
        self.preview = answer.details.get("preview", self.preview)
        if answer.choice == REFUSE:
            self.declined, self.words, self.nobody = True, answer.text, answer.by == "nobody"
        elif answer.choice == EDIT and answer.text is not None:
            self.edit(answer.text)
        elif answer.choice == "grant":
            self.grant(answer.details.get("scope", "block"))

    def _answer(self, answer: Answer) -> None:
        if self.question is not None and self.question.is_open:
            self.question.settle(answer)

    def deny(self, reason: str, by_rule: bool = True) -> None:
        """It does not run, whatever anybody says: as a rule, since the rules do not allow it."""
        self.denied = f"Not run, since the rules here do not allow it: {reason}" if by_rule else reason

    def grant(self, scope: Scope = "block") -> None:
        """Give the sandbox what the block asks for: for this block, this session, or always (saved in the rules)."""
        if self.widening is None or self.widening.refusal or scope not in SCOPES:
            raise UsageError(f"The block asks for nothing that can be given for {scope!r}.")
        if scope == "always":
            assert self.rules is not None
            self.rules.give_always(self.widening)
        self.widening.granted = scope
        self._answer(Answer(APPROVE))

    @property
    def asks_for_more(self) -> bool:
        """Whether it waits for somebody to give its sandbox something."""
        return self.widening is not None and self.widening.is_open

    @property
    def has_findings(self) -> bool:
        """Whether a scan found what a person should see first."""
        return self.scanned is not None and self.scanned.asks

    @property
    def needs_somebody(self) -> bool:
        """Whether it must not run unless a person says so: for a rule, a scan, or a sandbox that is to give more."""
        return self.asked_by_rule or self.has_findings or self.asks_for_more

    def scan(self) -> Scan:
        """Look for dangers in the code as it is now."""
        if self._scan is None:
            from interpreter.policy.scanners import scan

            self._scan = scan
        self.scanned = self._scan(self.language, self.code)
        return self.scanned


class PendingCall:
    """A tool call of a block's code that waits for a yes; going on without an answer is a no."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self.name: str = question.subject.name
        """What is called: `computer.mail.send`."""
        self.words: str = question.subject.prompt
        """What it would do, and why somebody is asked."""

    def approve(self) -> None:
        """Let the code make it."""
        self._question.settle(Answer(APPROVE))

    def decline(self) -> None:
        """Do not let it."""
        self._question.settle(Answer(REFUSE))


@dataclass(frozen=True)
class Refusal:
    """Why a block is not even asked about, and whether the turn ends with it."""

    words: str
    final: bool
    failed: bool = False
    """Whether the same block has failed just before."""


class BlockGuard:
    """Keeps a turn from going round in circles or on for ever."""

    def __init__(self, max_blocks: int | None, same_results: int = 2) -> None:
        self.blocks = 0
        self._max = max_blocks
        self._same_results = same_results
        self._last: tuple[str, str, list[Any]] | None = None
        self._same = 0
        self._refused = self._failed = False
        self._prose = 0

    @property
    def exhausted(self) -> bool:
        return self._max is not None and self.blocks >= self._max

    def count(self) -> None:
        """Something other than a run that takes the turn a step further."""
        self.blocks += 1

    def refusal(self, language: str, code: str) -> Refusal | None:
        """Why this block must not run, if so."""
        if self.exhausted:
            words = f"Not run: the limit of {self._max} blocks in one turn (`max_blocks`) is reached."
            return Refusal(words, final=True)
        if not self.repeats(language, code) or self._same < self._same_results:
            return None
        self.blocks += 1
        words = "Not run: this very block has just run, and the result was the same. Answer, or try another way."
        if self._failed:
            words = "Not run: this very block has just failed. Write a different one."
        refusal = Refusal(words, final=self._refused, failed=self._failed)
        self._refused = True
        return refusal

    def repeats(self, language: str, code: str) -> bool:
        """Whether the block that ran last was the same."""
        return self._last is not None and self._last[:2] == (language, code)

    def ran(self, language: str, code: str, result: list[Any], failed: bool = False) -> None:
        """A block ran and this came of it."""
        self._failed = failed
        self.blocks += 1
        this = (language, code, result)
        self._same = self._same + 1 if this == self._last else 1
        self._last, self._refused = this, False

    def first_prose_block(self) -> bool:
        """Whether the model may be asked to go on after a block of prose: once in a row."""
        self._prose += 1
        self.blocks += 1
        return self._prose == 1
