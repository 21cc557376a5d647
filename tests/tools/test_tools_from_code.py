"""Registered tools as functions: made of functions, called by the model and by code, with one judgement."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from conversation import Chatting, chatting
from interpreter import OpenInterpreter
from interpreter.errors import UsageError
from interpreter.questions import Confirm
from interpreter.session import APPROVE, Answer, Question
from interpreter.tools import FileEdit, Tool, ToolContext
from model_server import text, tool_call

__all__ = ["chatting"]
pytestmark = pytest.mark.usefixtures("no_strays")


def call_of(name: str, **arguments: Any) -> Any:
    """A scripted reply that calls a tool."""
    import json

    return tool_call(arguments=json.dumps(arguments), name=name)


def printed(messages: list[Any]) -> str:
    return "".join(str(message["content"]) for message in messages if message["type"] == "console")


def add(first: int, second: Annotated[int, "the other number"] = 1) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": first + second}


# -- from a function ------------------------------------------------------------------------------------------------


def test_a_function_becomes_a_tool() -> None:
    def search(words: str, limit: int = 10, kind: Literal["a", "b"] = "a", tags: list[str] | None = None) -> None:
        """Search everything.

        Slowly.
        """

    tool = Tool.function(search, policy="reads")
    assert (tool.name, tool.description) == ("search", "Search everything.\n\nSlowly.")
    assert tool.schema["required"] == ["words"] and tool.schema["additionalProperties"] is False
    assert tool.schema["properties"] == {
        "words": {"type": "string"},
        "limit": {"type": "integer"},
        "kind": {"enum": ["a", "b"]},
        "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
    }
    assert Tool.function(add).schema["properties"]["second"] == {"type": "integer", "description": "the other number"}


def test_a_function_whose_parameters_have_no_form_in_json_is_refused() -> None:
    def odd(value: threading.Lock) -> None: ...

    def loose(*values: int) -> None: ...

    for function in (odd, loose):
        with pytest.raises(UsageError, match=function.__name__):
            Tool.function(function)


@pytest.mark.parametrize("name", ["", "1a", "a b", "a..b", "a.b.c.d.e", "x" * 65])
def test_a_name_that_no_provider_takes_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="can't be the name of a tool"):
        Tool(name, "", {"type": "object"}, lambda arguments: None)


def test_a_dotted_name_has_a_form_for_providers_and_one_for_code() -> None:
    tool = Tool("git-hub.create-issue", "", {"type": "object"}, lambda arguments: None)
    assert (tool.wire_name, tool.code_name) == ("git-hub__create-issue", "git_hub.create_issue")


# -- called by the model --------------------------------------------------------------------------------------------


def test_the_model_reads_the_value_as_text(chatting: Chatting) -> None:
    interpreter, server = chatting(call_of("math__add", first=1, second=2), text("3."), auto_run=True)
    interpreter.tools.append(Tool.function(add, name="math.add"))
    interpreter.chat("go", display=False)
    assert printed(interpreter.messages) == '{"sum": 3}'
    sent = [each["function"]["name"] for each in server.requests[0].body["tools"]]
    assert sent == ["execute", "math__add"]


def test_a_handler_asks_and_reports_while_it_runs(chatting: Chatting) -> None:
    """The events come in order, before the handler returns."""

    def deploy(context: ToolContext) -> str:
        context.progress("half")
        answer = context.ask(Confirm("Really?"))
        return "deployed" if answer is not None and answer.choice == APPROVE else "kept"

    interpreter, _ = chatting(call_of("deploy"), text("Done."), auto_run=True)
    interpreter.tools.append(Tool.function(deploy))
    seen = []
    for event in interpreter.respond("go"):
        if event.data.get("format") == "progress":
            seen.append(event.data["content"]["text"])
        if event.kind == "confirmation":
            seen.append(event.data["content"]["content"])
            interpreter.session.answer(event.data["question"], APPROVE)
    assert seen == ["half", "Really?"] and printed(interpreter.messages) == "deployed"


def test_a_question_of_a_handler_that_no_one_answers_is_a_no(chatting: Chatting) -> None:
    answers = []
    interpreter, _ = chatting(call_of("deploy"), text("Done."), auto_run=True)

    def deploy(context: ToolContext) -> None:
        answers.append(context.ask(Confirm("Really?")))

    interpreter.tools.append(Tool.function(deploy))
    interpreter.chat("go", display=False)
    assert [answer.by for answer in answers] == ["nobody"]


@pytest.mark.parametrize("settings", [{"mode": "plan"}, {"sandbox": "read-only", "auto_run": True}])
def test_a_tool_that_acts_is_not_called_where_nothing_may_be_changed(chatting: Chatting, settings: Any) -> None:
    called = []
    interpreter, _ = chatting(call_of("act"), text("So."), **settings)
    interpreter.tools.append(Tool("act", "Acts.", {"type": "object"}, called.append))
    interpreter.chat("go", display=False)
    assert not called and "was not called" in printed(interpreter.messages)


def test_an_edit_is_shown_as_a_diff(chatting: Chatting, tmp_path: Path) -> None:
    (tmp_path / "prices.txt").write_text("one\ntwo\n")

    def replace(old: str, new: str, context: ToolContext) -> str:
        """Replace a text in prices.txt."""
        with context.files as files:
            files.write_bytes("prices.txt", files.read_bytes("prices.txt").replace(old.encode(), new.encode()))
        return "replaced"

    def effects(arguments: dict[str, Any]) -> list[FileEdit]:
        return [FileEdit("prices.txt", "one\ntwo\n", "one\n" + arguments["new"] + "\n")]

    made = Tool.function(replace)
    tool = Tool(made.name, made.description, made.parameters, made.handler, effects=effects)
    interpreter, _ = chatting(call_of("replace", old="two", new="three"), text("Done."), workspace=str(tmp_path))
    interpreter.tools.append(tool)
    asked: list[str] = []

    def approve(question: Question) -> Answer:
        asked.append(question.text)
        return Answer(APPROVE)

    with interpreter.session.questions.answerable(["call"], approve):
        interpreter.chat("go", display=False)
    assert "-two\n+three\n" in asked[0] and "{" not in asked[0]
    assert (tmp_path / "prices.txt").read_text() == "one\nthree\n"
    interpreter.undo()
    assert (tmp_path / "prices.txt").read_text() == "one\ntwo\n"


# -- called by code -------------------------------------------------------------------------------------------------

PYTHON = "found = tools.math.add(1, second=2)\nprint(type(found).__name__, found['sum'] + 1)"
JAVASCRIPT = "const found = await tools.math.add(1, { second: 2 });\nconsole.log(typeof found, found.sum + 1)"


@pytest.mark.parametrize(
    ("language", "python", "code", "output"),
    [
        ("python", None, PYTHON, "dict 4\n"),
        ("python", "in-process", PYTHON, "dict 4\n"),
        ("javascript", None, JAVASCRIPT, "object 4\n"),
    ],
)
def test_code_gets_the_value(chatting: Chatting, language: str, python: str | None, code: str, output: str) -> None:
    interpreter, _ = chatting(auto_run=True)
    interpreter.computer.python = python
    interpreter.tools.append(Tool.function(add, name="math.add"))
    assert printed(interpreter.computer.run(language, code)) == output


@pytest.mark.parametrize("python", [None, "in-process"])
def test_a_tool_is_awaitable_where_an_event_loop_runs(chatting: Chatting, python: str | None) -> None:
    interpreter, _ = chatting(auto_run=True)
    interpreter.computer.python = python
    interpreter.tools.append(Tool.function(add))
    code = "import asyncio\nprint(await asyncio.gather(tools.add(1), tools.add(2)))"
    assert printed(interpreter.computer.run("python", code)) == "[{'sum': 2}, {'sum': 3}]\n"


@pytest.mark.parametrize("python", [None, "in-process"])
def test_the_users_own_name_wins_and_the_tools_are_no_variable(chatting: Chatting, python: str | None) -> None:
    interpreter, _ = chatting(auto_run=True)
    interpreter.computer.python = python
    interpreter.tools.append(Tool.function(add))
    assert printed(interpreter.computer.run("python", "print(tools)\ntools = 3\nprint(tools)")) == "tools\n3\n"
    interpreter.computer.run("python", "del tools")
    listed = interpreter.computer.variables().get("Python", [])
    assert "tools" not in [each.name for each in listed]
    assert "sum" in printed(interpreter.computer.run("python", "print(tools.add(1))"))


def test_a_tool_that_was_registered_later_is_found_and_a_removed_one_is_gone(chatting: Chatting) -> None:
    interpreter, _ = chatting(auto_run=True)
    code = "try:\n    print(tools.add(1))\nexcept AttributeError as error:\n    print(error)"
    assert "There is no tools.add." in printed(interpreter.computer.run("python", code))
    interpreter.tools.append(Tool.function(add))
    assert printed(interpreter.computer.run("python", code)) == "{'sum': 2}\n"
    interpreter.tools.remove("add")
    assert "There is no tools.add." in printed(interpreter.computer.run("python", code))


@pytest.mark.parametrize("python", [None, "in-process"])
def test_wrong_arguments_raise_with_the_signature(chatting: Chatting, python: str | None) -> None:
    interpreter, _ = chatting(auto_run=True)
    interpreter.computer.python = python
    interpreter.tools.append(Tool.function(add))
    code = "try:\n    tools.add(frist=1)\nexcept TypeError as error:\n    print(error)"
    output = printed(interpreter.computer.run("python", code))
    assert "frist is unknown (did you mean first?)" in output and "add(first: integer, second: integer = ...)" in output


def test_a_call_of_code_is_judged_like_one_of_the_model(chatting: Chatting) -> None:
    """A yes to the block does not cover it, and a no raises in the code."""
    called: list[Any] = []
    interpreter, _ = chatting()
    interpreter.tools.append(Tool("act", "Acts.", {"type": "object"}, called.append))
    code = "try:\n    tools.act()\nexcept PermissionError as error:\n    print(error)"
    asked: list[str] = []

    def answer(question: Question) -> Answer:
        asked.append(question.text)
        return Answer(APPROVE if len(asked) == 1 else "refuse")

    with interpreter.session.questions.answerable(["call"], answer):
        assert printed(interpreter.computer.run("python", code)) == ""
        assert "act was not called: the user said no." in printed(interpreter.computer.run("python", code))
    assert called == [{}] and asked == ["The code wants to call tools.act(). Allow it?"] * 2


# -- forks ----------------------------------------------------------------------------------------------------------


def test_in_a_fork_a_tool_works_in_the_workspace_of_the_fork(tmp_path: Path) -> None:
    def note(words: str, context: ToolContext) -> None:
        with context.files as files:
            files.write_bytes("note.txt", words.encode())

    work = tmp_path / "work"
    work.mkdir()
    interpreter = OpenInterpreter(workspace=str(work), auto_run=True)
    interpreter.tools.append(Tool.function(note))
    child = interpreter.fork()
    events = [event.data for event in child.session.log.read()]
    child.computer.run("python", "tools.note('of the fork')")
    assert not (work / "note.txt").exists() and (Path(child.workspace) / "note.txt").read_text() == "of the fork"
    changed = [event.data for event in child.session.log.read()[len(events) :] if event.data.get("format") == "files"]
    assert "note.txt" in str(changed)
    child.reset()
    interpreter.reset()


def test_a_tool_that_was_removed_does_not_come_back_in_a_fork(tmp_path: Path) -> None:
    interpreter = OpenInterpreter(workspace=str(tmp_path))
    interpreter.tools.append(Tool.function(add))
    interpreter.tools.remove("add")
    child = interpreter.fork()
    assert child.tools.names == ["execute"]
    child.reset()
