"""What is done to a session, by whom, and what is asked about it: actors, actions and typed questions."""

from __future__ import annotations

import itertools
import secrets
import threading
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from interpreter.errors import BusyError, InterpreterError, UsageError
from interpreter.messages import Chunk
from interpreter.session.events import Ids, Sink

if TYPE_CHECKING:
    from interpreter.runtimes.base import BaseLanguage

# The action whose code this thread is running: what it starts is a child of it.
ACTION: ContextVar[Action | None] = ContextVar("action", default=None)

ActorKind = Literal["user", "agent", "client"]

EMPTY = "The block was empty: nothing ran.\n"

_RUN = secrets.token_hex(3)  # two runs of a session never give the same id
_numbers = itertools.count(1)


def new_id(letter: str) -> str:
    """An id that no other turn or action of the session has, in this run or an earlier one."""
    return f"{letter}{_RUN}-{next(_numbers)}"


class Actor:
    """Who does something: the user, an agent, or a client. Permissions are looked up for the actor of an action."""

    def __init__(self, name: str, kind: ActorKind, settings: Any, sink: Callable[[], Sink | None]) -> None:
        self.id, self.kind = name, kind
        self.settings = settings  # where its permission mode, sandbox and budget come from
        self.sink = sink  # returns what records its events, if anything does

    def __repr__(self) -> str:
        return f"<Actor {self.id}>"


class Action:
    """One thing done to a session. `Session.perform` takes it through the pipeline; a subclass says what it does."""

    kind = "action"
    covered = False  # whether files and variables are noted before and after it, so that it can be undone
    drains = True  # whether its chunks come to an end soon once it is cancelled
    # Whether the journal has it. An action that leaves the conversation ends the journal it would be in.
    recorded = True

    def __init__(self) -> None:
        self.id = new_id("a")
        self.turn = ""
        self.actor: Actor | None = None
        self.parent: Action | None = None
        self.refused = False  # it did not run: a rule, the user, or a missing answer was against it
        self.outcome = ""  # how it ended: done, error, interrupted, refused, ..
        self.result: Any = None
        self.over = False  # what it ran has ended, even if its consumer has not read the end yet
        self.on_over: Callable[[], None] = lambda: None
        self._cancelled = threading.Event()
        self._ending = threading.RLock()
        self.turn_cancelled: Callable[[], bool] = lambda: False

    # -- what a subclass says --------------------------------------------------------------------------------------

    def describe(self) -> str:
        """What it does, in a few words."""
        return self.kind

    @property
    def fields(self) -> dict[str, Any]:
        return {}

    def judge(self) -> Iterator[Chunk | Question]:
        """Find out whether it may run; `refused` says no."""
        yield from ()

    def still_allowed(self) -> bool:
        """Whether it may still run after another action ended in the meantime."""
        return True

    def prepare(self) -> None:
        """The lane is free for it: get ready."""

    def run(self) -> Generator[Chunk]:
        """Do it; set `outcome` to how it ended, and `result`."""
        raise NotImplementedError

    def stop(self) -> None:
        """End what is running; from any thread."""

    # -- cancelling --------------------------------------------------------------------------------------------------

    def cancel(self) -> None:
        """Ask it to end, from any thread."""
        self._cancelled.set()
        with self._ending:  # so that what comes next in the same runtime is not stopped instead
            if not self.over:
                self.stop()

    def is_cancelled(self) -> bool:
        return (
            self._cancelled.is_set()
            or self.turn_cancelled()
            or (self.parent is not None and self.parent.is_cancelled())
        )

    def mark_over(self) -> None:
        """What it ran has ended; from any thread."""
        self.over = True
        self.on_over()

    def not_over(self) -> None:
        """More is about to run."""
        with self._ending:
            self.over = False

    def end(self) -> None:
        """It has ended; there is nothing left to stop."""
        with self._ending:
            self.over = True

    @property
    def sink(self) -> Sink | None:
        return self.actor.sink() if self.actor is not None and self.recorded else None

    @property
    def ids(self) -> Ids:
        return Ids(self.turn, self.id, self.actor.id if self.actor is not None else "")

    def ancestors(self) -> Iterator[Action]:
        """Itself, and what it is part of."""
        action: Action | None = self
        while action is not None:
            yield action
            action = action.parent


class Do(Action):
    """An action that is one call: a fork, a reset, an export. It runs after a yes to its question, if it has one."""

    def __init__(
        self,
        kind: str,
        function: Callable[[], Any],
        described: str = "",
        question: Question | None = None,
        recorded: bool = True,
    ) -> None:
        super().__init__()
        self.kind, self.recorded = kind, recorded
        self._function, self._described, self._question = function, described, question

    def describe(self) -> str:
        return self._described or self.kind

    def judge(self) -> Iterator[Chunk | Question]:
        question = self._question
        if question is not None:
            yield question
            self.refused = question.answer is None or question.answer.choice != APPROVE

    def run(self) -> Generator[Chunk]:
        self.result = self._function()
        self.outcome = "done"
        yield from ()


class Runner(Protocol):
    """The computer that a block runs on, as the actor's sandbox has it."""

    def get_ready(self, block: Block) -> BaseLanguage:
        """The runtime for the block, started if necessary."""

    def execute(self, block: Block) -> Generator[Chunk]:
        """Run it; what goes wrong is part of the output."""


