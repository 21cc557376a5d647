"""The journal records messages, decisions and actions as they happen."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from conversation import Chatting
from interpreter import OpenInterpreter
from interpreter.messages import Message
from interpreter.session.journal import SavedSession
from model_server import text, tool_call, usage


def saved_session(interpreter: OpenInterpreter) -> SavedSession:
    assert interpreter.journal.path is not None
    return SavedSession.open(interpreter.journal.path)


def events(interpreter: OpenInterpreter) -> list[dict[str, Any]]:
    assert interpreter.journal.path is not None
    lines = (interpreter.journal.path / "journal.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def everything_under(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_a_turn_is_recorded_with_its_block_and_its_cost(chatting: Chatting, tmp_path: Path) -> None:
    interpreter, _ = chatting(
        text("I will say it.").then(tool_call("echo", "hello")).then(usage(1000, 10)),
        text("Said.").then(usage(2000, 5)),
        auto_run=True,
        workspace=str(tmp_path),
    )
    interpreter.chat("Say hello to   the world,\nplease", display=False)
    session = saved_session(interpreter)
    assert session.messages == interpreter.messages
    assert session.title == "Say hello to the world, please"
    assert session.facts.folder == str(tmp_path) and session.facts.model == interpreter.llm.model
    [block] = session.blocks
    assert session.messages[block.at]["content"] == "hello"
    assert (block.decision, block.by, block.ended) == ("approved", "auto_run", "done")
    assert session.usage == interpreter.llm.usage and session.usage.input_tokens == 3000
    assert session.usage.cost == interpreter.llm.cost


def test_decisions_are_recorded_with_who_made_them(chatting: Chatting) -> None:
    interpreter, _ = chatting(
        tool_call("echo", "one"), tool_call("echo", "two"), tool_call("echo", "three"), text("Well.")
    )
    decisions = iter(["approve", "edit", "approve", "decline"])  # an edit asks again
    for chunk in interpreter.chat("go", display=False, stream=True):
        if chunk["type"] == "confirmation":
            assert interpreter.pending is not None
            match next(decisions):
                case "edit":
                    interpreter.pending.edit("another")
                case "decline":
                    interpreter.pending.decline("rather not")
    session = saved_session(interpreter)
    assert session.messages == interpreter.messages
    told = [(block.decision, block.by, block.reason, block.ended) for block in session.blocks]
    assert told == [
        ("approved", "library", "", "done"),
        ("edited", "user", "", "done"),
        ("declined", "user", "rather not", None),
    ]
    assert session.messages[session.blocks[1].at]["content"] == "another"


def test_a_block_in_an_unknown_language_is_recorded_as_not_run(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("cobol", "x"), text("Sorry."), auto_run=True)
    interpreter.chat("go", display=False)
    [block] = saved_session(interpreter).blocks
    assert (block.decision, block.ended) == ("not_run", None)


def test_nothing_is_written_before_the_first_message(home: Path) -> None:
    interpreter = OpenInterpreter()
    assert interpreter.journal.path is None and interpreter.journal.id is None
    interpreter.journal.rename("a name")
    interpreter.reset()
    assert not list(home.rglob("*"))


def test_nothing_is_written_without_conversation_history(chatting: Chatting, home: Path) -> None:
    interpreter, _ = chatting(text("Hi."), conversation_history=False)
    interpreter.chat("hello", display=False)
    assert not list(home.rglob("journal.jsonl")) and not list(home.rglob("*.json"))


def test_a_setting_chooses_the_folder(chatting: Chatting, tmp_path: Path) -> None:
    interpreter, _ = chatting(text("Hi."), conversation_history_path=str(tmp_path / "mine"))
    interpreter.chat("hello", display=False)
    assert interpreter.journal.path is not None
    assert interpreter.journal.path.parent == tmp_path / "mine"


def test_a_setting_chooses_the_file_in_the_originals_format(chatting: Chatting, tmp_path: Path) -> None:
    interpreter, _ = chatting(text("Hi."), conversation_history_path=str(tmp_path), conversation_filename="talk.json")
    interpreter.chat("hello", display=False)
    assert json.loads((tmp_path / "talk.json").read_text("utf-8")) == interpreter.messages


def test_only_the_owner_can_read_the_journal(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("Hi."))
    interpreter.chat({"type": "message", "content": "x" * 10_000}, display=False)
    assert interpreter.journal.path is not None
    for path in [interpreter.journal.path, *interpreter.journal.path.rglob("*")]:
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path


def test_api_keys_are_not_recorded(chatting: Chatting, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter, _ = chatting(text("Hi."))
    interpreter.llm.api_key = "sk-very-secret-0123456789"
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-also-secret")
    interpreter.chat("hello", display=False)
    kept = everything_under(home)
    assert b"hello" in kept and b"secret" not in kept


def test_changes_of_messages_between_turns_are_recorded(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("One."), text("Two."), text("Three."), text("Four."))
    interpreter.chat("first", display=False)
    interpreter.messages[0]["content"] = "rewritten"
    interpreter.chat("second", display=False)
    assert saved_session(interpreter).messages == interpreter.messages
    interpreter.messages = interpreter.messages[2:]
    interpreter.chat("third", display=False)
    assert saved_session(interpreter).messages == interpreter.messages
    interpreter.chat([{"role": "user", "type": "message", "content": "all new"}], display=False)
    assert saved_session(interpreter).messages == interpreter.messages
    replaced = [entry for entry in events(interpreter) if entry["event"] == "messages_replaced"]
    assert len(replaced) == 3


def test_blocks_follow_their_messages(chatting: Chatting) -> None:
    interpreter, _ = chatting(
        tool_call("echo", "a"), text("A."), tool_call("echo", "b"), text("B."), text("C."), auto_run=True
    )
    interpreter.chat("one", display=False)
    interpreter.chat("two", display=False)
    first_turn = next(at for at, message in enumerate(interpreter.messages) if message.get("content") == "two")
    del interpreter.messages[:first_turn]
    interpreter.journal.sync("undo")
    session = saved_session(interpreter)
    assert [session.messages[block.at]["content"] for block in session.blocks] == ["b"]
    assert events(interpreter)[-1]["event"] == "undo"


def test_undo_and_redo_update_the_recorded_blocks(chatting: Chatting) -> None:
    interpreter, _ = chatting(
        tool_call("echo", "a"), text("A."), tool_call("echo", "b"), text("B."), text("C."), auto_run=True
    )
    interpreter.chat("one", display=False)
    interpreter.chat("two", display=False)
    before = saved_session(interpreter).blocks
    interpreter.undo()
    assert saved_session(interpreter).blocks == before[:1]
    interpreter.undo()
    interpreter.redo(2)
    assert saved_session(interpreter).blocks == before and [block.by for block in before] == ["auto_run", "auto_run"]
    interpreter.undo()
    interpreter.chat("three", display=False)
    assert saved_session(interpreter).blocks == before[:1] and list(saved_session(interpreter).proposed) == [1, 2]


def test_reset_starts_a_new_session(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("One.").then(usage(10, 1)), text("Two.").then(usage(20, 2)))
    interpreter.chat("first", display=False)
    first = saved_session(interpreter)
    interpreter.reset()
    assert interpreter.journal.path is None
    interpreter.chat("second", display=False)
    second = saved_session(interpreter)
    assert first.path != second.path
    assert SavedSession.open(first.path).messages == first.messages
    assert [message["content"] for message in second.messages] == ["second", "Two."]
    assert second.usage.input_tokens == 20


def test_two_interpreters_have_two_sessions(chatting: Chatting) -> None:
    one, _ = chatting(text("One."))
    other, _ = chatting(text("Two."))
    one.chat("first", display=False)
    other.chat("second", display=False)
    assert saved_session(one).messages == one.messages
    assert saved_session(other).messages == other.messages
    assert one.journal.path != other.journal.path


def test_a_forked_process_has_its_own_session(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("One."), text("Two."), text("Three."))
    interpreter.llm.completions = lambda **_: iter([{"choices": [{"delta": {"content": "Hm."}}]}])
    interpreter.chat("first", display=False)
    kept = saved_session(interpreter)
    child = os.fork()
    if child == 0:
        interpreter.chat("in the child", display=False)
        os._exit(0 if saved_session(interpreter).path != kept.path and len(interpreter.messages) == 4 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    interpreter.chat("in the parent", display=False)
    assert saved_session(interpreter).path == kept.path
    assert [m["content"] for m in saved_session(interpreter).messages][2] == "in the parent"


def test_an_abandoned_turn_is_recorded_up_to_its_end(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("Sure.").then(tool_call("echo", "a")), text("Fine."))
    for chunk in interpreter.chat("go", display=False, stream=True):
        if chunk["type"] == "confirmation":
            break
    interpreter.messages.append({"role": "computer", "type": "console", "format": "output", "content": "by hand"})
    interpreter.chat("go on", display=False)
    session = saved_session(interpreter)
    assert session.messages == interpreter.messages
    assert session.blocks[0].decision == "not_run"


def test_a_model_error_is_recorded_only_by_name(chatting: Chatting) -> None:
    interpreter, _ = chatting({"error": 401, "body": "Incorrect API key provided: sk-123"})
    with pytest.raises(Exception, match="key"):
        interpreter.chat("go", display=False)
    turn, action = events(interpreter)[-2:]
    assert (turn["event"], turn["error"]) == ("turn", "WrongKeyError")
    assert (action["state"], action["outcome"], action["error"]) == ("ended", "error", "WrongKeyError")
    assert "sk-123" not in json.dumps(events(interpreter))


def test_unusual_messages_are_kept_unchanged(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("Fine."))
    odd: list[Message] = [
        {"role": "user", "type": "message", "content": "half a pair: \ud800, and \u2028 a line"},
        {"role": "user", "type": "file", "content": "/tmp/x"},
    ]
    interpreter.llm.completions = lambda **_: iter([{"choices": [{"delta": {"content": "Fine."}}]}])
    interpreter.chat(odd, display=False)
    assert saved_session(interpreter).messages == interpreter.messages
