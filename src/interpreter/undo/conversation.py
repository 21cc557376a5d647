"""Where turns begin in a conversation, whoever has changed it meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interpreter.messages import Message


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


def place_in(messages: Sequence[Message], first: Message | None, at: int) -> int | None:
    """Where a message is that was once in another place; None if it is nowhere."""
    if first is None:
        return None
    if at < len(messages) and messages[at] is first:
        return at
    return next((place for place, message in enumerate(messages) if message is first), None)
