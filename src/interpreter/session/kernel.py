"""The session kernel: the one pipeline that everything done to a session goes through, and its lane.

    judge -> approve -> take the lane -> checkpoint -> execute -> record -> publish

Every caller uses it: the model's block, `computer.run`, `!cmd`, a re-run, a preview and its application, undo, a fork.
The lane is a ticket lock: every action that changes files, variables or the conversation takes it in turn.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from contextlib import closing
from contextvars import Context
from typing import Any, Literal, Protocol

from interpreter.errors import BusyError, InterpreterError, NotPermittedError, UsageError
from interpreter.messages import Chunk, as_original
from interpreter.questions import REFUSE, Answer, Question, Questions
from interpreter.session.actions import ACTION, Action, ActionContext, Approver, Runner
from interpreter.session.actor import Actor, ActorKind, Permissions
from interpreter.session.events import (
    ActionData,
    ActionFields,
    AnswerData,
    Event,
    EventLog,
    Ids,
    PermissionsData,
    PlanData,
    PlanStep,
    Publisher,
    redacted,
)


class Lane:
    """A ticket lock between actions, not a thread: an action runs in the thread that iterates over it.

    An action whose consumer has stopped reading does not keep the others waiting once it is over: the next one takes it
    to its end. A thread never waits for itself: its own suspended action is cancelled.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.RLock())  # a finaliser may wake in the middle of anything
        self._queue: deque[_Hold] = deque()
        self.holder: _Hold | None = None
        self.released = 0  # how often the lane was given back. If it changed, another action has run.

    def acquire(self, holder: _Hold, wait: bool = True, cancelled: Callable[[], bool] = lambda: False) -> bool:
        """Take the lane; False if the wait was cancelled. BusyError if another action has it and `wait` is false."""
        with self._changed:
            self._queue.append(holder)
        try:
            while not cancelled():
                with self._changed:
                    if self._is_free_for(holder):
                        self.holder = holder
                        return True
                    other = self.holder
                if other is not None:  # finish it if no one else will: it is over, or this thread left it suspended
                    if other.thread is holder.thread and not other.can_finish():
                        other.action.cancel()
                    if (other.thread is holder.thread or other.can_finish()) and other.finish():
                        self.release(other)  # it has done so itself, unless an interrupt came in between
                        continue
                if not wait:
                    raise BusyError((other or self._queue[0]).action.describe())
                with self._changed:
                    self._changed.wait_for(
                        lambda: (
                            cancelled()
                            or self._is_free_for(holder)
                            or (self.holder is not None and self.holder.can_finish())
                        )
                    )
            return False
        finally:
            with self._changed:
                if holder in self._queue:
                    self._queue.remove(holder)
                self._changed.notify_all()

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def is_held(self) -> bool:
        """Return whether an action that has not ended holds the lane."""
        holder = self.holder
        return holder is not None and not holder.can_finish()

    def _is_free_for(self, holder: _Hold) -> bool:
        while self._queue[0] is not holder and not self._queue[0].busy.locked():
            self._queue.popleft()  # an interrupt came before it could leave the queue
        return self.holder is None and self._queue[0] is holder

    def release(self, holder: _Hold) -> None:
        """Release the lane, if this holder has it."""
        with self._changed:
            if self.holder is holder:
                self.holder = None
                self.released += 1
                self._changed.notify_all()

    def wake(self) -> None:
        """Wake the waiters, because a condition may have changed. May be called from any thread."""
        with self._changed:
            self._changed.notify_all()


class Checkpoints(Protocol):
    """Notes files and variables around an action, so that it can be undone."""

    def before(self, action: Action) -> list[Chunk]:
        """Prepare for an action that is about to run. Returns notices for the user."""

    def after(self, action: Action) -> list[Chunk]:
        """Return chunks about the action's changes to files, after its end. A second call does nothing."""


