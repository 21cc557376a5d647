"""What a conversation is called before anybody names it: the first words of the user."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

from interpreter.errors import ConversationFileError, ConversationNotFoundError
from interpreter.llm.usage import Usage
from interpreter.messages import Message
from interpreter.session import Ids, Past
from interpreter.session.journal import file
from interpreter.session.journal.file import BLOBS, Blobs, Reference
from interpreter.tools.toolbox import shown_call

_LONGEST = 60


def title_of(messages: Sequence[Message]) -> str:
    """The first words that the user said."""
    said = (message for message in messages if message.get("role") == "user")
    for message in said:
        content = message.get("content")
        if message.get("type", "message") == "message" and isinstance(content, str) and content.strip():
            return shortened(content)
    return "Untitled"


def shortened(text: str) -> str:
    """One line of whole words, as many as fit."""
    line = " ".join(text.split())
    if len(line) <= _LONGEST:
        return line
    words, space, _ = line[: _LONGEST - 3].rpartition(" ")
    return (words if space else line[: _LONGEST - 3]) + "..."


VERSION = 1
_COUNTS = [row.name for row in fields(Usage)]


@dataclass
class BlockRecord:
    """A block that was proposed, and what became of it."""

    number: int
    at: int
    """Which message its code is."""
    time: float | None = None
    decision: str = "not_run"
    by: str | None = None
    reason: str = ""
    ended: str | None = None
    exit_code: int | None = None
    seconds: float | None = None
    whole: Reference | None = None
    """Its whole output, if the message has only parts of it."""
    calls: list[dict[str, Any]] = field(default_factory=list)
    """What its code has called of the computer's tools, and what came of that; pictures by reference."""

    @property
    def succeeded(self) -> bool:
        return self.ended == "done" and not self.exit_code


@dataclass
class Facts:
    """What a list of sessions shows."""

    id: str = ""
    title: str = ""
    folder: str = ""
    model: str = ""
    created: float = 0.0
    updated: float = 0.0
    usage: Usage = field(default_factory=Usage)
    imported_from: str | None = None
    branched_from: str | None = None

    def learn(self, entry: file.Entry) -> None:
        """Take what an entry says about the session as a whole."""
        self.updated = entry.get("time", self.updated)
        match entry["event"]:
            case "session" | "branched" | "resumed" | "renamed" | "turn":
                for name in ("id", "title", "folder", "model", "imported_from"):
                    if name in entry:
                        setattr(self, name, entry[name])
                if entry["event"] in ("session", "branched"):
                    self.created = entry["time"]
                    self.branched_from = entry.get("from")
            case "usage":
                self.usage = usage_from(entry["total"])


