"""Keeps a journal in step with a conversation, while it streams and between turns, without secrets."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from interpreter.llm.secrets import redacted
from interpreter.llm.usage import Usage
from interpreter.messages import UNFLAGGED, Chunk, Fold, Message
from interpreter.session.journal.file import LARGE, Blobs, JournalEntry, JournalFile
from interpreter.session.journal.reader import Facts, write_summary

INTERVAL = 0.05
"""Seconds between two writes of a message that streams, at least."""
_REWRITE_SHARE = 0.02  # a text that is rewritten over and over is recorded after this share of the time it took so far
_REWRITE_RATE = 1_000_000  # and at most so many bytes a second
_REDACTION_PAUSE = 20  # times as long as the last search for secrets passes before the next
_NUMBERED = frozenset(
    {"message", "more", "decision", "action", "answer", "plan", "usage", "block", "ended", "call", "scan"}
)
"""The entries that are, or belong to, a numbered event of the session."""
_LARGEST_WHOLE = 16 * 1024 * 1024
_FIXED = ("role", "type", "format", "recipient", "mime", "call")
_MISSING = object()
_PRINTED = ("console", "code", "message")  # an image is not text


class JournalWriter:
    """Keeps one journal in step with `messages()`.

    It compares, so it does not matter what changed the conversation: the stream, an edit, or the user's code. It
    compares with the conversation as it was; what it writes is without the secrets that code printed.
    """

    def __init__(
        self,
        journal: JournalFile,
        folder: Path,
        facts: Facts,
        messages: Callable[[], list[Message]],
        total: Callable[[], Usage],
        clock: Callable[[], float] = time.monotonic,
        redaction: Redaction | None = None,
        effort: Callable[[], float] = time.thread_time,
    ) -> None:
        self.folder, self.facts = folder, facts
        self.known: list[Message] = []  # the conversation that is recorded
        self.blocks = 0
        self.sent: dict[str, dict[str, Any]] = {}  # the forms that the record has
        self.fold: Fold | None = None
        self.blobs = Blobs(folder)
        self._file = journal
        self._messages, self._total = messages, total
        self._clock = clock
        self._redaction = redaction
        self._effort = effort  # CPU seconds: on a busy machine the clock runs on while others work
        self._last: Message | None = None  # the last message as the record has it, if it was written here
        self._held = False  # its end is not in the record yet
        self._due = 0.0
        self._began = 0.0  # when the message that streams did
        self.asked = False  # the user was asked about the block that was proposed last
        self._decided = False
        self._ran_at: float | None = None  # when the block that runs began
        self.stamp: dict[str, Any] = {}
        """The number of the event that is being written, and the turn, action and actor that it belongs to."""
        self.numbers: dict[int, int] = {}
        """Those of messages that did not stream, by their identity."""

    # -- the conversation ----------------------------------------------------------------------------------------

    def sync(self, event: str = "messages_replaced", whole: bool = True) -> None:
        """Record every difference between the conversation and the record; the last message may still be growing."""
        stamp, self.stamp = self.stamp, {name: value for name, value in self.stamp.items() if name != "n"}
        try:
            messages = self._messages()
            found = splice(self.known, messages)
            if found is None or found.at == len(self.known):
                if whole or found is not None:
                    self._complete()
                for message in found.messages if found is not None else ():
                    self._message(message, whole or message is not messages[-1])
                return
            forms = [self._form(message, whole or message is not messages[-1]) for message in found.messages]
            packed = [self.blobs.pack(form) for form in forms]
            self.write(event, at=found.at, drop=found.drop, of=len(self.known), messages=packed)
            self.known[found.at : found.at + found.drop] = map(copy_of, found.messages)
            self._last = copy_of(forms[-1]) if forms and found.at + len(forms) == len(self.known) else None
        finally:
            self.stamp = stamp

    def add(self, chunk: Chunk) -> None:
        """Take one chunk of the stream, which the fold has taken already."""
        if "start" in chunk:
            self._began = self._clock()
        elif "end" in chunk:
            self._catch_up()
            if chunk["type"] == "code" and chunk["role"] == "assistant":
                self.blocks += 1
                self.asked, self._decided, self._ran_at = False, False, None
                self.write("block", block=self.blocks, at=len(self.known) - 1)
        elif chunk["type"] in UNFLAGGED:
            self._add_event(chunk)
        elif chunk.get("format") == "active_line":
            if chunk["content"] is None:
                self._end_block(chunk)
        elif self._clock() >= self._due:
            if self.fold is not None:
                self.fold.settle()
            self._catch_up(whole=False)

    def write_open_text(self) -> None:
        """Another event comes next: record the text that is streaming first, so that the journal keeps the order."""
        if self.stamp.get("n") and self.fold is not None and self.fold.is_open:
            self.fold.settle()
            self._catch_up(whole=False)

    def _catch_up(self, whole: bool = True) -> None:
        """Record what the last message has become; that is all that changes in a stream."""
        messages, known = self._messages(), self.known
        if len(messages) == len(known) + 1:
            self._complete()
            self._message(messages[-1], whole)
        elif not known or len(messages) != len(known) or not self._more(messages[-1], whole):
            self.sync(whole=whole)

    def _message(self, message: Message, whole: bool = True) -> None:
        at, form = len(self.known), self._form(message, whole)
        number = self.numbers.pop(id(message), None)
        self.write("message", at=at, message=self.blobs.pack(form), **({"n": number} if number else {}))
        self.known.append(copy_of(message))
        self._last = copy_of(form)
        self._due = max(self._due, self._clock() + INTERVAL)

    def _more(self, message: Message, whole: bool) -> bool:
        """Write how the last message has grown; False if that cannot be said by what the record has."""
        if self._last is None:
            return False
        form = self._form(message, whole)
        change = growth(self._last, form)
        if not change:
            return change is not None
        text = change.get("text", "")
        rewritten = change.get("keep", 0) < len(self._last.get("content") or "")
        if len(text) >= LARGE:
            change = {key: value for key, value in change.items() if key != "text"} | {"blob": self.blobs.put(text)}
        self.write("more", **change)
        self.known[-1], self._last = copy_of(message), copy_of(form)
        now = self._clock()
        self._due = max(self._due, now + INTERVAL)
        if rewritten:
            self._due = max(self._due, now + _REWRITE_SHARE * (now - self._began), now + len(text) / _REWRITE_RATE)
        return True

    def _complete(self) -> None:
        """Write the rest of the last message, if some of it was held back."""
        if self._held and self.known:
            self._more(self.known[-1], whole=True)

    def _form(self, message: Message, whole: bool) -> Message:
        """The message as it is written; the more work that was, the longer until the next time."""
        self._due = 0.0
        if self._redaction is None:
            return message
        began = self._effort()
        form, self._held = self._redaction.form(message, whole)
        self._due = self._clock() + _REDACTION_PAUSE * (self._effort() - began)
        return form

    # -- blocks --------------------------------------------------------------------------------------------------

    def begin_block(self, by: str) -> None:
        """The block begins to run."""
        self._ran_at = self._clock()
        self.sync()  # it may have been edited
        if not self._decided:
            self.write("decision", block=self.blocks, decision="approved", by=by)

    def _add_event(self, chunk: Chunk) -> None:
        content = chunk.get("content") or {}
        match chunk["type"], chunk.get("format"):
            case "confirmation", _:
                self.asked = True
            case "decision", decision:
                self.sync()
                self._decided = True
                who = {"by": content.get("by"), "reason": content.get("reason", "")}
                self.write("decision", block=self.blocks, decision=decision, **who)
            case _, "usage":
                self.write("usage", used=content, total=asdict(self._total()))
            case _, "call":
                entry = {name: value for name, value in content.items() if name != "pictures"}
                for name in ("told", "error"):
                    if self._redaction is not None and name in entry:
                        entry[name] = self._redaction.text(entry[name]) or entry[name]
                if content.get("pictures"):
                    entry["pictures"] = [self.blobs.put(picture) for picture in content["pictures"]]
                self.write("call", block=self.blocks, **entry)
            case _, "scan":
                self.write("scan", block=self.blocks, tools=content["tools"], findings=content["findings"])

    def _end_block(self, chunk: Chunk) -> None:
        self._catch_up()
        if self._ran_at is None:
            return  # it did not run, and the output says why
        seconds = round(self._clock() - self._ran_at, 3)
        self._ran_at = None
        how: dict[str, Any] = {"ended": chunk.get("ended", "done"), "exit_code": chunk.get("exit_code")}
        path = chunk.get("truncated")
        if path is not None and os.path.isfile(path) and os.path.getsize(path) <= _LARGEST_WHOLE:
            with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
                output = file.read()
            clean = self._redaction.text(output) if self._redaction is not None else None
            how["whole"] = self.blobs.put(output if clean is None else clean)
        self.write("ended", block=self.blocks, **how, seconds=seconds)

    # -- the file ------------------------------------------------------------------------------------------------

    def write(self, event: str, **fields: Any) -> None:
        """Write one entry, with the time."""
        entry: JournalEntry = {"event": event, "time": round(time.time(), 3), **self.stamp, **fields}
        if event not in _NUMBERED:
            entry.pop("n", None)
        self._file.append(entry)
        self.facts.learn(entry)

    def flush(self) -> None:
        """Make sure that everything is on the disk, and write the summary for lists."""
        self.facts.usage = self._total()
        self._file.fsync()
        write_summary(self.folder, self.facts, self._file.length)

    def close(self) -> None:
        self._file.close()


class Redaction:
    """Messages and outputs without the secrets that code printed: neither whole nor, while they stream, in part.

    `values` gives the secrets that are known, by name; it is called only when something was printed.
    """

    def __init__(self, values: Callable[[], Mapping[str, str]]) -> None:
        self._values = values

    def form(self, message: Message, whole: bool = True) -> tuple[Message, bool]:
        """The message without secrets, and whether something was held back.

        As long as it is not whole, its last word is held back: it may be the beginning of a secret. No secret has
        spaces in it but private keys, and those are found by their first line.
        """
        text = message.get("content")
        is_printed = message.get("role") == "computer" and message.get("type") in _PRINTED
        if not is_printed or not isinstance(text, str):
            return message, False
        end = len(text)
        if not whole and text and not text[-1].isspace():
            end -= len(text.rsplit(None, 1)[-1])
        clean, found = redacted(text[:end], self._values())
        if not found and end == len(text):
            return message, False
        form = message.copy()
        form["content"] = clean
        return form, end < len(text)

    def text(self, text: str) -> str | None:
        """A whole output without secrets; None if there are none in it."""
        clean, found = redacted(text, self._values())
        return clean if found else None


# -- differences between two states of a conversation ------------------------------------------------------------


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
    """How a message has grown: `keep` so many characters of its content, add `text`, `set` other fields.

    An empty dict if it is the same, None if it is another message.
    """
    if any(old.get(key) != new.get(key) for key in _FIXED) or not old.keys() <= new.keys():
        return None
    change: dict[str, Any] = {}
    fields = {key: value for key, value in new.items() if key != "content" and old.get(key, _MISSING) != value}
    before, after = old.get("content"), new.get("content")
    if isinstance(before, str) and isinstance(after, str):
        keep = len(before) if after.startswith(before) else len(os.path.commonprefix([before, after]))  # noqa: RUF071
        if keep < len(before) or keep < len(after):
            change |= {"keep": keep, "text": after[keep:]}
    elif before != after:
        fields["content"] = after
    if fields:
        change["set"] = fields
    return change


def copy_of(message: Message) -> Message:
    """A copy to compare with later; texts are shared, what can change inside is not."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return message.copy()
    return copy.deepcopy(message)
