"""The actions of a session, and the actors that perform them."""

from __future__ import annotations

import itertools
import queue
import secrets
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from interpreter.console_text import visible
from interpreter.errors import BusyError, InterpreterError, NotPermittedError
from interpreter.questions import Answer, CallTool, Question, Step, Subject
from interpreter.runtimes.calls import Interrupt
from interpreter.session.actor import Actor, Permissions
from interpreter.session.events import ActionFields, Event, Ids, Publisher, Sink
from interpreter.tools.tool import Tool, ToolContext
from interpreter.tools.toolbox import problem_with_arguments, result_chunks

if TYPE_CHECKING:
    from interpreter.messages import Chunk, Message
    from interpreter.runtimes.base import BaseLanguage
    from interpreter.session.kernel import Session

# The action whose code this thread is running: what it starts is a child of it.
ACTION: ContextVar[Action | None] = ContextVar("action", default=None)

EMPTY = "The block was empty: nothing ran.\n"

_RUN = secrets.token_hex(3)  # two runs of a session never give the same id
_numbers = itertools.count(1)


def new_id(letter: str) -> str:
    """Make an id that no other turn or action of the session has, in this run or an earlier one."""
    return f"{letter}{_RUN}-{next(_numbers)}"


class Runner(Protocol):
    """The runtimes that an actor's blocks run in: a `RuntimePool`."""

    @property
    def context(self) -> Any: ...
    def apply_sandbox(self) -> None: ...
    def get_ready(self, block: Block) -> BaseLanguage:
        """Return the runtime for the block, started if necessary."""

    def execute(self, block: Block) -> Generator[Step]:
        """Run the block. Its errors are part of the output."""


class Approver(Protocol):
    """Decides whether a block may run: a `policy.approval.Approver`."""

    def approve(self, action: Block | ToolCall, context: ActionContext) -> Iterator[Step]:
        """Find out whether it may run, and ask where that is needed; PermissionError if a call may not."""

    def still_allowed(self, block: Block, context: ActionContext) -> bool: ...
    def judge_installation(self, command: str, context: ActionContext) -> tuple[Any, str]:
        """Decide on a shell command that installs packages for a block by rules and mode, and say why."""

    def only_reads(self, language: str, code: str, missing: str) -> bool:
        """Return whether the code did nothing but read files until it missed a module."""


@dataclass(frozen=True)
class ActionContext:
    """The parts of a session that an action uses while it is judged and runs."""

    session: Session
    actor: Actor
    approver: Approver | None
    is_cancelled: Callable[[], bool]

    @property
    def runtimes(self) -> Runner:
        """Return the actor's runtimes, by its present permissions."""
        return self.session.runtimes(self.actor)


class Action:
    """An operation on a session. `Session.perform` takes it through the pipeline; each kind is a subclass."""

    kind = "action"
    needs_lane = True  # whether it runs alone; a turn leaves that to its blocks and calls
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
        self.is_started = False  # the session drives it, for those who only watch
        self.over = False  # what it ran has ended, even if its consumer has not read the end yet
        self.on_over: Callable[[], None] = lambda: None
        self.cancel_requested = threading.Event()
        self._ending = threading.RLock()
        # Passes its questions to the reader of its parent, if that is another thread; returns whether it could.
        self.forward_question: Callable[[Question], bool] | None = None

    # -- what a subclass says --------------------------------------------------------------------------------------

    def describe(self) -> str:
        """Describe the action in a few words."""
        return self.kind

    @property
    def fields(self) -> ActionFields:
        return {}

    @property
    def ending_fields(self) -> ActionFields:
        """Facts about its end, beside how it ended."""
        return {}

    def begin(self, context: ActionContext) -> None:
        """Record the action before its first event. If this raises an error, the action does not begin."""

    def publisher(self, session: Session) -> Publisher:
        """Make the publisher for the action's chunks."""
        return Publisher(session.log, self.ids)

    def judge(self, context: ActionContext) -> Iterator[Step]:
        """Decide whether the action may run; set `refused` if not."""
        yield from ()

    def still_allowed(self, context: ActionContext) -> bool:
        """Check whether the action may still run after another one ended in the meantime."""
        return True

    def prepare(self, context: ActionContext) -> None:
        """Prepare to run. The action holds the lane now."""

    def run(self, context: ActionContext) -> Generator[Step | Event]:
        """Run the action, and set `outcome` and `result`. Events that this yields are published already."""
        raise NotImplementedError

    def check(self, call: ToolCall) -> None:
        """Raise an error if this call of its code is not allowed."""

    def stop(self) -> None:
        """Stop the running code or call. May be called from any thread."""

    # -- cancelling --------------------------------------------------------------------------------------------------

    def cancel(self) -> None:
        """Ask the action to end. May be called from any thread."""
        self.cancel_requested.set()
        with self._ending:  # so that what comes next in the same runtime is not stopped instead
            if not self.over:
                self.stop()

    def is_cancelled(self) -> bool:
        parent = self.parent
        return self.cancel_requested.is_set() or (parent is not None and parent.is_cancelled())

    def mark_over(self) -> None:
        """Note that the code or call has ended. May be called from any thread."""
        self.over = True
        self.on_over()

    def not_over(self) -> None:
        """Note that more code is about to run."""
        with self._ending:
            self.over = False

    def end(self) -> None:
        """Note that the action has ended, so that `cancel` stops nothing any more."""
        with self._ending:
            self.over = True

    @property
    def sink(self) -> Sink | None:
        return self.actor.sink() if self.actor is not None and self.recorded else None

    @property
    def ids(self) -> Ids:
        return Ids(self.turn, self.id, self.actor.id if self.actor is not None else "")

    def ancestors(self) -> Iterator[Action]:
        """Yield this action, and those that it is part of."""
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


