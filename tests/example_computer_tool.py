"""A small `computer` tool for tests, which does what real tools do, and what they shouldn't."""

from __future__ import annotations

import builtins
import sys
import threading
import types
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from call_answers import allowing_calls
from interpreter import OpenInterpreter
from interpreter.computer_api.tool import TOOLS, ComputerTool, Picture, acts, sends
from python_runtimes import Ran

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000002000000010802000000"
    "7b40e8dd0000000f49444154789c63f8cfc0f0ff3f03000afb02fe2a5d8f5e0000000049454e44ae426082"
)


class Part(ComputerTool):
    """A part of a tool."""

    title = "none"

    def twice(self, number: int) -> int:
        """Twice the number."""
        return 2 * number


class Example(ComputerTool):
    """Says, shows, waits and fails."""

    def __init__(self, computer: Any) -> None:
        super().__init__(computer)
        self.entered, self.released, self.left = threading.Event(), threading.Event(), threading.Event()
        self.sent: list[Any] = []
        self.most_at_once = self._at_once = 0
        self.part = Part(computer)

    @property
    def width(self) -> int:
        """How wide it is."""
        return 7

    @property
    def broken(self) -> int:
        """Never works."""
        raise ValueError("there is no width")

    def echo(self, *values: Any, **named: Any) -> Any:
        """Give it back."""
        given = [*values, named] if named else list(values)
        return given[0] if len(given) == 1 else given

    def kind(self, value: Any) -> str:
        """What arrived."""
        return type(value).__name__

    def picture(self) -> Picture:
        """A picture of two pixels."""
        return Picture(PNG, 2, 1, left=10, top=20, scale=2, about={"of": "nothing"})

    def show(self, text: str = "") -> str:
        """Show something in the block's output."""
        self.computer.show(text or self.picture())
        return "shown"

    def wait(self) -> str:
        """Wait until released."""
        self.entered.set()
        try:
            while not self.released.wait(0.02):  # an interrupt can arrive between two of these
                pass
        finally:
            self.left.set()
        return "released"

    def block(self) -> str:
        """Wait without being interruptible."""
        self.entered.set()
        self.released.wait()
        return "released"

    def overlap(self) -> int:
        """Count how many of these run at the same time."""
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        threading.Event().wait(0.02)
        self._at_once -= 1
        return self.most_at_once

    def fail(self, kind: str, words: str = "not today") -> None:
        """Raise an error of that kind."""
        error = KINDS.get(kind) or getattr(builtins, kind)
        raise error(words)

    def thing(self) -> object:
        """A value that can't be passed."""
        return object()

    @acts
    def press(self, what: str = "it") -> str:
        """Change something."""
        self.sent.append(what)
        return "pressed"

    @sends
    def announce(self, to: str, **more: Any) -> str:
        """Send whatever is given."""
        self.sent.append((to, more))
        return "sent"

    @sends
    def mail(self, to: str, text: str) -> str:
        """Send a message."""
        self.sent.append((to, text))
        return "sent"


class Gizmo(ComputerTool):
    """A second tool."""

    def wait_for_example(self) -> bool:
        """Wait until a call of the example is running."""
        return bool(self.computer.example.entered.wait(60))


class Odd(Exception):
    """An error of a type that a session doesn't know."""


class Several(Odd, LookupError):
    """An error that is also of a known type."""


KINDS = {"odd": Odd, "several": Several}


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("interpreter.computer_api.example")
    module.Example, module.Gizmo = Example, Gizmo  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(TOOLS, "example", "example:Example")
    monkeypatch.setitem(TOOLS, "gizmo", "example:Gizmo")


class CallTester:
    """An interpreter whose computer has the example."""

    def __init__(self, **settings: Any) -> None:
        self.interpreter = OpenInterpreter(**settings)
        self.computer = self.interpreter.computer
        self.asked: list[str] = []
        self._answering = ExitStack()

    @property
    def example(self) -> Example:
        tool: Example = self.computer.example
        return tool

    def do(self, code: str, language: str = "python") -> Ran:
        """Run a block to its end."""
        return Ran([dict(chunk) for chunk in self.computer.stream(language, code)])

    def answer_with(self, answer: str | None) -> None:
        """Answer all questions about calls with this."""

        def allow(words: str) -> bool | None:
            self.asked.append(words)
            return None if answer is None else answer in ("y", "yes")

        self._answering.close()
        self._answering.enter_context(allowing_calls(self.interpreter, allow))

    def interrupted(self, code: str, language: str = "python", at: str = "entered") -> Ran:
        """Run a block, and stop it from another thread during the call."""

        def stop() -> None:
            assert getattr(self.example, at).wait(60)
            self.computer.stop()

        presser = threading.Thread(target=stop)
        presser.start()
        try:
            return self.do(code, language)
        finally:
            presser.join()


def calls_of(ran: Ran) -> list[dict[str, Any]]:
    """Return the calls reported in the block's chunks."""
    return [chunk["content"] for chunk in ran.chunks if chunk.get("format") == "call"]


@pytest.fixture
def tester(monkeypatch: pytest.MonkeyPatch) -> Iterator[CallTester]:
    install(monkeypatch)
    made = CallTester()
    yield made
    made.example.released.set()
    made.computer.terminate()
