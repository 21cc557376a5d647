"""The stop key works everywhere; without a display, the error says what to do."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import ExitStack
from typing import Any

import pytest

from interpreter.computer_api.screen.input import STOP_KEY
from interpreter.computer_api.screen.platforms import open_stop_key
from screen.desktop import Desktop


@pytest.mark.needs("mousepad")
def test_the_stop_key_works_while_a_menu_is_open(desktop: Desktop, computer: Any) -> None:
    stopped: list[int] = []
    heard = threading.Event()

    def stop() -> None:
        stopped.append(1)
        heard.set()

    desktop.editor()
    with ExitStack() as watching:
        watching.callback(open_stop_key(STOP_KEY, stop))
        computer.keyboard.write("a.b")
        computer.keyboard.hotkey("ctrl", ".", interval=0)
        assert not stopped
        # An open menu grabs the keyboard.
        computer.keyboard.press("alt+f")
        computer.keyboard.hotkey(*STOP_KEY, interval=0)
        assert heard.wait(60)
    assert stopped == [1]
    computer.keyboard.hotkey(*STOP_KEY, interval=0)
    assert stopped == [1]


def test_a_stop_key_can_be_closed_from_its_callback(desktop: Desktop, computer: Any) -> None:
    heard = threading.Event()
    other = threading.Event()

    def stop() -> None:
        close()
        heard.set()

    with ExitStack() as watching:
        close = watching.callback(open_stop_key(("ctrl", "shift", "f9"), stop))
        watching.callback(open_stop_key(STOP_KEY, other.set))
        computer.keyboard.hotkey("ctrl", "shift", "f9", interval=0)
        assert heard.wait(60) and not other.is_set()


# In a separate process: the X library leaves the sockets of a failed connection to the garbage collector.
_WITHOUT = """
from interpreter import OpenInterpreter
from interpreter.computer_api.screen.platforms import NoDisplayError
computer = OpenInterpreter().computer
for act in (computer.mouse.position, lambda: computer.keyboard.press("a"), computer.clipboard.view, computer.os.windows):
    try:
        act()
    except NoDisplayError as error:
        print(error)
print(computer.os.notify("not visible"))
"""


@pytest.mark.parametrize("display", ["", ":4711"])
def test_without_a_display_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch, display: str) -> None:
    for name in ("WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DISPLAY", display)
    ran = subprocess.run([sys.executable, "-c", _WITHOUT], capture_output=True, text=True, timeout=100, check=True)
    *told, notified = ran.stdout.splitlines()
    assert len(told) == 4 and len(set(told)) == 1 and "DISPLAY" in told[0]
    assert notified == "False"