class SetPermissions(Action):
    """Replace what an actor may do. Running actions continue as they were judged; later ones see the change.

    Those that it acts for may do so, a user for themselves, for clients and for viewers, and a client for itself if it
    allows no more than before. Where settings are the source, `change` sets them; it may also revoke the actor.
    """

    kind = "set_permissions"
    needs_lane = False

    def __init__(
        self, actor: Actor, permissions: Permissions | None = None, change: Callable[[], object] | None = None
    ) -> None:
        super().__init__()
        self._target, self._permissions, self._change = actor, permissions, change

    def describe(self) -> str:
        return f"the permissions of {self._target.id} are changing"

    @property
    def fields(self) -> ActionFields:
        return {"of": self._target.id}

    def begin(self, context: ActionContext) -> None:
        by, target, permissions = context.actor, self._target, self._permissions
        if by.kind == "user":
            may_change = by.has_permissions_of(target) or target.kind in ("client", "viewer")
        else:
            is_tighter = permissions is None or permissions.is_within(target.own_permissions)
            may_change = by.kind == "client" and by.has_permissions_of(target) and is_tighter
        if not may_change and (by is target or by not in target.chain()):
            raise NotPermittedError(f"{by.id} can't change what {target.id} may do.")

    def run(self, context: ActionContext) -> Generator[Step]:
        session = context.session
        concerned = [actor for actor in list(session.actors.values()) if actor.has_permissions_of(self._target)]
        for actor in concerned:
            session.publish_permissions(actor)  # so that it is known what the change changes
        if self._permissions is not None:
            self._target.replace_permissions(self._permissions)
        if self._change is not None:
            self.result = self._change()
        for actor in concerned:
            session.publish_permissions(actor)
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
        self.review: Any = None  # how its approver judged it
        self.sandbox_request: Any = None  # what its sandbox was granted for it: a `SandboxRequest`
        # It has run already, in a preview: these are its chunks.
        self.replay: Callable[[], Generator[Step]] | None = None
        self.approved_calls: frozenset[str] = frozenset()  # tool calls that were seen in its text and approved with it
        self.allowed_calls = set[str]()  # calls of its code that the user has allowed
        self.asking = threading.Lock()  # held while one of its calls is judged
        self.calling = threading.RLock()  # held by a call of a tool that can't run several times at once
        self.runtime: BaseLanguage | None = None
        self._failure: InterpreterError | None = None

    def describe(self) -> str:
        first = next((line.strip() for line in self.code.splitlines() if line.strip()), "")
        return f"{self.language} block {first[:40]!r} is running"

    @property
    def fields(self) -> ActionFields:
        return {"language": self.language}

    @property
    def needs_approval(self) -> bool:
        """Return whether the action needs approval: people run their own code without it."""
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


