"""The table of leaves: its names lead to something, and the core reads everything about a leaf from it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from call_answers import allowing_calls
from conversation import Chatting, chatting
from interpreter import OpenInterpreter, leaves
from interpreter.config.settings import SETTINGS
from interpreter.errors import MissingLeafError
from interpreter.frontends import cli
from interpreter.frontends.terminal import magics
from interpreter.leaves import Leaf, Magic, Part, Subcommand
from interpreter.tools import Tool
from model_server import text, tool_call

__all__ = ["chatting"]
ROOT = Path(__file__).parent.parent.parent
HERE = f"{__name__}:"


def references() -> Iterator[str]:
    for leaf in leaves.ROWS:
        for row in (*leaf.subcommands, *leaf.flags, *leaf.magics):
            yield row.run
        yield from (part.make for part in (*leaf.prompt, *leaf.tools, *leaf.observers))
        yield from leaf.public


def test_every_row_names_what_exists() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    settings = {row.name for row in SETTINGS}
    for leaf in leaves.ROWS:
        assert leaf.is_present, leaf.name
        assert settings >= set(leaf.settings), leaf.name
        for page in leaf.docs:
            assert (ROOT / "docs" / page).is_file(), page
            assert f": {page}\n" in navigation, page
    for reference in references():
        module, _, name = reference.partition(":")
        assert callable(getattr(import_module(module), name)), reference


# -- a leaf of its own: what the core makes of its row -------------------------------------------------------------


def greet(agent: Any) -> list[Tool]:
    return [Tool("greet", "Greets.", {"type": "object", "properties": {}}, lambda given: "hello there", "reads")]


def lines(agent: Any) -> str:
    return "Greet people with the tool greet."


def magic(terminal: Any, interpreter: OpenInterpreter, argument: str) -> None:
    terminal.append(argument)


def command(arguments: list[str]) -> int:
    return len(arguments)


GREETING = Leaf(
    name="greeting",
    package="frontends",  # it exists
    about="Greeting",
    subcommands=(Subcommand("greeting send", f"{HERE}command", "Send one."), Subcommand("greet", f"{HERE}command", "")),
    magics=(Magic("Other", "greet", f"{HERE}magic", "say hello", "Say hello."),),
    prompt=(Part("verbose", f"{HERE}lines"),),
    tools=(Part("verbose", f"{HERE}greet"),),
)


@pytest.fixture
def greeting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(leaves, "ROWS", (*leaves.ROWS, GREETING))
    leaves.leaves.cache_clear()
    yield
    leaves.leaves.cache_clear()


@pytest.mark.usefixtures("greeting")
def test_the_model_gets_tools_and_prompt_lines_while_the_setting_is_on(chatting: Chatting) -> None:
    interpreter, server = chatting(text("ok"), tool_call(arguments="{}", name="greet"), text("ok"))
    interpreter.chat("go", display=False)
    assert "greet" not in str(server.requests[0].body)
    interpreter.verbose = True
    with allowing_calls(interpreter, lambda words: True):
        interpreter.chat("go", display=False)
    assert "Greet people" in server.requests[1].messages[0]["content"]
    assert server.requests[2].messages[-1]["content"] == "hello there"


@pytest.mark.usefixtures("greeting")
def test_only_the_exact_first_words_are_a_subcommand(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli.main(["greeting", "send", "a", "b"]) == 4
    assert cli.main(["greet", "--all"]) == 2
    for sentence in (["greeting", "cards", "please"], ["greet", "my", "friends"]):
        assert leaves.subcommand(sentence) is None


@pytest.mark.usefixtures("greeting")
def test_its_magic_command_runs() -> None:
    said: list[str] = []
    magics.leaf_command(GREETING.magics[0]).run(said, OpenInterpreter(), "hi")  # type: ignore[arg-type]
    assert said == ["hi"]


def test_what_needs_a_deleted_leaf_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Leaf(name="gone", package="gone", about="Going")
    monkeypatch.setattr(leaves, "ROWS", (gone,))
    with pytest.raises(MissingLeafError, match="Going is not part of this installation"):
        leaves.load("interpreter.gone.tools:make")
