"""A journal left incomplete by a crash or a bad disk can be read and continued."""

from __future__ import annotations

from pathlib import Path

import pytest

from conversation import Chatting
from interpreter.errors import ConversationFileError
from interpreter.session.journal import SavedSession, listed
from model_server import text, tool_call


def recorded_chat(chatting: Chatting, *said: str) -> Path:
    interpreter, _ = chatting(*(text(f"Answer to {words}.") for words in said))
    for words in said:
        interpreter.chat(words, display=False)
    path = interpreter.journal.path
    assert path is not None
    interpreter.journal.close()
    return path


def test_a_last_line_torn_at_any_byte_is_dropped(chatting: Chatting) -> None:
    path = recorded_chat(chatting, "one", "two")
    journal = path / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    at = max(number for number, line in enumerate(lines) if b"Answer to two" in line)
    before, line = b"".join(lines[:at]), lines[at]
    for length in range(1, len(line)):
        journal.write_bytes(before + line[:length])
        session = SavedSession.open(path)
        assert session.torn and not session.damaged and session.length == len(before)
        assert [message["content"] for message in session.messages] == ["one", "Answer to one.", "two"]
        assert [row.id for row in listed(path.parent)] == [path.name]


def test_resuming_removes_a_torn_line(chatting: Chatting) -> None:
    path = recorded_chat(chatting, "one")
    with (path / "journal.jsonl").open("ab") as journal:
        journal.write(b'{"event":"message","at":2,"mess')
    interpreter, _ = chatting(text("Again."))
    assert interpreter.journal.resume(path.name).torn
    interpreter.chat("two", display=False)
    session = SavedSession.open(path)
    assert not session.torn and not session.damaged
    assert session.messages == interpreter.messages


def test_an_unreadable_line_in_the_middle_is_counted_and_skipped(chatting: Chatting) -> None:
    path = recorded_chat(chatting, "one", "two")
    journal = path / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if b'"event":"turn"' in line)
    lines[at] = b"\0" * len(lines[at][:-1]) + b"\n"
    journal.write_bytes(b"".join(lines))
    session = SavedSession.open(path)
    assert session.damaged == 1 and not session.torn
    assert len(session.messages) == 4


@pytest.mark.parametrize("content", [b"", b"{}\n", b'{"event":"more","text":"x"}\n', b"[1]\n", b"no json"])
def test_an_invalid_journal_is_an_error_that_names_the_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "journal.jsonl").write_bytes(content)
    with pytest.raises(ConversationFileError, match=r"journal\.jsonl"):
        SavedSession.open(tmp_path)


def test_unknown_entries_are_ignored(chatting: Chatting) -> None:
    path = recorded_chat(chatting, "one")
    with (path / "journal.jsonl").open("ab") as journal:
        journal.write(b'{"event":"files_changed","time":1,"files":["x"]}\n')
    assert len(SavedSession.open(path).messages) == 2


def test_a_running_conversation_is_listed(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("Sure.").then(tool_call("echo", "a")), text("Done."))
    for chunk in interpreter.chat("go", display=False, stream=True):
        if chunk["type"] == "confirmation":
            [row] = listed(interpreter.journal.root)
            assert row.title == "go" and row.id == interpreter.journal.id
            interpreter.journal.rename("another title")
            assert [row.title for row in listed(interpreter.journal.root)] == ["another title"]
