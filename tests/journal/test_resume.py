"""Resuming, branching, finding and reading sessions."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from conversation import Chatting
from interpreter import OpenInterpreter
from interpreter.errors import ConversationFileError, ConversationNotFoundError
from interpreter.session.journal import (
    SavedSession,
    find,
    last_in,
    listed,
)
from interpreter.session.journal.reader import RecordedBlock, Said, entries_from_session
from model_server import text, tool_call, usage


def close_session(interpreter: OpenInterpreter) -> str:
    name = interpreter.journal.id
    assert name is not None
    interpreter.journal.close()
    return name


def test_resume_restores_messages_usage_and_title(chatting: Chatting) -> None:
    first, _ = chatting(tool_call("echo", "a").then(usage(100, 10)), text("A.").then(usage(200, 20)), auto_run=True)
    first.chat("say a", display=False)
    messages, used, name = first.messages, first.llm.usage, close_session(first)
    second, server = chatting(text("B.").then(usage(400, 40)))
    session = second.journal.resume(name[:4])
    assert (session.id, session.title) == (name, "say a")
    assert second.messages == messages and second.llm.usage == used
    second.chat("say b", display=False)
    assert second.journal.id == name
    assert SavedSession.open(session.path).messages == second.messages
    assert SavedSession.open(session.path).usage.input_tokens == 700
    assert [row.facts.usage.requests for row in listed(second.journal.root)] == [3]
    said = [message["content"] for message in server.requests[0].messages if message["role"] == "user"]
    assert said[-1] == "say b"


def test_the_first_request_after_a_resume_extends_the_previous_one(chatting: Chatting, tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "user_message_template": "<<{content}>>",
        "system_message": "Today is {{ print('some day') }}.",
        "auto_run": True,
    }
    first, server = chatting(text("One."), text("Two."), **settings)
    first.chat("first", display=False)
    first.chat("second", display=False)
    name = close_session(first)
    second, later = chatting(text("Three."), **settings)
    second.journal.resume(name)
    second.chat("third", display=False)
    before, after = server.requests[-1].messages, later.requests[0].messages
    assert after[: len(before)] == before
    assert before[1]["content"] == "<<first>>"


def test_a_note_for_the_model_is_added_before_the_next_message(chatting: Chatting) -> None:
    first, _ = chatting(text("One."))
    first.chat("first", display=False)
    name = close_session(first)
    second, server = chatting(text("Two."))
    second.journal.resume(name)
    second.journal.tell_model("[Variables are gone.]")
    assert len(second.messages) == 2
    new = second.chat("second", display=False)
    assert [message["content"] for message in new] == ["Two."]
    contents = [message["content"] for message in second.messages]
    assert contents == ["first", "One.", "[Variables are gone.]", "second", "Two."]
    assert any("Variables are gone" in str(message["content"]) for message in server.requests[0].messages)
    assert SavedSession.open(second.journal.root / name).messages == second.messages


def test_resuming_without_a_message_changes_nothing(chatting: Chatting) -> None:
    first, _ = chatting(text("One."))
    first.chat("first", display=False)
    name = close_session(first)
    journal = first.journal.root / name / "journal.jsonl"
    before = journal.read_bytes()
    second = OpenInterpreter()
    second.journal.resume(name)
    second.journal.tell_model("[note]")
    second.journal.close()
    assert journal.read_bytes() == before


def test_a_branch_is_a_separate_conversation(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("echo", "a" * 10_000), text("A."), text("B."), auto_run=True)
    interpreter.max_output = 20_000
    interpreter.chat("say a", display=False)
    first = interpreter.journal.path
    assert first is not None
    before = SavedSession.open(first)
    name = interpreter.journal.branch()
    assert interpreter.journal.id == name != before.id
    interpreter.chat("say b", display=False)
    assert SavedSession.open(first).messages == before.messages
    branch = SavedSession.open(interpreter.journal.root / name)
    assert branch.messages == interpreter.messages
    assert (branch.id, branch.title, branch.facts.branched_from) == (name, "say a (branch)", before.id)
    assert len(branch.blocks) == 1 and branch.usage.requests == 3
    assert {row.id for row in listed(interpreter.journal.root)} == {name, before.id}
    other = OpenInterpreter()
    other.journal.resume(before.id)  # it is no longer locked
    other.journal.close()


def test_branching_before_the_first_message_is_an_error() -> None:
    with pytest.raises(ConversationNotFoundError, match="nothing"):
        OpenInterpreter().journal.branch()


def test_a_given_title_is_kept(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("One."), text("Two."))
    interpreter.journal.rename("before anything")
    interpreter.chat("first", display=False)
    assert [row.title for row in listed(interpreter.journal.root)] == ["before anything"]
    interpreter.journal.rename("better")
    interpreter.chat("second", display=False)
    assert interpreter.journal.path is not None
    assert SavedSession.open(interpreter.journal.path).title == "better" == interpreter.journal.title


# -- finding -----------------------------------------------------------------------------------------------------


def test_the_last_conversation_in_a_folder_is_found(chatting: Chatting, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    names = {}
    for folder, said in ((here, "older"), (here, "newer"), (there, "elsewhere")):
        folder.mkdir(exist_ok=True)
        interpreter, _ = chatting(text("Yes."), workspace=str(folder))
        interpreter.chat(said, display=False)
        names[said] = close_session(interpreter)
    root = interpreter.journal.root
    assert last_in(root, str(here)).id == names["newer"]
    assert [row.title for row in listed(root)] == ["elsewhere", "newer", "older"]
    with pytest.raises(ConversationNotFoundError, match="no conversation in"):
        last_in(root, str(tmp_path))


def test_a_unique_prefix_of_an_id_is_enough(tmp_path: Path) -> None:
    for number, name in enumerate(("abcd0000", "abce0000")):
        (tmp_path / name).mkdir()
        entry = {"event": "session", "time": 1.0 + number, "id": name, "title": name.upper(), "folder": "/"}
        (tmp_path / name / "journal.jsonl").write_text(json.dumps(entry) + "\n")
    assert find(tmp_path, "abcd").title == "ABCD0000"
    with pytest.raises(ConversationNotFoundError, match=r"abce0000 \(ABCE0000\) or abcd0000"):
        find(tmp_path, "abc")
    with pytest.raises(ConversationNotFoundError, match="no conversation x"):
        find(tmp_path, "x")


def test_a_saved_session_can_be_opened_by_an_id_prefix(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("One."))
    interpreter.chat("first", display=False)
    assert interpreter.journal.id is not None
    assert SavedSession.open(interpreter.journal.id[:5]).title == "first"
    with pytest.raises(ConversationNotFoundError):
        SavedSession.open("nothing of that name")


def test_other_files_and_folders_are_not_listed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "journal.jsonl").touch()
    (tmp_path / "notes.txt").touch()
    assert listed(tmp_path) == [] == listed(tmp_path / "nowhere")


def test_a_wrong_summary_is_rebuilt(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("One."))
    interpreter.chat("first", display=False)
    path = interpreter.journal.path
    assert path is not None
    right = listed(path.parent)
    for wrong in (
        "",
        "[]",
        '{"length": 1000000}',
        '{"length": 0, "usage": {}, "odd": 1}',
        json.dumps({"length": 10**9}),
    ):
        (path / "summary.json").write_text(wrong)
        assert listed(path.parent) == right


# -- conversations of the original -----------------------------------------------------------------------------------

OLD = [
    {"role": "user", "type": "message", "content": "hello there friend"},
    {"role": "assistant", "type": "code", "format": "python", "content": "print(1)"},
    {"role": "computer", "type": "console", "format": "output", "content": "1"},
    {"role": "assistant", "type": "message", "content": "Hello."},
]
NAME = "hello_there__November_15_2025_18-39-59.json"


def test_a_conversation_of_the_original_can_be_listed_and_resumed(chatting: Chatting, tmp_path: Path) -> None:
    file = tmp_path / NAME
    file.write_text(json.dumps(OLD))
    os.utime(file, (1_000_000, 1_000_000))
    [row] = listed(tmp_path)
    assert (row.title, row.is_original) == ("hello there", True)
    interpreter, server = chatting(text("Again."), conversation_history_path=str(tmp_path))
    session = interpreter.journal.resume(row)
    assert interpreter.messages == OLD and session.title == "hello there friend"
    assert interpreter.journal.path is None, "nothing is written before the first new message"
    interpreter.chat("and now?", display=False)
    assert json.loads(file.read_text()) == OLD and file.stat().st_mtime == 1_000_000
    assert len(server.requests[0].messages) == 6
    assert interpreter.journal.path is not None
    assert SavedSession.open(interpreter.journal.path).messages == interpreter.messages
    assert [row.id for row in listed(tmp_path)] == [interpreter.journal.id], "one conversation, not two"


def test_a_conversation_file_can_be_resumed_by_path(tmp_path: Path) -> None:
    (tmp_path / "talk.json").write_text(json.dumps(OLD))
    interpreter = OpenInterpreter()
    interpreter.journal.resume(str(tmp_path / "talk.json"))
    assert interpreter.messages == OLD


@pytest.mark.parametrize("content", ["", "{}", '["x"]', '[{"type": "message"}]'])
def test_resuming_an_invalid_file_is_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "talk.json").write_text(content)
    interpreter = OpenInterpreter()
    with pytest.raises(ConversationFileError, match="not a conversation"):
        interpreter.journal.resume(str(tmp_path / "talk.json"))


# -- entries -------------------------------------------------------------------------------------------------------------


def test_entries_include_decisions_and_times(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("Both.").then(tool_call("echo", "a")), tool_call("echo", "b"), text("Done."))
    answers = iter([False, True])
    for chunk in interpreter.chat("go", display=False, stream=True):
        if chunk["type"] == "confirmation" and next(answers):
            assert interpreter.pending is not None
            interpreter.pending.decline("no thanks")
    assert interpreter.journal.path is not None
    entries = entries_from_session(SavedSession.open(interpreter.journal.path))
    blocks = [entry for entry in entries if isinstance(entry, RecordedBlock)]
    assert [(block.id, block.code, block.decision, block.by) for block in blocks] == [
        ("1", "a", "approved", "library"),
        ("2", "b", "declined", "user"),
    ]
    assert blocks[0].succeeded and blocks[0].seconds is not None and blocks[0].at is not None
    said = [entry for entry in entries if isinstance(entry, Said)]
    assert [entry.text for entry in said] == ["go", "Both.", "no thanks", "Done."]
    times = [entry.at for entry in entries]
    assert all(at is not None for at in times) and times == sorted(times)  # type: ignore[type-var]
