"""The JSON file that 0.4.3 writes after each turn: ours is beside the journal, with the same name and content."""

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


def file_of(interpreter: OpenInterpreter) -> Path:
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
def test_the_name_is_that_of_the_original(chatting: Chatting, said: str, name: str) -> None:
    interpreter, _ = chatting(text("Hi."))
    interpreter.chat(said, display=False)
    written = interpreter.conversation_filename
    assert re.fullmatch(re.escape(name) + r"__[A-Z][a-z]+_\d\d_\d{4}_\d\d-\d\d-\d\d(_\d+)?\.json", str(written))
    assert json.loads(file_of(interpreter).read_bytes()) == interpreter.messages


def test_later_turns_go_to_the_same_file_and_a_new_conversation_to_another(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("One."), text("Two."), text("Three."))
    interpreter.chat("first words", display=False)
    first = file_of(interpreter)
    interpreter.chat("more words", display=False)
    assert file_of(interpreter) == first
    interpreter.reset()
    interpreter.chat("first words", display=False)
    assert file_of(interpreter) != first
    assert len(json.loads(first.read_bytes())) == 4


def test_a_conversation_is_listed_once_and_goes_on_in_its_file(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("One."), text("Two."))
    interpreter.chat("first words", display=False)
    file = file_of(interpreter)
    [row] = listed(interpreter.conversation_history_path)
    assert not row.is_original
    interpreter.journal.resume(row)
    interpreter.chat("more words", display=False)
    assert file_of(interpreter) == file
    assert len(json.loads(file.read_bytes())) == 4


def test_a_fork_has_its_own(chatting: Chatting, tmp_path: Path) -> None:
    interpreter, _ = chatting(text("One."), text("Two."), workspace=str(tmp_path))
    interpreter.chat("first words", display=False)
    fork = interpreter.fork()
    fork.chat("more words", display=False)
    assert file_of(fork) != file_of(interpreter)
    assert len(json.loads(file_of(interpreter).read_bytes())) == 2


def test_without_history_there_is_none(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("One."), conversation_history=False)
    interpreter.chat("first words", display=False)
    assert interpreter.conversation_filename is None
