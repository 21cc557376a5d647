"""LMC messages and chunks: the grammar of the stream, and how a stream folds into stored messages."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from typing import Any, TypedDict

from interpreter.console_text import ConsoleText

DEFAULT_MAX_OUTPUT = 2800

# Types that travel alone, without start and end.
UNFLAGGED = frozenset({"confirmation", "input_request", "decision", "status"})

EPHEMERAL = UNFLAGGED | {"reasoning", "review"}  # types that are streamed and never stored


# Types that 0.4.3 streams; scripts that switch on the type know no others.
_ORIGINAL = frozenset({"message", "code", "console", "confirmation", "image", "file", "review"})


class Message(TypedDict, total=False):
    """A message as it is stored."""

    role: str
    type: str
    format: str
    content: Any
    recipient: str
    mime: str
    exit_code: int | None
    ended: str
    truncated: str
    call: str
    note: str
    declined: bool


class Chunk(Message, total=False):
    """A piece of a streamed message, or the flag that begins or ends a message."""

    start: bool
    end: bool
    stream: str
    ours: bool
    also: str
    data: str
    password: bool
    undo: dict[str, Any]
    effects: list[str]
    reason: str
    findings: list[dict[str, Any]]
    widening: list[str]
    diff: str
    previewed: bool
    question: str


DECLINED = "I have declined to run this code."  # as 0.4.3 says it to the model when the user says no to a block


def notice(text: str, **more: Any) -> Chunk:
    """Make a chunk that tells the user something, beside the conversation."""
    return {"role": "computer", "type": "status", "format": "notice", "content": {"text": text, **more}}


def is_declined(message: Message) -> bool:
    """Check whether we wrote this message for a user who declined a block. Old journals have only the text."""
    return message.get("role") == "user" and (message.get("declined", False) or message.get("content") == DECLINED)


def has_failed(message: Message) -> bool:
    """Check whether this is the output of a block that ended with an error."""
    return message.get("ended") in ("error", "unfinished") or bool(message.get("exit_code"))


_ORIGINAL_KEYS = frozenset({"role", "type", "format", "content", "recipient", "start", "end"})
_GROUP_KEYS = ("role", "type", "format", "recipient", "mime", "call")


def as_original(chunk: Chunk) -> Chunk | None:
    """Return the chunk as 0.4.3 streams it, without our extra keys; None if 0.4.3 has no such type."""
    if chunk["type"] not in _ORIGINAL:
        return None
    if _ORIGINAL_KEYS.issuperset(chunk):
        return chunk
    return {key: value for key, value in chunk.items() if key in _ORIGINAL_KEYS}  # type: ignore[return-value]


def only_original(chunks: Generator[Chunk]) -> Generator[Chunk]:
    """Yield only the chunks that 0.4.3 would send, in its form."""
    with closing(chunks):
        for chunk in chunks:
            if (original := as_original(chunk)) is not None:
                yield original


class Framer:
    """Adds the start and end flags. A group is a run of chunks with the same role, type, format and call.

    Console output and active lines share one group, and its flags carry no format.
    """

    def __init__(self) -> None:
        self._open: Chunk | None = None

    def frame(self, chunk: Chunk) -> Generator[Chunk]:
        """Yield the chunk, with the flags that belong before and after it."""
        if chunk["type"] in UNFLAGGED:
            if chunk["type"] == "confirmation":
                yield from self.close()
            yield chunk
            return
        if chunk.get("end"):
            yield from self.close()
            return
        if chunk.get("content") == "":
            return
        flag = group_of(chunk)
        if flag != self._open:
            yield from self.close()
            self._open = flag
            yield {**flag, "start": True}
        yield chunk

    def close(self) -> Generator[Chunk]:
        """End the open group, if there is one."""
        if self._open is not None:
            flag, self._open = self._open, None
            yield {**flag, "end": True}


def group_of(chunk: Chunk) -> Chunk:
    """Return the fields that all chunks of a group share."""
    group: Chunk = {key: chunk[key] for key in _GROUP_KEYS if key in chunk}  # type: ignore[assignment, literal-required]
    if chunk["type"] == "console":
        group.pop("format", None)
    return group


class Fold:
    """Turns a stream of chunks into stored messages, as it comes.

    `messages` gives the list to append to: it is looked up each time, since users replace it.
    """

    def __init__(self, messages: Callable[[], list[Message]], max_output: int = DEFAULT_MAX_OUTPUT) -> None:
        self._messages = messages
        self._max_output = max_output
        self._message: Message | None = None
        self._parts: list[str] = []
        self._unjoined = 0
        self._console: ConsoleText | None = None
        self._heard = True  # whether the computer said anything about the block that ran last
        self.made: dict[int, Message] = {}  # the messages that came from the stream, by identity

    def add(self, chunk: Chunk) -> None:
        if chunk["type"] in EPHEMERAL:
            return
        if chunk.get("start") or chunk.get("end"):
            self.close()
        elif chunk.get("format") == "active_line":
            if chunk["content"] is None:
                self._end_block(chunk)
        elif chunk.get("content") not in ("", None):
            message = self._message or self._begin(chunk)
            if not isinstance(chunk["content"], str):
                message["content"] = chunk["content"]
            elif self._console is not None:
                self._console.write(chunk["content"])
                self._show_console()
            else:
                self.grow(chunk["content"])

    def grow(self, text: str) -> None:
        """Add to the open message, which is no console output."""
        if self._message is not None:
            self._parts.append(text)
            self._unjoined += len(text)
            if self._unjoined * 8 > len(self._message["content"]):  # seldom enough to stay linear
                self.settle()

    @property
    def is_open(self) -> bool:
        return self._message is not None

    def settle(self) -> None:
        """Bring the open message up to date: between chunks its content may lag behind."""
        if self._parts and self._message is not None:
            self._message["content"] += "".join(self._parts)
        self._parts, self._unjoined = [], 0

    def close(self) -> None:
        """End the open message: its content is whole."""
        self.settle()
        self._message = None
        self._console = None

    def _begin(self, chunk: Chunk) -> Message:
        fields = {key: chunk[key] for key in _GROUP_KEYS if key in chunk}  # type: ignore[literal-required]
        message: Message = {**fields, "content": ""}  # type: ignore[typeddict-item]
        self._message = message
        self.made[id(message)] = message
        self._messages().append(message)
        if chunk["type"] == "console" and "mime" not in chunk:
            self._console = ConsoleText(self._max_output)
        self._heard = chunk["role"] == "computer"
        return message

    def _show_console(self, path: str | None = None) -> None:
        if self._message is not None and self._console is not None:
            self._message["content"] = self._console.text(path)

    def _end_block(self, chunk: Chunk) -> None:
        """Mark the output of a block that is over with how it ended, unless it simply succeeded."""
        abnormal = chunk.get("ended", "done") != "done" or chunk.get("exit_code")
        if self._console is None and (abnormal or not self._heard):
            began: Chunk = {"role": "computer", "type": "console", "format": "output"}
            self._begin({**began, "call": chunk["call"]} if "call" in chunk else began)
        self._show_console(chunk.get("truncated"))
        message = self._message
        if message is None:
            return
        if abnormal:
            message["exit_code"] = chunk.get("exit_code")
            message["ended"] = chunk.get("ended", "done")
        if chunk.get("truncated") and self._console is not None and self._console.cut:
            message["truncated"] = chunk["truncated"]


def fold(chunks: Iterable[Chunk], max_output: int = DEFAULT_MAX_OUTPUT) -> list[Message]:
    """Fold a whole stream of chunks into messages."""
    messages: list[Message] = []
    folding = Fold(lambda: messages, max_output)
    for chunk in chunks:
        folding.add(chunk)
    folding.close()
    return messages
