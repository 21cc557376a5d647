"""Waiting until the screen stops changing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from interpreter import OpenInterpreter
from interpreter.computer_api.screen.display import Display, pictures
from interpreter.computer_api.screen.platforms import Box
from screen.desktop import Desktop
from screen.drawing import Canvas


@pytest.fixture
def display() -> Display:
    made: Display = OpenInterpreter().computer.display
    return made


@contextmanager
def moving(desktop: Desktop, size: int) -> Iterator[None]:
    """A square of this size that keeps changing its colour."""
    stop, began = threading.Event(), threading.Event()

    def draw() -> None:
        canvas, number = Canvas(desktop), 0
        while not stop.wait(0.02):
            number += 1
            canvas.fill(0x0A1723 * number & 0xFFFFFF, 200, 200, size, size)
            began.set()
        canvas.clear()

    thread = threading.Thread(target=draw)
    thread.start()
    assert began.wait(60)
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_a_moving_area_is_waited_for(desktop: Desktop, display: Display) -> None:
    with moving(desktop, 100):
        assert not display.wait_until_still(seconds=3, timeout=3.5)
    assert display.wait_until_still(seconds=0.2, timeout=60)


def test_a_small_blinking_area_is_ignored(desktop: Desktop, display: Display) -> None:
    with moving(desktop, 12):
        assert display.wait_until_still(seconds=0.3, timeout=60)


def test_movement_outside_the_region_is_ignored(desktop: Desktop, display: Display) -> None:
    with moving(desktop, 100):
        assert display.wait_until_still(seconds=0.3, timeout=60, region=[600, 400, 300, 300])


class WithoutEvents:
    """A screen without change events, as on macOS and Windows."""

    def __init__(self, screens: Any) -> None:
        self.grab = screens.grab

    def watch(self) -> None:
        return None


def test_without_events_screenshots_are_compared(desktop: Desktop, display: Display) -> None:
    screens: Any = WithoutEvents(display._screen)
    region = Box(0, 0, 600, 600)
    with moving(desktop, 100):
        assert not pictures.wait_until_still(screens, region, quiet=3, limit=3.5)
    assert pictures.wait_until_still(screens, region, quiet=0.2, limit=60)
