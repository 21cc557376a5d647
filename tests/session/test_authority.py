"""Who may do what comes from the actor, never from the caller."""

from __future__ import annotations

import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversation import Chatting, chatting
from interpreter import OpenInterpreter
from interpreter.app.trust import switch_mode
from interpreter.errors import NotPermittedError, SandboxUnavailableError
from interpreter.messages import Chunk
from interpreter.sandbox import bubblewrap
from interpreter.sandbox.sandbox import Sandbox
from interpreter.session import (
    APPROVE,
    Action,
    ActionContext,
    Actor,
    Answer,
    Block,
    Do,
    Event,
    Permissions,
    Question,
    Session,
    SetPermissions,
)
from interpreter.session.actor import MODES
from waiting import until

__all__ = ["chatting"]
pytestmark = pytest.mark.usefixtures("no_strays")


class Nothing(Action):
    """An action without an effect."""

    def run(self, context: ActionContext) -> Generator[Chunk]:
        self.outcome = "done"
        yield from ()


@pytest.fixture
def session() -> Session:
    return Session()


@pytest.fixture
def interpreter(chatting: Chatting, tmp_path: Path) -> OpenInterpreter:
    made, _ = chatting(workspace=str(tmp_path))
    return made


def agent_under(interpreter: OpenInterpreter, permissions: Permissions) -> Actor:
    """An agent that the interpreter's agent has started."""
    return interpreter.session.add_actor("agent", permissions, interpreter.agent.actor)


def run(interpreter: OpenInterpreter, actor: Actor, code: str = "print('ran')") -> tuple[str, str]:
    """Run a Python block; how it ended, and what it printed."""
    block = Block("python", code)
    events = list(interpreter.session.perform(block, actor))
    printed = [event.data.get("content") for event in events if event.data.get("format") == "output"]
    return block.outcome, "".join(map(str, printed))


# -- a block brings neither approval nor runtimes -------------------------------------------------------------------


def test_the_code_of_a_plan_mode_agent_cannot_write_whoever_performs_it(tmp_path: Path, home: Path) -> None:
    try:
        bubblewrap.available()
    except SandboxUnavailableError as error:
        pytest.skip(str(error))
    owner = OpenInterpreter(workspace=str(tmp_path), auto_run=True)
    guest = OpenInterpreter(computer=owner.computer, workspace=str(tmp_path), mode="plan")
    ended, _ = run(owner, guest.agent.actor, "open('x', 'w')")
    assert not (tmp_path / "x").exists() and ended == "error"
    assert run(owner, owner.agent.actor, "open('x', 'w')")[0] == "done" and (tmp_path / "x").exists()
    owner.reset()
    guest.reset()


def test_the_code_of_an_ask_mode_agent_is_asked_about_whoever_performs_it(interpreter: OpenInterpreter) -> None:
    asked: list[Question] = []

    def decline(question: Question) -> Answer:
        asked.append(question)
        return Answer("refuse")

    with interpreter.session.questions.answerable(["block"], decline):
        assert run(interpreter, interpreter.agent.actor) == ("refused", "")
    assert [question.subject.code for question in asked] == ["print('ran')"]


def test_an_agents_code_does_not_run_in_a_session_that_has_no_one_to_approve_it() -> None:
    session = Session()
    agent = session.add_actor("agent", Permissions("auto"))
    with pytest.raises(NotPermittedError, match="nothing in this session can approve it"):
        session.perform(Block("python", "1"), agent).result()


def test_an_actor_of_another_session_is_refused(session: Session) -> None:
    stranger = Session().add_actor("user")
    with pytest.raises(NotPermittedError, match="another session"):
        session.perform(Nothing(), stranger)


# -- who answers ----------------------------------------------------------------------------------------------------


