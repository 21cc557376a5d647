"""The conversation as it is cut and made whole again, whoever else changes `messages` meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from interpreter.session.checkpoints.point import Point
from interpreter.sigint import Hold

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.messages import Message


class Conversation:
    """The messages of an interpreter, and behind them those that were taken back."""

    def __init__(self, interpreter: OpenInterpreter) -> None:
        self._interpreter = interpreter
        self._tail: list[Message] = []
        self._left = 0  # how many messages there were when it was cut
        self.changed = False
        """Somebody has changed `messages` since it was cut: what was taken back does not fit any more."""

    @property
    def interpreter(self) -> OpenInterpreter:
        """Whose conversation it is."""
        return self._interpreter

    @property
    def messages(self) -> list[Message]:
        return self._interpreter.messages

    @property
    def tail(self) -> list[Message]:
        """What was taken back and can come again."""
        if self._tail and len(self.messages) != self._left:
            self._tail, self.changed = [], True
        return self._tail

    def whole(self) -> list[Message]:
        """All messages, those that were taken back last."""
        return [*self.messages, *self.tail]

    def take_up(self, tail: list[Message]) -> None:
        """Go on with what an earlier run had taken back."""
        self._tail, self._left, self.changed = list(tail), len(self.messages), False

    def hold_on(self, point: Point) -> None:
        """Remember at which message a point is: its number changes when others come or go before it."""
        if point.at < len(self.messages):
            point.anchor, point.behind = self.messages[point.at], 0
        elif self.messages:
            point.anchor, point.behind = self.messages[-1], 1

    def place(self, point: Point) -> int:
        """Where a point is among all messages; where it was, if its message is gone."""
        found = self.find(point)
        return min(point.at, len(self.whole())) if found is None else found

    def find(self, point: Point) -> int | None:
        """The same, None if its message is gone."""
        whole = self.whole()
        at = point.at - point.behind
        if point.anchor is None:
            return None
        if 0 <= at < len(whole) and whole[at] == point.anchor:
            return point.at
        alike = (place for place, message in enumerate(whole) if message == point.anchor)
        found = min(alike, key=lambda place: abs(place - at), default=None)
        return None if found is None else found + point.behind

    def unknown_turns(self, points: Sequence[Point]) -> list[int]:
        """Where turns begin that came from elsewhere: all, if no point is known here, else those before the first."""
        said = [at for at in range(len(self.messages)) if begins(self.messages, at)]
        known = [self.find(point) for point in points]
        if all(place is None for place in known):
            return said
        first = known[0]
        return [at for at in said if at < first] if first is not None else []

    def cut(self, at: int) -> None:
        """Have so many messages, fewer or more than now; the others can come again."""
        whole, interpreter = self.whole(), self._interpreter
        with Hold():
            interpreter.messages[:] = whole[:at]
            self._tail, self._left, self.changed = whole[at:], len(interpreter.messages), False
            interpreter.last_messages_count = min(interpreter.last_messages_count, at)
            interpreter.journal.sync("undo")


def last_beginning(messages: Sequence[Message]) -> int:
    """Where what the user said last begins; behind the end if they have said nothing."""
    return next((at for at in reversed(range(len(messages))) if begins(messages, at)), len(messages))


def begins(messages: Sequence[Message], at: int) -> bool:
    """Is this the first message of something that the user said? What is attached follows the words."""
    message, before = messages[at], messages[at - 1] if at else None
    if message.get("role") != "user":
        return False
    attached = message.get("type") in ("file", "image")
    return not (attached and before is not None and before.get("role") == "user")
