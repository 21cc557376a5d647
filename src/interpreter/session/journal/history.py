"""The events of a conversation that do not stream, and those of earlier runs as the journal has them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from interpreter.messages import Message
from interpreter.session import EventLog, Ids, Past
from interpreter.session.journal import file
from interpreter.session.journal.blobs import Blobs
from interpreter.session.journal.changes import kept, splice
from interpreter.session.journal.folders import BLOBS

_STAMP = ("event", "time", "n", "turn", "action", "actor")
_SESSION_EVENTS = ("action", "answer", "plan")


class MessageEvents:
    """Publishes what changes in `messages` other than by streaming: what the user says, notes, a script's edits.

    The list is anybody's to change, so it is compared with what was published, before each request.
    """

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._known: list[Message] = []

    def take_up(self, messages: list[Message]) -> None:
        """These are known: they were published in an earlier run, or streamed."""
        self._known = [kept(message) for message in messages]

    def sync(self, messages: list[Message], ids: Ids, streamed: Collection[int]) -> dict[int, int]:
        """Publish the differences; by the identity of each new message, the number of its event."""
        found = splice(self._known, messages)
        if found is None:
            return {}
        numbers = {}
        if found.at == len(self._known):
            for message in found.messages:
                if id(message) not in streamed:
                    numbers[id(message)] = self._log.message(message, ids)
        elif found.drop != len(found.messages) or any(id(each) not in streamed for each in found.messages):
            data = {"at": found.at, "drop": found.drop, "messages": [dict(message) for message in found.messages]}
            self._log.publish("messages", data, ids)
        self._known[found.at : found.at + found.drop] = map(kept, found.messages)
        return numbers


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
