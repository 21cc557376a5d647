"""Servers that hang, die, flood or are very large never block a session."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from interpreter import OpenInterpreter
from interpreter.mcp import connection, tools
from interpreter.mcp.config import own_file, save_server
from interpreter.mcp.schemas import specs_of
from interpreter.questions import ANSWER, APPROVE
from interpreter.session import Answer, Question
from mcp_servers.support import Hostile, ran
from model_server import text

Make = Callable[..., OpenInterpreter]
pytestmark = pytest.mark.usefixtures("no_strays")


def change_row(**values: Any) -> None:
    content = json.loads(own_file().read_text())
    content["mcpServers"]["bad"] |= values
    own_file().write_text(json.dumps(content))


def test_a_call_that_hangs_is_given_up(session: Make, hostile: Hostile) -> None:
    change_row(timeout=0.5)
    interpreter = session()
    assert "bad.hang failed" in ran(interpreter, "tools.bad.hang()")
    assert "hi" in ran(interpreter, "tools.bad.echo('hi')")


def test_a_call_that_hangs_can_be_interrupted(session: Make, hostile: Hostile) -> None:
    interpreter = session()
    ran(interpreter, "tools.bad.echo('hi')")
    events = interpreter.session.log
    timer = threading.Thread(target=lambda: stop_when_called(interpreter))
    timer.start()
    output = ran(interpreter, "tools.bad.hang()")
    timer.join()
    assert "KeyboardInterrupt" in output
    assert "hi" in ran(interpreter, "tools.bad.echo('hi')") and events.read()


def stop_when_called(interpreter: OpenInterpreter) -> None:
    for event in interpreter.session.events():
        if event.data.get("state") == "running" and any(
            a.describe().startswith("bad.hang") for a in interpreter.session.running
        ):
            interpreter.computer.stop()
            return


def test_a_server_that_ends_is_started_again_and_says_why(session: Make, hostile: Hostile) -> None:
    interpreter = session()
    output = ran(interpreter, "tools.bad.crash()")
    assert "bad.crash failed: the server ended. It wrote: Out of cheese." in output
    assert "hi" in ran(interpreter, "tools.bad.echo('hi')")


def test_a_server_that_ends_at_each_call_is_started_with_a_delay(session: Make, hostile: Hostile) -> None:
    interpreter = session()
    outputs = [ran(interpreter, "tools.bad.crash()") for _ in range(3)]
    assert "It can be tried again in" in outputs[-1]


def test_a_slow_start_is_given_up(session: Make, hostile: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT", 2.0)
    hostile.set(slow_start=True)
    interpreter = session()
    assert "The MCP server bad took too long to start." in ran(interpreter, "tools.bad.echo('hi')")
    assert "It can be tried again in" in ran(interpreter, "tools.bad.echo('hi')")
    assert "2" in ran(interpreter, "print(1 + 1)")


def test_a_flood_of_notifications_blocks_nothing(session: Make, hostile: Hostile) -> None:
    hostile.set(flood=True)
    interpreter = session()
    output = ran(interpreter, "for number in range(20):\n    print(tools.bad.echo(str(number)))")
    assert "19" in output


def test_a_result_that_breaks_its_schema_is_an_error(session: Make, hostile: Hostile) -> None:
    interpreter = session()
    assert "bad.wrong failed" in ran(interpreter, "tools.bad.wrong()")
    assert "hi" in ran(interpreter, "tools.bad.echo('hi')")


def test_a_tool_that_is_gone_is_not_called(session: Make, hostile: Hostile) -> None:
    assert "hi" in ran(session(), "print(tools.bad.echo('hi'))")
    hostile.set(gone=["echo"])
    assert "no longer has the tool echo" in ran(session(), "tools.bad.echo('hi')")


def test_a_server_that_wants_the_model_gets_a_refusal(session: Make, hostile: Hostile) -> None:
    assert "not supported" in ran(session(), "print(tools.bad.sample())").lower()


def test_a_server_asks_the_user(session: Make, hostile: Hostile) -> None:
    interpreter, asked = session(), []

    def answer(question: Question) -> Answer:
        asked.append(question.text)
        return Answer(ANSWER, {1: "large", 2: "7", 3: "yes"}[len(asked)])

    with interpreter.session.questions.answerable(["text"], answer):
        output = ran(interpreter, "print(tools.bad.ask())")
    assert "{'action': 'accept', 'content': {'size': 7, 'gift': True}}" in output
    assert asked[0].startswith("The MCP server bad asks: Which size?\nsize (a whole number): ") and len(asked) == 3
    assert "{'action': 'decline'}" in ran(session(), "print(tools.bad.ask())")


def test_a_server_asks_the_user_to_open_an_address(session: Make, hostile: Hostile) -> None:
    interpreter, asked = session(), []

    def answer(question: Question) -> Answer:
        asked.append(question.text)
        return Answer(APPROVE)

    with interpreter.session.questions.answerable(["call"], answer):
        assert "{'action': 'accept'}" in ran(interpreter, "print(tools.bad.visit())")
    assert asked == ["The MCP server bad asks you to open https://example.com/pay\nPay here.\nContinue?"]
    assert "{'action': 'decline'}" in ran(session(), "print(tools.bad.visit())")


def test_a_call_that_needs_a_visit_first_is_made_after_it(session: Make, hostile: Hostile) -> None:
    assert "bad.gated failed: Visit it first." in ran(session(), "tools.bad.gated()")
    interpreter, asked = session(), []

    def answer(question: Question) -> Answer:
        asked.append(question.text)
        return Answer(APPROVE)

    with interpreter.session.questions.answerable(["call"], answer):
        assert "open" in ran(interpreter, "print(tools.bad.gated())")
    assert asked == ["The MCP server bad asks you to open https://example.com/terms\nAgree.\nContinue?"]


def test_a_form_that_is_filled_in_wrongly_is_given_up(session: Make, hostile: Hostile) -> None:
    interpreter, asked = session(), []

    def answer(question: Question) -> Answer:
        asked.append(question.text)
        return Answer(ANSWER, "large")

    with interpreter.session.questions.answerable(["text"], answer):
        assert "{'action': 'decline'}" in ran(interpreter, "print(tools.bad.ask())")
    assert len(asked) == 5


# -- 2,000 tools ----------------------------------------------------------------------------------------------------


def test_two_thousand_tools_keep_the_prompt_small(chatting: Any, hostile: Hostile) -> None:
    hostile.set(tools=2000)
    interpreter, server = chatting(text("ok"), auto_run=True)
    interpreter.llm.model_profile = "full"
    output = ran(interpreter, "print(len(dir(tools.bad)))\nprint('\\n'.join(tools.search('update item 1234')))")
    assert "2020" in output and "bad.item_1234_update(text: string, times: integer = ...)" in output.splitlines()[1]
    assert "ok" in ran(interpreter, "print('ok' if 'catalogue' in tools.help('bad.item_7_update') else '')")
    interpreter.chat("go", display=False)
    system = server.requests[0].messages[0]["content"]
    assert "tools.bad: 2,020 functions" in system and "tools.search('words')" in system and "item_1" not in system


def test_a_large_listing_leaves_room_for_small_servers(hostile: Hostile, chatting: Any) -> None:
    save_server("small", hostile.row)
    interpreter, server = chatting(text("ok"), auto_run=True)
    interpreter.llm.model_profile = "full"
    interpreter.mcp_prompt_tokens = 900
    ran(interpreter, "dir(tools.small)")
    hostile.set(tools=2000)
    ran(interpreter, "dir(tools.bad)")
    interpreter.chat("go", display=False)
    system = server.requests[0].messages[0]["content"]
    assert "tools.small.echo(" in system and "tools.bad: 2,020 functions" in system


def test_names_that_are_alike_or_too_long_stay_apart() -> None:
    server = tools.Server("s", ("x",))
    rows = [{"name": name, "inputSchema": {"type": "object"}} for name in ("a.b", "a/b", "a b", "x" * 100, "x" * 101)]
    specs = specs_of(server, rows)
    assert len(specs) == 5 and all(len(f"s__{name}") <= 64 for name in specs)
    for spec in specs.values():
        tools.signature(server, spec)
