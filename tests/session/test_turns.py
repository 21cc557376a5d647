"""A turn is an action: it has an id, an end and an error like any other, and whoever may act can start one."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from conversation import Chatting, chatting
from interpreter import OpenInterpreter
from interpreter.agent.agent import Agent
from interpreter.config.settings import InterpreterSettings
from interpreter.errors import BudgetExceededError, BusyError, NotPermittedError, WrongKeyError
from interpreter.messages import Message
from interpreter.questions import Confirm
from interpreter.session import APPROVE, Answer, Block, Event, Permissions, Question, Session
from interpreter.tools import Tool, ToolContext
from model_server import ModelServer, text, tool_call, usage
from waiting import until

__all__ = ["chatting"]
pytestmark = pytest.mark.usefixtures("no_strays")


def actions(session: Session, kind: str) -> list[dict[str, Any]]:
    """The events of the actions of a kind."""
    return [event.data for event in session.log.read() if event.kind == "action" and event.data["kind"] == kind]


def second_agent(interpreter: OpenInterpreter, server: ModelServer, permissions: Permissions) -> Agent:
    """An agent that the interpreter's agent starts, with a model and a conversation of its own."""
    actor = interpreter.agent.actor.child("agent", permissions)
    agent = Agent(
        interpreter.session, interpreter.computer, actor, InterpreterSettings(), timeline=interpreter.timeline
    )
    agent.settings.workspace, agent.settings.conversation_history = interpreter.workspace, False
    agent.llm.api_base, agent.llm.api_key = server.base_url, "key"
    return agent


# -- started by the session -----------------------------------------------------------------------------------------


def test_the_session_drives_a_turn_for_those_who_only_watch(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("echo", "hello"), text("Done."), auto_run=True)
    started = interpreter.session.start(interpreter.agent.turn("go"), interpreter.agent.actor)
    started.result(60)
    assert [data["state"] for data in actions(interpreter.session, "turn")] == ["begun", "running", "ended"]
    assert actions(interpreter.session, "turn")[-1] | {"reason": "answered"} == actions(interpreter.session, "turn")[-1]
    assert [message["content"] for message in interpreter.messages] == ["go", "hello", "hello\n", "Done."]


def test_the_error_of_a_started_turn_is_an_event(chatting: Chatting) -> None:
    interpreter, _ = chatting({"error": 401, "body": "no such key"})
    started = interpreter.session.start(interpreter.agent.turn("go"), interpreter.agent.actor)
    with pytest.raises(WrongKeyError):
        started.result(60)
    ended = actions(interpreter.session, "turn")[-1]
    assert (ended["outcome"], ended["reason"], ended["error"]) == ("error", "error", "WrongKeyError")
    assert "key" in ended["text"]


def test_a_started_turn_is_cancelled_with_its_session(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("python", "while True: pass"), auto_run=True)
    started = interpreter.session.start(interpreter.agent.turn("go"), interpreter.agent.actor)
    until(lambda: any(data["state"] == "running" for data in actions(interpreter.session, "block")), "the block")
    interpreter.session.close()
    assert started.wait(30)
    assert actions(interpreter.session, "turn")[-1]["outcome"] in ("cancelled", "done")


def test_a_viewer_cannot_start_one(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("Done."))
    viewer = interpreter.session.add_actor("viewer")
    with pytest.raises(NotPermittedError, match="only watch"):
        interpreter.session.start(interpreter.agent.turn("go"), viewer)


def test_a_second_turn_of_an_agent_does_not_begin_while_another_thread_reads_the_first(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("echo", "hello"), text("Done."))
    session, agent = interpreter.session, interpreter.agent
    with session.questions.answerable(["block"]):
        first = session.start(agent.turn("go"), agent.actor)
        until(lambda: bool(session.questions.open), "the question")
        with pytest.raises(BusyError, match="another thread"):
            session.perform(agent.turn("again"), agent.actor).result()
        assert [message["content"] for message in interpreter.messages] == ["go", "hello"]
        session.answer(session.questions.open[0].id, APPROVE)
        first.result(60)


# -- several agents -------------------------------------------------------------------------------------------------


