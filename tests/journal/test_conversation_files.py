"""The JSON file that 0.4.3 writes after each turn: we write it next to the journal, with the same name and content."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from conversation import Chatting, chatting
from interpreter import OpenInterpreter
from interpreter.session.journal import listed
from model_server import text

__all__ = ["chatting"]


def conversation_file(interpreter: OpenInterpreter) -> Path:
    assert interpreter.conversation_filename
    return Path(interpreter.conversation_history_path) / interpreter.conversation_filename


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("hello there friend", "hello_there"),
        ("Please count the files in this folder", "Please_count_the_files"),
        ("word", "word"),
        ("averyveryverylongword", "averyveryverylo"),
        ("what? is: this/that now", "what_is_thisthat"),
        ("", "conversation"),
        ("half \ud800 pair", "half_"),
    ],
)
def test_the_file_has_the_originals_name(chatting: Chatting, said: str, name: str) -> None:
    interpreter, _ = chatting(text("Hi."))
    interpreter.chat(said, display=False)
    written = interpreter.conversation_filename
    assert re.fullmatch(re.escape(name) + r"__[A-Z][a-z]+_\d\d_\d{4}_\d\d-\d\d-\d\d(_\d+)?\.json", str(written))
    assert json.loads(conversation_file(interpreter).read_bytes()) == interpreter.messages


def test_each_conversation_has_one_file(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("One."), text("Two."), text("Three."))
    interpreter.chat("first words", display=False)
    first = conversation_file(interpreter)
    interpreter.chat("more words", display=False)
    assert conversation_file(interpreter) == first
    interpreter.reset()
    interpreter.chat("first words", display=False)
    assert conversation_file(interpreter) != first
    assert len(json.loads(first.read_bytes())) == 4


def test_a_resumed_conversation_continues_in_its_file(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("One."), text("Two."))
    interpreter.chat("first words", display=False)
    file = conversation_file(interpreter)
    [row] = listed(interpreter.conversation_history_path)
    assert not row.is_original
    interpreter.journal.resume(row)
    interpreter.chat("more words", display=False)
    assert conversation_file(interpreter) == file
    assert len(json.loads(file.read_bytes())) == 4


def test_a_fork_has_its_own_file(chatting: Chatting, tmp_path: Path) -> None:
    interpreter, _ = chatting(text("One."), text("Two."), workspace=str(tmp_path))
    interpreter.chat("first words", display=False)
    fork = interpreter.fork()
    fork.chat("more words", display=False)
    assert conversation_file(fork) != conversation_file(interpreter)
    assert len(json.loads(conversation_file(interpreter).read_bytes())) == 2


def test_without_history_no_file_is_written(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("One."), conversation_history=False)
    interpreter.chat("first words", display=False)
    assert interpreter.conversation_filename is None