@dataclass
class Session:
    """Everything that a journal holds: read with `Session.open`, never written."""

    path: Path
    facts: Facts = field(default_factory=Facts)
    messages: list[Message] = field(default_factory=list)
    times: list[float | None] = field(default_factory=list)
    """When each message began."""
    blocks: list[BlockRecord] = field(default_factory=list)
    """Those of the conversation as it is now."""
    proposed: dict[int, BlockRecord] = field(default_factory=dict)
    """All of them by their numbers, also those whose words are gone: their files may still be there."""
    sent: dict[str, Any] = field(default_factory=dict)
    """The forms in which things went to the model."""
    points: list[dict[str, Any]] = field(default_factory=list)
    """The moments before turns and blocks, for undo; their `time` is when they were."""
    rewound: dict[str, int | None] = field(default_factory=dict)
    """Before which point the conversation, the files and the variables are; None behind all, as what is not named."""
    taken_back: list[Message] = field(default_factory=list)
    """The messages that an undo took back and that a redo could bring again."""
    length: int = 0
    """How many bytes of the journal are good."""
    torn: bool = False
    """A crash tore the last line; it is left out."""
    last_number: int = 0
    """The number of the newest event."""
    open_actions: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The actions that had begun and not ended when the last run was cut off."""
    last_block: int = 0
    """The number of the block that was proposed last, be it taken back."""
    _total: dict[str, Any] = field(default_factory=dict)
    _waiting: list[BlockRecord] = field(default_factory=list)  # for the messages that were taken back
    damaged: int = 0
    """Lines before the last that could not be read."""

    @classmethod
    def open(cls, path: str | Path) -> Session:
        """Read the journal in a folder; or by the beginning of an id, in the usual folder of conversations."""
        path = _folder(path)
        session = cls(path)
        try:
            for entry, end in file.entries(path / file.NAME):
                session.damaged += session.torn  # there is something behind it
                session.torn = entry is None
                if entry is not None:
                    session._apply(entry)
                    session.length = end
        except OSError as error:
            raise ConversationFileError(f"{path} cannot be read: {error.strerror}.") from error
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ConversationFileError(f"{path / file.NAME} is not a journal of this program.") from error
        session.facts.usage = usage_from(session._total)
        if session.facts.created == 0.0:
            raise ConversationFileError(f"{path / file.NAME} is empty.")
        return session

    @property
    def id(self) -> str:
        return self.facts.id

    @property
    def title(self) -> str:
        return self.facts.title

    @property
    def usage(self) -> Usage:
        """What all requests of the session took."""
        return self.facts.usage

    @property
    def cost(self) -> float | None:
        """In US dollars; None if the price of all that was asked is not known."""
        used = self.usage
        return None if used.unpriced_tokens and used.unpriced_tokens == used.tokens else used.cost

    @cached_property
    def blobs(self) -> Blobs:
        return Blobs(self.path / BLOBS)

    # -- entries -------------------------------------------------------------------------------------------------

    def _apply(self, entry: file.Entry) -> None:
        event = entry["event"]
        self.last_number = max(self.last_number, entry.get("n", 0))
        if event == "action":
            self._action(entry)
            return
        if event == "message":
            self.last_number += "n" not in entry  # as `past_events` counts them
            self._message(entry)
        elif event == "more":
            self._more(entry)
        elif event == "usage":
            self._total = entry["total"]
        elif event == "block":
            if self.last_block < entry["block"]:
                self.last_block = entry["block"]
                block = BlockRecord(entry["block"], entry["at"], entry.get("time"))
                self.proposed[block.number] = block
                self.blocks.append(block)
        elif event in ("decision", "ended", "call"):
            self._block_event(entry)
        elif event in ("messages_replaced", "undo"):
            self._splice(entry)
        elif event == "sent":
            self._remember(entry)
        elif event in ("point", "points_dropped"):
            self._point(entry)
        elif event == "rewound":
            self.rewound |= dict.fromkeys(entry.get("parts", ()), entry.get("to"))
        else:
            self.facts.learn(entry)
            return
        self.facts.updated = entry.get("time", self.facts.updated)

    def _action(self, entry: file.Entry) -> None:
        if entry["state"] != "ended":
            self.open_actions.setdefault(entry["action"], entry)
            return
        self.open_actions.pop(entry["action"], None)
        if entry.get("outcome") == "lost" and self.blocks and self.blocks[-1].ended is None:
            self.blocks[-1].ended = "lost"

    def _message(self, entry: file.Entry) -> None:
        at, message = entry["at"], self.blobs.unpacked(entry["message"])
        if at < len(self.messages):  # an entry that was written twice, around an interrupt, means the same as once
            del self.messages[at:], self.times[at:]
        self.messages.append(message)
        self.times.append(entry["time"])
        again = bool(self.taken_back) and self.taken_back[0] == message
        self.taken_back = self.taken_back[1:] if again else []
        self._waiting = self._waiting if again else []
        while self._waiting and self._waiting[0].at < len(self.messages):
            self.blocks.append(self._waiting.pop(0))

    def _more(self, entry: file.Entry) -> None:
        message = self.messages[-1]
        if "keep" in entry:
            text = entry["text"] if "text" in entry else self.blobs.get(entry["blob"])
            message["content"] = message["content"][: entry["keep"]] + text
        message.update(entry.get("set", {}))

    def _splice(self, entry: file.Entry) -> None:
        if entry["of"] != len(self.messages):
            return  # written twice
        at, drop, came = entry["at"], entry["drop"], entry["messages"]
        if entry["event"] == "undo" and not came and at + drop == len(self.messages):
            self.taken_back = self.messages[at:] + self.taken_back
            self._waiting = [block for block in self.blocks if block.at >= at] + self._waiting
            self.blocks = [block for block in self.blocks if block.at < at]
        else:
            self.taken_back, self._waiting = [], []
            self._shift_points(at, drop, len(came))
        self.messages[at : at + drop] = [self.blobs.unpacked(packed) for packed in came]
        self.times[at : at + drop] = [entry.get("time")] * len(came)
        for block in self.blocks if drop != len(came) else ():  # else they were edited in place
            if block.at >= at + drop:
                block.at += len(came) - drop
            elif block.at >= at:
                block.at = len(self.messages)
        self.blocks = [block for block in self.blocks if self._is_code(block.at)]

    def _is_code(self, at: int) -> bool:
        return at < len(self.messages) and self.messages[at].get("type") == "code"

    def _block_event(self, entry: file.Entry) -> None:
        if not self.blocks or self.blocks[-1].number != entry["block"]:
            return  # taken back meanwhile
        block = self.blocks[-1]
        if entry["event"] == "call":
            block.calls.append({name: value for name, value in entry.items() if name not in ("event", "block")})
            return
        for name in ("decision", "by", "reason", "ended", "exit_code", "seconds", "whole"):
            if name in entry:
                setattr(block, name, entry[name])

    def _point(self, entry: file.Entry) -> None:
        if (dropped := entry.get("drop")) is not None:
            self.points = [point for point in self.points if point["point"] < dropped]
        if self.points and self.points[-1]["at"] > entry["at"]:  # the conversation was cut
            self.points = [{**point, "at": min(point["at"], entry["at"])} for point in self.points]
        self.rewound, self.taken_back, self._waiting = {}, [], []
        if entry["event"] == "point":
            self.points.append(entry)

    def _shift_points(self, at: int, drop: int, came: int) -> None:
        for place, point in enumerate(self.points):
            if point["at"] >= at + drop:
                self.points[place] = {**point, "at": point["at"] + came - drop}
            elif point["at"] > at:
                self.points[place] = {**point, "at": min(point["at"], at + came)}

    def _remember(self, entry: file.Entry) -> None:
        self.sent["templates"] = entry.get("templates", self.sent.get("templates", {}))
        self.sent["rendered"] = entry.get("rendered", self.sent.get("rendered", {}))
        self.sent["stepped_down"] = entry.get("stepped_down", self.sent.get("stepped_down", {}))
        self.sent.setdefault("replies", {}).update(entry.get("replies", {}))


def _folder(named: str | Path) -> Path:
    path = Path(named)
    if path.exists() or path.name != str(named):
        return path
    from interpreter.config.setting import setting_named

    return find(setting_named("conversation_history_path").default_value(), str(named)).path


def usage_from(data: dict[str, Any]) -> Usage:
    """Usage from plain data; what another version knew besides is left out."""
    return Usage(**{name: data[name] for name in _COUNTS if name in data})


def usage_between(more: Usage, less: Usage) -> Usage:
    """What was used between two counts of one purse."""
    counts = [name for name in _COUNTS if name != "estimated"]
    return Usage(**{name: getattr(more, name) - getattr(less, name) for name in counts}, estimated=more.estimated)


_DATE = "%B_%d_%Y_%H-%M-%S"


def originals_in(root: Path) -> Iterator[tuple[Path, Facts]]:
    """The files in a folder that are conversations by their name."""
    try:
        found = [entry for entry in os.scandir(root) if entry.name.endswith(".json") and entry.is_file()]
    except OSError:
        return
    for entry in found:
        words, _, date = entry.name.removesuffix(".json").rpartition("__")
        changed = entry.stat().st_mtime
        title = words.replace("_", " ").strip() or entry.name
        yield Path(entry.path), Facts(entry.name, title, created=_created(date, changed), updated=changed)


def read_original(path: Path) -> list[Message]:
    """The messages of such a file; ConversationFileError if it is none."""
    try:
        messages: Any = json.loads(path.read_bytes())
    except OSError as error:
        raise ConversationFileError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError:
        messages = None
    if not isinstance(messages, list) or not all(isinstance(item, dict) and "role" in item for item in messages):
        raise ConversationFileError(f"{path} is not a conversation: it must hold a JSON list of messages.")
    return [_completed(item) for item in messages]


def write_original(path: Path, messages: Sequence[Message]) -> None:
    """Save a conversation in that format: the whole file, or the one before stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(unfinished, "w", encoding="utf-8", errors="surrogateescape") as file:
            json.dump(messages, file, ensure_ascii=False, default=str)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