@dataclass(frozen=True)
class CallOrigin:
    """The code that calls a tool."""

    language: str
    text: str  # the call as code would write it
    forward_question: Callable[[Question], bool]
    interruptible: Callable[[], AbstractContextManager[None]]  # while this is entered, the call can be cut off
    progress: Callable[[str], None]
    on_cancel: Callable[[Callable[[], object]], None] = lambda end: None  # sets what ends the waiting of its handler
    in_block: bool = False  # a yes to the block covers it: a part of the computer
    in_sandbox: bool = False
    sandbox_is_read_only: bool = False
    machine: str = ""  # where the code runs, if not on this machine, whose tools it calls
    check_sending: Callable[[], None] = lambda: None  # raises an error if nothing can be sent


class ToolCall(Action):
    """Call a tool: for the model, whose result is text, or for a block's code, which gets the value.

    What speaks against a call of the model becomes its result. For code it is an error.
    """

    covered = True

    def __init__(
        self, tool: Tool | None, arguments: dict[str, Any], origin: CallOrigin | None = None, problem: str = ""
    ) -> None:
        super().__init__()
        self.tool, self.arguments, self.origin = tool, arguments, origin
        self.kind = "tool" if origin is None else "call"
        self.covered = tool is not None and tool.policy != "reads"
        self.by = ""  # who allowed it
        self.problem = problem  # why it can't be called
        self._interrupt = Interrupt()
        self._end_waiting: Callable[[], object] = lambda: None  # what its handler waits for
        self._steps: queue.SimpleQueue[Step | None] = queue.SimpleQueue()

    @property
    def name(self) -> str:
        return self.tool.name if self.tool is not None else ""

    def describe(self) -> str:
        return f"{self.name if self.origin is not None else f'tool {self.name}'} is running"

    @property
    def fields(self) -> ActionFields:
        if self.tool is None or self.origin is not None:
            return {"tool": self.name} if self.origin is None else {"call": self.name}
        return {"tool": self.name, **({"effects": list(map(str, self.effects))} if self.tool.effects else {})}

    @cached_property
    def effects(self) -> list[Any]:
        """Return the effects that the tool declares for these arguments."""
        if self.tool is None or self.tool.effects is None or self.problem:
            return []
        return list(self.tool.effects(self.arguments))

    def judge(self, context: ActionContext) -> Iterator[Step]:
        if self.tool is None or self.problem:
            return
        try:
            if context.approver is not None:
                yield from context.approver.approve(self, context)
            elif self.origin is None:
                raise PermissionError(f"{self.name} was not called: nothing in this session can approve it.")
            else:
                self.by = (yield from ask_before_sending(self)) if self.tool.policy == "sends" else "block"
            for action in self.ancestors():
                action.check(self)
        except PermissionError as error:
            self.problem, self.refused = str(error), self.origin is not None

    def run(self, context: ActionContext) -> Generator[Step]:
        self.outcome = "done"
        if self.origin is not None:
            with self.origin.interruptible():  # only the tool's own code is cut off in the middle
                self.result = self._call(context)
            yield from ()
            return
        if self.tool is None or self.problem:
            yield {"type": "console", "format": "output", "content": f"{self.problem}\n", "ours": True}
            yield self._over("error")
            return
        try:
            if self.tool.takes_context:
                value = yield from self._call_in_thread(context)
            else:
                value = self._call(context)
            for chunk in result_chunks(value):
                if chunk.get("format") == "active_line" and chunk.get("content") is None:
                    self.outcome = chunk.get("ended", "done")
                else:
                    yield chunk
        except Exception as error:  # noqa: BLE001 - a handler is the user's code, and its error is the call's result
            text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            yield {"type": "console", "format": "output", "content": f"{text}\n", "stream": "stderr"}
            self.outcome = "error"
        except KeyboardInterrupt:
            yield self._over("interrupted")
            raise
        yield self._over(self.outcome)

    def stop(self) -> None:
        self._interrupt.ask()
        self._end_waiting()

    def _call(self, context: ActionContext) -> Any:
        assert self.tool is not None
        if self.arguments_problem:
            raise TypeError(self.arguments_problem)
        progress = self.origin.progress if self.origin is not None else self._show
        session = context.session

        def ask(subject: Subject) -> Answer | None:
            question = Question(subject)
            session.ask(question, self)
            return question.answer

        def on_cancel(end: Callable[[], object]) -> None:
            self._end_waiting = end
            if self.origin is not None:
                self.origin.on_cancel(end)
            if context.is_cancelled():
                end()

        workspace, is_cancelled = session.workspace(), context.is_cancelled
        made = ToolContext(session, context.actor, self, workspace, is_cancelled, progress, ask, on_cancel)
        return self.tool.call(self.arguments, made)

    @property
    def arguments_problem(self) -> str:
        """Say what is wrong with the arguments that code gave; empty for the model's, which were checked before."""
        if self.tool is None or self.origin is None or self.origin.in_block:
            return ""
        return f"{self.name}: {problem}" if (problem := problem_with_arguments(self.tool, self.arguments)) else ""

    def _call_in_thread(self, context: ActionContext) -> Generator[Step, None, Any]:
        """Call the handler in a separate thread, so that its questions and reports arrive at once."""
        outcome: list[Any] = []

        def work() -> None:
            try:
                with self._interrupt.may_strike():
                    outcome[:] = [self._call(context), None]
            except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
                outcome[:] = [None, error]
            finally:
                self._steps.put(None)

        def forward(question: Question) -> bool:
            self._steps.put(question)
            return True

        self.forward_question = forward
        thread = threading.Thread(target=copy_context().run, args=(work,), name=f"tool {self.name}", daemon=True)
        thread.start()
        try:
            while (step := self._steps.get()) is not None:
                yield from step.asked() if isinstance(step, Question) else iter((step,))
        except BaseException:
            self._interrupt.ask()
            raise
        finally:
            self.forward_question = None
        value, error = outcome
        if error is not None:
            raise error
        return value

    def _show(self, text: str) -> None:
        self._steps.put({"type": "status", "format": "progress", "content": {"tool": self.name, "text": text}})

    def _over(self, ended: str) -> Chunk:
        self.outcome = ended
        last: Chunk = {"type": "console", "format": "active_line", "content": None}
        return last if ended == "done" else {**last, "ended": ended}


