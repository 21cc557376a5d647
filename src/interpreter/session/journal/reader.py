"""Sessions that were saved: read back from their journals, listed and found, and told as entries for people."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

from interpreter.errors import ConversationFileError, ConversationNotFoundError
from interpreter.host import files
from interpreter.llm.usage import Usage
from interpreter.messages import Message, is_declined
from interpreter.session import Ids, LogEntry
from interpreter.session.journal.file import (
    NAME,
    Blobs,
    Facts,
    JournalEntry,
    Reference,
    entries,
    read_summary,
)
from interpreter.tools.toolbox import shown_call

VERSION = 1
_TITLE_LENGTH = 60
_ORIGINAL_DATE = "%B_%d_%Y_%H-%M-%S"
_STAMP = ("event", "time", "n", "turn", "action", "actor")


@dataclass
class BlockRecord:
    """A proposed block: the decision about it, and its outcome."""

    number: int
    at: int  # which message its code is
    time: float | None = None
    decision: str = "not_run"
    by: str | None = None
    reason: str = ""
    ended: str | None = None
    exit_code: int | None = None
    seconds: float | None = None
    whole: Reference | None = None  # its whole output, if the message has only parts of it
    # The calls of the computer's tools that its code made, with their results; pictures by reference.
    calls: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class SavedSession:
    """Everything that a journal holds: read with `SavedSession.open`, never written."""

    path: Path
    facts: Facts = field(default_factory=Facts)
    messages: list[Message] = field(default_factory=list)
    times: list[float | None] = field(default_factory=list)  # when each message began
    blocks: list[BlockRecord] = field(default_factory=list)  # those of the conversation as it is now
    # All blocks by number, also those whose messages are gone: their files may still be there.
    proposed: dict[int, BlockRecord] = field(default_factory=dict)
    sent: dict[str, Any] = field(default_factory=dict)  # the forms in which things were sent to the model
    # The checkpoints, for undo; their `time` is when they were made.
    points: list[dict[str, Any]] = field(default_factory=list)
    # Before which checkpoint the conversation, the files and the variables are; None (and no entry) is the end.
    rewound: dict[str, int | None] = field(default_factory=dict)
    undone_messages: list[Message] = field(default_factory=list)  # the messages that were undone and can be redone
    # What was saved of the variables of each language; `time` says when, `blocks` after which block.
    variables: dict[str, dict[str, Any]] = field(default_factory=dict)
    length: int = 0  # how many bytes of the journal are good
    torn: bool = False  # A crash tore the last line; it is left out
    last_number: int = 0  # the number of the newest event
    # The actions that had begun and not ended when the last run was cut off.
    open_actions: dict[str, dict[str, Any]] = field(default_factory=dict)
    last_block: int = 0  # the number of the block that was proposed last, even if it was undone
    damaged: int = 0  # lines before the last that could not be read
    _undone_blocks: list[BlockRecord] = field(default_factory=list)

    @classmethod
    def open(cls, path: str | Path) -> SavedSession:
        """Read the journal in a folder; or by the beginning of an id, in the usual folder of conversations."""
        named, path = path, Path(path)
        if not path.exists() and path.name == str(named):
            from interpreter.config.setting import setting_named

            path = find(setting_named("conversation_history_path").default_value(), str(named)).path
        session = cls(path)
        try:
            for entry, end in entries(path):
                session.damaged += session.torn  # there is something behind it
                session.torn = entry is None
                if entry is not None:
                    session._apply(entry)
                    session.length = end
        except OSError as error:
            raise ConversationFileError(f"Can't read {path}: {error.strerror}.") from error
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ConversationFileError(f"{path / NAME} is not an Open Interpreter journal.") from error
        if session.facts.created == 0.0:
            raise ConversationFileError(f"{path / NAME} is empty.")
        return session

    @property
    def id(self) -> str:
        return self.facts.id

    @property
    def title(self) -> str:
        return self.facts.title

    @property
    def usage(self) -> Usage:
        """Return what all requests of the session used."""
        return self.facts.usage

    @cached_property
    def blobs(self) -> Blobs:
        return Blobs(self.path)

    # -- entries -------------------------------------------------------------------------------------------------

    def _apply(self, entry: JournalEntry) -> None:
        self.last_number = max(self.last_number, entry.get("n", 0))
        self.facts.learn(entry)
        last = self.blocks[-1] if self.blocks else None
        block = last if last is not None and last.number == entry.get("block") else None  # else undone in between
        match entry["event"]:
            case "action" if entry["state"] != "ended":
                self.open_actions.setdefault(entry["action"], entry)
            case "action":
                self.open_actions.pop(entry["action"], None)
                if entry.get("outcome") == "lost" and entry.get("kind") != "turn" and last and last.ended is None:
                    last.ended = "lost"
            case "message":
                self.last_number += "n" not in entry  # as `past_events` counts them
                self._message(entry)
            case "more":
                self.blobs.grow(cast(dict[str, Any], self.messages[-1]), entry)
            case "block":
                if self.last_block < entry["block"]:
                    self.last_block = entry["block"]
                    block = BlockRecord(entry["block"], entry["at"], entry.get("time"))
                    self.proposed[block.number] = block
                    self.blocks.append(block)
            case "call" if block is not None:
                block.calls.append({name: value for name, value in entry.items() if name not in ("event", "block")})
            case "decision" | "ended" if block is not None:
                for name in ("decision", "by", "reason", "ended", "exit_code", "seconds", "whole"):
                    if name in entry:
                        setattr(block, name, entry[name])
            case "messages_replaced" | "undo":
                self._splice(entry)
            case "sent":
                for name in ("templates", "rendered", "stepped_down"):
                    self.sent[name] = entry.get(name, self.sent.get(name, {}))
                self.sent.setdefault("replies", {}).update(entry.get("replies", {}))
            case "point" | "points_dropped":
                if (dropped := entry.get("drop")) is not None:
                    self.points = [point for point in self.points if point["point"] < dropped]
                if self.points and self.points[-1]["at"] > entry["at"]:  # the conversation was cut
                    self.points = [{**point, "at": min(point["at"], entry["at"])} for point in self.points]
                self.rewound, self.undone_messages, self._undone_blocks = {}, [], []
                self.points += [entry] if entry["event"] == "point" else []
            case "variables":
                self.variables[entry["language"]] = {**entry, "blocks": self.last_block}
            case "rewound":
                self.rewound |= dict.fromkeys(entry.get("parts", ()), entry.get("to"))

    def _message(self, entry: JournalEntry) -> None:
        at, message = entry["at"], self.blobs.unpack(entry["message"])
        if at < len(self.messages):  # an entry that was written twice, around an interrupt, means the same as once
            del self.messages[at:], self.times[at:]
        self.messages.append(message)
        self.times.append(entry["time"])
        is_redone = bool(self.undone_messages) and self.undone_messages[0] == message
        self.undone_messages = self.undone_messages[1:] if is_redone else []
        self._undone_blocks = self._undone_blocks if is_redone else []
        while self._undone_blocks and self._undone_blocks[0].at < len(self.messages):
            self.blocks.append(self._undone_blocks.pop(0))

    def _splice(self, entry: JournalEntry) -> None:
        if entry["of"] != len(self.messages):
            return  # written twice
        at, drop, came = entry["at"], entry["drop"], entry["messages"]
        if entry["event"] == "undo" and not came and at + drop == len(self.messages):
            self.undone_messages = self.messages[at:] + self.undone_messages
            self._undone_blocks = [block for block in self.blocks if block.at >= at] + self._undone_blocks
            self.blocks = [block for block in self.blocks if block.at < at]
        else:
            self.undone_messages, self._undone_blocks = [], []
            for place, point in enumerate(self.points):
                if point["at"] >= at + drop:
                    self.points[place] = {**point, "at": point["at"] + len(came) - drop}
                elif point["at"] > at:
                    self.points[place] = {**point, "at": min(point["at"], at + len(came))}
        self.messages[at : at + drop] = [self.blobs.unpack(packed) for packed in came]
        self.times[at : at + drop] = [entry.get("time")] * len(came)
        for block in self.blocks if drop != len(came) else ():  # else they were edited in place
            if block.at >= at + drop:
                block.at += len(came) - drop
            elif block.at >= at:
                block.at = len(self.messages)
        there = [block for block in self.blocks if block.at < len(self.messages)]
        self.blocks = [block for block in there if self.messages[block.at].get("type") == "code"]


def past_events(folder: Path) -> Iterator[LogEntry]:
    """Yield the events of a session in order, as its journal has them.

    A text is whole here, and without secrets. Journals of earlier versions have no numbers: their messages are counted.
    """
    blobs = Blobs(folder)
    number, text = 0, None
    for entry, _ in entries(folder):
        if entry is None:
            continue
        if entry["event"] == "more":
            if text is not None:
                blobs.grow(text[0], entry)
            continue
        if text is not None:
            yield LogEntry.whole(*text)
            text = None
        number = max(number, entry.get("n", 0))
        ids = Ids(entry.get("turn", ""), entry.get("action", ""), entry.get("actor", ""))
        when = entry.get("time", 0.0)
        if entry["event"] == "message":
            number = entry.get("n") or number + 1
            text = dict(blobs.unpack(entry["message"])), ids, number, when
        elif entry["event"] in ("action", "answer", "plan") and "n" in entry:
            data = {name: value for name, value in entry.items() if name not in _STAMP}
            yield LogEntry(entry["event"], data, ids, None, entry["n"], when)
        elif entry["event"] == "decision" and "n" in entry:
            content = {"by": entry.get("by"), "reason": entry.get("reason", "")}
            data = {"role": "computer", "type": "decision", "format": entry["decision"], "content": content}
            yield LogEntry("decision", data, ids, None, entry["n"], when)
    if text is not None:
        yield LogEntry.whole(*text)


# -- the list of sessions ----------------------------------------------------------------------------------------


@dataclass
class Summary:
    """One row of the list; `is_original` for a conversation file of Open Interpreter 0.4.3."""

    path: Path
    facts: Facts
    is_original: bool = False

    @property
    def id(self) -> str:
        return self.facts.id

    @property
    def title(self) -> str:
        return self.facts.title

    @property
    def age(self) -> float:
        """Seconds since it was last written."""
        return max(0.0, time.time() - self.facts.updated)


def listed(root: str | Path) -> list[Summary]:
    """List all sessions and the conversation files of 0.4.3 in a folder, the newest first."""
    try:
        with os.scandir(root) as listing:
            found = list(listing)
    except OSError:
        return []
    rows = []
    for folder in [entry for entry in found if entry.is_dir()]:
        with suppress(OSError):  # not a session
            facts = read_summary(Path(folder.path))
            if facts.created:
                facts.id = folder.name
                rows.append(Summary(Path(folder.path), facts))
    imported = {row.facts.imported_from for row in rows}
    beside = {row.facts.conversation_file for row in rows}
    files = [entry for entry in found if entry.name.endswith(".json") and entry.is_file() and entry.name not in beside]
    rows += [_original_summary(file) for file in files if str(Path(file.path)) not in imported]
    return sorted(rows, key=lambda row: row.facts.updated, reverse=True)


def find(root: str | Path, beginning: str) -> Summary:
    """Find a session by the beginning of its id, or a conversation file of 0.4.3 by its name or path."""
    if beginning.endswith(".json") and os.path.isfile(beginning):
        path = Path(beginning).resolve()
        return Summary(path, Facts(path.name), is_original=True)
    rows = listed(root)
    close = [row for row in rows if row.id == beginning] or [row for row in rows if row.id.startswith(beginning)]
    if len(close) == 1:
        return close[0]
    if not close:
        words = f"There is no conversation {beginning}. See `interpreter --conversations`."
    else:
        candidates = " or ".join(f"{row.id} ({row.title})" for row in close[:5])
        words = f"{beginning} could be {candidates}. Type more of the id."
    raise ConversationNotFoundError(words)


def last_in(root: str | Path, folder: str) -> Summary:
    """Find the newest session that was last used in a folder."""
    for row in listed(root):
        if row.facts.folder == folder:
            return row
    raise ConversationNotFoundError(
        f"There is no conversation in {folder} yet. For those in other folders: interpreter --conversations"
    )


def title_of(messages: Sequence[Message]) -> str:
    """Return the first words that the user said, in one line."""
    for message in messages:
        content = message.get("content")
        is_text = message.get("role") == "user" and message.get("type", "message") == "message"
        if is_text and isinstance(content, str) and content.strip():
            line = " ".join(content.split())
            if len(line) <= _TITLE_LENGTH:
                return line
            words, space, _ = line[: _TITLE_LENGTH - 3].rpartition(" ")
            return (words if space else line[: _TITLE_LENGTH - 3]) + "..."
    return "Untitled"


# -- conversation files of Open Interpreter 0.4.3: a JSON list of messages, named by first words and date ---------


def _original_summary(file: os.DirEntry[str]) -> Summary:
    words, _, date = file.name.removesuffix(".json").rpartition("__")
    changed = file.stat().st_mtime
    try:
        created = datetime.strptime(date, _ORIGINAL_DATE).timestamp()
    except ValueError:
        created = changed
    title = words.replace("_", " ").strip() or file.name
    return Summary(Path(file.path), Facts(file.name, title, created=created, updated=changed), is_original=True)


def read_original(path: str | Path) -> list[Message]:
    """Return the messages of such a file; ConversationFileError if it is none."""
    try:
        messages: Any = json.loads(files.read_bytes(path))
    except OSError as error:
        raise ConversationFileError(f"Can't read {path}: {error.strerror}.") from error
    except ValueError:
        messages = None
    if not isinstance(messages, list) or not all(isinstance(item, dict) and "role" in item for item in messages):
        raise ConversationFileError(f"{path} is not a conversation: it must hold a JSON list of messages.")
    return [cast(Message, {"type": "message", "content": "", **message}) for message in messages]


def original_name(messages: Sequence[Message], folder: Path) -> str:
    """Return the name that 0.4.3 would give to the file of a new conversation; never one that exists."""
    words = messages[0].get("content") if messages else ""
    beginning = words[:25] if isinstance(words, str) else ""
    said = "_".join(beginning.split(" ")[:-1]) if " " in beginning else beginning[:15]
    name = "".join(each for each in said if each.isprintable() and each not in '<>:"/\\|?*!') or "conversation"
    dated = f"{name}__{datetime.now().strftime(_ORIGINAL_DATE)}"
    candidates = (f"{dated}{number}.json" for number in ("", *(f"_{again}" for again in range(2, 1000))))
    return next(each for each in candidates if not (folder / each).exists())


def write_original(path: Path, messages: Sequence[Message]) -> None:
    """Save a conversation in that format: the whole file, or the one before stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(messages, ensure_ascii=False, default=str)
    files.write_bytes(path, text.encode("utf-8", "backslashreplace"), 0o600)


