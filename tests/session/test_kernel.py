"""The action pipeline under stress: cancelled early, abandoned, read by two threads, nested, interrupted."""

from __future__ import annotations

import contextvars
import gc
import threading
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest

from interpreter.errors import BusyError, UsageError
from interpreter.messages import Chunk
from interpreter.questions import Confirm
from interpreter.session import APPROVE, Action, ActionContext, Actor, Answer, Event, Performance, Question, Session
from waiting import in_thread, until


def line(text: str) -> Chunk:
    return {"type": "console", "format": "output", "content": text}


def ended_chunk() -> Chunk:
    return {"type": "console", "format": "active_line", "content": None, "ended": "done"}  # type: ignore[typeddict-unknown-key]


class ScriptedAction(Action):
    """Yields the given chunks, and calls the callables among them."""

    kind = "talk"

    def __init__(self, *steps: Chunk | Question | Callable[[], Any], asks: Question | None = None) -> None:
        super().__init__()
        self.steps, self.asks = steps, asks
        self.stopped = threading.Event()
        self.checks = 0

    def judge(self, context: ActionContext) -> Iterator[Chunk | Question]:
        if self.asks is not None:
            yield self.asks
            self.refused = self.asks.answer is None or self.asks.answer.choice != APPROVE

    def still_allowed(self, context: ActionContext) -> bool:
        self.checks += 1
        return True

    def run(self, context: ActionContext) -> Generator[Chunk]:
        for step in self.steps:
            if callable(step):
                step()
            else:
                yield step
        self.outcome = "done"

    def stop(self) -> None:
        self.stopped.set()


def confirm(consent: bool = False) -> Question:
    return Question(Confirm("really?", "talk"), consent=consent)


@pytest.fixture
def session() -> Session:
    return Session()


@pytest.fixture
def actor(session: Session) -> Actor:
    return session.add_actor("user")


def join(thread: threading.Thread) -> None:
    thread.join(20)
    assert not thread.is_alive(), "a thread hangs"


def states(session: Session, action: Action) -> list[str]:
    return [event.data["state"] for event in session.log.read() if event.kind == "action" and belongs_to(event, action)]


def belongs_to(event: Event, action: Action) -> bool:
    return event.ids.action == action.id


# -- cancelling ------------------------------------------------------------------------------------------------------


def test_an_action_cancelled_before_it_is_read_does_not_run(session: Session, actor: Actor) -> None:
    action = ScriptedAction(line("a"))
    performance = session.perform(action, actor)
    session.cancel(action)
    performance.result()
    assert states(session, action) == ["begun", "ended"] and session.log.read()[-1].data["outcome"] == "cancelled"


def test_an_action_waiting_for_the_lane_can_be_cancelled(session: Session, actor: Actor) -> None:
    first, second = session.perform(ScriptedAction(line("a"), line("b")), actor), ScriptedAction(line("c"))
    while next(first).kind != "console":
        pass
    thread, _ = in_thread(session.perform(second, actor).result)
    until(lambda: session.lane.waiting > 0, "the second action")
    session.cancel(second)
    join(thread)
    assert states(session, second) == ["begun", "ended"]
    assert [event.data["content"] for event in first if event.data.get("content")] == ["a", "b"]


def test_an_action_with_an_open_question_can_be_cancelled(session: Session, actor: Actor) -> None:
    action = ScriptedAction(line("a"), asks=confirm())
    with session.questions.answerable(["confirm"]):
        thread, _ = in_thread(session.perform(action, actor).result)
        until(lambda: bool(session.questions.open), "the question")
        session.cancel(actor)
        join(thread)
    assert states(session, action) == ["begun", "ended"]
    assert [event.data["choice"] for event in session.log.read() if event.kind == "answer"] == ["withdrawn"]
    assert not session.questions.open


