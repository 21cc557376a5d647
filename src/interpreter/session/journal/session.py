"""A session as its journal tells it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from interpreter.errors import ConversationFileError
from interpreter.llm.usage import Usage
from interpreter.messages import Message
from interpreter.session.journal import file
from interpreter.session.journal.blobs import Blobs, Reference
from interpreter.session.journal.folders import BLOBS

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
                self.usage = usage(entry["total"])


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
        session.facts.usage = usage(session._total)
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
    from interpreter.session.journal.listing import find

    return find(setting_named("conversation_history_path").default_value(), str(named)).path


def usage(data: dict[str, Any]) -> Usage:
    """Usage from plain data; what another version knew besides is left out."""
    return Usage(**{name: data[name] for name in _COUNTS if name in data})


def difference(more: Usage, less: Usage) -> Usage:
    """What was used between two counts of one purse."""
    counts = [name for name in _COUNTS if name != "estimated"]
    return Usage(**{name: getattr(more, name) - getattr(less, name) for name in counts}, estimated=more.estimated)
