"""The stores of sessions that were killed: they hold copies of whole workspaces, of which undo needs a small part."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import threading
import time
import weakref
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from interpreter.errors import ConversationInUseError, UndoError

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.workspace import FileRecord, Limits


_MOST = 20
"""So many at a time; the others come next time."""
_RECENT = 600
"""Seconds after which nobody is expected to take a session up that was killed."""
_UNSETTLED = 7 * 24 * 3600
"""Seconds for which a block or an undo that was cut off can be taken up again."""


def tidy(root: Path, recent: float = _RECENT) -> int:
    """Trim the stores of sessions that were killed and that no living process has open; returns how many.

    They hold copies of whole workspaces, of which undo needs a small part.
    """
    from interpreter.session.journal.file import NAME, JournalFile
    from interpreter.workspace.record import LEDGER, UNTRIMMED, trim

    ages = {}
    for marker in root.glob(f"*/files/*/{UNTRIMMED}"):
        try:
            ages[marker.parent] = time.time() - (marker.parent / LEDGER).stat().st_mtime
        except OSError:
            ages[marker.parent] = 0.0
    left = [store for store in sorted(ages, key=ages.__getitem__) if ages[store] >= recent]
    tidied = 0
    for store in left[:_MOST]:
        session = store.parent.parent
        if not (session / NAME).exists():
            continue  # it cannot be known whether the session is still open
        try:
            with closing(JournalFile(session)):
                tidied += trim(store, unsettled=ages[store] > _UNSETTLED)
        except (ConversationInUseError, OSError):
            continue
    return tidied


FOLDER = "files"
_PASSING = "interpreter-undo-"


class Store:
    """Gives the record of files of one interpreter, which follows its journal and its workspace."""

    def __init__(self, interpreter: OpenInterpreter) -> None:
        self._interpreter = interpreter
        self._record: FileRecord | None = None
        self._known: tuple[object, ...] = ()  # for what the record was opened
        self._root: str | None = None
        self._ending: weakref.finalize[..., Store] | None = None
        self._pid = os.getpid()
        self._preparing: threading.Thread | None = None
        self._tidied = False

    def record(self) -> FileRecord | None:
        """The record, opened or moved as need be; None where file undo is switched off."""
        interpreter = self._interpreter
        if not interpreter.undo_files:
            return None
        if self._pid != os.getpid():
            self._disown()
        limits = (interpreter.undo_max_file_bytes, interpreter.undo_max_bytes, interpreter.undo_max_files)
        known = (str(interpreter.workspace), interpreter.journal.path, *limits)
        if self._record is None or known != self._known:
            self._open(os.path.realpath(str(interpreter.workspace)), limits)
            self._known = known
        return self._record

    @property
    def root(self) -> str | None:
        """The workspace whose record is open."""
        return self._root

    def prepare(self) -> None:
        """Have the first copy of the workspace made in the background."""
        record = self.record()
        if record is None or record.looked or (self._preparing is not None and self._preparing.is_alive()):
            return
        self._preparing = threading.Thread(target=record.look_ahead, name="file record", daemon=True)
        self._preparing.start()

    def branch(self, session: Path) -> None:
        """Go on in the store of a new session, which gets a copy; the old one is left to whoever takes it up."""
        from interpreter.workspace import record as stores

        record, old = self._record, self._interpreter.journal.path
        for folder in (old.resolve() / FOLDER).glob("*") if old is not None else ():
            new = session.resolve() / FOLDER / folder.name
            if record is not None and folder == record.folder:
                record.move(new, keep=True)
                self._watch(record)
            else:
                stores.carry(folder, new, keep=True)
            stores.trim(folder)

    def close(self) -> None:
        """The session ends: keep what undo needs, and no more."""
        if self._ending is not None:
            self._ending()
        self._record = self._root = self._ending = None

    def _open(self, root: str, limits: tuple[int, int, int]) -> None:
        from interpreter.workspace import Limits

        folder, record = self._wanted(root), self._record
        if record is not None and root == self._root and not folder.exists():
            self._move(record, folder)
        elif record is None or record.folder != folder:
            self.close()
            record = self._opened(root, folder, Limits(*limits))
        if record.limits != Limits(*limits):
            record.limit(Limits(*limits))
        self._record, self._root = record, root
        self._watch(record)
        self._tidy()

    def _move(self, record: FileRecord, folder: Path) -> None:
        """What was recorded before there was a journal goes on with it; and the other way round."""
        old = record.folder
        record.move(folder, keep=not is_passing(old))
        if is_passing(old):
            shutil.rmtree(old.parent, ignore_errors=True)

    def _opened(self, root: str, folder: Path, limits: Limits) -> FileRecord:
        from interpreter.workspace import FileRecord

        exclude = (Path(self._interpreter.get_oi_dir()), self._interpreter.journal.root)
        return FileRecord(root, folder, limits, exclude)

    def _wanted(self, root: str) -> Path:
        path = self._interpreter.journal.path
        if path is not None:
            return path.resolve() / FOLDER / hashlib.sha256(os.fsencode(root)).hexdigest()[:8]
        if self._record is not None and is_passing(self._record.folder) and self._root == root:
            return self._record.folder
        sweep()
        return Path(tempfile.mkdtemp(prefix=f"{_PASSING}{os.getpid()}-")).resolve() / FOLDER

    def _watch(self, record: FileRecord) -> None:
        """See to it that the store is made small when the interpreter is no more."""
        if self._ending is not None:
            self._ending.detach()
        self._ending = weakref.finalize(self, _end, record, os.getpid())

    def _disown(self) -> None:
        """This process is a fork: the record stays its parent's."""
        if self._ending is not None:
            self._ending.detach()
        self._pid, self._record, self._root, self._ending, self._preparing = os.getpid(), None, None, None, None

    def _tidy(self) -> None:
        if self._tidied or self._interpreter.journal.path is None:
            return

        self._tidied = True
        threading.Thread(target=tidy, args=(self._interpreter.journal.root,), name="leftovers", daemon=True).start()


def is_passing(folder: Path) -> bool:
    """Whether a store goes when the session does."""
    return folder.parent.name.startswith(_PASSING)


def _end(record: FileRecord, pid: int) -> None:
    if pid != os.getpid():
        return  # a fork of the process whose record it is
    with contextlib.suppress(OSError, UndoError):
        if record.folder.exists():
            record.trim()
    if is_passing(record.folder):
        shutil.rmtree(record.folder.parent, ignore_errors=True)


def sweep() -> None:
    """Remove the passing folders of processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PASSING}*"):
        pid = folder.name.removeprefix(_PASSING).partition("-")[0]
        if pid.isdigit() and not _is_running(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


def _is_running(pid: int) -> bool:
    if os.name == "nt":
        return True  # signal 0 is no question there
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # somebody else's
    return True
