"""What is done to a session, and by whom: actors and actions."""

from __future__ import annotations

import itertools
import secrets
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from interpreter.errors import BusyError, InterpreterError, NotPermittedError, UsageError
from interpreter.questions import Question, Step
from interpreter.session.actor import Actor
from interpreter.session.events import Ids, Sink

if TYPE_CHECKING:
    from interpreter.messages import Message
    from interpreter.policy.approval import BlockReview
    from interpreter.runtimes.base import BaseLanguage

# The action whose code this thread is running: what it starts is a child of it.
ACTION: ContextVar[Action | None] = ContextVar("action", default=None)

EMPTY = "The block was empty: nothing ran.\n"

_RUN = secrets.token_hex(3)  # two runs of a session never give the same id
_numbers = itertools.count(1)


def new_id(letter: str) -> str:
    """An id that no other turn or action of the session has, in this run or an earlier one."""
    return f"{letter}{_RUN}-{next(_numbers)}"


class Runner(Protocol):
    """The runtimes that an actor's blocks run in: a `RuntimePool`."""

    @property
    def context(self) -> Any: ...
    def apply_sandbox(self) -> None: ...
    def get_ready(self, block: Block) -> BaseLanguage:
        """The runtime for the block, started if necessary."""

    def execute(self, block: Block) -> Generator[Step]:
        """Run it; what goes wrong is part of the output."""


class Approver(Protocol):
    """Decides whether a block may run: a `policy.approval.Approver`."""

    def approve(self, block: Block, context: ActionContext) -> Iterator[Step]: ...
    def still_allowed(self, block: Block, context: ActionContext) -> bool: ...
    def permit_code_call(self, use: Any, context: ActionContext) -> Generator[Question, None, str]:
        """Return who allows a call of a block's code; PermissionError if it is not allowed."""

    def permit_tool_call(self, tool: Any, arguments: str, context: ActionContext) -> Generator[Question, None, str]:
        """Return why the model may not call a tool; empty if it may."""


@dataclass(frozen=True)
class ActionContext:
    """What the session gives an action while it is judged and runs."""

    actor: Actor
    approver: Approver | None
    is_cancelled: Callable[[], bool]

    @property
    def runtimes(self) -> Runner:
        """Those of the actor, as its permissions are now."""
        if self.actor.runtimes is None:
            raise UsageError(f"{self.actor.id} has no computer to run code on.")
        return self.actor.runtimes()  # type: ignore[no-any-return]


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
        # Puts its questions to whoever reads its parent, if another thread does; returns whether that is possible.
        self.forward_question: Callable[[Question], bool] | None = None

    # -- what a subclass says --------------------------------------------------------------------------------------

    def describe(self) -> str:
        """What it does, in a few words."""
        return self.kind

    @property
    def fields(self) -> dict[str, Any]:
        return {}

    def judge(self, context: ActionContext) -> Iterator[Step]:
        """Find out whether it may run; `refused` says no."""
        yield from ()

    def still_allowed(self, context: ActionContext) -> bool:
        """Whether it may still run after another action ended in the meantime."""
        return True

    def prepare(self, context: ActionContext) -> None:
        """The lane is free for it: get ready."""

    def run(self, context: ActionContext) -> Generator[Step]:
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

    def judge(self, context: ActionContext) -> Iterator[Step]:
        question = self._question
        if question is not None:
            yield question
            self.refused = not question.approved

    def run(self, context: ActionContext) -> Generator[Step]:
        self.result = self._function()
        self.outcome = "done"
        yield from ()


class Block(Action):
    """Run code in a runtime that keeps its state: in the runtimes of the actor, after an approval if it needs one."""

    kind = "block"
    covered = True

    def __init__(self, language: str, code: str, message: Message | None = None) -> None:
        super().__init__()
        self.language, self.code = language, code
        self.message = message  # the stored one with the code, which scripts may rewrite until it is approved
        self.review: BlockReview | None = None  # how it was judged
        self.sandbox_request: Any = None  # what its sandbox was granted for it: a `SandboxRequest`
        # It has run already, in a preview: these are its chunks.
        self.replay: Callable[[], Generator[Step]] | None = None
        self.approved_calls: frozenset[str] = frozenset()  # tool calls that were seen in its text and approved with it
        self.allowed_calls = set[str]()  # calls of its code that the user has allowed
        self.asking = threading.Lock()  # held while one of its calls is judged
        self.runtime: BaseLanguage | None = None
        self._failure: InterpreterError | None = None

    def describe(self) -> str:
        first = next((line.strip() for line in self.code.splitlines() if line.strip()), "")
        return f"{self.language} block {first[:40]!r} is running"

    @property
    def fields(self) -> dict[str, Any]:
        return {"language": self.language}

    @property
    def needs_approval(self) -> bool:
        """Whether its actor is asked about it: people run their own code without that."""
        return self.actor is None or self.actor.kind == "agent"

    def judge(self, context: ActionContext) -> Iterator[Step]:
        if not self.needs_approval:
            return
        if context.approver is None:
            raise NotPermittedError(f"{context.actor.id} can't run code: nothing in this session can approve it.")
        yield from context.approver.approve(self, context)

    def still_allowed(self, context: ActionContext) -> bool:
        approver = context.approver
        return not self.needs_approval or (approver is not None and approver.still_allowed(self, context))

    def prepare(self, context: ActionContext) -> None:
        if self.needs_approval and not self.code.strip():
            self.covered = False
            return
        try:
            self.runtime = context.runtimes.get_ready(self)
            self.drains = self.runtime.handles_interrupts
        except BusyError:
            raise
        except InterpreterError as error:
            self.covered, self._failure = False, error  # nothing runs, and the output says why

    def run(self, context: ActionContext) -> Generator[Step]:
        self.outcome, ended = "done", False
        if self.needs_approval and not self.code.strip():
            yield {"type": "console", "format": "output", "content": EMPTY, "ours": True}
        elif self._failure is not None:
            self.outcome = "error"
            yield {"type": "console", "format": "output", "content": f"{self._failure}\n", "stream": "stderr"}
        else:
            with closing(context.runtimes.execute(self)) as steps:
                for step in steps:
                    if not isinstance(step, Question):
                        ended = "ended" in step
                        self.outcome = step.get("ended", self.outcome)
                    yield step
        if not ended and self.turn:  # a custom runtime may not report its end
            yield {"type": "console", "format": "active_line", "content": None}

    def stop(self) -> None:
        runtime = self.runtime
        if runtime is not None and not self.over:
            runtime.stop()
