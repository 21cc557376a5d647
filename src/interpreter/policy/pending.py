"""`interpreter.pending`: an approval for scripts that answer in their own loop, as in 0.4.3."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from interpreter.errors import UsageError
from interpreter.policy.review import CONTAIN, GRANT, SCOPE_WORDS
from interpreter.questions import APPROVE, REFUSE, Answer, Question

if TYPE_CHECKING:
    from interpreter.policy.scan import Scan
    from interpreter.sandbox.requests import Scope
    from interpreter.session import Session


class Pending:
    """`interpreter.pending`: the block or call that waits for approval, for scripts that answer in their own loop.

    If only the permission mode asks, a script that reads on in `chat()` consents, as in 0.4.3. If a rule, a scan or a
    sandbox request asks, it doesn't.
    """

    def __init__(self, question: Question, session: Session, scan: Callable[[str, str], Scan]) -> None:
        self.question, self._session, self._scan = question, session, scan

    def __getattr__(self, name: str) -> Any:
        """Return a fact about the block (`language`, `code`, `effects`, `reason`) or the call (`name`, `words`)."""
        subject, name = self.question.subject, {"name": "tool", "words": "text"}.get(name, name)
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(subject if hasattr(subject, name) else getattr(subject, "details", subject), name)

    def approve(self) -> None:
        """Run the block."""
        self._settle(Answer(APPROVE))

    def edit(self, code: str) -> None:
        """Replace its code, which is then judged and asked about again."""
        self.question.subject.details.code = code

    def decline(self, words: str | None = None) -> None:
        """Do not run the block. The model gets `words` at once, if given."""
        self._settle(Answer(REFUSE, words))

    def grant(self, scope: Scope = "block") -> None:
        """Grant the access that the block requests: for this block, this session, or always (saved in the rules)."""
        if GRANT not in self.question.choices or scope not in SCOPE_WORDS:
            raise UsageError(f"Nothing that the block asks for can be granted for {scope!r}.")
        self._settle(Answer(GRANT, scope=scope))

    def contain(self) -> None:
        """Run this block, and those that follow, in a sandbox."""
        self._settle(Answer(CONTAIN))

    def _settle(self, answer: Answer) -> None:
        if not self._session.answer(self.question.id, answer):
            raise UsageError("This was answered already.")

    def scan(self) -> Scan:
        """Scan the code. The model reads what was found if the block is declined."""
        review = self.question.subject.details
        review.scanned = self._scan(review.language, review.code)
        return review.scanned  # type: ignore[no-any-return]
