"""The journal of a session: written as it happens, read to resume, list and export sessions."""

from interpreter.session.journal.reader import BlockRecord, SavedSession, Summary, find, last_in, listed
from interpreter.session.journal.recorder import Recorder

Session = SavedSession  # its name in earlier versions

__all__ = ["BlockRecord", "Recorder", "SavedSession", "Session", "Summary", "find", "last_in", "listed"]