def open_question(interpreter: OpenInterpreter, actor: Actor) -> tuple[threading.Thread, Question]:
    """A block of this actor that waits for approval in another thread."""
    thread = threading.Thread(target=interpreter.session.perform(Block("python", "1"), actor).result)
    thread.start()
    until(lambda: interpreter.session.questions.open, "the question")
    return thread, interpreter.session.questions.open[0]


def test_agents_and_viewers_cannot_approve(interpreter: OpenInterpreter) -> None:
    session = interpreter.session
    child = agent_under(interpreter, Permissions("auto"))
    viewer, other = session.add_actor("viewer"), session.add_actor("agent", Permissions("auto"))
    with session.questions.answerable(["block"]):
        thread, question = open_question(interpreter, interpreter.agent.actor)
        for actor, reason in [
            (interpreter.agent.actor, "can't approve itself"),
            (child, "can't approve itself"),
            (other, "it is an agent"),
            (viewer, "can only watch"),
        ]:
            with pytest.raises(NotPermittedError, match=reason):
                session.answer(question.id, APPROVE, by=actor)
        assert question.is_open
        assert session.answer(question.id, "refuse", by=interpreter.user)
        thread.join()


def test_a_parent_agent_cannot_approve_the_block_of_its_child(interpreter: OpenInterpreter) -> None:
    child = agent_under(interpreter, Permissions("ask"))
    with interpreter.session.questions.answerable(["block"]):
        thread, question = open_question(interpreter, child)
        with pytest.raises(NotPermittedError, match="it is an agent"):
            interpreter.session.answer(question.id, APPROVE, by=interpreter.agent.actor)
        interpreter.session.answer(question.id, "refuse", by=interpreter.user)
        thread.join()


def test_code_that_an_action_runs_answers_as_its_actor(interpreter: OpenInterpreter) -> None:
    """Not as the user: who knows the id of a question can't approve it from inside the agent's own action."""
    session, refused = interpreter.session, list[str]()

    class Answering(Action):
        def run(self, context: ActionContext) -> Generator[Chunk]:
            try:
                session.answer(session.questions.open[0].id, APPROVE)
            except NotPermittedError as error:
                refused.append(str(error))
            self.outcome = "done"
            yield from ()

    with session.questions.answerable(["block"]):
        thread, question = open_question(interpreter, interpreter.agent.actor)
        session.perform(Answering(), interpreter.agent.actor).result()
        assert refused and "can't approve itself" in refused[0] and question.is_open
        session.answer(question.id, "refuse", by=interpreter.user)
        thread.join()


def test_an_agents_action_cannot_approve_through_pending(interpreter: OpenInterpreter) -> None:
    """Where a script answers as the user, what an agent runs answers as the agent."""
    session, refused = interpreter.session, list[str]()

    def approve() -> None:
        try:
            interpreter.pending.approve()  # type: ignore[union-attr]
        except NotPermittedError as error:
            refused.append(str(error))

    with session.questions.answerable(["block"]):
        thread, question = open_question(interpreter, interpreter.agent.actor)
        asking = Do("look", approve)
        asking.needs_lane = False
        session.perform(asking, interpreter.agent.actor).result()
        assert refused and "can't approve itself" in refused[0] and question.is_open
        interpreter.pending.decline()  # type: ignore[union-attr]
        thread.join()


# -- every kind of actor in every mode ------------------------------------------------------------------------------

KINDS = ("user", "agent", "child of the agent", "client", "viewer", "revoked client")


