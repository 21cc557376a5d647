"""Undo, redo and restore (first a plan to look at, then the action that carries it out), and forks."""

from __future__ import annotations

from collections.abc import Collection, Generator
from typing import Literal

from interpreter.api import OpenInterpreter
from interpreter.app import perform
from interpreter.app.forks import Keep, Merged
from interpreter.errors import UndoError
from interpreter.questions import Confirm, Question
from interpreter.session import Do, Event
from interpreter.session.checkpoints.checkpoint import PARTS, Part, UndoKind, UndoPlan, UndoResult
from interpreter.session.checkpoints.undo import Asks, UndoAction


def plan_undo(
    interpreter: OpenInterpreter,
    count: int = 1,
    parts: Collection[Part] = PARTS,
    blocks: bool = False,
    kind: Literal["undo", "redo"] = "undo",
) -> UndoPlan:
    """Plan to undo or redo the last turns, or with `blocks` the last blocks, without changing anything yet."""
    timeline = interpreter.timeline
    return timeline.plan(timeline.destination(kind, count, parts, blocks), parts, kind)


def plan_restore(interpreter: OpenInterpreter, checkpoint: int | None, parts: Collection[Part] = PARTS) -> UndoPlan:
    """Plan a return to a checkpoint, earlier or later; None is the newest state."""
    timeline = interpreter.timeline
    timeline.adopt()
    return timeline.plan(timeline.present if checkpoint is None else timeline.place_of(checkpoint), parts)


def carry_out(
    interpreter: OpenInterpreter, plan: UndoPlan, kind: UndoKind = "restore", ask: Asks = "files"
) -> Generator[Event, None, UndoResult | None]:
    """Carry out a plan, after asking: by default before any file changes, and about files changed since.

    The subject of these questions is the plan. UndoError if something has happened since it was made. After an
    interrupt, `interrupted_progress` says what was done.
    """
    action = UndoAction(interpreter.timeline, interpreter.agent, kind, plan, ask=ask)
    return (yield from perform(interpreter, action))  # type: ignore[no-any-return]


def interrupted_progress(interpreter: OpenInterpreter, plan: UndoPlan) -> Literal["nothing", "files", "parts"]:
    """Check how far an interrupted undo got: nothing, some of the files, or some of the parts."""
    timeline = interpreter.timeline
    record = timeline.files.record()
    if record is not None and record.unfinished:
        return "files"
    return "parts" if any(timeline.places[part] == plan.to for part in plan.parts) else "nothing"


# -- forks ---------------------------------------------------------------------------------------------------------

_NO_FORK = "There are no forks yet. %fork makes one."


class Forks:
    """The original interpreter and its forks, one of which is the current one."""

    def __init__(self, interpreter: OpenInterpreter) -> None:
        self.all = [interpreter]  # in the order in which they were made
        self.current = interpreter

    def fork(self, workspace: str | None = None) -> OpenInterpreter:
        """Fork the current interpreter and make the fork current."""
        self.current = self.current.fork(workspace)
        self.all.append(self.current)
        return self.current

    def switch(self, number: int | str | None = None) -> OpenInterpreter:
        """Make another interpreter current: the one with this number (counted from 1), or the next."""
        if len(self.all) < 2:
            raise UndoError(_NO_FORK)
        known = {str(place): each for place, each in enumerate(self.all, 1)}
        wanted = str(self.number % len(self.all) + 1 if number is None else number)
        if wanted not in known:
            raise UndoError(f"Use a number from 1 to {len(self.all)}, not {number}.")
        self.current = known[wanted]
        return self.current

    @property
    def number(self) -> int:
        """Count the current one's position from 1."""
        return self.all.index(self.current) + 1

    def made_from(self, interpreter: OpenInterpreter) -> list[OpenInterpreter]:
        return [each for each in self.all if each.forked is not None and each.forked.parent is interpreter]

    # -- ending one ------------------------------------------------------------------------------------------------

    def keep(self) -> Generator[Event, None, Merged | None]:
        """Merge the files of the current fork into the workspace it came from, and continue there.

        Asks before it changes files there, and about those that were changed in both.
        """
        kept = self.current
        if kept.forked is None:
            raise UndoError("This is not a fork, so there is nothing to merge.")
        parent = kept.forked.parent
        merged: Merged | None = yield from perform(kept, Keep(kept, ask=True))
        if merged is not None:
            for other in self.made_from(parent):
                assert other.forked is not None
                other.forked.parent = kept
            self.all.remove(parent)
        return merged

    def drop_others(self) -> Generator[Event, None, bool]:
        """Drop all other forks after asking, and return whether that was done. Only for the original."""
        kept = self.current
        others = [each for each in self.all if each is not kept]
        if not others or kept.forked is not None:
            raise UndoError(_NO_FORK if not others else "This is a fork. Keep it or drop it.")

        def drop() -> None:
            for other in reversed(others):
                other.drop()

        places = ", ".join(str(other.workspace) for other in others)
        question = f"Drop the other fork{'s' if others[1:] else ''} and all changes in {places}?"
        action = Do(
            "drop",
            drop,
            "forks are being dropped",
            question=Question(Confirm(question, "drop", details=others[-1])),
        )
        yield from perform(kept, action)
        if action.outcome == "done":
            self.all = [kept]
        return action.outcome == "done"

    def drop(self) -> Generator[Event, None, bool]:
        """End the current fork after asking, go back to its origin, and return whether that was done."""
        dropped = self.current
        if dropped.forked is None:
            raise UndoError("This is the original, not a fork. Use %switch to go to the fork you want to drop.")
        if others := self.made_from(dropped):
            number = self.all.index(others[0]) + 1
            raise UndoError(f"Fork {number} was made from this one. Use %switch {number} to keep or drop it first.")
        parent = dropped.forked.parent
        prompt = f"Drop this fork and all changes in {dropped.workspace}?"
        question = Question(Confirm(prompt, "drop", details=dropped))
        action = Do("drop", dropped.drop, "a fork is being dropped", question=question, recorded=False)
        yield from perform(dropped, action)
        if action.outcome == "done":
            self.all.remove(dropped)
            self.current = parent
        return action.outcome == "done"
