"""The keyboard."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from interpreter.computer_api.input.hands import let_go, press
from interpreter.computer_api.input.keys import chords, key
from interpreter.computer_api.input.stop import acting
from interpreter.computer_api.tool import Tool, acts


class Keyboard(Tool):
    """Types text and presses keys, in the window that has the keyboard."""

    @acts
    def write(self, text: str, interval: float | None = None, delay: float = 0.30, **kw: Any) -> None:
        """Type any text; a line break presses Enter. `interval`: seconds between characters."""
        if not isinstance(text, str):
            raise TypeError(f"write takes a text, not {text!r:.60}: write(str(...)).")
        with acting(self.computer) as hands:
            # A long text is pasted; `delay` is how long the program has until the clipboard is given back.
            if interval or not hands.pastes(text) or not self.computer.clipboard._paste_once(text, delay):
                hands.type(text, interval or 0)

    @acts
    def press(self, *args: str | Iterable[str], presses: int = 1, interval: float = 0.1) -> None:
        """Press keys one after the other: `press("enter")`, `press("ctrl+s")`, `press("down", presses=3)`."""
        pressed = chords(args)
        with acting(self.computer) as hands:
            for number in range(presses):
                for chord in pressed:
                    if number or chord is not pressed[0]:
                        time.sleep(interval)
                    press(hands, chord)
            hands.settle()

    @acts
    def press_and_release(self, *args: str | Iterable[str], presses: int = 1, interval: float = 0.1) -> None:
        """The same as `press`."""
        self.press(*args, presses=presses, interval=interval)

    @acts
    def hotkey(self, *args: str | Iterable[str], interval: float = 0.1) -> None:
        """Press keys together: `hotkey("ctrl", "shift", "t")`."""
        together = [key for chord in chords(args) for key in chord]
        with acting(self.computer) as hands:
            press(hands, together, interval)
            hands.settle()

    @acts
    def down(self, key: str) -> None:
        """Press a key and hold it until `up`."""
        self._hold(key, True)

    @acts
    def up(self, key: str) -> None:
        """Let go of a key."""
        self._hold(key, False)

    def _hold(self, name: str, down: bool) -> None:
        with acting(self.computer) as hands:
            hands.key(key(name), down)

    def _terminate(self) -> None:
        let_go(self.computer)
