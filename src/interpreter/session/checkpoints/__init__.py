"""Moments that a session can return to: its conversation, its files and its live variables."""

from interpreter.session.checkpoints.checkpoint import (
    PARTS,
    Checkpoint,
    Part,
    UndoKind,
    UndoPlan,
    UndoResult,
    VariablesPlan,
)
from interpreter.session.checkpoints.timeline import Timeline
from interpreter.session.checkpoints.undo import Asks, UndoAction

__all__ = [
    "PARTS",
    "Asks",
    "Checkpoint",
    "Part",
    "Timeline",
    "UndoAction",
    "UndoKind",
    "UndoPlan",
    "UndoResult",
    "VariablesPlan",
]
