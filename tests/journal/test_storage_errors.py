"""A full disk, a folder that can't be written, a session in use by another process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from conversation import Chatting
from interpreter import OpenInterpreter
from interpreter.errors import ConversationInUseError
from interpreter.session.journal import SavedSession
from model_server import text

HOLD_SESSION = """
import sys
from interpreter import OpenInterpreter
interpreter = OpenInterpreter(stream_all=True)
interpreter.journal.resume(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""

FULL_DISK = """
import resource, signal
from interpreter import OpenInterpreter
from interpreter.session.journal import SavedSession

interpreter = OpenInterpreter(stream_all=True)
interpreter.llm.completions = lambda **_: iter([{"choices": [{"delta": {"content": "word " * 100}}]}])
interpreter.chat("before", display=False)
size = (interpreter.journal.path / "journal.jsonl").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 300, resource.RLIM_INFINITY))  # the disk is full from now on
notices = []
for number in range(3):
    for chunk in interpreter.chat(f"message {number}", display=False, stream=True):
        if chunk["type"] == "status" and chunk["format"] == "notice":
            notices.append(chunk["content"]["text"])
assert len(interpreter.messages) == 8, interpreter.messages
assert len(notices) == 1, notices
assert "Can't save this conversation" in notices[0] and "too large" in notices[0], notices
assert len([entry for entry in interpreter.journal.root.iterdir() if entry.is_dir()]) == 1
kept = SavedSession.open(interpreter.journal.path)
assert kept.messages == interpreter.messages[: len(kept.messages)] and not kept.torn
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))  # there is space again
interpreter.chat("after", display=False)
assert SavedSession.open(interpreter.journal.path).messages == interpreter.messages
print("ok")
"""


def chat_notices(interpreter: OpenInterpreter, said: str) -> list[str]:
    chunks = interpreter.chat(said, display=False, stream=True)
    return [chunk["content"]["text"] for chunk in chunks if chunk.get("format") == "notice"]


def test_a_full_disk_is_reported_once_and_the_chat_continues() -> None:
    done = subprocess.run([sys.executable, "-c", FULL_DISK], capture_output=True, text=True, timeout=60)
    assert done.stdout == "ok\n", done.stderr


def test_a_folder_that_cannot_be_created_is_reported_once(chatting: Chatting, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    interpreter, _ = chatting(
        text("One."), text("Two."), text("Three."), conversation_history_path=str(tmp_path / "file" / "sessions")
    )
    [notice] = chat_notices(interpreter, "first")
    assert "Can't save this conversation" in notice and str(tmp_path) in notice
    assert chat_notices(interpreter, "second") == []
    (tmp_path / "file").unlink()
    assert chat_notices(interpreter, "third") == []
    assert interpreter.journal.path is not None
    assert SavedSession.open(interpreter.journal.path).messages == interpreter.messages


def test_an_unwritable_folder_is_reported_once(chatting: Chatting) -> None:
    interpreter, _ = chatting(
        text("One."), conversation_history_path="/proc/conversations"
    )  # not even root can write there
    [notice] = chat_notices(interpreter, "first")
    assert "Can't save this conversation" in notice


def test_a_session_in_use_by_another_process_cannot_be_resumed(chatting: Chatting) -> None:
    first, _ = chatting(text("One."))
    first.chat("hello", display=False)
    name = first.journal.id
    assert name is not None
    first.journal.close()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD_SESSION, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None and holder.stdin is not None
        assert holder.stdout.readline() == "held\n"
        second = OpenInterpreter()
        with pytest.raises(ConversationInUseError, match="open"):
            second.journal.resume(name)
        holder.stdin.close()
        holder.wait(timeout=60)
    assert len(second.journal.resume(name).messages) == 2
    second.journal.close()


NO_SPACE = """
import resource
from interpreter import OpenInterpreter

interpreter = OpenInterpreter(stream_all=True)
interpreter.llm.completions = lambda **_: iter([{"choices": [{"delta": {"content": "word"}}]}])
resource.setrlimit(resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))
for number in range(3):
    interpreter.chat("hello", display=False)
assert len(interpreter.messages) == 6
assert list(interpreter.journal.root.iterdir()) == []
print("ok")
"""


def test_a_session_that_cannot_be_created_leaves_no_files() -> None:
    done = subprocess.run([sys.executable, "-c", NO_SPACE], capture_output=True, text=True, timeout=60)
    assert done.stdout == "ok\n", done.stderr


def test_a_session_can_be_read_while_it_is_open(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("One."))
    interpreter.chat("hello", display=False)
    assert interpreter.journal.path is not None
    assert len(SavedSession.open(interpreter.journal.path).messages) == 2


def test_the_lock_ends_with_the_process(chatting: Chatting) -> None:
    first, _ = chatting(text("One."))
    first.chat("hello", display=False)
    name = first.journal.id
    assert name is not None
    first.journal.close()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD_SESSION, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        holder.kill()
        holder.wait(timeout=60)
    second = OpenInterpreter()
    assert len(second.journal.resume(name).messages) == 2
    second.journal.close()
