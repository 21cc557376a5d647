"""Named tools: registered, offered, called by name and answered, in every wire format and in text mode."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import anthropic_server as anthropic
import responses_server as responses
from conversation import Chatting, Echo, chatting
from interpreter import OpenInterpreter
from interpreter.agent.turn import NOT_RUN, ONLY_FIRST
from interpreter.errors import UsageError
from interpreter.llm.reply_parser import ReplyParser
from interpreter.messages import Chunk, fold
from interpreter.tools import Tool, Toolbox
from model_server import ModelServer, Reply, text, tool_call

__all__ = ["chatting"]

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def add_note(interpreter: OpenInterpreter) -> list[str]:
    """Register a second tool."""
    notes: list[str] = []

    def keep(arguments: dict[str, Any]) -> str:
        notes.append(arguments["text"])
        return f"Kept: {arguments['text']}"

    interpreter.tools.append(Tool("note", "Keeps a note for the user.", TEXT, keep, policy="reads"))
    return notes


# -- note and execute in one reply, in each wire format ----------------------------------------------------------


def in_chat(split: Any) -> tuple[Any, ...]:
    first, second = tool_call("echo", "one", split, id="call_a"), note("Buy milk", split, id="call_b", index=1)
    return "gpt-4o", ModelServer, [first.then(second), text("Done.")]


def in_messages(split: Any) -> tuple[Any, ...]:
    used = anthropic.use("echo", "one", split, "call_a"), anthropic.use_tool("note", NOTED, "call_b", split)
    replies = [anthropic.message(*used), anthropic.message(anthropic.say("Done."))]
    return "anthropic/claude-sonnet-4-5", anthropic.AnthropicServer, replies


def in_responses(split: Any) -> tuple[Any, ...]:
    calls = responses.call("echo", "one", split, "call_a"), responses.call_of("note", NOTED, "call_b", split)
    replies = [responses.response(*calls), responses.response(responses.say("Done."))]
    return "openai/responses/gpt-5", responses.ResponsesServer, replies


NOTED = {"text": "Buy milk"}


def note(words: str, split: Any = None, **more: Any) -> Reply:
    return tool_call(arguments=json.dumps({"text": words}), split=split, name="note", **more)


@pytest.fixture
def talk() -> Iterator[Callable[..., tuple[OpenInterpreter, ModelServer]]]:
    opened: list[tuple[OpenInterpreter, ModelServer]] = []

    def start(model: str, kind: type[ModelServer], replies: list[Any]) -> tuple[OpenInterpreter, ModelServer]:
        server = kind(replies).start()
        interpreter = OpenInterpreter(auto_run=True, stream_all=True, system_message="Be brief.")
        interpreter.llm.model, interpreter.llm.api_base, interpreter.llm.api_key = model, server.base_url, "key"
        interpreter.llm.max_retries = 0
        interpreter.computer.languages = [Echo]
        opened.append((interpreter, server))
        return opened[-1]

    yield start
    for interpreter, server in opened:
        interpreter.computer.terminate()
        server.close()


@pytest.mark.parametrize("split", [None, 5, "characters"])
@pytest.mark.parametrize("wire", [in_chat, in_messages, in_responses])
def test_one_reply_can_call_a_second_tool_and_execute(talk: Any, wire: Any, split: Any) -> None:
    interpreter, server = talk(*wire(split))
    notes = add_note(interpreter)
    chunks = list(interpreter.chat("Go", display=False, stream=True))
    assert notes == ["Buy milk"]
    assert interpreter.messages[1:] == [
        {"role": "assistant", "type": "code", "format": "echo", "content": "one", "call": "call_a"},
        {"role": "computer", "type": "console", "format": "output", "content": "one\n"},
        {"role": "assistant", "type": "tool_call", "format": "note", "content": json.dumps(NOTED), "call": "call_b"},
        {"role": "computer", "type": "console", "format": "output", "content": "Kept: Buy milk", "call": "call_b"},
        {"role": "assistant", "type": "message", "content": "Done."},
    ]
    assert fold(chunks) == interpreter.messages[1:]
    assert answered(server.requests[1].body) == [("execute", "call_a", "one"), ("note", "call_b", "Kept: Buy milk")]
    assert [offered(tool) for tool in server.requests[0].body["tools"]][1] == ("note", TEXT)


def answered(body: dict[str, Any]) -> list[tuple[str, str, str]]:
    """The calls in a request, each with the result of the same id."""
    if "input" in body:
        made = [(each["name"], each["call_id"]) for each in body["input"] if each["type"] == "function_call"]
        results = {each["call_id"]: each["output"] for each in body["input"] if "output" in each}
    elif "max_tokens" in body:
        blocks = [block for each in body["messages"] for block in each["content"]]
        made = [(block["name"], block["id"]) for block in blocks if block["type"] == "tool_use"]
        results = {block["tool_use_id"]: block["content"] for block in blocks if block["type"] == "tool_result"}
    else:
        calls = [call for each in body["messages"] for call in each.get("tool_calls", ())]
        made = [(call["function"]["name"], call["id"]) for call in calls]
        results = {each["tool_call_id"]: each["content"] for each in body["messages"] if each["role"] == "tool"}
    return [(name, call, results[call]) for name, call in made]


def offered(tool: dict[str, Any]) -> tuple[str, Any]:
    tool = tool.get("function", tool)
    return tool["name"], tool.get("parameters") or tool.get("input_schema")


AS_TEXT = '```echo\none\n```\n```note\n{"text": "Buy milk"}\n```\n'


@pytest.mark.parametrize("split", [None, 3, "characters"])
def test_in_text_mode_a_tool_is_a_fenced_block_with_its_name(chatting: Chatting, split: Any) -> None:
    interpreter, server = chatting(text(AS_TEXT, split), text("Done."), auto_run=True)
    interpreter.llm.supports_functions = False
    notes = add_note(interpreter)
    interpreter.chat("Go", display=False)
    assert notes == ["Buy milk"]
    assert [message["type"] for message in interpreter.messages[1:]] == [
        *("code", "console", "tool_call", "console", "message")
    ]
    system = server.requests[0].messages[0]["content"]
    assert '```note\n{"text": "..."}\n```\n- note(text: string): Keeps a note for the user.' in system
    called, result = server.requests[1].messages[-2:]
    assert called["content"] == '```note\n{"text": "Buy milk"}\n```'
    assert "Kept: Buy milk" in result["content"]


def test_without_other_tools_the_prompt_does_not_mention_tools(chatting: Chatting) -> None:
    interpreter, server = chatting(text("Hi."))
    interpreter.llm.supports_functions = False
    interpreter.chat("Hello", display=False)
    assert "There are tools too" not in server.requests[0].messages[0]["content"]


# -- calls that must not run -----------------------------------------------------------------------------------

NO_CODE = {
    "deploy": {"language": "shell", "code": "touch deployed"},
    "edit": {"path": "a.txt", "old": "x", "new": "y"},
}


@pytest.mark.parametrize(("name", "arguments"), NO_CODE.items())
def test_an_unknown_tool_runs_nothing(chatting: Chatting, tmp_path: Path, name: str, arguments: dict[str, str]) -> None:
    call = tool_call(arguments=json.dumps(arguments), name=name, id="call_x")
    interpreter, server = chatting(call, text("Sorry."), auto_run=True, workspace=str(tmp_path))
    interpreter.computer.context.cwd = str(tmp_path)
    interpreter.chat("Go", display=False)
    assert list(tmp_path.iterdir()) == []
    assert interpreter.computer.context.cwd == str(tmp_path)
    assert not [message for message in interpreter.messages if message["type"] == "code"]
    [(called, call_id, result)] = answered(server.requests[1].body)
    assert (called, call_id) == (name, "call_x")
    assert result.startswith(f"There is no tool named '{name}', so nothing was run. ")
    assert result.endswith("The tools are: execute.")
    assert interpreter.messages[-1]["content"] == "Sorry."  # the turn continues


def test_an_unknown_tool_suggests_the_closest_one(chatting: Chatting) -> None:
    call = tool_call(arguments='{"text": "x"}', name="notes")
    interpreter, server = chatting(call, text("Sorry."), auto_run=True)
    notes = add_note(interpreter)
    interpreter.chat("Go", display=False)
    assert notes == []
    assert "Did you mean note(text: string)? The tools are: execute, note." in str(server.requests[1].body)


@pytest.mark.parametrize("name", ["execute", "functions.execute", "Execute", "python", "run_code", "", None])
def test_common_names_for_execute_run_code(chatting: Chatting, name: str | None) -> None:
    interpreter, _ = chatting(tool_call("echo", "one", name=name), text("Done."), auto_run=True)
    interpreter.chat("Go", display=False)
    assert [message["content"] for message in interpreter.messages[1:]] == ["one", "one\n", "Done."]


def test_a_registered_tool_takes_precedence_over_names_for_execute(chatting: Chatting) -> None:
    given: list[Any] = []
    interpreter, _ = chatting(tool_call("echo", "one", name="run_code"), text("Done."), auto_run=True)
    both = {"type": "object", "properties": {"language": {"type": "string"}, "code": {"type": "string"}}}
    interpreter.tools.append(Tool("run_code", "Runs it elsewhere.", both, given.append, policy="reads"))
    interpreter.chat("Go", display=False)
    assert given == [{"language": "echo", "code": "one"}]


# -- arguments and results of a handler ------------------------------------------------------------------------

RULES = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "times": {"type": "integer"},
        "where": {"enum": ["top", "end"]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["text"],
}
FORM = 'Its form is note(text: string, times: integer = ..., where: "top" | "end" = ..., tags: array = ...).'


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("{}", "text is missing"),
        ('{"text": 1}', "text must be a string, not an integer"),
        ('{"text": "a", "times": true}', "times must be an integer, not a boolean"),
        ('{"text": "a", "time": 2}', "time is unknown (did you mean times?)"),
        ('{"text": "a", "where": "left"}', 'where must be one of "top", "end"'),
        ('{"text": "a", "tags": ["x", null]}', "tags[1] must be a string, not null"),
        ('{"txt": "a"}', "text is missing; txt is unknown (did you mean text?)"),
        ("[1]", "the arguments must be a JSON object"),
        ("Buy milk", "the arguments must be a JSON object"),
    ],
)
def test_invalid_arguments_are_reported_without_calling_the_handler(
    chatting: Chatting, arguments: str, problem: str
) -> None:
    call = tool_call(arguments=arguments, name="note")
    interpreter, server = chatting(call, text("Sorry."), auto_run=True)
    interpreter.tools.append(Tool("note", "Keeps a note.", RULES, pytest.fail, policy="reads"))
    interpreter.chat("Go", display=False)
    assert answered(server.requests[1].body)[0][2] == f"note was not called: {problem}. {FORM}"


@pytest.mark.parametrize("arguments", ['{"text": "a\nb"}', json.dumps('{"text": "a\\nb"}')])
def test_almost_valid_json_arguments_are_accepted(chatting: Chatting, arguments: str) -> None:
    interpreter, server = chatting(tool_call(arguments=arguments, name="note"), text("Done."), auto_run=True)
    notes = add_note(interpreter)
    interpreter.chat("Go", display=False)
    assert notes == ["a\nb"]
    [call] = server.requests[1].messages[-2]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"text": "a\nb"}


def fails(arguments: dict[str, Any]) -> str:
    raise OSError("the disk is full")


def shows(arguments: dict[str, Any]) -> Iterator[Chunk]:
    yield {"type": "console", "format": "output", "content": "one\n"}
    yield {"type": "console", "format": "output", "content": "two\n"}


@pytest.mark.parametrize(
    ("handler", "result", "ended"),
    [
        (lambda arguments: None, "No output", None),
        (fails, "OSError: the disk is full", "error"),
        (shows, "one\ntwo", None),
        (lambda arguments: {"a": 1}, '{"a": 1}', None),
        (lambda arguments: iter([1]), "TypeError: a handler yields chunks, not int", "error"),
    ],
)
def test_results_and_errors_of_a_handler_reach_the_model(
    chatting: Chatting, handler: Any, result: str, ended: str | None
) -> None:
    interpreter, server = chatting(tool_call(arguments="", name="act"), text("Done."), auto_run=True)
    interpreter.tools.append(Tool("act", "Does something.", {"type": "object"}, handler))
    interpreter.chat("Go", display=False)
    assert answered(server.requests[1].body)[0][2] == result
    stored = interpreter.messages[2]
    assert (stored["call"], stored.get("ended")) == ("call_1", ended)


def test_the_model_sees_that_a_call_was_interrupted(chatting: Chatting) -> None:
    def interrupted(arguments: dict[str, Any]) -> str:
        raise KeyboardInterrupt

    interpreter, server = chatting(tool_call(arguments="{}", name="act"), text("Yes."), auto_run=True)
    interpreter.tools.append(Tool("act", "Does something.", {"type": "object"}, interrupted))
    with pytest.raises(KeyboardInterrupt):
        interpreter.chat("Go", display=False)
    interpreter.chat("Go on", display=False)
    assert answered(server.requests[1].body) == [("act", "call_1", "[interrupted]")]


def test_a_repeated_call_stops_the_turn(chatting: Chatting) -> None:
    interpreter, server = chatting(*[note("again")] * 4, auto_run=True)
    notes = add_note(interpreter)
    interpreter.chat("Go", display=False)
    assert notes == ["again"] * 2
    assert "you just ran this exact block" in str(interpreter.messages[-1]["content"])
    assert len(server.requests) == 4


@pytest.mark.parametrize(("mode", "policy"), [("ask", "acts"), ("ask", "sends"), ("plan", "acts")])
def test_a_tool_that_acts_is_not_called_without_approval(chatting: Chatting, mode: Any, policy: Any) -> None:
    interpreter, server = chatting(note("x"), text("Sorry."), mode=mode)
    interpreter.tools.append(Tool("note", "Keeps a note.", TEXT, pytest.fail, policy=policy))
    interpreter.chat("Go", display=False)
    assert "note was not called: " in answered(server.requests[1].body)[0][2]


def test_a_tool_that_only_reads_is_called_in_every_mode(chatting: Chatting) -> None:
    interpreter, _ = chatting(note("x"), text("Done."), mode="plan")
    assert add_note(interpreter) == []
    interpreter.chat("Go", display=False)
    assert interpreter.messages[2]["content"] == "Kept: x"


# -- ids -------------------------------------------------------------------------------------------------------


def test_call_ids_are_kept_after_a_resume(chatting: Chatting) -> None:
    first, server = chatting(note("a", id="call_a"), tool_call("echo", "b", id="call_b"), text("Done."), auto_run=True)
    add_note(first)
    first.chat("Go", display=False)
    name = first.journal.id
    first.journal.close()
    second, later = chatting(text("Yes."), auto_run=True)
    add_note(second)
    second.journal.resume(str(name))
    assert second.messages == first.messages
    second.chat("And?", display=False)
    before, after = server.requests[-1].messages, later.requests[0].messages
    assert after[: len(before)] == before
    assert [call for _, call, _ in answered(later.requests[0].body)] == ["call_a", "call_b"]


def test_a_duplicate_call_id_is_replaced(chatting: Chatting) -> None:
    interpreter, server = chatting(note("a", id="c"), note("b", id="c"), text("Done."), auto_run=True)
    add_note(interpreter)
    interpreter.chat("Go", display=False)
    assert [(call, result) for _, call, result in answered(server.requests[2].body)] == [
        ("c", "Kept: a"),
        ("toolu_3", "Kept: b"),
    ]


def test_a_call_that_was_not_made_gets_a_result(chatting: Chatting) -> None:
    interpreter, server = chatting(text("Hm."))
    made = {"role": "assistant", "type": "tool_call", "format": "note", "content": '{"text": "a"}', "call": "c"}
    interpreter.messages = [{"role": "user", "type": "message", "content": "Hi"}, made]  # type: ignore[list-item]
    interpreter.chat("Well?", display=False)
    assert answered(server.requests[0].body) == [("note", "c", "This call was not made.")]


def test_names_and_ids_of_another_model_are_made_valid_for_anthropic(talk: Any) -> None:
    replies = [anthropic.message(anthropic.say("Hm."))]
    interpreter, server = talk("anthropic/claude-sonnet-4-5", anthropic.AnthropicServer, replies)
    made = {"role": "assistant", "type": "tool_call", "format": "a.b c", "content": "{", "call": "functions.x:0"}
    interpreter.messages = [{"role": "user", "type": "message", "content": "Hi"}, made]
    interpreter.chat("Well?", display=False)
    [use] = [block for block in server.requests[0].messages[1]["content"] if block["type"] == "tool_use"]
    assert (use["name"], use["id"], use["input"]) == ("a_b_c", "functions_x_0", {"arguments": "{"})


# -- several in one reply --------------------------------------------------------------------------------------


def test_all_calls_of_a_reply_are_made_in_order(chatting: Chatting) -> None:
    calls = [note("a", id="1", index=0), tool_call("echo", "b", id="2", index=1), note("c", id="3", index=2)]
    interpreter, server = chatting(calls[0].then(calls[1]).then(calls[2]), text("Done."), auto_run=True)
    notes = add_note(interpreter)
    interpreter.chat("Go", display=False)
    assert notes == ["a", "c"]
    results = [("note", "1", "Kept: a"), ("execute", "2", "b"), ("note", "3", "Kept: c")]
    assert answered(server.requests[1].body) == results


FENCED = "```echo\none\n```\nAnd:\n```echo\ntwo\n```\nDone."
CALLS = tool_call("echo", "one", id="1", index=0).then(note("two", id="2", index=1))


@pytest.mark.parametrize(
    ("reply", "tools"),
    [(text(FENCED, 4), False), (text(FENCED), False), (CALLS, True)],
    ids=["split", "whole", "calls"],
)
def test_user_and_model_are_notified_when_only_the_first_block_runs(
    chatting: Chatting, reply: Reply, tools: bool
) -> None:
    interpreter, server = chatting(reply, text("One."), auto_run=True)
    interpreter.llm.model_profile, interpreter.llm.supports_functions = "short", tools
    notes = add_note(interpreter)
    chunks = list(interpreter.chat("Go", display=False, stream=True))
    notices = [chunk["content"]["text"] for chunk in chunks if chunk.get("format") == "notice"]
    assert notices == [ONLY_FIRST]
    block = '```note\n{"text": "two"}\n```' if tools else "```echo\ntwo\n```"
    assert f"one\n{NOT_RUN.format(block=block)}" in server.requests[1].messages[-1]["content"]
    assert notes == []


def test_a_failed_first_block_is_still_reported_as_failed(chatting: Chatting) -> None:
    interpreter, server = chatting(text("```python\n1 / 0\n```\n```echo\ntwo\n```"), text("Oh."), auto_run=True)
    interpreter.llm.model = "openai/tiny-coder-1.5b"
    interpreter.chat("Go", display=False)
    told = server.requests[1].messages[-1]["content"]
    assert told.startswith("The code failed:")
    assert NOT_RUN.format(block="```echo\ntwo\n```") in told


def test_text_after_the_only_block_causes_no_notice(chatting: Chatting) -> None:
    words = "This says one. " * 100
    interpreter, _ = chatting(text(f"```echo\none\n```\n{words}", 8), text("One."), auto_run=True)
    interpreter.llm.model = "openai/tiny-coder-1.5b"
    chunks = list(interpreter.chat("Go", display=False, stream=True))
    assert not [chunk for chunk in chunks if chunk.get("format") == "notice"]
    assert ONLY_FIRST not in str(interpreter.messages)


# -- splits of the stream --------------------------------------------------------------------------------------

PLAIN = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
INNER = PLAIN | st.lists(PLAIN, max_size=3)
JSON = INNER | st.lists(INNER, max_size=3) | st.dictionaries(st.text(max_size=5), INNER, max_size=3)


def calls_in(name: str, pieces: list[str], fences: bool = False) -> list[tuple[str, str, Any]]:
    """The calls and blocks that a parser finds in these pieces."""
    parser = ReplyParser(fences=fences, tools=["note"])
    deltas: list[dict[str, Any]]
    if fences:
        deltas = [{"content": piece} for piece in pieces]
    else:
        first = {"index": 0, "id": "c", "function": {"name": name, "arguments": ""}}
        rest = [{"index": 0, "function": {"arguments": piece}} for piece in pieces]
        deltas = [{"tool_calls": [call]} for call in [first, *rest]]
    chunks = [chunk for delta in deltas for chunk in parser.feed({"choices": [{"delta": delta}]})] + parser.finish()
    found: list[tuple[str, str, Any]] = []
    content = ""
    for chunk in chunks:
        if chunk.get("end"):
            found.append((chunk["format"], content, chunk.get("call")))
            content = ""
        elif chunk["type"] != "message":
            content += chunk["content"]
    assert content == ""
    return found


def split_randomly(text: str, data: Any) -> list[str]:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4), st.sampled_from(["note", "deploy"]), st.data())
def test_a_call_is_parsed_the_same_however_it_is_split(arguments: dict[str, Any], name: str, data: Any) -> None:
    written = json.dumps(arguments, ensure_ascii=data.draw(st.booleans()))
    whole = [(name, written, "c")]
    assert (
        calls_in(name, [written])
        == calls_in(name, split_randomly(written, data))
        == calls_in(name, list(written))
        == whole
    )


@given(st.text(alphabet='{}[]",:\\ \nab', max_size=40), st.sampled_from(["note", "deploy"]), st.data())
def test_invalid_arguments_are_parsed_the_same_however_they_are_split(written: str, name: str, data: Any) -> None:
    assert calls_in(name, [written]) == calls_in(name, split_randomly(written, data)) == calls_in(name, list(written))


@given(st.text(alphabet='`{}", \nnotex', max_size=60), st.data())
def test_fences_are_parsed_the_same_however_they_are_split(written: str, data: Any) -> None:
    written = f"```note\n{written}"
    whole = calls_in("", [written], fences=True)
    assert whole == calls_in("", split_randomly(written, data), fences=True) == calls_in("", list(written), fences=True)


# -- the list of tools -----------------------------------------------------------------------------------------


def test_a_toolbox_is_a_list_with_unique_names() -> None:
    interpreter = OpenInterpreter(stream_all=True)
    assert interpreter.tools.names == ["execute"]
    add_note(interpreter)
    assert [tool.name for tool in interpreter.tools] == ["execute", "note"]
    assert "note" in interpreter.tools and len(interpreter.tools) == 2
    assert interpreter.tools["note"] in interpreter.tools
    for wrong in (lambda: add_note(interpreter), lambda: interpreter.tools.remove("execute")):
        with pytest.raises(UsageError):
            wrong()
    interpreter.tools.remove("note")
    assert interpreter.tools.names == ["execute"]


@pytest.mark.parametrize(("name", "policy"), [("two words", "reads"), ("", "reads"), ("note", "maybe")])
def test_invalid_tool_names_and_policies_are_refused(name: str, policy: Any) -> None:
    with pytest.raises(UsageError):
        Tool(name, "Does it.", TEXT, lambda arguments: None, policy)


def test_execute_is_one_of_the_tools() -> None:
    interpreter = OpenInterpreter(stream_all=True)
    interpreter.computer.languages = [Echo]
    execute = interpreter.tools["execute"]
    assert execute.schema["properties"]["language"]["enum"] == ["echo"]
    chunks = execute.handler({"language": "echo", "code": "one"})
    assert "one\n" in [chunk.get("content") for chunk in chunks or () if isinstance(chunk, dict)]


def test_an_empty_toolbox_has_no_text() -> None:
    assert Toolbox().as_text() == ""
    assert Toolbox().closest("x") is None


def test_a_toolbox_refuses_two_tools_with_one_name() -> None:
    note = Tool("note", "Keeps a note.", TEXT, lambda given: None)
    with pytest.raises(UsageError, match="already a tool named 'note'"):
        Toolbox([note, Tool("note", "Writes a note.", TEXT, lambda given: None)])