def _completed(message: dict[str, Any]) -> Message:
    return {"type": "message", "content": "", **message}  # type: ignore[typeddict-item]


def _created(date: str, otherwise: float) -> float:
    try:
        return datetime.strptime(date, _DATE).timestamp()
    except ValueError:
        return otherwise


SUMMARY = "summary.json"


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
    """All sessions and the original's conversations in a folder, the newest first."""
    found = list(_sessions(Path(root)))
    imported = {row.facts.imported_from for row in found}
    found += [
        Summary(path, facts, is_original=True) for path, facts in originals_in(Path(root)) if str(path) not in imported
    ]
    return sorted(found, key=lambda row: row.facts.updated, reverse=True)


def find(root: str | Path, beginning: str) -> Summary:
    """The session whose id begins so; or a file of the original, by its name or its path."""
    if beginning.endswith(".json") and os.path.isfile(beginning):
        path = Path(beginning).resolve()
        return Summary(path, Facts(path.name), is_original=True)
    rows = listed(root)
    exact = [row for row in rows if row.id == beginning]
    close = exact or [row for row in rows if row.id.startswith(beginning)]
    if len(close) == 1:
        return close[0]
    if not close:
        words = f"There is no conversation {beginning}. `interpreter --conversations` lists them."
    else:
        words = f"{beginning} could be " + " or ".join(f"{row.id} ({row.title})" for row in close[:5])
        words += ": write a little more of it."
    raise ConversationNotFoundError(words)