def test_a_second_agent_acts_in_the_same_session_with_its_own_conversation(chatting: Chatting, tmp_path: Path) -> None:
    interpreter, _ = chatting(workspace=str(tmp_path), auto_run=True)
    interpreter.computer.run("python", "x = 1")
    with ModelServer([tool_call("python", "x = 2\nprint('sub')"), text("Done.")]) as server:
        agent = second_agent(interpreter, server, Permissions("auto"))
        interpreter.session.perform(agent.turn("go"), agent.actor).result()
        assert [message["content"] for message in agent.messages] == ["go", "x = 2\nprint('sub')", "sub\n", "Done."]
        assert interpreter.messages == []
        # Its runtimes are its own.
        assert interpreter.computer.run("python", "print(x)")[0]["content"] == "1\n"


def test_a_sub_agents_block_runs_while_a_block_of_its_parent_does(chatting: Chatting, tmp_path: Path) -> None:
    interpreter, _ = chatting(
        tool_call("python", "print(tools.delegate())"), text("Done."), workspace=str(tmp_path), auto_run=True
    )
    with ModelServer([tool_call("python", "print(6 * 7)"), text("It is 42.")]) as server:

        def delegate(context: ToolContext) -> str:
            """Ask another agent."""
            agent = second_agent(interpreter, server, Permissions("auto"))
            context.session.perform(agent.turn("go"), agent.actor).result()
            return str(agent.messages[-1]["content"])

        interpreter.tools.append(Tool.function(delegate))
        interpreter.chat("go", display=False)
    printed = [message["content"] for message in interpreter.messages if message["type"] == "console"]
    assert printed == ["It is 42.\n"]


def test_the_agent_of_a_plan_mode_agent_cannot_write(chatting: Chatting, tmp_path: Path) -> None:
    interpreter, _ = chatting(workspace=str(tmp_path), mode="plan")
    with ModelServer([tool_call("python", "open('made', 'w')"), text("Done.")]) as server:
        agent = second_agent(interpreter, server, Permissions("auto"))
        interpreter.session.perform(agent.turn("go"), agent.actor).result()
    assert not (tmp_path / "made").exists()


def test_an_agent_that_has_spent_its_budget_asks_its_model_no_more(chatting: Chatting, tmp_path: Path) -> None:
    interpreter, _ = chatting(workspace=str(tmp_path), auto_run=True)
    replies = [tool_call("python", "print(1)").then(usage(1_000_000, 1_000_000)), text("Done.")]
    with ModelServer(replies) as server:
        agent = second_agent(interpreter, server, Permissions("auto", budget=1.0))
        agent.llm.model = "gpt-4o"
        with pytest.raises(BudgetExceededError, match=f"{agent.actor.id} has spent .* of its budget"):
            interpreter.session.perform(agent.turn("go"), agent.actor).result()
        assert len(server.requests) == 1
    assert interpreter.agent.actor.budget.spent == agent.actor.budget.spent > 1


# -- questions ------------------------------------------------------------------------------------------------------


def test_a_session_needs_no_model(tmp_path: Path) -> None:
    session = Session(workspace=lambda: str(tmp_path))
    user = session.add_actor("user", Permissions("auto"))

    def choose(context: ToolContext) -> str:
        """Ask whether to go on."""
        answer = context.ask(Confirm("Go on?"))
        return "yes" if answer is not None and answer.choice == APPROVE else "no"

    from interpreter.session import ToolCall

    def approve(question: Question) -> Answer:
        return Answer(APPROVE)

    call = ToolCall(Tool.function(choose, policy="reads"), {})
    session.approver = None
    with session.questions.answerable(["confirm"], approve):
        events = list(session.perform(call, user))
    assert "can approve it" in str([event.data for event in events])  # nothing approves a model's calls here


def test_a_tool_that_asks_a_question_gets_the_answer(chatting: Chatting) -> None:
    interpreter, server = chatting(tool_call(arguments="{}", name="choose"), text("Done."), mode="auto")

    def choose(context: ToolContext) -> str:
        """Ask whether to go on."""
        answer = context.ask(Confirm("Go on?"))
        return "yes" if answer is not None and answer.choice == APPROVE else "no"

    interpreter.tools.append(Tool.function(choose))
    with interpreter.session.questions.answerable(["confirm"], lambda question: Answer(APPROVE)):
        interpreter.chat("go", display=False)
    assert server.requests[-1].messages[-1]["content"] == "yes"


# -- forks ----------------------------------------------------------------------------------------------------------


