"""The files of the workspace: what a block changed, and how to show it, undo it, and merge it from a copy."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interpreter.workspace.diff import Change, Changes
    from interpreter.workspace.record import FileRecord
    from interpreter.workspace.restore import Kept, RestorePlan, RestoreReport, Step
    from interpreter.workspace.snapshot import Coverage, NotCovered, SnapshotLimits
    from interpreter.workspace.tree import Item

__all__ = [
    "Change",
    "Changes",
    "Coverage",
    "FileRecord",
    "Item",
    "Kept",
    "NotCovered",
    "RestorePlan",
    "RestoreReport",
    "SnapshotLimits",
    "Step",
]

_MODULES = {
    "diff": ("Change", "Changes"),
    "record": ("FileRecord",),
    "restore": ("Kept", "RestorePlan", "RestoreReport", "Step"),
    "snapshot": ("Coverage", "SnapshotLimits", "NotCovered"),
    "tree": ("Item",),
}


def __getattr__(name: str) -> Any:
    # Imported on first use, because analysing the text of a block needs no file record.
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"interpreter.workspace.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
