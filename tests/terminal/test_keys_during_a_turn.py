"""Keys during a turn: who reads them, the turn's own thread or a question."""

from __future__ import annotations

import os
import pty
import threading
from types import SimpleNamespace
from typing import Any

from interpreter.frontends.terminal.keyboard import CTRL_B, TurnKeyboard, TypeAhead
from interpreter.frontends.terminal.tty import Tty


class SlowDisplay:
    """A display that holds up the thread that reads the keys, once it has read a key, until `over`."""

    def __init__(self) -> None:
        self.idle, self.key_read, self.over = threading.Event(), threading.Event(), threading.Event()
        self.on_change = None

    def typed(self, text: str) -> None:
        if threading.current_thread() is not threading.main_thread():
            self.key_read.set()
            self.over.wait(60)

    def deadline(self) -> None:
        return None

    def tick(self) -> None:
        self.idle.set()


def test_a_key_that_a_question_has_read_does_not_hold_up_the_turn() -> None:
    """The thread sees a key; a question reads it before the thread does; the turn ends without another key."""
    person, terminal = pty.openpty()
    display, detaching, detached = SlowDisplay(), threading.Event(), threading.Event()

    def detach() -> None:
        detaching.set()
        detached.wait(60)

    interpreter: Any = SimpleNamespace(computer=SimpleNamespace(runtimes=SimpleNamespace(detach=detach)))
    with open(terminal, encoding="utf-8") as stdin:
        tty = Tty(stdin, stdin)
        keyboard = TurnKeyboard(tty, display, TypeAhead(), interpreter, marks=False)  # type: ignore[arg-type]
        keyboard._takes_keys = True  # the terminal of another session is nobody's foreground
        over = threading.Event()
        watchdog = threading.Timer(10, lambda: None if over.is_set() else os.write(person, b"x"))
        with keyboard.on():
            assert display.idle.wait(60)
            os.write(person, CTRL_B)
            assert display.key_read.wait(60)
            os.write(person, b"y\n")
            display.over.set()
            assert detaching.wait(60)  # it has seen `y`, and calls this first
            with keyboard.paused("asking"):
                assert os.read(terminal, 100) == b"y\n"
            detached.set()
            watchdog.start()
        was_held_up = not watchdog.is_alive()
        over.set()
        watchdog.cancel()
    os.close(person)
    assert not was_held_up