class Approval(Protocol):
    """Decides whether an agent's block may run."""

    def judge(self, block: Block) -> Iterator[Chunk | Question]: ...

    def still_allowed(self, block: Block) -> bool: ...


class Block(Action):
    """Run code in a runtime that keeps its state."""

    kind = "block"
    covered = True

    def __init__(self, runner: Runner, language: str, code: str, approval: Approval | None = None) -> None:
        super().__init__()
        self.runner, self.language, self.code, self.approval = runner, language, code, approval
        self.sandbox_request: Any = None  # what its sandbox was granted for it: a `SandboxRequest`
        # It has run already, in a preview: these are its chunks.
        self.replay: Callable[[], Generator[Chunk]] | None = None
        self.approved_calls: frozenset[str] = frozenset()  # tool calls that were seen in its text and approved with it
        self.runtime: BaseLanguage | None = None
        self._failure: InterpreterError | None = None

    def describe(self) -> str:
        first = next((line.strip() for line in self.code.splitlines() if line.strip()), "")
        return f"{self.language} block {first[:40]!r} is running"

    @property
    def fields(self) -> dict[str, Any]:
        return {"language": self.language}

    def judge(self) -> Iterator[Chunk | Question]:
        return self.approval.judge(self) if self.approval is not None else iter(())

    def still_allowed(self) -> bool:
        return self.approval is None or self.approval.still_allowed(self)

    def prepare(self) -> None:
        if self.approval is not None and not self.code.strip():
            self.covered = False
            return
        try:
            self.runtime = self.runner.get_ready(self)
            self.drains = self.runtime.handles_interrupts
        except BusyError:
            raise
        except InterpreterError as error:
            self.covered, self._failure = False, error  # nothing runs, and the output says why

    def run(self) -> Generator[Chunk]:
        self.outcome, ended = "done", False
        if self.approval is not None and not self.code.strip():
            yield {"type": "console", "format": "output", "content": EMPTY, "ours": True}
        elif self._failure is not None:
            self.outcome = "error"
            yield {"type": "console", "format": "output", "content": f"{self._failure}\n", "stream": "stderr"}
        else:
            with closing(self.runner.execute(self)) as chunks:
                for chunk in chunks:
                    ended = "ended" in chunk
                    self.outcome = chunk.get("ended", self.outcome)
                    yield chunk
        if not ended and self.turn:  # a custom runtime may not report its end
            yield {"type": "console", "format": "active_line", "content": None}

    def stop(self) -> None:
        runtime = self.runtime
        if runtime is not None and not self.over:
            runtime.stop()


# -- questions ----------------------------------------------------------------------------------------------------

# Approve a block, approve a tool call, grant a sandbox request, text input, a password, overwrite a changed file,
# confirm something, choose one of several, accept something that is only asked if a front end can answer.
QuestionKind = Literal["block", "call", "sandbox", "text", "password", "overwrite", "confirm", "choose", "offer"]


@dataclass(frozen=True)
class Answer:
    """A decision about a question."""

    choice: str  # one of the question's choices; `answer` for text
    text: str | None = None  # what was typed: the input, the reason for a no, or the code of an edited block
    by: str = "user"
    details: Mapping[str, Any] = field(default_factory=dict)


REFUSE = "refuse"
APPROVE = "approve"
EDIT = "edit"
ANSWER = "answer"
KEEP = "keep"  # leave files that changed in the meantime as they are, and do the rest


class Question:
    """One question. The first answer wins; without one it is refused."""

    def __init__(
        self,
        kind: QuestionKind,
        subject: Any,
        chunk: Chunk,
        choices: Collection[str] = (APPROVE, REFUSE),
        continuing_is_consent: bool = False,
    ) -> None:
        self.id = f"q{secrets.token_hex(6)}"  # no other process, and no earlier one, gives the same
        self.kind, self.subject, self.chunk = kind, subject, chunk
        self.choices = tuple(choices)
        # 0.4.3's generator contract: a consumer that reads on past the chunk approves.
        self.continuing_is_consent = continuing_is_consent
        self.answer: Answer | None = None
        self.withdrawn = False
        self.action = ""
        self.actor = ""
        self._settled = threading.Event()
        self._lock = threading.Lock()

    @classmethod
    def in_words(
        cls,
        kind: QuestionKind,
        about: str,
        words: str,
        subject: Any = None,
        choices: Collection[str] = (APPROVE, REFUSE),
    ) -> Question:
        """A question that any front end can show; one that knows the subject may word it in its own way."""
        chunk: Chunk = {
            "role": "computer",
            "type": "confirmation",
            "format": about,
            "content": {"type": about, "format": kind, "content": words},
        }
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

    def wait(self, timeout: float | None = None) -> None:
        """Wait until it is answered or withdrawn."""
        self._settled.wait(timeout)


# Answers a question in the thread that asks it; None leaves it to others.
Handler = Callable[[Question], "Answer | None"]


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
        """The question of that id, if it waits; with `closed` also if it waited not long ago."""
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
        """Whether a front end can answer this kind now."""
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