class Session:
    """Everything that callers share: one lane, one event log, the open questions, and who acts."""

    def __init__(
        self,
        checkpoints: Callable[[], Checkpoints | None] = lambda: None,
        question_timeout: Callable[[], float | None] = lambda: None,
        workspace: Callable[[], str] = os.getcwd,
        runtimes: Callable[[Actor], Runner] | None = None,
    ) -> None:
        self.lane = Lane()
        self.log = EventLog()
        self.questions = Questions()
        self.actors: dict[str, Actor] = {}
        self.workspace = workspace
        self.approver: Approver | None = None  # without one, no agent's code runs
        self.clean: Callable[[str], str] = str  # takes secrets out of what code printed
        self._checkpoints, self._question_timeout, self._runtimes = checkpoints, question_timeout, runtimes
        self._running: dict[Action, _Hold] = {}  # which keeps what was left in the middle from being finalised
        self._changing = threading.Lock()

    # -- actors --------------------------------------------------------------------------------------------------

    def add_actor(
        self,
        kind: ActorKind,
        permissions: Permissions | Callable[[], Permissions] = Permissions(),  # noqa: B008 - a value
        parent: Actor | None = None,
        **parts: Any,
    ) -> Actor:
        """Add an actor with these permissions, which acts for `parent`. For `parts`, see `Actor`."""
        with self._changing:
            count = sum(actor.kind == kind for actor in self.actors.values())
            name = kind if not count else f"{kind}-{count + 1}"
            actor = self.actors[name] = Actor(name, kind, permissions, parent, self.add_actor, **parts)
        return actor

    def runtimes(self, actor: Actor) -> Runner:
        """Return the runtimes that an actor's blocks run in, in the sandbox that its permissions name now."""
        if self._runtimes is None:
            raise UsageError(f"{actor.id} has no computer to run code on.")
        return self._runtimes(actor)

    def revoke(self, actor: Actor) -> None:
        """Revoke all permissions of an actor and of those that act for it, and cancel their actions."""
        actor.revoked = True
        for each in [each for each in self.actors.values() if each.is_revoked]:
            self.cancel(each)
        self.log.publish("permissions", {"actor": actor.id, "revoked": True}, Ids(actor=actor.id), actor.sink())

    def publish_permissions(self, actor: Actor) -> Permissions:
        """Return the actor's permissions, and publish them if they have changed."""
        permissions, known = actor.permissions, actor.published
        if permissions != known:
            actor.published = permissions
            if known is not None:
                data: PermissionsData = {
                    "actor": actor.id,
                    "mode": permissions.mode,
                    "sandboxed": permissions.sandbox is not None,
                }
                self.log.publish("permissions", data, Ids(actor=actor.id), actor.sink())
        return permissions

    # -- the four verbs --------------------------------------------------------------------------------------------

    def perform(
        self, action: Action, actor: Actor, wait: bool = True, publisher: Publisher | None = None
    ) -> Performance:
        """Do something; iterate over the result for its events.

        While another action holds the lane, this one waits, or raises BusyError if `wait` is false.
        """
        self._check_may_act(actor)
        action.actor = actor
        action.parent = ACTION.get()
        if publisher is not None:
            action.turn = publisher.ids.turn
        elif action.parent is not None:
            action.turn = action.parent.turn
        return Performance(self, action, publisher or action.publisher(self), wait)

    def start(self, action: Action, actor: Actor, read: Callable[[Iterator[Event]], object] | None = None) -> Started:
        """Do something in the background, for those who only watch: its end and its error are events.

        Returns when it has begun, and raises what prevents that. `read` gets the events in the thread that drives it.
        """
        return Started(self.perform(action, actor), read or deque[Event](maxlen=0).extend)

    def end_suspended(self, action: Action) -> None:
        """End an action that its reader has left in the middle; BusyError if another thread is reading it."""
        hold = self._running.get(action)
        if hold is None:
            return
        is_read_elsewhere = hold.thread is not threading.current_thread() and hold.thread.is_alive()
        if is_read_elsewhere or hold.is_driven_here():  # or the code that it runs asks for this
            raise BusyError(action.describe())
        with hold.busy:
            hold.steps.close()

    def _check_may_act(self, actor: Actor) -> None:
        if self.actors.get(actor.id) is not actor:
            raise NotPermittedError(f"{actor.id} belongs to another session.")
        if actor.kind == "viewer":
            raise NotPermittedError(f"{actor.id} can only watch this session.")
        if actor.is_revoked:
            raise NotPermittedError(f"{actor.id} may not do anything any more: its access was revoked.")

    def events(self, after: int = 0, offset: int | None = None, redact: bool = False) -> Generator[Event]:
        """Yield the events after this number, then new ones as they happen. `redact`: for readers on other machines."""
        events = self.log.follow(after, offset)
        return redacted(events, self.clean) if redact else events

    def read(self, after: int = 0, offset: int | None = None, most: int | None = None) -> list[Event]:
        """Return about `most` new events for a reader on another machine, without waiting for more."""
        return list(redacted(self.log.read(after, offset, most), self.clean, rest=self.log.closed))

    def answer(self, question_id: str, answer: Answer | str, text: str | None = None, by: Actor | None = None) -> bool:
        """Answer a question, from any thread; False if it was answered before, or withdrawn.

        `by` is who answers: by default the actor whose code is running, else the user. NotPermittedError if that actor
        may not answer it.
        """
        question = self.questions.find(question_id, closed=True)
        if question is None:
            raise UsageError(f"There is no open question {question_id}.")
        running = ACTION.get()
        by = by or (running.actor if running is not None else None)
        if by is not None:
            self._check_may_answer(question, by)
        if not isinstance(answer, Answer):
            answer = Answer(answer, text, by.id if by is not None else "user")
        return question.settle(answer)

    def _check_may_answer(self, question: Question, by: Actor) -> None:
        self._check_may_act(by)
        asking = self.actors.get(question.actor)
        if asking is not None and asking.kind == "agent" and asking in by.chain():
            raise NotPermittedError(f"{by.id} can't answer a question of {asking.id}: an agent can't approve itself.")
        if by.kind == "agent" and question.kind in ("block", "call"):
            raise NotPermittedError(f"{by.id} can't approve what {question.actor} wants to do: it is an agent.")

    def cancel(self, what: Action | Actor) -> None:
        """End an action, or everything that an actor is doing; from any thread."""
        if isinstance(what, Action):
            what.cancel()  # even before its first event
        ending = [each for each in self.running if any(what in (a, a.actor) for a in each.ancestors())]
        for action in ending:  # nothing continues when what it waits for is stopped
            action.cancel_requested.set()
        for action in reversed(ending):  # children first
            action.cancel()
            self.questions.withdraw(action=action.id)
        self.lane.wake()

    # -- looking ---------------------------------------------------------------------------------------------------

    @property
    def running(self) -> list[Action]:
        """Return the actions that have begun and not ended."""
        return list(self._running)

    def plan(self, steps: list[PlanStep], actor: Actor, turn: str = "") -> Event:
        """Publish a plan and its progress. Each call replaces the plan before."""
        data: PlanData = {"steps": [step._asdict() for step in steps]}
        return self.log.publish("plan", data, Ids(turn, "", actor.id), actor.sink())

    def close(self) -> None:
        """End the session: what was started ends, its readers stop, and open questions are withdrawn."""
        for action in self.running:
            if action.is_started:
                self.cancel(action)
        self._end_abandoned()
        self.questions.withdraw()
        self.log.close()

    # -- the pipeline ------------------------------------------------------------------------------------------------

    def _steps(self, action: Action, publisher: Publisher, hold: _Hold, wait: bool) -> Generator[Event]:
        """Take an action through the whole pipeline, in order."""
        self._end_abandoned()
        error: ActionFields = {}
        action.begin(self.context_of(action))
        self._running[action] = hold
        outer, publisher.ids = publisher.ids, action.ids
        try:
            yield self._tell(action, "begun")
            if (yield from self._approved(action, publisher, hold, wait)):
                yield from self._done(action, publisher, hold)
            yield from publisher.close()  # what follows belongs to another action
        except GeneratorExit:
            action.outcome = "abandoned"
            raise
        except BaseException as raised:
            action.outcome = "interrupted" if isinstance(raised, KeyboardInterrupt) else "error"
            error = {"error": type(raised).__name__}
            if isinstance(raised, InterpreterError):
                error["text"] = self.clean(str(raised))
            raise
        finally:
            try:
                action.end()
                publisher.ids = outer
                self._running.pop(action, None)
                fields: ActionFields = {"outcome": action.outcome or "cancelled", **action.ending_fields, **error}
                ended = self._tell(action, "ended", fields)
            finally:
                self.lane.release(hold)
        yield ended

    def _end_abandoned(self) -> None:
        """Close the actions whose iterator was dropped. A finaliser can run anywhere, so it only sets a flag."""
        for hold in list(self._running.values()):
            if hold.abandoned and hold.finish():
                self.lane.release(hold)

    def _approved(self, action: Action, publisher: Publisher, hold: _Hold, wait: bool) -> Generator[Event, None, bool]:
        """Judge it, ask its questions and take the lane; whether it may run.

        An open question holds no lane. If another action ran before the lane was free, it is judged again.
        """
        context = self.context_of(action)
        while not action.is_cancelled():
            released, permissions = self.lane.released, self.publish_permissions(context.actor)
            for step in action.judge(context):
                if not isinstance(step, Question):
                    yield from publisher.publish(step)
                elif action.forward_question is not None:
                    self._forward(step, action.forward_question)
                else:
                    yield from self._ask(step, action, publisher)
            if action.refused:
                action.outcome = "refused"
                return False
            if not action.needs_lane:
                break
            # A parent that asks, or is in the background, does not hold the lane.
            holder = self.lane.holder
            if action.is_cancelled() or (holder is not None and holder.action in list(action.ancestors())[1:]):
                break
            if holder is not None and holder.is_driven_here():  # user code that lost the context variable
                raise BusyError(holder.action.describe())
            try:
                self.lane.acquire(hold, wait=False)
            except BusyError as busy:
                if not wait:
                    raise
                content = {"text": f"Waiting: {busy}."}
                yield from publisher.publish(_said({"type": "status", "format": "waiting", "content": content}))
                if not self.lane.acquire(hold, cancelled=action.is_cancelled):
                    return False
            is_unchanged = self.lane.released == released and self.publish_permissions(context.actor) == permissions
            if is_unchanged or action.still_allowed(context):
                break
            self.lane.release(hold)
        return not action.is_cancelled()

    def _done(self, action: Action, publisher: Publisher, hold: _Hold) -> Generator[Event]:
        """Checkpoint, execute, record."""
        context = self.context_of(action)
        action.prepare(context)
        yield self._tell(action, "running")
        checkpoints = self._checkpoints() if action.covered and self.lane.holder is hold else None
        try:
            for chunk in checkpoints.before(action) if checkpoints is not None else ():
                yield from publisher.publish(_said(chunk))
            with closing(action.run(context)) as steps:
                for step in steps:
                    if isinstance(step, Event):
                        yield step
                        continue
                    if isinstance(step, Question):
                        yield from self._ask(step, action, publisher)
                        continue
                    if "ended" in step:
                        action.over = True
                        for told in checkpoints.after(action) if checkpoints is not None else ():
                            yield from publisher.publish(_said(told))
                    yield from publisher.publish(_said(step))
            for told in checkpoints.after(action) if checkpoints is not None else ():
                yield from publisher.publish(_said(told))  # a custom runtime may not report its end
        finally:
            if checkpoints is not None:
                checkpoints.after(action)

    def context_of(self, action: Action) -> ActionContext:
        """Return what an action may use."""
        assert action.actor is not None
        return ActionContext(self, action.actor, self.approver, action.is_cancelled)

    def ask(self, question: Question, action: Action) -> None:
        """Ask for code that can't yield the question, and wait. Its consumer gets the event when it reads on."""
        if action.forward_question is not None:
            self._forward(question, action.forward_question)
        else:
            shown, _ = self._ask(question, action, Publisher(self.log, action.ids))
            question.published = shown.number

    def _forward(self, question: Question, forward: Callable[[Question], bool]) -> None:
        """Pass the question to the reader of the action that this one is part of."""
        if forward(question):
            question.wait()
        else:
            question.settle(Answer(REFUSE, by="nobody"))

    def _ask(self, question: Question, action: Action, publisher: Publisher) -> Generator[Event]:
        """Publish a question and wait for the answer. The consumer may answer first, while this is suspended."""
        if question.published:  # it was asked before it came here
            yield from publisher.publish(question.chunk, question.published)
            return
        question.action, question.actor = action.id, action.actor.id if action.actor is not None else ""
        try:
            with self.questions.asking(question):
                yield from publisher.publish(question.chunk)
                if action.is_cancelled():
                    question.withdraw()
                self.questions.settle(question, self._question_timeout())
        finally:
            answer = question.answer or Answer("withdrawn", by="")
            data: AnswerData = {"question": question.id, "choice": answer.choice, "by": answer.by}
            answered = self.log.publish("answer", data, action.ids, action.sink)
        yield answered

    def _tell(
        self, action: Action, state: Literal["begun", "running", "ended"], fields: ActionFields | None = None
    ) -> Event:
        data: ActionData = {"state": state, "kind": action.kind, **(fields or {})}
        if state == "begun":
            data = {**data, **action.fields}
            if action.parent is not None:
                data["parent"] = action.parent.id
        return self.log.publish("action", data, action.ids, action.sink)


