"""Two workers of one session for a while: a copy has taken the place of the other, which stands aside."""

from __future__ import annotations

import contextlib
import queue

from interpreter.runtimes.frames import Frame
from interpreter.runtimes.session import Session

NO_LIMIT = 1000  # snapshots: the copy pushes none out


class Aside:
    """The worker that stands aside, and the way back to it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._worker = session.lines()

    def replace(self, state: int, entrance: int) -> bool:
        """Have a copy of the worker in its place, with one more descriptor; False if that cannot be."""
        session, snapshots = self._session, self._session.snapshots
        snapshots.expect_change()
        snapshots.take_soon(state, NO_LIMIT)
        snapshots.states.discard(state)
        session.spawn(f"try {state}", more=[entrance])
        try:
            left = snapshots.left_by_change()  # the worker that stands aside, and what it started
        except BaseException:  # Ctrl-C
            self.settle(keep=False)
            raise
        if left is None:
            self._return()
        return left is not None

    def wait_ready(self, patience: float) -> Frame | None:
        """What the copy says of itself; None if it ended, or says nothing."""
        with contextlib.suppress(queue.Empty):
            return self._session.snapshots._woken.get(timeout=patience) or None
        return None

    def leave_view(self, patience: float) -> list[str] | None:
        """Have the copy come back to the real files; what it could not bring along, None if it did not come."""
        session = self._session
        answer = session.questions.put_early({"op": "leave_view"}, patience)
        return list(answer["lost"]) if answer is not None and session.alive else None

    def settle(self, keep: bool, place: int = 0) -> None:
        """Let one of the two go: this one, or the copy and all that is in its mount namespace."""
        session = self._session
        if not keep:
            self._return()
        session.snapshots.expect_change()
        session.control.say("settle keep" if keep else f"settle drop {place}")
        if session._process is not None:
            session.snapshots.wait_settled()

    def _return(self) -> None:
        self._session.take_back(self._worker)


def answers(session: Session, patience: float) -> bool:
    """Whether the worker is ready before long, and can be copied."""
    return session.questions.put_early({"op": "leave_view"}, patience) is not None
