"""Between two blocks of a live language: the state that it is in, a second one like it, and a look at its variables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, Self

from interpreter.errors import BusyError, NotRestorableError, UsageError
from interpreter.runtimes.base import BaseLanguage
from interpreter.runtimes.containment import Containment
from interpreter.runtimes.frames import Frame
from interpreter.runtimes.jobs import Job
from interpreter.runtimes.looking import (
    COMPLETING,
    LISTING,
    SHOWING,
    Completions,
    Value,
    Variable,
    Window,
    completions_from,
    value_from,
    variables_from,
)
from interpreter.runtimes.session import Session
from interpreter.runtimes.states import (
    NOT_TAKEN_ALONG,
    Place,
    Restored,
    numbers,
)
from interpreter.runtimes.surroundings import Surroundings

IN_SANDBOX = "What {name} code in a sandbox has left is not taken out of it."


class HasSurroundings(Protocol):
    @property
    def surroundings(self) -> Surroundings: ...


class BetweenBlocks(BaseLanguage):
    """The part of a live language that has nothing to do with a block that runs."""

    def __init__(self, computer: HasSurroundings | None = None) -> None:
        self.surroundings = computer.surroundings if computer is not None else Surroundings()
        self.session: Session | None = None
        self.jobs: list[Job] = []
        self._stopped = False
        self._cwd: str | None = None  # where the session is, as far as we know
        self._env: dict[str, str | None] = {}  # the exported variables it was told of
        self._number: int | None = None  # of the present state
        self._before = 0  # that of the state before the last block
        self._places: dict[int, Place] = {}

    # -- states ------------------------------------------------------------------------------------------------

    @property
    def present(self) -> int:
        """The number of the present state."""
        if self._number is None:
            self._number = next(numbers)
        return self._number

    def leave_state(self) -> int:
        """A block begins: what it makes is another state; the number of the present one."""
        before = self.present
        self._note_place()
        self._number = next(numbers)
        return before

    def snapshot(self) -> tuple[int, int] | None:
        """What the next block's snapshot is called and how many to keep; None for no snapshot."""
        return None

    def _note_place(self) -> None:
        shared, kept = self.surroundings, {*self._known_states(), self.present}
        self._places = {state: place for state, place in self._places.items() if state in kept}
        self._places[self.present] = Place(shared.cwd, dict(shared.exported), dict(self._env))

    def _known_states(self) -> Iterable[int]:
        """Those that may still be returned to."""
        return self.points()

    def _return_to(self, state: int) -> None:
        """The session is in this state again: so are the directory and the exported variables."""
        self._number = state
        place = self._places.get(state)
        if place is not None:
            self.surroundings.return_to(place.cwd, place.exported)
            self._env = dict(place.own_env)
        self.forget_folder()

    def forget_folder(self) -> None:
        """Have the session told where it is: the folder that it is in may be gone, and another have its name."""
        self._cwd = None

    # -- a second one ------------------------------------------------------------------------------------------

    def split(self, computer: HasSurroundings) -> tuple[Self, Restored]:
        session = self.session
        if session is not None and session.block is not None and not session.block.finished:
            raise BusyError(f"A {self.name} block is running: its session cannot be split now.")
        other = type(self)(computer)
        if not self.has_begun():
            return other, Restored()
        if self.contained_in is not None and other.surroundings.containment is None:
            raise NotRestorableError(IN_SANDBOX.format(name=self.name))
        try:
            restored = self.hand_over(other)
        except BaseException:
            other.terminate()
            raise
        self._note_place()
        other._number, other._places = self.present, {self.present: self._places[self.present]}
        other._cwd, other._env = self._cwd, dict(self._env)
        return other, restored

    @property
    def contained_in(self) -> Containment | None:
        """What shut in the code that has left what there is."""
        return self.session.launch.containment if self.session is not None else None

    def has_begun(self) -> bool:
        """Whether there is anything that a block has left."""
        return self.session is not None and self.session.has_begun

    def hand_over(self, other: Any) -> Restored:
        """Give another language of the same kind, which has no session yet, what this one has."""
        raise NotRestorableError(NOT_TAKEN_ALONG.format(name=self.name))

    def take_back(self, other: Any) -> Restored:
        """Have what another session of this language has made of these variables."""
        raise NotRestorableError(NOT_TAKEN_ALONG.format(name=self.name))

    # -- questions between blocks ------------------------------------------------------------------------------

    def variables(self) -> list[Variable]:
        session = self.session
        if session is None or not session.alive:
            return []
        return variables_from(self._asked(session, {"op": "inspect"}, LISTING))

    def look(self, name: str, rows: Window = (0, 50), columns: Window = (0, 50)) -> Value:
        session = self.session
        if session is None or not session.alive:
            raise UsageError(f"There is no {name}: no {self.name} block has run.")
        frame = {"op": "inspect", "name": name, "rows": list(rows), "columns": list(columns)}
        return value_from(self._asked(session, frame, SHOWING))

    def complete(self, code: str, cursor: int) -> Completions:
        frame = {"op": "complete", "code": code, "cursor": cursor}
        return completions_from(self.session.query(frame, COMPLETING) if self.session else None, cursor)

    def _asked(self, session: Session, frame: Frame, patience: float) -> Frame:
        answer = session.query(frame, patience)
        if answer is None:
            raise BusyError(f"The {self.name} session is busy.")
        if "failed" in answer:
            raise UsageError(str(answer["failed"]))
        return answer
