"""What happened in a conversation, in order: what was said, the blocks with what came of them, what was shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from interpreter.messages import Message
from interpreter.tools.calls import shown_call

Decision = Literal["approved", "edited", "declined", "denied", "not_run"]

DECLINED = "I have declined to run this code."
"""What is stored as the user's message when they say no to a block."""


@dataclass(frozen=True)
class Said:
    """Words of the user or of the model."""

    role: str
    text: str
    at: float | None = None


@dataclass(frozen=True)
class Block:
    """Code that was proposed: what was decided about it, and what it did."""

    id: str
    language: str
    code: str
    decision: Decision = "approved"
    by: str | None = None
    ended: str | None = None
    exit_code: int | None = None
    outputs: tuple[Message, ...] = ()
    at: float | None = None
    seconds: float | None = None
    author: str = "assistant"
    calls: tuple[dict[str, Any], ...] = ()
    """Of the computer's tools, with what came of each; a journal knows them."""

    @property
    def ran(self) -> bool:
        return self.decision in ("approved", "edited")

    @property
    def succeeded(self) -> bool:
        return self.ran and self.ended == "done" and not self.exit_code


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool other than `execute`, and its result."""

    name: str
    arguments: str
    ended: str | None = None
    outputs: tuple[Message, ...] = ()
    at: float | None = None

    def __str__(self) -> str:
        return shown_call(self.name, self.arguments)


@dataclass(frozen=True)
class Shown:
    """An image or a file that the user handed over, or output that belongs to no block."""

    message: Message
    at: float | None = None


Entry = Said | Block | ToolCall | Shown


def entries_from_messages(messages: Iterable[Message]) -> list[Entry]:
    """The entries of a plain list of messages, which tells less than a journal does.

    Blocks are numbered in order. One without any word from the computer was not run; who approved it is not known.
    """
    reading = _Reading()
    for message in messages:
        reading.add(message)
    reading.end_block()
    return reading.entries


class _Reading:
    """The entries so far, and the block or call whose outputs are still coming."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._code: Message | None = None
        self._outputs: list[Message] = []
        self._blocks = 0

    def add(self, message: Message) -> None:
        role, kind = message.get("role", ""), message.get("type", "message")
        if role == "computer" and self._code is not None:
            self._outputs.append(message)
            return
        if role == "user" and self._code is not None and message.get("content") == DECLINED:
            self.end_block("declined")
            return
        self.end_block()
        if (kind == "code" and role != "computer") or kind == "tool_call":
            self._code = message
        elif kind == "message":
            self.entries.append(Said(role, str(message.get("content", ""))))
        else:
            self.entries.append(Shown(message))

    def end_block(self, decision: Decision | None = None) -> None:
        """The block is complete: all that the computer said since is its output."""
        code, self._code = self._code, None
        if code is None:
            return
        outputs, self._outputs = tuple(self._outputs), []
        if code.get("type") == "tool_call":
            ended = _last(outputs, "ended") or "done" if outputs else None
            self.entries.append(ToolCall(code.get("format", ""), str(code.get("content", "")), ended, outputs))
            return
        self._blocks += 1
        ran = decision is None and bool(outputs)
        self.entries.append(
            Block(
                id=str(self._blocks),
                language=code.get("format", ""),
                code=str(code.get("content", "")),
                decision=decision or ("approved" if ran else "not_run"),
                ended=_last(outputs, "ended") or "done" if ran else None,
                exit_code=_last(outputs, "exit_code") or 0 if ran else None,
                outputs=outputs,
                author=code.get("role", "assistant"),
            )
        )


def _last(outputs: tuple[Message, ...], key: Literal["ended", "exit_code"]) -> Any:
    return next((message[key] for message in reversed(outputs) if key in message), None)
