"""Pictures that are no longer sent: what stands in their place, and how all else in the conversation stays the same."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from interpreter.messages import Message

LEFT_OUT = "[The image that was here was left out to save room.]"
_PICTURES = frozenset({"image", "image_url", "input_image", "computer_screenshot"})  # as the wire formats call them
_IN_WORDS = {"type": "text", "text": LEFT_OUT}


def is_image(message: Message) -> bool:
    """Whether it is an image, and not the words in the place of one."""
    return message.get("type") == "image" and message.get("format") != "description"


def old_pictures(messages: Sequence[Message], most: int | None) -> frozenset[int]:
    """Where the pictures are that the computer has shown the model and that are too many, the oldest ones.

    Half of them go at once, so that in between requests only grow at their end, and a server's cache holds.
    """
    if most is None:
        return frozenset()
    shown = (at for at, m in enumerate(messages) if is_image(m) and m.get("role") == "computer")
    pictures = [at for at in shown if messages[at].get("recipient", "assistant") == "assistant"]
    step = max(1, most // 2)
    gone = -(-max(0, len(pictures) - most) // step) * step
    return frozenset(pictures[:gone])


def left_out_part() -> dict[str, Any]:
    """What stands in a chat message where the picture was."""
    return dict(_IN_WORDS)


def is_left_out(part: Mapping[str, Any]) -> bool:
    return part.get("text") == LEFT_OUT


@cache
def left_out_url() -> str:
    """The same as a picture, for a format that takes nothing else."""
    content = (Path(__file__).parent / "left_out.png").read_bytes()
    return f"data:image/png;base64,{base64.b64encode(content).decode('ascii')}"


def without_pictures(part: Any) -> Any:
    """A part of a request in which every picture is as if it were left out."""
    if isinstance(part, Mapping):
        if part.get("type") in _PICTURES or is_left_out(part):
            return _IN_WORDS
        return {key: without_pictures(value) for key, value in part.items()}
    return [without_pictures(each) for each in part] if isinstance(part, list | tuple) else part
