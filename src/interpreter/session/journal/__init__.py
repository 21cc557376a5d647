"""The record of a session, and its readers."""

from interpreter.session.journal.reader import (
    BlockRecord,
    Session,
    Summary,
    find,
    last_in,
    listed,
)
from interpreter.session.journal.recorder import Recorder

__all__ = ["BlockRecord", "Recorder", "Session", "Summary", "find", "last_in", "listed"]
