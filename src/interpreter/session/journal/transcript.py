"""A session as entries: what was said, the blocks with what became of them, what was shown."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from interpreter.session.journal.entries import (
    Block,
    Decision,
    Entry,
    ToolCall,
    _Reading,
)
from interpreter.session.journal.session import BlockRecord, Session


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
