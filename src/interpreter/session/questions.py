"""Questions: typed requests for a decision or an input. The action that asks waits until one is answered or refused."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from interpreter.errors import UsageError
from interpreter.messages import Chunk

Kind = Literal["block", "call", "sandbox", "text", "password", "overwrite", "confirm", "choose"]
"""Approve a block, approve a tool call, grant a sandbox request, text input, a password, overwrite a changed file,
confirm something, choose one of several."""

_ids = itertools.count(1)


@dataclass(frozen=True)
class Answer:
    """A decision about a question."""

    choice: str
    """One of the question's choices; `answer` for text."""
    text: str | None = None
    """What was typed: the input, the reason for a no, or the code of an edited block."""
    by: str = "user"
    details: Mapping[str, Any] = field(default_factory=dict)


REFUSE = "refuse"
APPROVE = "approve"
EDIT = "edit"
ANSWER = "answer"
KEEP = "keep"
"""Leave files that changed in the meantime as they are, and do the rest."""


class Question:
    """One question. The first answer wins; without one it is refused."""

    def __init__(
        self,
        kind: Kind,
        subject: Any,
        chunk: Chunk,
        choices: Collection[str] = (APPROVE, REFUSE),
        continuing_is_consent: bool = False,
    ) -> None:
        self.id = f"q{next(_ids)}"
        self.kind, self.subject, self.chunk = kind, subject, chunk
        self.choices = tuple(choices)
        self.continuing_is_consent = continuing_is_consent
        """0.4.3's generator contract: a consumer that reads on past the chunk approves."""
        self.answer: Answer | None = None
        self.withdrawn = False
        self.action = ""
        self.actor = ""
        self._settled = threading.Event()
        self._lock = threading.Lock()

    @classmethod
    def in_words(
        cls, kind: Kind, about: str, words: str, subject: Any = None, choices: Collection[str] = (APPROVE, REFUSE)
    ) -> Question:
        """A question that any front end can show; one that knows the subject may word it in its own way."""
        content = {"type": about, "format": kind, "content": words}
        chunk: Chunk = {"role": "computer", "type": "confirmation", "format": about, "content": content}
        return cls(kind, subject if subject is not None else words, chunk, choices)

    @property
    def is_open(self) -> bool:
        return not self._settled.is_set()

    def settle(self, answer: Answer) -> bool:
        """Answer it; False if it was answered before."""
        if answer.choice not in self.choices and answer.choice != REFUSE:
            raise UsageError(f"This question takes {', '.join(self.choices)}, not {answer.choice!r}.")
        with self._lock:
            if self._settled.is_set():
                return False
            self.answer = answer
            self._settled.set()
            return True

    def withdraw(self) -> None:
        """Close it without an answer, and release the action that waits."""
        with self._lock:
            if not self._settled.is_set():
                self.withdrawn = True
                self._settled.set()

    def wait(self, timeout: float | None = None) -> Answer | None:
        """The answer; None if there is none in time, or the question was withdrawn."""
        self._settled.wait(timeout)
        return self.answer


Handler = Callable[[Question], "Answer | None"]
"""Answers a question in the thread that asks it; None leaves it to others."""


class Questions:
    """The open questions of a session, and who can answer which kinds."""

    def __init__(self) -> None:
        self._open: dict[str, Question] = {}
        self._closed: deque[Question] = deque(maxlen=1000)  # the last ones that were open
        self._handlers: list[tuple[frozenset[str], Handler | None]] = []
        self._lock = threading.RLock()  # a finaliser may end a question in the middle of anything

    @property
    def open(self) -> list[Question]:
        """Those that wait, oldest first."""
        with self._lock:
            return list(self._open.values())

    def find(self, question_id: str, closed: bool = False) -> Question | None:
        """The question of that id, if it waits; with `closed` also if it waited not long ago."""
        with self._lock:
            known = [*self._open.values(), *(self._closed if closed else ())]
            return next((each for each in known if each.id == question_id), None)

    def can_be_answered(self, question: Question) -> bool:
        """Whether a front end has promised an answer from another thread."""
        with self._lock:
            return any(handler is None and question.kind in kinds for kinds, handler in self._handlers)

    @contextmanager
    def answerable(self, kinds: Collection[Kind], handler: Handler | None = None) -> Iterator[None]:
        """While this is entered, a front end can answer these kinds: with a handler, or from another thread.

        The handler that was registered last is asked first.
        """
        registration = frozenset(kinds), handler
        with self._lock:
            self._handlers.append(registration)
        try:
            yield
        finally:
            with self._lock:
                self._handlers.remove(registration)

    @contextmanager
    def asking(self, question: Question) -> Iterator[None]:
        """While this is entered, the question is open."""
        with self._lock:
            self._open[question.id] = question
        try:
            yield
        finally:
            question.withdraw()  # an answer that comes now is too late
            with self._lock:
                self._open.pop(question.id, None)
                self._closed.append(question)

    def settle(self, question: Question, timeout: float | None) -> Answer | None:
        """Ask the front ends that can answer; None if there are none, or none answers in time."""
        if not question.is_open:
            return question.answer
        with self._lock:
            able = [handler for kinds, handler in reversed(self._handlers) if question.kind in kinds]
        for handler in able:
            if handler is not None and (answer := handler(question)) is not None:
                question.settle(answer)
                return question.answer
        if None in able:
            return question.wait(timeout)
        return question.answer

    def withdraw(self, kinds: Collection[Kind] = (), action: str = "") -> None:
        """Withdraw open questions: all, those of these kinds, or those of an action."""
        for question in self.open:
            if (not kinds or question.kind in kinds) and (not action or question.action == action):
                question.withdraw()