# -- entries: what was said, the blocks with what became of them, what was shown ----------------------------------

Decision = Literal["approved", "edited", "declined", "denied", "not_run"]


@dataclass(frozen=True)
class Said:
    """A message of the user or the model."""

    role: str
    text: str
    at: float | None = None


@dataclass(frozen=True)
class RecordedBlock:
    """Proposed code: the decision about it, and its effects."""

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
    calls: tuple[dict[str, Any], ...] = ()  # of the computer's tools, with their results; only a journal knows them

    @property
    def ran(self) -> bool:
        return self.decision in ("approved", "edited")

    @property
    def succeeded(self) -> bool:
        return self.ran and self.ended == "done" and not self.exit_code


@dataclass(frozen=True)
class RecordedToolCall:
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
    """An image or a file from the user, or output that belongs to no block."""

    message: Message
    at: float | None = None


Entry = Said | RecordedBlock | RecordedToolCall | Shown


def entries_from_messages(messages: Iterable[Message]) -> list[Entry]:
    """Return the entries of a plain list of messages, which knows less than a journal.

    Blocks are numbered in order. A block without output was not run; who approved it is unknown.
    """
    return [entry for _, entry in _placed_entries(messages)]


def entries_from_session(session: SavedSession) -> list[Entry]:
    """Yield the same with times, and with what only the journal knows of a block."""
    records = {record.at: record for record in session.blocks}
    found: list[Entry] = []
    for place, entry in _placed_entries(session.messages):
        record = records.get(place)
        entry = replace(entry, at=session.times[place])
        if isinstance(entry, RecordedBlock) and record is not None:
            known = {name: getattr(record, name) for name in ("decision", "by", "ended", "exit_code", "seconds")}
            entry = replace(entry, id=str(record.number), calls=tuple(record.calls), **known)
        found.append(entry)
    return found


