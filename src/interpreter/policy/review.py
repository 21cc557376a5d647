"""The findings about a block while it is judged, the answer of the user, and the events that report both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from interpreter.messages import Chunk
from interpreter.questions import EDIT, REFUSE, Answer

if TYPE_CHECKING:
    from interpreter.policy import Effects
    from interpreter.policy.scan import Scan
    from interpreter.preview.preview import Preview
    from interpreter.sandbox.requests import SandboxRequest

_MAX_LISTED = 20  # findings that the model reads
SCOPE_WORDS = {"block": "this block", "session": "this session", "always": "always"}
UNATTENDED = "this code needs approval, and there was no one to ask."
SCAN = "scan"  # answers besides yes, no and edit: scan it first, run it in a sandbox, give its sandbox what it asks for
CONTAIN = "contain"
GRANT = "grant"


class Forecast(Protocol):
    """A leaf's addition to the question about a block."""

    @property
    def diff(self) -> str:
        """Return the changes that the block would make, as a diff."""

    @property
    def note(self) -> str:
        """Return a note to add, in a sentence."""

    @property
    def refusal(self) -> str:
        """Return why the block may not run without asking; empty if it may."""

    def end(self, approved: bool) -> Preview | None:
        """Note that the question is answered. Return the dry run that a yes applies, if there is one."""


@dataclass
class BlockReview:
    """A block while it is judged: everything known about it, and the verdict."""

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
        """Return whether the block is waiting for access that its sandbox lacks."""
        return self.sandbox_request is not None and self.sandbox_request.is_open

    @property
    def has_findings(self) -> bool:
        """Return whether a scan found something that a person should see first."""
        return self.scanned is not None and self.scanned.asks

    @property
    def requires_approval(self) -> bool:
        """Return whether a person must say yes, because of a rule, a scan or a sandbox request."""
        return self.asked_by_rule or self.has_findings or self.asks_for_more

    def take(self, answer: Answer) -> None:
        """Apply the answer to the question about the block."""
        self.preview = answer.preview or self.preview
        if answer.choice == REFUSE:
            self.declined, self.words, self.unattended = True, answer.text, answer.by == "nobody"
        elif answer.choice == EDIT and answer.text is not None:
            self.code = answer.text


def decision(outcome: str, by: str, reason: str) -> Chunk:
    return {
        "role": "computer",
        "type": "decision",
        "format": outcome,
        "content": {"by": by, "reason": reason},
    }


def format_findings(review: BlockReview) -> str:
    """Format the findings of a scan for the model; empty if there are none."""
    findings = review.scanned.findings if review.scanned is not None else []
    if not findings:
        return ""
    more = len(findings) - _MAX_LISTED
    lines = [f"- {finding}" for finding in findings[:_MAX_LISTED]] + [f"- and {more} more"] * (more > 0)
    return "\n".join(["A scan of this code found:", *lines])
