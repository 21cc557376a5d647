"""Approval of the model's tool calls by the tool's policy, the rules and the permission mode."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from call_answers import allowing_calls
from conversation import Chatting, chatting
from interpreter import OpenInterpreter
from interpreter.policy.files import user_file
from interpreter.session import ToolCall
from interpreter.tools import Tool
from interpreter.tools.toolbox import problem_with
from model_server import text, tool_call

__all__ = ["chatting"]
NOTE = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


class Notes:
    """An interpreter with a tool that writes a note to the workspace, and a model that calls it once."""

    def __init__(self, chatting: Chatting, folder: Path, policy: Any = "acts", **settings: Any) -> None:
        self.folder = folder
        self.interpreter, self.server = chatting(
            tool_call(arguments=json.dumps({"text": "milk"}), name="note"),
            text("Done."),
            workspace=str(folder),
            **settings,
        )
        self.interpreter.tools.append(Tool("note", "Keeps a note.", NOTE, self.keep, policy))

    def keep(self, given: dict[str, Any]) -> str:
        (self.folder / "notes").write_text(given["text"])
        return "kept"

    @property
    def kept(self) -> list[str]:
        return [path.name for path in self.folder.iterdir()]

    def result(self) -> str:
        return str(self.server.requests[-1].messages[-1]["content"])


@pytest.mark.parametrize(("policy", "mode", "asks"), [
    ("reads", "ask", False), ("acts", "ask", True), ("acts", "auto", False), ("sends", "auto", True), ("sends", "ask", True),
])  # fmt: skip
@pytest.mark.parametrize("allow", [True, False])
def test_policy_and_mode_decide_whether_a_call_asks(
    chatting: Chatting, tmp_path: Path, policy: str, mode: str, asks: bool, allow: bool
) -> None:
    notes = Notes(chatting, tmp_path, policy, mode=mode)
    asked: list[str] = []

    def answer(words: str) -> bool:
        asked.append(words)
        return allow

    with allowing_calls(notes.interpreter, answer):
        notes.interpreter.chat("go", display=False)
    assert asked == (['The model wants to call note(text="milk"). Allow it?'] if asks else [])
    assert notes.kept == (["notes"] if allow or not asks else [])
    assert ("kept" if allow or not asks else "the user said no") in notes.result()


def test_continuing_is_not_consent_to_a_call(chatting: Chatting, tmp_path: Path) -> None:
    notes = Notes(chatting, tmp_path)
    chunks = list(notes.interpreter.chat("go", display=False, stream=True))
    (question,) = [chunk for chunk in chunks if chunk["type"] == "confirmation"]
    assert question["format"] == "tool_call" and question["content"]["format"] == "note"
    assert notes.kept == [] and "there was no one to ask" in notes.result()


def test_a_call_can_be_approved_through_pending(chatting: Chatting, tmp_path: Path) -> None:
    notes = Notes(chatting, tmp_path)
    for chunk in notes.interpreter.chat("go", display=False, stream=True):
        if chunk["type"] == "confirmation":
            pending: Any = notes.interpreter.pending
            assert pending.name == "note"
            pending.approve()
    assert notes.kept == ["notes"]


@pytest.mark.parametrize(("decision", "kept"), [("deny", []), ("allow", ["notes"])])
def test_rules_can_match_a_tool(chatting: Chatting, tmp_path: Path, home: Path, decision: str, kept: list[str]) -> None:
    user_file().parent.mkdir(parents=True, exist_ok=True)
    user_file().write_text(f"rules:\n  - {{decision: {decision}, call: note, reason: It is so.}}\n")
    folder = tmp_path / "work"
    folder.mkdir()
    notes = Notes(chatting, folder)
    notes.interpreter.chat("go", display=False)
    assert notes.kept == kept
    assert ("kept" if kept else "The rules don't allow note: It is so.") in notes.result()


def test_plan_mode_refuses_tools_that_act(chatting: Chatting, tmp_path: Path) -> None:
    notes = Notes(chatting, tmp_path, mode="plan")
    notes.interpreter.chat("go", display=False)
    assert notes.kept == [] and "plan mode" in notes.result()


def test_file_changes_of_a_tool_can_be_undone(chatting: Chatting, tmp_path: Path) -> None:
    notes = Notes(chatting, tmp_path, mode="auto")
    notes.interpreter.chat("go", display=False)
    assert notes.kept == ["notes"]
    notes.interpreter.undo()
    assert notes.kept == [] and notes.interpreter.messages == []


def test_a_tool_can_run_a_block(chatting: Chatting, tmp_path: Path) -> None:
    """The block is a child of the call, so it doesn't wait for the lane."""
    made: list[OpenInterpreter] = []

    def run(given: dict[str, Any]) -> str:
        return str(made[0].computer.run("echo", given["text"]))

    interpreter, server = chatting(
        tool_call(arguments=json.dumps({"text": "milk"}), name="say"), text("Done."), mode="auto"
    )
    made.append(interpreter)
    interpreter.tools.append(Tool("say", "Says it.", NOTE, run))
    interpreter.chat("go", display=False)
    assert "milk" in str(server.requests[-1].messages[-1]["content"])
    states = [event.data for event in interpreter.session.log.read() if event.kind == "action"]
    assert [(state["kind"], state["state"]) for state in states] == [
        ("turn", "begun"), ("turn", "running"),
        ("tool", "begun"), ("tool", "running"), ("block", "begun"), ("block", "running"), ("block", "ended"),
        ("tool", "ended"), ("turn", "ended"),
    ]  # fmt: skip


@pytest.mark.parametrize("mode", ["ask", "auto"])
def test_the_execute_handler_uses_the_same_pipeline_as_a_block(
    chatting: Chatting, home: Path, tmp_path: Path, mode: Any
) -> None:
    user_file().parent.mkdir(parents=True, exist_ok=True)
    user_file().write_text("rules:\n  - {decision: deny, command: rm, reason: Never here.}\n")
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "kept").touch()
    interpreter, _ = chatting(mode=mode, workspace=str(folder))
    execute = interpreter.tools["execute"].handler
    denied = list(execute({"language": "shell", "code": "rm kept"}) or ())
    assert (folder / "kept").exists()
    assert "Never here." in str(denied)
    asked: list[Any] = list(execute({"language": "shell", "code": "touch made"}) or ())
    assert any(chunk["type"] == "confirmation" for chunk in asked) == (mode == "ask")
    assert (folder / "made").exists()  # only the mode asks, so continuing is consent


def test_a_tool_that_was_added_after_the_call_is_not_called_without_approval() -> None:
    interpreter = OpenInterpreter()
    called: list[Any] = []
    tools = interpreter.tools
    call = ToolCall(tools.get("post"), {}, problem=problem_with(tools, "post", "{}"))
    interpreter.tools.append(Tool("post", "Sends.", {"type": "object"}, called.append, policy="sends"))
    events = list(interpreter.session.perform(call, interpreter.agent.actor))
    assert not called
    assert any("There is no tool named 'post'" in str(event.data.get("content")) for event in events)