def test_children_are_stopped_with_their_parent(session: Session, actor: Actor) -> None:
    child = ScriptedAction(line("a"))
    waits = ScriptedAction(lambda: child.stopped.wait(20))
    child.steps = (waits_for(child),)
    parent = ScriptedAction(lambda: session.perform(child, actor).result())
    thread, _ = in_thread(session.perform(parent, actor).result)
    until(lambda: child in session.running, "the child")
    session.cancel(parent)
    join(thread)
    assert child.stopped.is_set() and parent.stopped.is_set() and not waits.stopped.is_set()


def waits_for(action: ScriptedAction) -> Callable[[], None]:
    def wait() -> None:
        assert action.stopped.wait(20), "it was not stopped"

    return wait


def test_cancelling_an_ended_action_does_not_stop_it_again(session: Session, actor: Actor) -> None:
    """Otherwise the next action in the same runtime would be stopped."""
    action = ScriptedAction(line("a"))
    session.perform(action, actor).result()
    session.cancel(action)
    assert not action.stopped.is_set()


# -- abandoned actions -------------------------------------------------------------------------------------------------


def up_to(performance: Performance, kind: str) -> Event:
    return next(event for event in performance if event.kind == kind)


def test_an_action_dropped_during_its_question_ends_when_the_next_begins(session: Session, actor: Actor) -> None:
    """Not in a generator's finaliser, which could run anywhere, in the middle of anything."""
    action = ScriptedAction(asks=confirm())
    performance = session.perform(action, actor)
    up_to(performance, "confirmation")
    gc.collect()
    before = session.log.last
    del performance
    gc.collect()
    assert session.log.last == before, "a finaliser published something"
    session.perform(ScriptedAction(line("b")), actor).result()
    assert states(session, action) == ["begun", "ended"]
    assert not session.questions.open and not session.running


def test_a_dropped_running_action_frees_the_lane_for_a_waiting_one(session: Session, actor: Actor) -> None:
    action = ScriptedAction(line("a"), line("b"))
    performance = session.perform(action, actor)
    up_to(performance, "console")
    thread, _ = in_thread(session.perform(ScriptedAction(line("c")), actor).result)
    until(lambda: session.lane.waiting > 0, "the second action")
    del performance
    gc.collect()
    join(thread)
    assert states(session, action) == ["begun", "running", "ended"]


def test_several_threads_can_read_one_action(session: Session, actor: Actor) -> None:
    performance = session.perform(ScriptedAction(*[line(str(number)) for number in range(500)]), actor)
    readers = [in_thread(lambda: list(performance)) for _ in range(3)]
    for thread, _ in readers:
        join(thread)
    seen = [(event.position, bool(event.data.get("start"))) for _, found in readers for event in found[0]]
    assert len(seen) == len(set(seen))
    assert [found for _, found in readers if not isinstance(found[0], list)] == []
    said = "".join(str(event.data.get("content") or "") for event in session.log.read())
    assert said == "".join(map(str, range(500)))


def test_a_consumer_can_resume_while_another_thread_ends_its_action(session: Session, actor: Actor) -> None:
    ending, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        ending.set()
        assert go_on.wait(20)

    first = session.perform(ScriptedAction(line("a"), ended_chunk(), slow, line("b")), actor)
    while not first.action.over:
        next(first)
    other, _ = in_thread(session.perform(ScriptedAction(line("c")), actor).result)
    assert ending.wait(20), "the second action did not take the first to its end"
    threading.Timer(0.1, go_on.set).start()
    rest = list(first)
    join(other)
    assert [event.data["content"] for event in rest if event.data.get("content")] == ["b"]


def test_closing_an_action_read_by_another_thread_cancels_it(session: Session, actor: Actor) -> None:
    action = ScriptedAction(line("a"))
    action.steps = (line("a"), waits_for(action))
    performance = session.perform(action, actor)
    thread, _ = in_thread(performance.result)
    until(lambda: states(session, action) == ["begun", "running"], "the action")
    performance.close()
    join(thread)
    assert states(session, action) == ["begun", "running", "ended"]