class _Hold:
    """Holds the lane for an action. It outlives the iterator, which the consumer may drop."""

    def __init__(self, action: Action, steps: Callable[[_Hold], Generator[Event]]) -> None:
        self.action = action
        self.steps = steps(self)
        self.thread = threading.current_thread()  # its consumer
        self.driver: threading.Thread | None = None  # the thread that is inside
        self.buffer: deque[Event] = deque()  # what another thread read in the consumer's place
        self.error: BaseException | None = None
        self.busy = threading.Lock()  # held while a thread drives the steps
        self.abandoned = False

    def next(self, here: threading.Thread) -> Event:
        if self.buffer:
            return self.buffer.popleft()
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        token = ACTION.set(self.action)
        self.driver = here
        try:
            return next(self.steps)
        finally:
            self.driver = None
            ACTION.reset(token)

    def is_driven_here(self) -> bool:
        """Check whether this thread is already running the action, further up the stack."""
        return self.busy.locked() and self.driver is threading.current_thread()

    @property
    def is_over(self) -> bool:
        return self.action.over or self.steps.gi_frame is None  # type: ignore[attr-defined]

    def can_finish(self) -> bool:
        """Check whether the action's code has ended and no thread is reading its last events."""
        return (self.is_over or self.abandoned) and not self.busy.locked()

    def finish(self) -> bool:
        """Run the action to its end for its consumer, who gets the rest later; False if the consumer is doing so."""
        if not self.busy.acquire(blocking=False):
            return False
        token = ACTION.set(self.action)
        self.driver = threading.current_thread()
        try:
            if self.abandoned and not self.is_over:
                self.action.cancel()
            if self.abandoned or not (self.is_over or self.action.drains):
                self.steps.close()
            else:
                self.buffer.extend(self.steps)
        except BaseException as error:  # noqa: BLE001 - raised when its consumer continues reading
            self.error = error
        finally:
            self.driver = None
            ACTION.reset(token)
            self.busy.release()
        return True


