"""What is asked: typed subjects, a question, its answer, and who can answer.

This is the lowest layer, so that a runtime can ask as well. The running action yields a question; the session puts it
to a front end and closes it. Code that can't yield calls `Session.ask`.
"""

from __future__ import annotations

import secrets
import threading
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from interpreter.errors import UsageError
from interpreter.messages import Chunk

QuestionKind = Literal["block", "call", "text", "password", "overwrite", "confirm", "choose", "offer"]

APPROVE = "approve"
REFUSE = "refuse"
EDIT = "edit"
ANSWER = "answer"
KEEP = "keep"  # leave files that changed in the meantime as they are, and do the rest

MAX_PROMPT_LENGTH = 10_000  # characters


class Subject(Protocol):
    """The subject of a question."""

    @property
    def kind(self) -> QuestionKind: ...
    @property
    def text(self) -> str:
        """Return the question as a sentence, which any front end can show."""

    @property
    def chunk(self) -> Chunk:
        """Return the question as an LMC chunk."""


@dataclass(frozen=True)
class Input:
    """A line that code reads."""

    prompt: str
    secret: bool = False

    @property
    def kind(self) -> QuestionKind:
        return "password" if self.secret else "text"

    @property
    def text(self) -> str:
        return self.prompt

    @property
    def chunk(self) -> Chunk:
        return {"type": "input_request", "content": self.prompt, "password": self.secret}


@dataclass(frozen=True)
class RunBlock:
    """A block of code, with its predicted effects and the reason to ask."""

    language: str
    code: str
    effects: tuple[str, ...] | None = None  # as lines
    undo: dict[str, Any] | None = None  # whether an undo covers it
    reason: str = ""
    findings: tuple[dict[str, Any], ...] | None = None  # of a scan
    wants: tuple[str, ...] = ()  # what it asks its sandbox for
    diff: str = ""  # what it would change, if that is known
    requires_approval: bool = False  # because of a rule, a scan or a sandbox request
    only_sandbox_request: bool = False
    details: Any = None

    kind = "block"
    text = "Run this code?"

    @property
    def chunk(self) -> Chunk:
        content = {"type": "code", "format": self.language, "content": self.code}
        chunk: Chunk = {"role": "computer", "type": "confirmation", "format": "execution", "content": content}
        known = {
            "findings": None if self.findings is None else list(self.findings),
            "undo": self.undo,
            "effects": None if self.effects is None else list(self.effects),
            "reason": self.reason or None,
            "widening": list(self.wants) or None,
            "diff": self.diff or None,
        }
        return {**chunk, **{name: value for name, value in known.items() if value is not None}}  # type: ignore[typeddict-item]


@dataclass(frozen=True)
class CallTool:
    """A call of a tool, by the model or by code."""

    tool: str
    text: str
    for_session: bool = False  # whether a yes with the scope `session` covers all later calls

    @property
    def kind(self) -> QuestionKind:
        return "call"

    @property
    def chunk(self) -> Chunk:
        return _confirmation("tool_call", "call", self.tool, self.text)


@dataclass(frozen=True)
class Confirm:
    """A yes or a no. With `paths`, these files changed in the meantime and would be overwritten.

    `details` is what the text is about, for a front end that shows it in its own way. The topic `offer` is something we
    can do for the user, such as installing a package: it is only asked where a front end can answer.
    """

    text: str
    topic: str = "confirm"
    paths: tuple[str, ...] = ()
    details: Any = None

    @property
    def kind(self) -> QuestionKind:
        return "offer" if self.topic == "offer" else "overwrite" if self.paths else "confirm"

    @property
    def chunk(self) -> Chunk:
        return _confirmation(self.topic, self.topic, "text" if self.topic == "offer" else self.kind, self.text)


@dataclass(frozen=True)
class Choose:
    """One of several options."""

    text: str
    options: tuple[str, ...]
    topic: str = "choose"
    details: Any = None

    kind = "choose"

    @property
    def chunk(self) -> Chunk:
        return _confirmation(self.topic, self.topic, self.kind, self.text)


def _confirmation(topic: str, content_type: str, content_format: str, text: str) -> Chunk:
    content = {"type": content_type, "format": content_format, "content": text}
    return {"type": "confirmation", "format": topic, "content": content}


@dataclass(frozen=True)
class Answer:
    """A decision about a question."""

    choice: str  # one of the question's choices; `answer` for text
    text: str | None = None  # what was typed: the input, the reason for a no, or the code of an edited block
    by: str = "user"
    scope: str = ""  # of a grant: this block, this session, or always
    paths: tuple[str, ...] | None = None  # of files that may be overwritten; None: all that were named
    repositories: tuple[str, ...] = ()  # the `.git` folders to restore
    preview: Any = None  # the dry run to apply