def test_an_action_cannot_be_read_or_closed_from_inside(session: Session, actor: Actor) -> None:
    raised: list[str] = []
    performance: list[Performance] = []

    def inside() -> None:
        for use in (lambda: next(performance[0]), performance[0].close):
            with pytest.raises(BusyError) as error:
                use()
            raised.append(str(error.value))

    performance.append(session.perform(ScriptedAction(inside), actor))
    performance[0].result()
    assert len(raised) == 2


# -- nesting -----------------------------------------------------------------------------------------------------------


def test_an_action_in_a_question_handler_takes_the_lane(session: Session, actor: Actor) -> None:
    """An open question doesn't hold the lane, so a child of the asking action has to take it."""
    covered: list[Action] = []

    class Checkpoints:
        def before(self, action: Action) -> list[Chunk]:
            covered.append(action)
            return []

        def after(self, action: Action) -> list[Chunk]:
            return []

    session = Session(Checkpoints)
    actor = session.add_actor("user")
    child = ScriptedAction(lambda: holders.append(session.lane.holder))
    child.covered = True
    holders: list[Any] = []

    def handler(question: Question) -> Answer:
        session.perform(child, actor).result()
        return Answer(APPROVE)

    parent = ScriptedAction(line("a"), asks=confirm())
    with session.questions.answerable(["confirm"], handler):
        session.perform(parent, actor).result()
    assert [holder.action for holder in holders] == [child] and covered == [child]
    assert parent.outcome == "done" and parent.checks == 1  # another action ran during the question


def test_an_action_in_a_question_handler_waits_for_the_running_one(session: Session, actor: Actor) -> None:
    running, go_on = threading.Event(), threading.Event()

    def hold_on() -> None:
        running.set()
        assert go_on.wait(20)

    first, _ = in_thread(session.perform(ScriptedAction(hold_on), actor).result)
    assert running.wait(20)
    child = ScriptedAction(line("b"))

    def handler(question: Question) -> Answer:
        threading.Timer(0.1, go_on.set).start()
        session.perform(child, actor).result()
        return Answer(APPROVE)

    with session.questions.answerable(["confirm"], handler):
        session.perform(ScriptedAction(line("a"), asks=confirm()), actor).result()
    join(first)
    kinds = [
        (event.ids.action == child.id, event.data["state"]) for event in session.log.read() if event.kind == "action"
    ]
    assert kinds.index((False, "ended")) < kinds.index((True, "running"))


def test_code_that_lost_its_context_gets_an_error_instead_of_a_deadlock(session: Session, actor: Actor) -> None:
    caught: list[BaseException] = []

    def inside() -> None:
        try:
            contextvars.Context().run(session.perform(ScriptedAction(line("b")), actor).result)
        except BusyError as error:
            caught.append(error)

    def nested() -> None:
        contextvars.Context().run(lambda: inside())

    thread, _ = in_thread(session.perform(ScriptedAction(nested), actor).result)
    join(thread)
    assert len(caught) == 1


def test_an_event_reader_can_perform_actions(session: Session, actor: Actor) -> None:
    done: list[str] = []

    def react() -> None:
        for event in session.events():
            if event.kind == "action" and event.data["state"] == "ended":
                done.append(event.ids.action)
                if len(done) == 3:
                    return
                session.perform(ScriptedAction(line("again")), actor).result()

    thread, _ = in_thread(react)
    session.perform(ScriptedAction(line("a")), actor).result()
    join(thread)
    assert len(set(done)) == 3


# -- errors and interrupts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_action_that_raises_ends_and_frees_the_lane(
    session: Session, actor: Actor, error: type[BaseException]
) -> None:
    def fail() -> None:
        raise error

    action = ScriptedAction(line("a"), fail)
    with pytest.raises(error):
        session.perform(action, actor).result()
    assert states(session, action) == ["begun", "running", "ended"]
    assert session.log.read()[-1].data["error"] == error.__name__
    session.perform(ScriptedAction(line("b")), actor, wait=False).result()


