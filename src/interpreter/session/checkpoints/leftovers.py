"""The stores of sessions that were killed: they hold copies of whole workspaces, of which undo needs a small part."""

from __future__ import annotations

import time
from operator import itemgetter
from pathlib import Path

from interpreter.errors import ConversationInUseError
from interpreter.session.journal.file import NAME, JournalFile
from interpreter.workspace.ledger import NAME as LEDGER
from interpreter.workspace.ledger import UNTRIMMED
from interpreter.workspace.stores import trim

_MOST = 20
"""So many at a time; the others come next time."""
_RECENT = 600
"""Seconds after which nobody is expected to take a session up that was killed."""
_UNSETTLED = 7 * 24 * 3600
"""Seconds for which a block or an undo that was cut off can be taken up again."""


def tidy(root: Path, recent: float = _RECENT) -> int:
    """Make the stores of sessions that no living process has open small; how many there were."""
    found = {marker.parent: _age(marker.parent) for marker in root.glob(f"*/files/*/{UNTRIMMED}")}
    left = [(store, age) for store, age in sorted(found.items(), key=itemgetter(1)) if age >= recent]
    return sum(_tidied(store, age) for store, age in left[:_MOST])


def _tidied(store: Path, age: float) -> bool:
    session = store.parent.parent
    if not (session / NAME).exists():
        return False  # nobody can say whose it is
    try:
        journal = JournalFile(session)
    except (ConversationInUseError, OSError):
        return False
    try:
        return trim(store, unsettled=age > _UNSETTLED)
    except OSError:
        return False
    finally:
        journal.close()


def _age(store: Path) -> float:
    """Seconds since something was written about a block."""
    try:
        return time.time() - (store / LEDGER).stat().st_mtime
    except OSError:
        return 0.0
