"""Questions to a worker, and its answers: one at a time, between blocks."""

from __future__ import annotations

import contextlib
import queue
import threading
from typing import TYPE_CHECKING

from interpreter.runtimes.frames import Frame

if TYPE_CHECKING:
    from interpreter.runtimes.session import Session

SIGINT = 2


class Questions:
    """What a session's worker is asked."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._asking = threading.Lock()
        self._number = 0  # of the newest one
        self._answer: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()  # to that one

    def put(self, frame: Frame, patience: float, fds: list[int] | None = None) -> Frame | None:
        """What the driver says; None if it is busy, does not answer in time, or is gone."""
        session = self._session
        with self._asking:
            if session.busy:
                return None
            answer = self._send(frame, fds)
            with contextlib.suppress(queue.Empty):
                return answer.get(timeout=patience)
            if not session.busy and session.launch.dialect is None and not session.launch.interrupt_frames:
                session.control.command(f"nudge {SIGINT}")  # it is caught in some __repr__ of the user's
            with contextlib.suppress(queue.Empty):
                return answer.get(timeout=patience / 3)
            return None

    def put_early(self, frame: Frame, patience: float) -> Frame | None:
        """The same to a worker that may still be starting."""
        with self._asking, contextlib.suppress(queue.Empty):
            return self._send(frame).get(timeout=patience)
        return None

    def _send(self, frame: Frame, fds: list[int] | None = None) -> queue.SimpleQueue[Frame | None]:
        self._number += 1
        self._answer = answer = queue.SimpleQueue[Frame | None]()
        self._session.send({**frame, "query": self._number}, fds)
        if not self._session.alive:  # since before there was this question to give up
            answer.put(None)
        return answer

    def answered(self, frame: Frame) -> None:
        """For the reader's thread: an answer, maybe to a question that nobody waits for any more."""
        if frame.get("query") == self._number:
            self._answer.put(frame)

    def give_up(self) -> None:
        """For the reader's thread: the worker is gone, and nobody need wait for it."""
        self._answer.put(None)