def test_an_interrupt_at_a_question_withdraws_it(session: Session, actor: Actor) -> None:
    question = confirm()

    def handler(asked: Question) -> Answer | None:
        raise KeyboardInterrupt

    with session.questions.answerable(["confirm"], handler), pytest.raises(KeyboardInterrupt):
        session.perform(ScriptedAction(asks=question), actor).result()
    assert [event.data["choice"] for event in session.log.read() if event.kind == "answer"] == ["withdrawn"]
    assert not question.settle(Answer(APPROVE)), "an answer that came too late counted"
    assert not session.answer(question.id, APPROVE)
    with pytest.raises(UsageError):
        session.answer("q0", APPROVE)


def test_an_interrupt_during_release_still_frees_the_lane(
    session: Session, actor: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = session.lane.release

    def interrupted(holder: Any) -> None:
        monkeypatch.setattr(session.lane, "release", release)
        raise KeyboardInterrupt

    monkeypatch.setattr(session.lane, "release", interrupted)
    with pytest.raises(KeyboardInterrupt):
        session.perform(ScriptedAction(line("a")), actor).result()
    thread, found = in_thread(session.perform(ScriptedAction(line("b")), actor).result)
    join(thread)
    assert found == [None]


def test_an_interrupted_waiter_leaves_the_queue(session: Session, actor: Actor) -> None:
    gone = session.perform(ScriptedAction(line("a")), actor)
    session.lane._queue.append(gone._hold)  # the state after an interrupt, before the waiter has cleaned up
    thread, found = in_thread(session.perform(ScriptedAction(line("b")), actor).result)
    join(thread)
    assert found == [None] and session.lane.waiting == 0


def test_running_times_do_not_overlap_in_the_log(session: Session, actor: Actor) -> None:
    """An action is logged as running only after the previous one is logged as ended."""
    threads = [
        in_thread(lambda: [session.perform(ScriptedAction(line("x")), actor).result() for _ in range(50)])
        for _ in range(6)
    ]
    for thread, _ in threads:
        join(thread)
    running: str | None = None
    for event in session.log.read():
        if event.kind == "action" and event.data["state"] == "running":
            assert running is None, "two actions run at once"
            running = event.ids.action
        elif event.kind == "action" and event.data["state"] == "ended" and event.ids.action == running:
            running = None
    assert session.lane.released == 300


# -- driven by the session -------------------------------------------------------------------------------------------


def test_starting_an_action_returns_when_it_has_begun(session: Session, actor: Actor) -> None:
    go_on = threading.Event()
    action = ScriptedAction(lambda: go_on.wait(20), line("one"), ended_chunk())
    started = session.start(action, actor)
    assert session.running == [action] and not started.wait(0)
    go_on.set()
    assert started.wait(20) and states(session, action) == ["begun", "running", "ended"]


def test_an_action_that_cannot_begin_raises_where_it_is_started(session: Session, actor: Actor) -> None:
    class Unable(ScriptedAction):
        def begin(self, context: ActionContext) -> None:
            raise UsageError("not today")

    with pytest.raises(UsageError, match="not today"):
        session.start(Unable(), actor)
    assert session.running == [] and session.log.last == 0


def test_the_reader_of_a_started_action_gets_all_its_events_and_may_leave_early(session: Session, actor: Actor) -> None:
    events = list[Event]()
    whole = ScriptedAction(line("one"), ended_chunk())
    assert session.start(whole, actor, events.extend).wait(20)
    assert [event.number for event in events if event.kind == "action"] == [1, 2, session.log.last]
    left, threads = ScriptedAction(line("one"), line("two")), list[threading.Thread]()

    def read(steps: Iterator[Event]) -> None:
        threads.append(threading.current_thread())
        next(steps)

    started = session.start(left, actor, read)
    assert started.wait(20) and threads == [started.thread]
    assert left.outcome == "abandoned" and session.running == []
