"""What has changed between two states of a conversation, as entries of the journal."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

from interpreter.messages import Message

_LASTING = ("role", "type", "format", "recipient", "mime", "call")
_MISSING = object()


class Splice(NamedTuple):
    """From `at` on, `drop` messages went and `messages` came."""

    at: int
    drop: int
    messages: Sequence[Message]


def splice(old: Sequence[Message], new: Sequence[Message]) -> Splice | None:
    """The one place where two lists of messages differ; None if they are equal."""
    shorter = min(len(old), len(new))
    at = 0
    while at < shorter and old[at] == new[at]:
        at += 1
    if at == len(old) == len(new):
        return None
    tail = 0
    while tail < shorter - at and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return Splice(at, len(old) - at - tail, new[at : len(new) - tail])


def growth(old: Message, new: Message) -> dict[str, Any] | None:
    """How a message went on: `keep` so many characters of its content, add `text`, `set` other fields.

    An empty dict if it is the same, None if it is another message.
    """
    if any(old.get(key) != new.get(key) for key in _LASTING) or not old.keys() <= new.keys():
        return None
    change: dict[str, Any] = {}
    fields = {key: value for key, value in new.items() if key != "content" and old.get(key, _MISSING) != value}
    before, after = old.get("content"), new.get("content")
    if isinstance(before, str) and isinstance(after, str):
        keep = common(before, after)
        if keep < len(before) or keep < len(after):
            change |= {"keep": keep, "text": after[keep:]}
    elif before != after:
        fields["content"] = after
    if fields:
        change["set"] = fields
    return change


def common(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginning."""
    if other.startswith(one):
        return len(one)
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def kept(message: Message) -> Message:
    """A copy to compare with later; texts are shared, what can change inside is not."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return message.copy()
    return copy.deepcopy(message)
