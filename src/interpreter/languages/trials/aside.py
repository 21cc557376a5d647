"""Two workers of one session for a while: a copy has taken the place of the other, which stands aside."""

from __future__ import annotations

import contextlib
import os
import queue

from interpreter.languages.frames import Frame
from interpreter.languages.lines import Data, Startup
from interpreter.languages.session import Session

Worker = tuple[Data, Startup, bool, "Frame | None", "int | None"]
NO_LIMIT = 1000  # snapshots: the copy pushes none out


class Aside:
    """The worker that stands aside, and the way back to it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._worker: Worker = session._data, session._startup, session._alive, session.ready, session.pid

    def replace(self, state: int, entrance: int) -> bool:
        """Have a copy of the worker in its place, with one more descriptor; False if that cannot be."""
        session = self._session
        session._woken, session._promotion = queue.SimpleQueue(), queue.SimpleQueue()
        fd = session._expect_snapshot(state, NO_LIMIT)
        try:
            session.send({"op": "snapshot"}, [fd])
        finally:
            os.close(fd)
        session.snapshots.discard(state)
        session._spawn(f"try {state}", [entrance])
        try:
            while (said := session._promotion.get())[0] == "left":
                pass  # the worker that stands aside, and what it started
        except BaseException:  # Ctrl-C
            self.settle(keep=False)
            raise
        if said[0] == "missing":
            self._return()
        return said[0] != "missing"

    def wait_ready(self, patience: float) -> Frame | None:
        """What the copy says of itself; None if it ended, or says nothing."""
        with contextlib.suppress(queue.Empty):
            return self._session._woken.get(timeout=patience) or None
        return None

    def leave_view(self, patience: float) -> list[str] | None:
        """Have the copy come back to the real files; what it could not bring along, None if it did not come."""
        session = self._session
        session._moving = True
        try:
            answer = session._ask({"op": "leave_view"}, patience)
        finally:
            session._moving = False
        return list(answer["lost"]) if answer is not None and session.alive else None

    def settle(self, keep: bool, place: int = 0) -> None:
        """Let one of the two go: this one, or the copy and all that is in its mount namespace."""
        session = self._session
        if not keep:
            self._return()
        session._promotion = queue.SimpleQueue()
        session._control.say("settle keep" if keep else f"settle drop {place}")
        if session._process is not None and not session._control.lost:
            while session._promotion.get()[0] not in ("settled", "missing"):
                pass  # what a trial that was given up still had to say

    def _return(self) -> None:
        session = self._session
        session._data, session._startup, session._alive, session.ready, session.pid = self._worker


def answers(session: Session, patience: float) -> bool:
    """Whether the worker is ready before long, and can be copied."""
    return session._ask({"op": "leave_view"}, patience) is not None