class Question:
    """One question. The first answer wins; without one it is refused."""

    def __init__(self, subject: Any, choices: Collection[str] = (), consent: bool = False) -> None:
        self.id = f"q{secrets.token_hex(6)}"  # no other process, and no earlier one, gives the same
        self.subject = subject
        self.kind: QuestionKind = subject.kind
        self.choices = tuple(choices) or _choices(subject)
        self.chunk: Chunk = subject.chunk
        self.chunk |= {"role": "computer", "question": self.id}
        # 0.4.3's generator contract: a consumer that reads on past the chunk approves.
        self.continuing_is_consent = consent
        self.answer: Answer | None = None
        self.withdrawn = False
        self.action = ""
        self.actor = ""
        self.dry_runs: list[Any] = []  # that were shown with it; those that the answer does not apply are discarded
        self.published = 0  # the number of its event, if it was asked before it reached the consumer
        self._settled = threading.Event()
        self._lock = threading.Lock()

    @property
    def text(self) -> str:
        """Return the question as a sentence."""
        return str(self.subject.text)

    @property
    def is_open(self) -> bool:
        return not self._settled.is_set()

    @property
    def approved(self) -> bool:
        """Return whether the answer is a yes."""
        return self.answer is not None and self.answer.choice == APPROVE

    @property
    def unattended(self) -> bool:
        """Return whether the question has no answer because no one could be asked."""
        return self.answer is None or self.answer.by == "nobody"

    @property
    def typed(self) -> str | None:
        """Return the answer to a question for text; None at the end of input and without an answer."""
        return self.answer.text if self.answer is not None and self.answer.choice == ANSWER else None

    def asked(self) -> Iterator[Question]:
        """Yield it. If the consumer leaves instead of answering, it is withdrawn."""
        try:
            yield self
        finally:
            self.withdraw()

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
        """Close the question without an answer, and release the waiting action."""
        with self._lock:
            if not self._settled.is_set():
                self.withdrawn = True
                self._settled.set()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until it is answered or withdrawn."""
        self._settled.wait(timeout)


Step = Chunk | Question  # what a running action yields

# Answers a question in the thread that asks it; None leaves it to others.
Handler = Callable[[Question], "Answer | None"]
OnInput = Callable[[str, bool], "str | None"]


def read_input(prompt: str, secret: bool, on_input: OnInput | None) -> Generator[Question, None, str | None]:
    """Ask for a line of input, first the consumer of the steps and then the function of the settings."""
    question = Question(Input(prompt[-MAX_PROMPT_LENGTH:], secret))
    yield from question.asked()
    if (question.answer is None or question.answer.choice != ANSWER) and on_input is not None:
        return on_input(prompt[-MAX_PROMPT_LENGTH:], secret)
    return question.typed


def without_questions(steps: Iterable[Step]) -> Iterator[Chunk]:
    """Only the chunks, for code that runs where nothing can be answered."""
    return (step for step in steps if not isinstance(step, Question))


def _choices(subject: Any) -> tuple[str, ...]:
    match subject:
        case Input():
            return (ANSWER,)
        case Choose():
            return subject.options
        case Confirm() if subject.paths:
            return APPROVE, KEEP, REFUSE
    return APPROVE, REFUSE


class Questions:
    """The open questions of a session, and who can answer which kinds."""

    def __init__(self) -> None:
        self._open: dict[str, Question] = {}
        self._closed: deque[Question] = deque(maxlen=1000)  # the last ones that were open
        self._handlers: list[tuple[frozenset[str], Handler | None]] = []
        self._lock = threading.RLock()  # a finaliser may end a question in the middle of anything

    @property
    def open(self) -> list[Question]:
        with self._lock:
            return list(self._open.values())

    def find(self, question_id: str, closed: bool = False) -> Question | None:
        """Return the question of that id, if it waits; with `closed` also if it waited not long ago."""
        with self._lock:
            known = [*self._open.values(), *(self._closed if closed else ())]
            return next((each for each in known if each.id == question_id), None)

    @contextmanager
    def answerable(self, kinds: Collection[QuestionKind], handler: Handler | None = None) -> Iterator[None]:
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

    def can_be_answered(self, kind: QuestionKind) -> bool:
        """Check whether a front end can answer this kind now."""
        with self._lock:
            return any(kind in kinds for kinds, _ in self._handlers)

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

    def settle(self, question: Question, timeout: float | None) -> None:
        """Ask the front ends that can answer. If none does so in time, the question is settled without them."""
        with self._lock:
            able = [handler for kinds, handler in reversed(self._handlers) if question.kind in kinds]
        for handler in able if question.is_open else ():
            if handler is not None and (answer := handler(question)) is not None:
                question.settle(answer)
                return
        if None in able:
            question.wait(timeout)
        question.settle(Answer(REFUSE, by="nobody"))

    def consent_by_continuing(self, question_id: str) -> None:
        """Approve, as in 0.4.3: a script has read past the question, and no front end can answer it."""
        question = self.find(question_id)
        if question is not None and question.continuing_is_consent and not self.can_be_answered(question.kind):
            question.settle(Answer(APPROVE, by="continued"))

    def withdraw(self, kinds: Collection[QuestionKind] = (), action: str = "") -> None:
        """Withdraw open questions: all, those of these kinds, or those of an action."""
        for question in self.open:
            if (not kinds or question.kind in kinds) and (not action or question.action == action):
                question.withdraw()