def ask_about(call: ToolCall, text: str, allowed: set[str] | None = None) -> Generator[Question, None, bool | None]:
    """Ask whether code may make a call; None if no one could be asked.

    With a set of `allowed` tools, a yes may be for the whole session: then the tool is added to it.
    """
    if call.origin is not None and call.origin.machine:
        text = f"Code on {call.origin.machine} is calling a tool on this machine. {text}"
    question = Question(CallTool(call.name, text, for_session=allowed is not None))
    yield question
    if allowed is not None and question.approved and question.answer is not None and question.answer.scope == "session":
        allowed.add(call.name)
    return None if question.unattended else question.approved


def ask_before_sending(call: ToolCall) -> Generator[Question, None, str]:
    """Show the user what code would send; PermissionError unless they allow it.

    If nothing can be sent because no account is set, they are not asked.
    """
    assert call.origin is not None
    call.origin.check_sending()
    parts = [f"  {shown_name(name)}: {shown(value)}" for name, value in call.arguments.items()]
    text = "\n".join([f"The code wants to send something with {call.name}:", *parts, "Send it?"])
    allowed = yield from ask_about(call, text)
    if allowed is None:
        raise PermissionError(f"{call.name} sent nothing: sending needs approval, and there was no one to ask.")
    if not allowed:
        raise PermissionError(f"{call.name} sent nothing: the user said no.")
    return "user"


MAX_SHOWN_LENGTH = 4000  # characters of an argument in a question, where the user has to see what is sent


def shown(value: Any, longest: int = MAX_SHOWN_LENGTH) -> str:
    """Return an argument as text, with nothing hidden in it and no control characters."""
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if hasattr(value, "png"):
        return f"<Picture {value.width} x {value.height}>"
    return cut(visible(repr(value)), longest)


def shown_name(name: str) -> str:
    """Show the name of an argument, for which code can choose any text."""
    return visible(name if name.isidentifier() else repr(name))


def cut(text: str, longest: int) -> str:
    """Return the beginning of a text, and how much more there is."""
    return text if len(text) <= longest else f"{text[:longest]}… and {len(text) - longest:,} more characters"
