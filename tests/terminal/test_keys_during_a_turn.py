"""Keys pressed during a turn go to the turn's reader thread or to a question."""

from __future__ import annotations

import os
import pty
import threading
from types import SimpleNamespace
from typing import Any

from interpreter.frontends.terminal.keyboard import CTRL_B, TurnKeyboard, TypeAhead
from interpreter.frontends.terminal.tty import Tty


class SlowDisplay:
    """A display that blocks the reader thread after its first key, until `over` is set."""

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


def test_a_key_read_by_a_question_does_not_block_the_turn() -> None:
    """The reader thread sees a key, but a question reads it first; the turn ends without another key."""
    person, terminal = pty.openpty()
    display, detaching, detached = SlowDisplay(), threading.Event(), threading.Event()

    def detach() -> None:
        detaching.set()
        detached.wait(60)

    interpreter: Any = SimpleNamespace(computer=SimpleNamespace(runtimes=SimpleNamespace(detach=detach)))
    with open(terminal, encoding="utf-8") as stdin:
        tty = Tty(stdin, stdin)
        keyboard = TurnKeyboard(tty, display, TypeAhead(), interpreter, marks=False)  # type: ignore[arg-type]
        keyboard._takes_keys = True  # the terminal of another session has no foreground process
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
        was_blocked = not watchdog.is_alive()
        over.set()
        watchdog.cancel()
    os.close(person)
    assert not was_blocked
