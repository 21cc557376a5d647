"""Points in time that a session can return to: its conversation, its files and its live variables."""

from interpreter.undo.fork import Fork, Merged
from interpreter.undo.outlook import Outlook, Undone, VariablesOutlook
from interpreter.undo.point import PARTS, Part, Point, Way
from interpreter.undo.timeline import Asks, GoTo, Timeline

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
