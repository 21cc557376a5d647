"""A point in time: the moment before a turn or a block."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from interpreter.sigint import Hold

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.messages import Message
    from interpreter.runtimes.state import Mark


Part = Literal["conversation", "files", "variables"]
PARTS: tuple[Part, ...] = ("conversation", "files", "variables")

Kind = Literal["turn", "block", "own"]
Way = Literal["back", "forward", "there"]
_LABEL = 60


@dataclass
class Point:
    """The moment before a turn, before a block in a turn, or before a block that was run outside of any."""

    id: int
    kind: Kind
    at: int
    """How many messages there were."""
    label: str
    """The first words of the request, or of the code."""
    language: str | None = None
    block: int | None = None
    """The number of the block in the journal."""
    time: float = field(default_factory=time.time)
    mark: Mark | None = None
    """The states of the sessions; a turn has that of its first block."""
    workspace: str | None = None
    """Whose files were recorded when the block ran; None if that was switched off, and for a turn."""
    anchor: Message | None = field(default=None, repr=False)
    """The message that it is before, or if there was none, the one that it is `behind`."""
    behind: int = 0
    actor: str = ""
    """Who acted, where that was not the session's own agent or user."""
    conversation: Conversation | None = field(default=None, repr=False)
    """The conversation that it belongs to, where that is not the session's own."""
    elsewhere: bool = False
    """A turn that came with the conversation: what its blocks did is not known here."""

    @property
    def begins_turn(self) -> bool:
        """Whether undo, without another word, goes back to a point such as this."""
        return self.kind != "block"

    @property
    def code(self) -> str | None:
        """The code of a block, if the conversation has it."""
        message = self.anchor if not self.behind else None
        return str(message.get("content")) if message is not None and message.get("type") == "code" else None

    @property
    def fields(self) -> dict[str, Any]:
        """As the journal has it, under the event `point`."""
        return {
            "point": self.id,
            "kind": self.kind,
            "at": self.at,
            "label": self.label,
            "language": self.language,
            "block": self.block,
            "workspace": self.workspace,
            **({"elsewhere": True} if self.elsewhere else {}),
            **({"guest": self.actor} if self.actor else {}),  # every entry has the `actor` of its event
        }

    @classmethod
    def from_fields(cls, entry: dict[str, Any]) -> Point:
        """The other way round."""
        names = ("kind", "at", "label", "language", "block", "time", "workspace", "elsewhere")
        known = {name: entry[name] for name in names if name in entry}
        return cls(id=entry["point"], actor=entry.get("guest", ""), **known)


def label_of(text: object) -> str:
    """The first words of it."""
    words = " ".join(text.split()) if isinstance(text, str) else ""
    return words if len(words) <= _LABEL else words[: _LABEL - 1] + "…"


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
