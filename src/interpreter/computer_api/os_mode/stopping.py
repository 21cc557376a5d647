"""How the user stops the model from anywhere: a key, or the mouse flung into a corner."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from interpreter.computer_api.input.hands import kind_of_screen, position_of
from interpreter.computer_api.input.stop import STOP_KEY, StopWatch
from interpreter.errors import InterpreterError

if TYPE_CHECKING:
    from interpreter.computer_api import Computer

BY_KEY, BY_CORNER = "the stop key", "the mouse in a corner"


class _Watcher(Protocol):
    def close(self) -> None: ...


class Stopping:
    """Watches while a turn runs; `stop` is told how it was stopped, from a thread of its own."""

    def __init__(self, computer: Computer, stop: Callable[[str], None]) -> None:
        self._computer, self._stop = computer, stop
        self._watchers: list[_Watcher] = []
        self._acting = 0
        self._left_at: tuple[int, int] | None = None

    def start(self) -> str | None:
        """Begin to watch; the key that stops, None where no key can be watched (then Ctrl-C is left)."""
        try:
            self._watchers.append(StopWatch(lambda: self._stop(BY_KEY)).start())
        except InterpreterError:
            return None
        if kind_of_screen() == "x11":
            self._watchers.append(self._corner())
        return "+".join(word.capitalize() for word in STOP_KEY)

    def close(self) -> None:
        while self._watchers:
            self._watchers.pop().close()

    def begins(self) -> None:
        """An action of ours begins: from here on it may be we who move the mouse."""
        self._acting += 1

    def ends(self) -> None:
        """An action of ours is over, and has left the mouse where it is now."""
        self._left_at = position_of(self._computer) if self._watchers else None
        self._acting = max(0, self._acting - 1)

    def rests(self) -> None:
        """No action is under way, whatever became of those that have begun."""
        self._acting = 0

    def _corner(self) -> _Watcher:
        from interpreter.computer_api.input.x11.stop_key import StopKey

        watcher = StopKey(STOP_KEY, lambda: None, self._in_corner)
        watcher.start()
        return watcher

    def _in_corner(self) -> None:
        """The mouse is in a corner. If that was we, nothing is meant by it; while we act, each action looks itself."""
        if not self._acting and position_of(self._computer) != self._left_at:
            self._stop(BY_CORNER)
