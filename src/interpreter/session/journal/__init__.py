"""The record of a session, and its readers."""

from interpreter.session.journal.listing import (
    Summary,
    find,
    last_in,
    listed,
)
from interpreter.session.journal.recorder import Recorder
from interpreter.session.journal.session import BlockRecord, Session

__all__ = ["BlockRecord", "Recorder", "Session", "Summary", "find", "last_in", "listed"]
