"""The record of a session, and its readers."""

from interpreter.journal.listing import Summary, find, last_in, listed
from interpreter.journal.recorder import Recorder
from interpreter.journal.session import BlockRecord, Session

__all__ = ["BlockRecord", "Recorder", "Session", "Summary", "find", "last_in", "listed"]
