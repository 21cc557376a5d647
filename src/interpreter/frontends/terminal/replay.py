"""An earlier conversation on the screen, as it looked; of a long one, its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

from interpreter.app.own_blocks import SIGNS
from interpreter.frontends.terminal.render.ansi import visible
from interpreter.messages import group_of

if TYPE_CHECKING:
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.messages import Chunk, Message

SCREENS = 3


def replay(terminal: Terminal, messages: Sequence[Message]) -> None:
    """Show the end of a conversation, and say how much is above it."""
    display = terminal.display
    columns, lines = terminal.tty.size()
    start = first_shown(messages, columns, SCREENS * lines)
    if start:
        above = "1 earlier message is" if start == 1 else f"{start:,} earlier messages are"
        display.line(f"{above} not shown here; %markdown writes the whole conversation to a file.")
        display.finish()
    for message, following in zip(messages[start:], [*messages[start + 1 :], None], strict=False):
        role = message.get("role")
        if role == "user":
            display.finish()
            terminal.tty.write(_typed(message, columns - 2))
            display.begin()
        elif role == "computer" and message.get("type") == "message":
            display.line(str(message.get("content")))
        else:
            for chunk in chunks_of(message, is_last=following is None or following.get("role") != "computer"):
                display.show(chunk)
    display.finish()


def first_shown(messages: Sequence[Message], columns: int, rows: int) -> int:
    """Where to begin, so that the rest takes about so many rows. Code is not separated from its output."""
    start = len(messages)
    for message in reversed(messages):
        content = message.get("content")
        if message.get("type") == "image" or not isinstance(content, str):
            rows -= 10
        else:
            rows -= 2 + sum(1 + len(line) // columns for line in content.split("\n"))
        if rows < 0:
            break
        start -= 1
    start = min(start, len(messages) - 1)
    while start > 0 and messages[start].get("role") == "computer":
        start -= 1
    return max(start, 0)


def _typed(message: Message, width: int) -> str:
    """A message of the user, as it looked at the prompt."""
    text = visible(str(message.get("content", "")))
    if message.get("type") == "code":
        text = SIGNS.get(message.get("format", ""), "") + text
    elif message.get("type") == "image" and message.get("format") != "path":
        text = "(an image)"
    rows = [line[at : at + width] for line in text.split("\n") for at in range(0, len(line) or 1, width)]
    return "> " + "\n  ".join(rows) + "\n"


def chunks_of(message: Message, is_last: bool) -> Iterator[Chunk]:
    """A stored message as the stream that it came from; `is_last`: it is the last output of its block."""
    is_console = message.get("type") == "console"
    flag = group_of(cast("Chunk", message))
    yield {**flag, "start": True}
    if message.get("content"):
        content: Chunk = {**flag, "content": message["content"]}
        if is_console:
            content["format"] = "output"
        yield content
    if is_console and is_last:
        how = {key: value for key, value in message.items() if key in ("exit_code", "ended", "truncated")}
        over: Chunk = {"role": "computer", "type": "console", "format": "active_line", "content": None}
        yield cast("Chunk", {**over, **how})
    yield {**flag, "end": True}