def test_a_fork_inside_a_turn_begins_at_the_last_consistent_point(chatting: Chatting, tmp_path: Path) -> None:
    interpreter, _ = chatting(
        tool_call("python", "x = 41"), tool_call("python", "x = 42"), text("Done."), workspace=str(tmp_path)
    )
    children: list[OpenInterpreter] = []
    for chunk in interpreter.chat("go", display=False, stream=True):
        if chunk["type"] == "confirmation":
            children.append(interpreter.fork())
    assert [[each["role"] for each in child.messages] for child in children] == [
        ["user"],
        ["user", "assistant", "computer"],
    ]
    assert children[1].computer.run("python", "print(x)")[0]["content"] == "41\n"
    assert interpreter.computer.run("python", "print(x)")[0]["content"] == "42\n"
    assert interpreter.messages[-1]["content"] == "Done."  # the turn went on
    for child in children:
        child.drop()


def test_a_tool_called_by_code_can_fork_the_session(chatting: Chatting, tmp_path: Path) -> None:
    interpreter, _ = chatting(workspace=str(tmp_path), auto_run=True)
    children: list[OpenInterpreter] = []

    def branch() -> int:
        """Fork the session."""
        children.append(interpreter.fork())
        return len(children)

    interpreter.tools.append(Tool.function(branch))
    with interpreter.session.questions.answerable(["call"], lambda question: Answer(APPROVE)):
        interpreter.computer.run("shell", "echo one > a.txt")
        interpreter.computer.run("python", "tools.branch()")
    assert (Path(children[0].workspace) / "a.txt").read_text() == "one\n"
    children[0].drop()


# -- one order ------------------------------------------------------------------------------------------------------


def test_two_agents_and_two_people_act_in_one_order(chatting: Chatting, tmp_path: Path) -> None:
    """In 500 actions, each event has the right actor, and blocks don't overlap."""
    rounds = 36
    interpreter, _ = chatting(
        *[reply for n in range(rounds) for reply in (tool_call("echo", f"agent {n}"), text(f"So {n}."))],
        workspace=str(tmp_path), auto_run=True,
    )  # fmt: skip
    session = interpreter.session
    replies = [reply for n in range(rounds) for reply in (tool_call("echo", f"second {n}"), text(f"Then {n}."))]
    with ModelServer(replies) as server:
        agent = second_agent(interpreter, server, Permissions("auto"))
        client = session.add_actor("client", interpreter.user.source, sink=interpreter.user.sink)

        def talk(some: Agent) -> None:
            for number in range(rounds):
                session.perform(some.turn(f"go {number}"), some.actor).result()

        def work(actor: Any, name: str) -> None:
            for number in range(5 * rounds):
                session.perform(Block("echo", f"{name} {number}"), actor).result()

        threads = [
            threading.Thread(target=talk, args=[interpreter.agent]),
            threading.Thread(target=talk, args=[agent]),
            threading.Thread(target=work, args=[interpreter.user, "user"]),
            threading.Thread(target=work, args=[client, "client"]),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(90)
            assert not thread.is_alive()
    events: list[Event] = session.log.read()
    assert sum(event.kind == "action" and event.data["state"] == "ended" for event in events) >= 500
    printed = {
        event.ids.action: (event.ids.actor, event.data["content"])
        for event in events
        if event.kind == "console" and event.data.get("format") == "output"
    }
    expected = {("agent", "agent"): rounds, (agent.actor.id, "second"): rounds}
    expected |= {("user", "user"): 5 * rounds, (client.id, "client"): 5 * rounds}
    counted: dict[tuple[str, str], int] = {}
    for actor, content in printed.values():
        key = actor, content.split()[0]
        counted[key] = counted.get(key, 0) + 1
    assert counted == expected
    running = ""
    for event in events:
        if event.kind == "action" and event.data["kind"] == "block":
            if event.data["state"] == "running":
                assert not running
                running = event.ids.action
            elif event.data["state"] == "ended" and event.ids.action == running:
                running = ""


def test_messages_of_a_script_are_kept_when_it_replaces_the_list(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("One."), text("Two."))
    interpreter.chat("first", display=False)
    replaced: list[Message] = [{"role": "user", "type": "message", "content": "other"}]
    interpreter.messages = replaced
    interpreter.chat("second", display=False)
    assert interpreter.messages is replaced and interpreter.agent.messages is replaced
    assert [message["content"] for message in replaced] == ["other", "second", "Two."]
