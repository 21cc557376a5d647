"""What code would do and what it did: rules, scans, and the record of files that undo stands on."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interpreter.workspace.changes import (
        Change,
        Changes,
        Kept,
        Report,
    )
    from interpreter.workspace.coverage import (
        Coverage,
        Limits,
        NotCovered,
    )
    from interpreter.workspace.items import Item
    from interpreter.workspace.plan import Plan, Step
    from interpreter.workspace.record import FileRecord

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

_PLACES = {
    "changes": ("Change", "Changes", "Kept", "Report"),
    "coverage": ("Coverage", "Limits", "NotCovered"),
    "items": ("Item",),
    "plan": ("Plan", "Step"),
    "record": ("FileRecord",),
}


def __getattr__(name: str) -> Any:
    # On first use: whoever looks at a block's text needs no record of files.
    for module, names in _PLACES.items():
        if name in names:
            return getattr(import_module(f"interpreter.workspace.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
