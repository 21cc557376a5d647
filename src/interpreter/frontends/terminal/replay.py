"""An earlier conversation on the screen, as it looked; of a long one its end."""

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
    columns, lines = terminal.tty.size()
    start = first_shown(messages, columns, SCREENS * lines)
    if start:
        above = "1 earlier message is" if start == 1 else f"{start:,} earlier messages are"
        terminal.display.line(f"{above} not shown here; %markdown writes the whole conversation to a file.")
        terminal.display.finish()
    for at in range(start, len(messages)):
        _show(terminal, messages, at)
    terminal.display.finish()


def first_shown(messages: Sequence[Message], columns: int, rows: int) -> int:
    """Where to begin, so that the rest takes about so many rows; code is not parted from its output."""
    start = len(messages)
    while start and (rows := rows - _rows(messages[start - 1], columns)) >= 0:
        start -= 1
    start = min(start, len(messages) - 1)
    while start > 0 and messages[start].get("role") == "computer":
        start -= 1
    return max(start, 0)


def _rows(message: Message, columns: int) -> int:
    content = message.get("content")
    if message.get("type") == "image" or not isinstance(content, str):
        return 10
    return 2 + sum(1 + len(line) // columns for line in content.split("\n"))


def _show(terminal: Terminal, messages: Sequence[Message], at: int) -> None:
    message = messages[at]
    role, kind = message.get("role"), message.get("type")
    if role == "user":
        terminal.display.finish()
        terminal.tty.write(_typed(message, terminal.tty.size()[0] - 2))
        terminal.display.begin()
    elif role == "computer" and kind == "message":
        terminal.display.line(str(message.get("content")))
    else:
        for chunk in chunks_of(message, is_last=at + 1 == len(messages) or messages[at + 1].get("role") != "computer"):
            terminal.display.show(chunk)


def _typed(message: Message, width: int) -> str:
    """What the user said, as it stood at the prompt."""
    text = visible(str(message.get("content", "")))
    if message.get("type") == "code":
        text = SIGNS.get(message.get("format", ""), "") + text
    elif message.get("type") == "image" and message.get("format") != "path":
        text = "(an image)"
    rows = [line[at : at + width] for line in text.split("\n") for at in range(0, len(line) or 1, width)]
    return "> " + "\n  ".join(rows) + "\n"


def chunks_of(message: Message, is_last: bool) -> Iterator[Chunk]:
    """A stored message as the stream it came from; `is_last`: its block says no more."""
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
