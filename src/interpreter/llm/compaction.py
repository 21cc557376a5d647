"""One compaction: which messages a request leaves out, and the note that says so.

It is decided once and then held, so that requests only grow at their end until the next compaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from interpreter.llm.facts import Sessions, note_about
from interpreter.llm.left_out import LEFT_OUT, is_image
from interpreter.llm.tokens import BYTES_PER_TOKEN, IMAGE_TOKENS, MESSAGE_TOKENS, estimate_text
from interpreter.messages import EPHEMERAL, Message

_NEWEST_IMAGES = 2
_LONGEST_NOTE = 1500  # tokens
_SHORTEST_NOTE = 150


@dataclass(frozen=True)
class Cut:
    """What is left out of a conversation, by position; the note stands before `note_at`."""

    dropped: frozenset[int]
    blind: frozenset[int]
    """Images in whose place a word is said."""
    note_at: int
    note: str
    seen: tuple[Message, ...]
    """The messages it is about, as they were."""

    def holds(self, messages: Sequence[Message]) -> bool:
        """Whether the conversation still begins as it did."""
        return len(messages) > len(self.seen) and list(self.seen) == list(messages[1 : len(self.seen) + 1])

    def shown(self, position: int, message: Message) -> Message:
        if position not in self.blind:
            return message
        return {**message, "format": "description", "content": LEFT_OUT}


_NOTHING = Cut(frozenset(), frozenset(), 0, "", ())


def compact(messages: Sequence[Message], room: int, sessions: Sessions, *, vision: bool) -> Cut | None:
    """A cut that leaves about `room` tokens of messages behind the system message, or as few as can be.

    Kept are the first request, the last one and the newest rounds; old images go before anything else does.
    None if there is nothing to leave out.
    """
    blind = _old_images(messages) if vision else frozenset[int]()
    costs = [cost(message, at in blind) for at, message in enumerate(messages)]
    if blind and sum(costs[1:]) <= room * 3 // 2:
        return without_old_images(messages, None)
    note = max(_SHORTEST_NOTE, min(_LONGEST_NOTE, room // 4))
    kept = _requests(messages)
    start = _tail(messages, costs, kept, room - note)
    dropped = frozenset(range(1, start)) - kept
    if not dropped:
        return without_old_images(messages, None) if blind else None
    words = note_about(messages, dropped, sessions, note * BYTES_PER_TOKEN)
    end = max([start, *(at + 1 for at in blind)])
    return Cut(dropped, blind - dropped, start, words, _copies(messages, end))


def without_old_images(messages: Sequence[Message], cut: Cut | None) -> Cut | None:
    """The cut with all images left out but the first and the newest; None if there are no others."""
    gone = cut.dropped if cut else frozenset[int]()
    blind = _old_images(messages) - gone
    if not blind or (cut and blind <= cut.blind):
        return None
    seen = _copies(messages, max([max(blind) + 1, len(cut.seen) + 1 if cut else 0]))
    return replace(cut or _NOTHING, blind=blind, seen=seen)


def _old_images(messages: Sequence[Message]) -> frozenset[int]:
    """All but the first and the newest."""
    images = [at for at, message in enumerate(messages) if is_image(message)]
    return frozenset(images[1:-_NEWEST_IMAGES])


def cost(message: Message, is_blind: bool = False) -> int:
    """About how many tokens a message has."""
    if message.get("recipient", "assistant") != "assistant" or message.get("type") in EPHEMERAL:
        return 0
    if is_image(message):
        return MESSAGE_TOKENS + (estimate_text(LEFT_OUT) if is_blind else IMAGE_TOKENS)
    return MESSAGE_TOKENS + estimate_text(str(message.get("content") or ""))


def _requests(messages: Sequence[Message]) -> frozenset[int]:
    """The first thing that the user said, and the last, each with all that came along with it."""
    from_user = {at for at, message in enumerate(messages) if message.get("role") == "user"}
    if not from_user:
        return frozenset()
    first, last = min(from_user), max(from_user)
    while first + 1 in from_user:
        first += 1
    while last - 1 in from_user:
        last -= 1
    return frozenset(at for at in from_user if at <= first or at >= last)


def _tail(messages: Sequence[Message], costs: Sequence[int], kept: frozenset[int], room: int) -> int:
    """Where the newest rounds begin that fit into the room; the last round is always kept."""
    starts = [at for at in range(2, len(messages)) if _begins_round(messages, at)]
    behind = list(accumulate(reversed(costs)))[::-1]  # the costs from each position to the end
    for start in starts:
        before = sum(costs[at] for at in kept if at < start)
        if behind[start] + before <= room:
            return start
    return starts[-1] if starts else 1


def _begins_round(messages: Sequence[Message], at: int) -> bool:
    """Whether the model is asked, or asked again, right before this message: no call is cut from its result."""
    role, before = messages[at].get("role"), messages[at - 1].get("role")
    return (role == "user" and before != "user") or (role == "assistant" and before == "computer")


def _copies(messages: Sequence[Message], end: int) -> tuple[Message, ...]:
    return tuple(message.copy() for message in messages[1:end])
