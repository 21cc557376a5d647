"""Custom languages: any class with `name` and `run` works, and a broken one doesn't affect the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from conversation import Chatting, chatting
from interpreter import BaseLanguage, OpenInterpreter
from model_server import text, tool_call

__all__ = ["chatting"]


def output(content: str) -> dict[str, Any]:
    return {"type": "console", "format": "output", "content": content}


class Yields:
    name = "yields"

    def run(self, code: str) -> Any:
        yield output(code.upper())


class TakesComputer:
    name = "Takes computer"
    aliases = ("taker",)

    def __init__(self, computer: Any) -> None:
        self.computer = computer

    def run(self, code: str) -> Any:
        yield output(f"{code.upper()}{'' if self.computer is not None else '?'}")


class TakesMore:
    name = "more"

    def __init__(self, computer: Any, key: str | None = None) -> None:
        self.key = key

    def run(self, code: str) -> Any:
        yield output(code.upper())


class ReturnsList:
    name = "list"

    def run(self, code: str) -> Any:
        return [output(code[0].upper()), output(code[1:].upper())]


class ReturnsOneChunk:
    name = "chunk"

    def run(self, code: str) -> Any:
        return output(code.upper())


class ReturnsText:
    name = "text"

    def run(self, code: str) -> Any:
        return code.upper()


class YieldsLittle:
    name = "little"

    def run(self, code: str) -> Any:
        yield None
        yield {"content": code[0].upper()}
        yield {"type": "console", "content": code[1].upper()}
        yield code[2:].upper()


class Static:
    name = "static"

    @staticmethod
    def run(code: str) -> Any:
        yield output(code.upper())


class Derived(BaseLanguage):
    name = "derived"

    def run(self, code: str) -> Any:
        yield output(code.upper())


class CannotStart:
    name = "broken"

    def __init__(self) -> None:
        raise RuntimeError("There is no key")

    def run(self, code: str) -> Any:
        return []


class Nameless:
    def run(self, code: str) -> Any:
        return code.upper()


WORKING = [Yields, TakesComputer, TakesMore, ReturnsList, ReturnsOneChunk, ReturnsText, YieldsLittle, Static, Derived]


@pytest.fixture
def interpreter() -> Iterator[OpenInterpreter]:
    made = OpenInterpreter(auto_run=True)
    yield made
    made.computer.terminate()


@pytest.mark.parametrize("language", WORKING)
def test_any_class_with_name_and_run_is_a_language(interpreter: OpenInterpreter, language: Any) -> None:
    interpreter.computer.languages.append(language)
    assert interpreter.computer.run(language.name, "abc") == [output("ABC")]


def test_a_broken_class_does_not_affect_other_languages(interpreter: OpenInterpreter) -> None:
    interpreter.computer.languages = [*interpreter.computer.languages, CannotStart, Nameless, Yields]  # type: ignore[list-item]
    assert interpreter.computer.run("yields", "abc") == [output("ABC")]
    assert interpreter.computer.run("python", "print(1)") == [output("1\n")]
    assert interpreter.computer.run("nameless", "abc") == [output("ABC")]
    failed = interpreter.computer.run("broken", "abc")
    assert failed == [output("broken could not be started: RuntimeError: There is no key\n")]


def test_the_model_sees_why_a_language_cannot_start(chatting: Chatting) -> None:
    interpreter, server = chatting(tool_call("broken", "x"), tool_call("yields", "abc"), text("Done."), auto_run=True)
    interpreter.computer.languages += [CannotStart, Yields]
    interpreter.chat("Go", display=False)
    assert "There is no key" in server.requests[1].body["messages"][-1]["content"]
    assert server.requests[2].body["messages"][-1]["content"] == "ABC"
