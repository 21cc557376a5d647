"""What code did to the files of the workspace, and how it is taken back."""

from interpreter.safety.changes import Change, Changes, Kept, Report
from interpreter.safety.coverage import Coverage, Limits, NotCovered
from interpreter.safety.items import Item
from interpreter.safety.plan import Plan, Step
from interpreter.safety.record import FileRecord

__all__ = [
    "Change",
    "Changes",
    "Coverage",
    "FileRecord",
    "Item",
    "Kept",
    "Limits",
    "NotCovered",
    "Plan",
    "Report",
    "Step",
]