class Performance(Iterator[Event]):
    """An action that is being performed. Iterate over it; leave early with `close`."""

    def __init__(self, session: Session, action: Action, publisher: Publisher, wait: bool) -> None:
        self.action = action
        self._session = session
        self._hold = _Hold(action, lambda hold: session._steps(action, publisher, hold, wait))
        action.on_over = session.lane.wake

    def __next__(self) -> Event:
        hold, here = self._hold, threading.current_thread()
        if hold.driver is here and hold.busy.locked():
            raise BusyError("This thread is already reading this action.")
        try:
            with hold.busy:
                hold.thread = here
                return hold.next(here)
        finally:
            if self.action.over:
                self._session.lane.wake()

    def chunks(self, everything: bool = True) -> Generator[Chunk]:
        """Yield the events that have an LMC form, as chunks. As in 0.4.3, reading past a confirmation may be consent.

        Without `everything`, only those that 0.4.3 has.
        """
        with closing(self):
            for event in self:
                chunk = event.chunk
                if chunk is not None and not everything:
                    chunk = as_original(chunk)
                if chunk is not None:
                    yield chunk
                if event.kind == "confirmation":
                    self._session.questions.consent_by_continuing(event.data["question"])

    def result(self) -> Any:
        """Run the action to its end, and return its result."""
        for _ in self:
            pass
        return self.action.result

    def close(self) -> None:
        """End the action early and wait for its end. If another thread is reading it, cancel it there first."""
        hold = self._hold
        if hold.is_driven_here():
            raise BusyError("This thread is already reading this action. Cancel it instead.")
        if not hold.busy.acquire(blocking=False):
            self._session.cancel(self.action)
            hold.busy.acquire()
        try:
            hold.steps.close()
            hold.buffer.clear()
        finally:
            hold.busy.release()

    def __del__(self) -> None:
        self._hold.abandoned = True  # only a flag: a finaliser can run in the middle of anything
        if not self._hold.is_over:
            self._session.lane.wake()