@pytest.mark.parametrize("mode", ["ask", "auto-in-sandbox", "auto"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_runs_what_asks_and_what_is_refused(interpreter: OpenInterpreter, kind: str, mode: Any) -> None:
    """Without a sandbox: people run their own code, agents are asked about unless the mode is auto, others may not."""
    interpreter.mode = mode
    session, permissions = interpreter.session, Permissions("auto")
    actor = {
        "user": lambda: interpreter.user,
        "agent": lambda: interpreter.agent.actor,
        "child of the agent": lambda: agent_under(interpreter, permissions),
        "client": lambda: session.add_actor("client", permissions),
        "viewer": lambda: session.add_actor("viewer", permissions),
        "revoked client": lambda: session.add_actor("client", permissions),
    }[kind]()
    if kind == "revoked client":
        session.revoke(actor)
    asked: list[Question] = []

    def decline(question: Question) -> Answer:
        asked.append(question)
        return Answer("refuse")

    with session.questions.answerable(["block"], decline):
        try:
            ended = run(interpreter, actor)[0]
        except NotPermittedError:
            ended = "not permitted"
    expected = {"user": "done", "client": "done", "viewer": "not permitted", "revoked client": "not permitted"}
    assert ended == expected.get(kind, "done" if mode == "auto" else "refused")
    assert len(asked) == (ended == "refused")
    assert [question.actor for question in asked] == [actor.id] * len(asked)


def test_a_refusal_names_whose_permissions_decided(interpreter: OpenInterpreter) -> None:
    """The child may run anything, the agent it acts for may not."""
    child = agent_under(interpreter, Permissions("auto"))
    with interpreter.session.questions.answerable(["block"], lambda question: Answer("refuse")):
        assert run(interpreter, child)[0] == "refused"
    interpreter.mode = "auto"
    assert run(interpreter, child) == ("done", "ran\n")


# -- changing permissions -------------------------------------------------------------------------------------------


def changes(session: Session) -> list[Event]:
    return [event for event in session.log.read() if event.kind == "permissions"]


def test_a_change_of_the_mode_is_an_event(interpreter: OpenInterpreter) -> None:
    interpreter.mode = "auto"
    run(interpreter, interpreter.agent.actor)
    interpreter.mode = "ask"
    with interpreter.session.questions.answerable(["block"], lambda question: Answer("refuse")):
        run(interpreter, interpreter.agent.actor)
    assert [(event.data["actor"], event.data["mode"]) for event in changes(interpreter.session)] == [("agent", "ask")]


def test_the_first_thing_done_may_be_a_change_of_the_mode(interpreter: OpenInterpreter) -> None:
    _ = interpreter.session
    switch_mode(interpreter, "plan")
    told = {event.data["actor"]: event.data["mode"] for event in changes(interpreter.session)}
    assert told == {"user": "plan", "agent": "plan"}
    assert any(event.data.get("kind") == "set_permissions" for event in interpreter.session.log.read())


def test_a_mode_that_became_stricter_while_a_block_waited_counts(interpreter: OpenInterpreter) -> None:
    """The block was allowed by `auto`, and then waited for another one."""
    interpreter.mode = "auto"
    session, holds, release = interpreter.session, threading.Event(), threading.Event()

    class Holding(Action):
        def run(self, context: ActionContext) -> Generator[Chunk]:
            holds.set()
            release.wait(20)
            self.outcome = "done"
            yield from ()

    holding = threading.Thread(target=session.perform(Holding(), interpreter.user).result)
    holding.start()
    holds.wait(20)
    block, asked = Block("python", "print(1)"), list[Question]()

    def decline(question: Question) -> Answer:
        asked.append(question)
        return Answer("refuse")

    with session.questions.answerable(["block"], decline):
        waiting = threading.Thread(target=session.perform(block, interpreter.agent.actor).result)
        waiting.start()
        until(lambda: session.lane.waiting > 0, "the block to wait")
        interpreter.mode = "ask"
        release.set()
        waiting.join()
    holding.join()
    assert block.outcome == "refused" and len(asked) == 1


def test_revoking_ends_what_an_actor_does_and_what_acts_for_it(session: Session) -> None:
    client = session.add_actor("client", Permissions("auto"))
    helper, ended = session.add_actor("agent", Permissions("auto"), client), threading.Event()

    class Waiting(Nothing):
        def run(self, context: ActionContext) -> Generator[Chunk]:
            ended.wait(20)
            self.outcome = "done"
            yield from ()

        def stop(self) -> None:
            ended.set()

    thread = threading.Thread(target=session.perform(Waiting(), helper).result)
    thread.start()
    until(lambda: session.running, "the action")
    session.revoke(client)
    thread.join(20)
    assert not thread.is_alive()
    for actor in (client, helper):
        with pytest.raises(NotPermittedError, match="revoked"):
            session.perform(Nothing(), actor)
    assert changes(session)[-1].data == {"actor": client.id, "revoked": True}


def test_only_those_it_acts_for_change_what_an_actor_may_do(session: Session) -> None:
    user = session.add_actor("user", Permissions("auto"))
    agent = session.add_actor("agent", Permissions("ask"), user)
    other = session.add_actor("user", Permissions("auto"))
    for by in (agent, other):
        with pytest.raises(NotPermittedError, match="can't change"):
            session.perform(SetPermissions(agent, Permissions("auto")), by).result()
    session.perform(SetPermissions(agent, Permissions("auto")), user).result()
    assert agent.permissions.mode == "auto"


def test_a_client_cannot_give_itself_more(session: Session) -> None:
    client = session.add_actor("client", Permissions("ask"))
    session.perform(SetPermissions(client, Permissions("plan")), client).result()
    with pytest.raises(NotPermittedError, match="can't change"):
        session.perform(SetPermissions(client, Permissions("ask")), client).result()
    assert client.permissions.mode == "plan"


def test_a_user_revokes_a_client_as_an_action_and_clients_do_not(session: Session) -> None:
    user, client = session.add_actor("user", Permissions("auto")), session.add_actor("client", Permissions("auto"))
    other = session.add_actor("client", Permissions("auto"))

    def revocation() -> SetPermissions:
        return SetPermissions(client, change=lambda: session.revoke(client))

    with pytest.raises(NotPermittedError, match="can't change"):
        session.perform(revocation(), other).result()
    session.perform(revocation(), user).result()
    assert client.is_revoked and changes(session)[-1].data == {"actor": client.id, "revoked": True}
    by = [event.ids.actor for event in session.log.read() if event.data.get("kind") == "set_permissions"]
    assert by[-1] == user.id


# -- properties -----------------------------------------------------------------------------------------------------

SANDBOXES = [
    None,
    Sandbox("workspace", "/w"),
    Sandbox("workspace", "/w", hosts=("a.example",)),
    Sandbox("read-only", "/w"),
    Sandbox("read-only", "/w", fixed=True),
]
permissions = st.builds(
    Permissions,
    mode=st.sampled_from(MODES),
    sandbox=st.sampled_from(SANDBOXES),
    offline=st.booleans(),
    tools=st.none() | st.frozensets(st.sampled_from("abc")),
    budget=st.none() | st.floats(0, 10),
)


@given(permissions, permissions)
def test_restricted_permissions_are_within_both(mine: Permissions, theirs: Permissions) -> None:
    both = mine.restricted_to(theirs)
    assert both.is_within(theirs) and both.restricted_to(theirs) == both
    assert MODES.index("ask") == 0 and (both.mode == mine.mode or both.mode == theirs.mode)
    if theirs.tools is not None:
        assert both.tools is not None and both.tools <= theirs.tools


@given(st.data())
def test_no_descendant_may_do_what_an_ancestor_may_not(data: st.DataObject) -> None:
    """In a random tree, whose permissions change at random."""
    session = Session()
    actors = [session.add_actor("user", data.draw(permissions))]
    for _ in range(data.draw(st.integers(1, 8))):
        if data.draw(st.booleans()):
            actors.append(session.add_actor("agent", data.draw(permissions), data.draw(st.sampled_from(actors))))
        else:
            data.draw(st.sampled_from(actors)).replace_permissions(data.draw(permissions))
        for actor in actors:
            for above in actor.chain():
                assert actor.permissions.is_within(above.own_permissions)
