"""A block on its way to being run: what the user decides about it, and what the turn allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from interpreter.errors import UsageError
from interpreter.session import APPROVE, EDIT, REFUSE, Answer, Question

if TYPE_CHECKING:
    from interpreter.policy.analysis import Effects
    from interpreter.policy.approval import RuleEditor
    from interpreter.policy.scanners import Scan
    from interpreter.sandbox.requests import SandboxRequest, Scope
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
        self.unattended = False  # the question came to nobody
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
        self.rules: RuleEditor | None = None  # for whoever wants to add to them
        self.sandbox_request: SandboxRequest | None = None  # what it asks its sandbox for
        self.only_sandbox_request = False  # nobody would be asked if it were not for that
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
            self.declined, self.words, self.unattended = True, answer.text, answer.by == "nobody"
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
        from interpreter.sandbox.requests import SCOPES

        if self.sandbox_request is None or self.sandbox_request.refusal or scope not in SCOPES:
            raise UsageError(f"The block asks for nothing that can be given for {scope!r}.")
        if scope == "always":
            assert self.rules is not None
            self.rules.grant_always(self.sandbox_request)
        self.sandbox_request.granted = scope
        self._answer(Answer(APPROVE))

    @property
    def asks_for_more(self) -> bool:
        """Whether it waits for somebody to give its sandbox something."""
        return self.sandbox_request is not None and self.sandbox_request.is_open

    @property
    def has_findings(self) -> bool:
        """Whether a scan found what a person should see first."""
        return self.scanned is not None and self.scanned.asks

    @property
    def requires_approval(self) -> bool:
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
