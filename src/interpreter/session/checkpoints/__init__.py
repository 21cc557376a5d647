"""Points in time that a session can return to: its conversation, its files and its live variables."""

from interpreter.session.checkpoints.checkpoint import (
    PARTS,
    Part,
    Point,
    Way,
)
from interpreter.session.checkpoints.fork import Fork, Merged
from interpreter.session.checkpoints.timeline import (
    Asks,
    GoTo,
    Timeline,
)
from interpreter.session.checkpoints.undo import (
    Outlook,
    Undone,
    VariablesOutlook,
)

__all__ = [
    "PARTS",
    "Asks",
    "Fork",
    "GoTo",
    "Merged",
    "Outlook",
    "Part",
    "Point",
    "Timeline",
    "Undone",
    "VariablesOutlook",
    "Way",
]
