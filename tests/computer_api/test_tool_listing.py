"""The list of `computer` tools for old scripts, in the prompt, and as data."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from conversation import Chatting, chatting
from example_computer_tool import Example, install
from interpreter import OpenInterpreter, computer
from interpreter.computer_api.tool import TOOLS, kind_of, of_class
from interpreter.config.settings import read_prompt
from interpreter.errors import ComputerError
from model_server import text

__all__ = ["chatting"]
ORDER = "mouse keyboard display clipboard mail sms calendar contacts browser os vision skills docs ai files".split()


def test_the_fifteen_tools_are_listed_in_order() -> None:
    assert list(TOOLS) == ORDER
    tools = OpenInterpreter().computer._get_all_computer_tools_list()
    assert [type(tool).__name__.lower() for tool in tools] == ORDER


def test_every_signature_has_a_description() -> None:
    lines = OpenInterpreter().computer._get_all_computer_tools_signature_and_description()
    assert len(lines) >= 65
    for line in lines:
        assert re.fullmatch(r"computer\.[a-z]+\.\w+\(.*\) # \S.*", line), line
        assert "(self" not in line, line
    assert any(line.startswith("computer.mouse.click(button='left', clicks=1, interval=0.1) # ") for line in lines)


def test_tool_info_has_signature_and_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    info = OpenInterpreter().computer._extract_tool_info(Example)
    assert info["signature"] == "Example"
    assert {"signature": "computer.example.mail(to, text)", "description": "Send a message."} in info["methods"]


def test_settings_round_trip_as_data() -> None:
    one, other = OpenInterpreter().computer, OpenInterpreter().computer
    one.emit_images, one.max_output = False, 99
    data = json.loads(json.dumps(one.to_dict()))
    assert data["emit_images"] is False
    other.load_dict({**data, "nonsense": 1, "interpreter": None})
    assert (other.emit_images, other.max_output) == (False, 99)
    assert other.interpreter is not None


def test_attributes_that_scripts_set_are_accepted() -> None:
    mine = OpenInterpreter().computer
    mine.api_base = "https://example.com/v0"
    mine.offline = mine.verbose = mine.debug = mine.save_skills = mine.import_skills = True
    mine.nonsense = 1
    assert mine.api_base == "https://example.com/v0" and mine.nonsense == 1
    assert mine.offline and mine.verbose and mine.debug and mine.save_skills and mine.import_skills


def test_the_package_exports_the_computer_of_its_interpreter() -> None:
    import interpreter

    assert computer is interpreter.interpreter.computer
    with pytest.raises(ComputerError, match="There is no computer"):
        computer.help("nonsense")


# -- in the prompt -----------------------------------------------------------------------------------------------------


def system_message(chatting: Chatting, **settings: Any) -> str:
    interpreter, server = chatting(text("Hello."))
    for name, value in settings.items():
        owner, _, leaf = name.rpartition("__")
        setattr(getattr(interpreter, owner) if owner else interpreter, leaf, value)
    interpreter.chat("Hi", display=False)
    (request,) = server.requests
    (system,) = [message["content"] for message in request.body["messages"] if message["role"] == "system"]
    told = system + json.dumps(request.body.get("tools", []))
    assert len(told.encode()) / 4 <= 700
    return str(system)


def test_the_list_and_the_whole_prompt_are_short(chatting: Chatting) -> None:
    listed = read_prompt("computer")
    assert len(listed.encode()) / 4 <= 250
    assert listed in system_message(chatting, computer__import_computer_api=True)
    assert listed in system_message(chatting, in_terminal_interface=True)


def test_the_list_is_in_the_prompt_only_where_wanted(chatting: Chatting) -> None:
    assert "computer.help" not in system_message(chatting)
    assert "computer.help" not in system_message(
        chatting, in_terminal_interface=True, computer__import_computer_api=False
    )
    small = {"llm__model": "openai/qwen2.5-0.5b-instruct"}
    assert "computer.help" not in system_message(chatting, computer__import_computer_api=True, **small)
    middle = {"llm__model": "openai/qwen2.5-7b-instruct"}
    assert "computer.help" not in system_message(chatting, in_terminal_interface=True, **middle)
    assert "computer.help" in system_message(chatting, computer__import_computer_api=True, **middle)


def test_a_custom_system_message_replaces_the_list(chatting: Chatting) -> None:
    words = {"computer__system_message": "There is a `computer`.", "computer__import_computer_api": True}
    system = system_message(chatting, **words)
    assert "There is a `computer`." in system and "computer.help" not in system


def test_every_name_in_the_list_exists() -> None:
    listed = read_prompt("computer")
    for tool, words in re.findall(r"\b([a-z]+): ([^;\n.]+)", listed):
        if tool in TOOLS:
            there = of_class(kind_of(tool))
            wanted = [re.match(r"\w+", word.strip()) for word in words.split(",")]
            assert not [each[0] for each in wanted if each and each[0] not in there], tool


def test_every_tool_is_documented() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "computer.md").read_text("utf-8")
    assert [name for name in TOOLS if f"`computer.{name}`" not in page] == []
