"""Static analysis knows the session's folder and the functions defined in earlier blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conversation import Chatting, chatting
from interpreter import OpenInterpreter
from model_server import text, tool_call

__all__ = ["chatting"]
pytestmark = pytest.mark.usefixtures("no_strays")


def cards(interpreter: OpenInterpreter) -> list[list[str]]:
    asked: list[Any] = list(interpreter.chat("go", display=False, stream=True))
    return [chunk["effects"] for chunk in asked if chunk["type"] == "confirmation"]


def test_a_call_has_the_effects_of_an_earlier_function(chatting: Chatting) -> None:
    defining = "import shutil\ndef tidy():\n    shutil.rmtree('build', ignore_errors=True)"
    interpreter, _ = chatting(tool_call("python", defining), tool_call("python", "tidy()"), text("So."))
    _, second = cards(interpreter)
    assert "Deletes build" in second


def test_paths_are_relative_to_the_sessions_folder(chatting: Chatting) -> None:
    Path("below").mkdir()
    replies = [tool_call("shell", "cd below"), tool_call("shell", "touch ../a ../../b"), text("So.")]
    interpreter, _ = chatting(*replies)
    assert {"Creates ../a", "Writes ../../b (outside this folder)"} <= set(cards(interpreter)[1])
