"""A small model is told what its block did to files: it does not look itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conversation import Chatting, chatting
from interpreter import OpenInterpreter
from model_server import ModelServer, text

__all__ = ["chatting"]

TOTALS = "```python\nopen('totals.csv', 'w').write('name,amount\\nAnn,3\\n')\n```"


def talked(chatting: Chatting, *replies: Any, words: str, **settings: Any) -> tuple[OpenInterpreter, ModelServer]:
    interpreter, server = chatting(*(text(reply) for reply in replies), auto_run=True, **settings)
    interpreter.llm.model = "openai/qwen2.5-coder-1.5b"
    interpreter.chat(words, display=False)
    return interpreter, server


def told(server: ModelServer) -> str:
    return str(server.requests[-1].messages[-1]["content"])


def test_what_was_written_is_shown(chatting: Chatting) -> None:
    interpreter, server = talked(chatting, TOTALS, "Done.", words="Save the totals with columns name and total.")
    assert "Created totals.csv. totals.csv is:\nname,amount\nAnn,3" in told(server)
    [message] = [each for each in interpreter.messages if each.get("recipient") == "assistant"]
    assert message["role"] == "computer"


def test_that_nothing_was_written_is_said_where_something_should_have_been(chatting: Chatting) -> None:
    _, server = talked(chatting, "```python\nprint(5433)\n```", "Done.", words="Change the port in config.json.")
    assert "5433\nNo file was changed: what was asked is not done yet." in told(server)
    assert told(server).endswith("Write the whole corrected code block.")


def test_it_is_said_once(chatting: Chatting) -> None:
    blocks = [f"```python\nprint({number})\n```" for number in range(2)]
    _, server = talked(chatting, *blocks, "Done.", words="Change the port in config.json.")
    assert "No file" in str(server.requests[1].messages[-1]["content"])
    assert "No file" not in told(server)


def test_a_question_is_not_answered_with_files(chatting: Chatting) -> None:
    _, server = talked(chatting, "```python\nprint(42)\n```", "42.", words="How much is 6 * 7?")
    assert "file" not in told(server).lower()


def test_a_picture_is_told_by_its_size(chatting: Chatting) -> None:
    code = "import struct\nopen('p.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n' + b'\\0\\0\\0\\rIHDR' + struct.pack('>II', 800, 600))"
    _, server = talked(chatting, f"```python\n{code}\n```", "Done.", words="Save the plot as p.png.")
    assert "p.png is a picture of 800 by 600 pixels." in told(server)


def test_many_files_are_named_and_counted(chatting: Chatting) -> None:
    code = "for i in range(14): open(f'f{i:02}.txt', 'w').write('x')"
    _, server = talked(chatting, f"```python\n{code}\n```", "Done.", words="Make fourteen files.")
    assert told(server).count("Created") == 10 and "And 4 more." in told(server)


def test_what_was_deleted_and_renamed_is_said(chatting: Chatting) -> None:
    Path("a.txt").write_text("one")
    Path("b.txt").write_text("two")
    code = "import os\nos.remove('a.txt')\nos.rename('b.txt', 'c.txt')"
    _, server = talked(chatting, f"```python\n{code}\n```", "Done.", words="Tidy up.")
    assert "Deleted a.txt." in told(server) and "Renamed b.txt to c.txt." in told(server)


def test_nothing_is_claimed_where_nobody_watches(chatting: Chatting) -> None:
    _, server = talked(chatting, "```python\nprint(1)\n```", "Done.", words="Change the port.", undo_files=False)
    assert "No file" not in told(server)


def test_a_large_model_is_left_to_itself(chatting: Chatting) -> None:
    interpreter, server = chatting(text(TOTALS), text("Done."), auto_run=True)
    interpreter.llm.model, interpreter.llm.supports_functions = "openai/gpt-4o", False
    interpreter.chat("Save the totals.", display=False)
    assert "Created" not in told(server)


@pytest.mark.parametrize("words", ["Do it in a different way."])
def test_after_the_same_failure_twice_only_code_is_asked_for(chatting: Chatting, words: str) -> None:
    bad = "```python\nfloat('$1')\n```"
    worse = "```python\nfloat('$' + '1')\n```"
    _, server = talked(chatting, bad, worse, "```python\nprint(1)\n```", "1.", words="Add it up.")
    asked = str(server.requests[2].messages[-1]["content"])
    assert words in asked and asked.endswith("Write the whole corrected code block.")