def last_in(root: str | Path, folder: str) -> Summary:
    """The newest session that was last used in a folder."""
    for row in listed(root):
        if row.facts.folder == folder:
            return row
    raise ConversationNotFoundError(
        f"There is no conversation in {folder} yet. `interpreter --conversations` lists those of all folders."
    )


def write_summary(folder: Path, facts: Facts, length: int) -> None:
    """What the journal says up to `length`, so that a list need not read all of it."""
    data = json.dumps({"length": length, **asdict(facts)})
    unfinished = folder / f"{SUMMARY}.new"
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as out:
        out.write(data)
    unfinished.rename(folder / SUMMARY)


def _sessions(root: Path) -> Iterator[Summary]:
    try:
        folders = [entry for entry in os.scandir(root) if entry.is_dir()]
    except OSError:
        return
    for folder in folders:
        path = Path(folder.path)
        try:
            facts = _facts(path)
        except OSError:
            continue  # somebody else's folder
        if facts.created:
            facts.id = folder.name
            yield Summary(path, facts)


def _facts(path: Path) -> Facts:
    """The summary, and what has been written behind it since: a crash, or a turn that goes on."""
    size = (path / file.NAME).stat().st_size
    known = _summary(path)
    length, facts = 0, Facts()
    if known is not None and known[0] <= size:
        length, facts = known
    if length < size:
        for entry, _ in file.entries(path / file.NAME, length):
            if entry is not None:
                facts.learn(entry)
    return facts


def _summary(path: Path) -> tuple[int, Facts] | None:
    try:
        data: dict[str, Any] = json.loads((path / SUMMARY).read_bytes())
        length, used = data.pop("length"), usage_from(data.pop("usage"))
        return length, Facts(**data, usage=used)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # made anew from the journal


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


def entries_from_session(session: Session) -> list[Entry]:
    """As `entries_from_messages`, with times, and with what only the journal knows of a block."""
    reading = _Reading()
    records = {record.at: record for record in session.blocks}
    entries: list[Entry] = []
    place = 0  # of the code of the block that is being read
    for at, message in enumerate(session.messages):
        reading.add(message)
        for entry in reading.entries[len(entries) :]:
            is_block = isinstance(entry, Block | ToolCall)
            entries.append(_told(entry, records.get(place), session.times[place if is_block else at]))
        if message.get("type") in ("code", "tool_call") and message.get("role") != "computer":
            place = at
    reading.end_block()
    entries += [_told(entry, records.get(place), session.times[place]) for entry in reading.entries[len(entries) :]]
    return entries


def _told(entry: Entry, record: BlockRecord | None, time: float | None) -> Entry:
    if not isinstance(entry, Block) or record is None:
        return replace(entry, at=time)
    return replace(
        entry,
        id=str(record.number),
        decision=cast(Decision, record.decision),
        by=record.by,
        ended=record.ended,
        exit_code=record.exit_code,
        at=time,
        seconds=record.seconds,
        calls=tuple(record.calls),
    )


_STAMP = ("event", "time", "n", "turn", "action", "actor")
_SESSION_EVENTS = ("action", "answer", "plan")


def past_events(folder: Path) -> Iterator[Past]:
    """The events of a session as its journal tells them, in their order.

    A text is whole here, and without secrets. Journals of earlier versions have no numbers: their messages are counted.
    """
    blobs = Blobs(folder / BLOBS)
    number, text = 0, None
    for entry, _ in file.entries(folder / file.NAME):
        if entry is None:
            continue
        if entry["event"] == "more":
            if text is not None:
                _grow(text, entry, blobs)
            continue
        if text is not None:
            yield text
            text = None
        number = max(number, entry.get("n", 0))
        ids = Ids(entry.get("turn", ""), entry.get("action", ""), entry.get("actor", ""))
        if entry["event"] == "message":
            number = entry.get("n") or number + 1
            message = blobs.unpacked(entry["message"])
            text = Past(number, str(message.get("type")), dict(message), ids, entry.get("time", 0.0), is_text=True)
        elif entry["event"] in _SESSION_EVENTS and "n" in entry:
            fields = {name: value for name, value in entry.items() if name not in _STAMP}
            yield Past(entry["n"], entry["event"], fields, ids, entry.get("time", 0.0), is_text=False)
        elif entry["event"] == "decision" and "n" in entry:
            content = {"by": entry.get("by"), "reason": entry.get("reason", "")}
            told = {"role": "computer", "type": "decision", "format": entry["decision"], "content": content}
            yield Past(entry["n"], "decision", told, ids, entry.get("time", 0.0), is_text=False)
    if text is not None:
        yield text


def _grow(text: Past, entry: dict[str, Any], blobs: Blobs) -> None:
    data = text.data
    if "keep" in entry:
        more = entry["text"] if "text" in entry else blobs.get(entry["blob"])
        data["content"] = data["content"][: entry["keep"]] + more
    data.update(entry.get("set", {}))