def _placed_entries(messages: Iterable[Message]) -> Iterator[tuple[int, Entry]]:
    """Each entry with the place of its message; a block or call has all that the computer said since as its output."""
    messages = list(messages)
    at = number = 0
    while at < len(messages):
        message, place = messages[at], at
        at += 1
        role, kind = message.get("role", ""), message.get("type", "message")
        if (kind == "code" and role != "computer") or kind == "tool_call":
            while at < len(messages) and messages[at].get("role") == "computer":
                at += 1
            outputs = tuple(messages[place + 1 : at])
            answer = messages[at] if at < len(messages) else {}
            declined = is_declined(answer)
            at += declined
            number += kind == "code"
            yield place, _code_entry(message, outputs, number, declined)
        elif kind == "message":
            if not is_declined(message):
                yield place, Said(role, str(message.get("content", "")))
        else:
            yield place, Shown(message)


def _code_entry(
    code: Message, outputs: tuple[Message, ...], number: int, declined: bool
) -> RecordedBlock | RecordedToolCall:
    def last(key: Literal["ended", "exit_code"]) -> Any:
        return next((message[key] for message in reversed(outputs) if key in message), None)

    name, content = code.get("format", ""), str(code.get("content", ""))
    if code.get("type") == "tool_call":
        return RecordedToolCall(name, content, last("ended") or "done" if outputs else None, outputs)
    ran = bool(outputs) and not declined
    return RecordedBlock(
        id=str(number),
        language=name,
        code=content,
        decision="declined" if declined else "approved" if ran else "not_run",
        ended=last("ended") or "done" if ran else None,
        exit_code=last("exit_code") or 0 if ran else None,
        outputs=outputs,
        author=code.get("role", "assistant"),
    )
