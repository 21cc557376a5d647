"""Where the file record is kept: with the session's journal, or in a temporary folder as long as there is none."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import threading
import time
import weakref
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from interpreter.config.homes import our_folder
from interpreter.errors import ConversationInUseError, UndoError
from interpreter.host.files import CONFINED, left_behind

if TYPE_CHECKING:
    from interpreter.agent.agent import Agent
    from interpreter.workspace import FileRecord

FOLDER = "files"
OFF = "File undo is off (setting `undo_files`)."
ELSEWHERE = "File undo is not available on the machine that this session works on."  # also a notice, once
OFF_ON_WINDOWS = "File undo needs Linux or macOS."
_TEMPORARY = "interpreter-undo-"
_TRIMMED_AT_ONCE = 20  # stores of killed sessions; the others come next time
_FIRST_READ_TIMEOUT = 0.5  # seconds for which a question about a block waits for the workspace to be read
_RECENT = 600  # seconds for which a killed session may be about to be resumed
_UNSETTLED = 7 * 24 * 3600  # seconds for which a block or an undo that was cut off can be finished


class FileStore:
    """Opens the file record of one session, which follows its journal and its workspace."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._record: FileRecord | None = None
        self._opened_for: tuple[object, ...] = ()  # workspace, journal and limits
        self.root: str | None = None  # the workspace whose record is open
        self.off = ""  # why there is no record, if that is so
        self._finalizer: weakref.finalize[..., FileStore] | None = None  # trims the record when this is closed or gone
        self._pid = os.getpid()
        self._preparing: threading.Thread | None = None
        self._tidied = False

    def record(self) -> FileRecord | None:
        """Return the record, opened or moved if necessary; None if there is none, and then `off` says why."""
        agent = self._agent
        self.off = "" if agent.settings.undo_files else OFF
        if not CONFINED:
            self.off = OFF_ON_WINDOWS
        if self.off:
            return None
        if self._pid != os.getpid():  # this process is a fork: the record stays its parent's
            if self._finalizer is not None:
                self._finalizer.detach()
            self._pid, self._record, self.root, self._finalizer, self._preparing = os.getpid(), None, None, None, None
        limits = (agent.settings.undo_max_file_bytes, agent.settings.undo_max_bytes, agent.settings.undo_max_files)
        if (machine := agent.computer.machine) is not None:
            self.root = machine.label
            record = machine.record(limits)
            self.off = "" if record is not None else ELSEWHERE
            return record  # type: ignore[no-any-return]
        wanted = (str(agent.settings.workspace), agent.journal.path, *limits)
        if self._record is None or wanted != self._opened_for:
            try:
                self._open(os.path.realpath(str(agent.settings.workspace)), limits)
            except OSError as error:
                self.off = f"File undo isn't working right now: {error}."
                return None
            self._opened_for = wanted
        return self._record

    def required_record(self) -> FileRecord:
        """Return the record; UndoError if there is none."""
        record = self.record()
        if record is None:
            raise UndoError(self.off)
        return record

    def prepare(self) -> None:
        """Make the first copy of the workspace in the background; on another machine, once it is connected."""
        if (machine := self._agent.computer.machine) is not None and not machine.connected:
            return
        record = self.record()
        is_busy = self._preparing is not None and self._preparing.is_alive()
        if record is not None and not record.is_prepared and not is_busy:
            self._preparing = threading.Thread(target=record.prepare_in_background, name="file record", daemon=True)
            self._preparing.start()

    def is_read(self) -> bool:
        """Check whether the workspace has been read, so that undo covers it; wait a moment for the first reading."""
        record = self.record()
        if record is not None and not record.is_read:
            self.prepare()
            if self._preparing is not None:
                self._preparing.join(_FIRST_READ_TIMEOUT)
        return record is not None and record.is_read

    def branch(self, session: Path) -> None:
        """Continue in the store of a new session, which gets a copy; the old session can be resumed with its own."""
        from interpreter.workspace.record import trim
        from interpreter.workspace.store import copy_store

        record, old = self._record, self._agent.journal.path
        for folder in (old.resolve() / FOLDER).glob("*") if old is not None else ():
            new = session.resolve() / FOLDER / folder.name
            if record is not None and folder == record.folder:
                record.move(new, keep=True)
            else:
                copy_store(folder, new, keep=True)
            trim(folder)

    def close(self) -> None:
        """End the session: keep what undo needs, and no more."""
        if self._finalizer is not None:
            self._finalizer()
        self._record = self.root = self._finalizer = None

    def _open(self, root: str, sizes: tuple[int, int, int]) -> None:
        from interpreter.workspace import FileRecord, SnapshotLimits

        journal, limits, record = self._agent.journal, SnapshotLimits(*sizes), self._record
        if journal.path is not None:
            folder = journal.path.resolve() / FOLDER / hashlib.sha256(os.fsencode(root)).hexdigest()[:8]
        elif record is not None and _is_temporary(record.folder) and self.root == root:
            folder = record.folder
        else:
            temporary = Path(tempfile.gettempdir())
            for left in left_behind(temporary, _TEMPORARY) if os.name != "nt" else ():  # there, signal 0 does not ask
                shutil.rmtree(left, ignore_errors=True)
            folder = Path(tempfile.mkdtemp(prefix=f"{_TEMPORARY}{os.getpid()}-")).resolve() / FOLDER
        if record is not None and root == self.root and not folder.exists():
            # What was recorded before there was a journal moves to it, and back.
            old = record.folder
            record.move(folder, keep=not _is_temporary(old))
            if _is_temporary(old):
                shutil.rmtree(old.parent, ignore_errors=True)
        elif record is None or record.folder != folder:
            self.close()
            record = FileRecord(root, folder, limits, (our_folder(), journal.root))
            self._finalizer = weakref.finalize(self, _trim, record, os.getpid())
        if record.limits != limits:
            record.limit(limits)
        self._record, self.root = record, root
        if not self._tidied and journal.path is not None:
            self._tidied = True
            threading.Thread(target=tidy, args=(journal.root,), name="tidy file records", daemon=True).start()


def _trim(record: FileRecord, pid: int) -> None:
    if pid != os.getpid():
        return  # a fork of the process whose record it is
    with suppress(OSError, UndoError):
        if record.folder.exists():
            record.trim()
    if _is_temporary(record.folder):
        shutil.rmtree(record.folder.parent, ignore_errors=True)


def _is_temporary(folder: Path) -> bool:
    return folder.parent.name.startswith(_TEMPORARY)


def tidy(root: Path, recent: float = _RECENT) -> int:
    """Trim the stores of sessions that were killed and that no living process has open; returns how many.

    They hold copies of whole workspaces, of which undo needs a small part.
    """
    from interpreter.session.journal.file import NAME, JournalFile
    from interpreter.workspace.record import LEDGER, UNTRIMMED, trim

    ages = {}
    for marker in root.glob(f"*/{FOLDER}/*/{UNTRIMMED}"):
        try:
            ages[marker.parent] = time.time() - (marker.parent / LEDGER).stat().st_mtime
        except OSError:
            ages[marker.parent] = 0.0
    left = [store for store in sorted(ages, key=ages.__getitem__) if ages[store] >= recent]
    tidied = 0
    for store in left[:_TRIMMED_AT_ONCE]:
        session = store.parent.parent
        if (session / NAME).exists():  # otherwise it cannot be known whether the session is still open
            with suppress(ConversationInUseError, OSError), closing(JournalFile(session)):
                tidied += trim(store, unsettled=ages[store] > _UNSETTLED)
    return tidied