class Started:
    """An action that the session drives itself."""

    def __init__(self, performance: Performance, read: Callable[[Iterator[Event]], object]) -> None:
        self.action = performance.action
        self.action.is_started = True
        self.error: BaseException | None = None
        self._performance, self._read, self._ended = performance, read, threading.Event()
        begun: Future[None] = Future()
        # A separate context: what another action starts in the background is no part of it.
        drive, name = Context().run, self.action.id
        self.thread = threading.Thread(target=drive, args=[self._drive, begun], name=name, daemon=True)
        self.thread.start()
        begun.result()

    def _drive(self, begun: Future[None]) -> None:
        try:
            with closing(self._performance):
                first = next(self._performance)
                begun.set_result(None)
                self._read(itertools.chain([first], self._performance))
        except BaseException as error:  # noqa: BLE001 - its event has told the readers; who waits gets it
            self.error = error
            if not begun.done():
                begun.set_exception(error)
        finally:
            self._ended.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the action has ended; False if that takes longer than `timeout`."""
        return self._ended.wait(timeout)

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the action's result, or raise the error that ended it. TimeoutError if it takes longer."""
        if not self._ended.wait(timeout):
            raise TimeoutError(f"{self.action.describe()}: not finished after {timeout} seconds.")
        if self.error is not None:
            raise self.error
        return self.action.result


def _said(chunk: Chunk) -> Chunk:
    return {**chunk, "role": "computer"}
