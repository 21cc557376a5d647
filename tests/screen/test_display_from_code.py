"""Code in a live session uses the display."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from interpreter import OpenInterpreter
from screen.desktop import Desktop


@pytest.fixture
def computer(desktop: Desktop) -> Iterator[Any]:
    made = OpenInterpreter().computer
    yield made
    made.terminate()


def test_a_screenshot_is_shown_once(computer: Any) -> None:
    code = """
picture = computer.display.view(screen=-1, show=False)
print(picture.width, picture.height, picture.on_screen(10, 20))
print(computer.display.size(), computer.display.changed_since(picture))
computer.display.view(region=[0, 0, 100, 50])
"""
    messages = computer.run("python", code)
    told = "".join(str(message["content"]) for message in messages if message["type"] == "console")
    assert "1280 800 (10" in told and "[1280, 800] []" in told
    assert [message["type"] for message in messages].count("image") == 1
    shown = computer.run("python", "computer.display.view(region=[0, 0, 100, 50], show=False)")
    assert [message["type"] for message in shown].count("image") == 1


def test_without_a_display_the_output_says_what_to_do(computer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY")
    messages = computer.run("python", "computer.display.view()")
    assert "Start one and set it" in "".join(str(message["content"]) for message in messages)
