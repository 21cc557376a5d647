"""Undo, redo and a return to any checkpoint: first a plan to look at, then the action that carries it out."""

from __future__ import annotations

from collections.abc import Collection, Generator
from typing import TYPE_CHECKING, Literal

from interpreter.app import perform
from interpreter.session.checkpoints import (
    PARTS,
    Asks,
    GoTo,
    Outlook,
    Part,
    Undone,
    Way,
)

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.session import Event


def plan_undo(
    interpreter: OpenInterpreter, count: int = 1, parts: Collection[Part] = PARTS, blocks: bool = False
) -> Outlook:
    """What taking back the last turns, or with `blocks` the last blocks, would change."""
    timeline = interpreter.timeline
    return timeline.outlook(timeline.back(count, parts, blocks), parts, "back")


def plan_redo(
    interpreter: OpenInterpreter, count: int = 1, parts: Collection[Part] = PARTS, blocks: bool = False
) -> Outlook:
    """What doing again what was taken back would change."""
    timeline = interpreter.timeline
    return timeline.outlook(timeline.forward(count, parts, blocks), parts, "forward")


def plan_restore(interpreter: OpenInterpreter, checkpoint: int | None, parts: Collection[Part] = PARTS) -> Outlook:
    """What a return to a checkpoint, earlier or later, would change; None is the newest state."""
    timeline = interpreter.timeline
    timeline.adopt()
    return timeline.outlook(timeline.present if checkpoint is None else timeline.place_of(checkpoint), parts)


def carry_out(
    interpreter: OpenInterpreter, plan: Outlook, way: Way = "there", ask: Asks = "files"
) -> Generator[Event, None, Undone | None]:
    """Do what a plan says, after asking: by default before any file changes, and about files that others changed.

    The subject of these questions is the plan. UndoError if something has happened since it was made. After an
    interrupt, `how_far` tells what was done.
    """
    return (yield from perform(interpreter, GoTo(interpreter, way, plan, ask=ask)))  # type: ignore[no-any-return]


def how_far(interpreter: OpenInterpreter, plan: Outlook) -> Literal["nothing", "files", "parts"]:
    """What an interrupted undo has done: nothing, some of the files, or some of the parts."""
    timeline = interpreter.timeline
    record = timeline.record()
    if record is not None and record.unfinished:
        return "files"
    return "parts" if any(timeline.places[part] == plan.to for part in plan.parts) else "nothing"
