"""The session's one lane: every action that changes files, variables or the conversation takes it in turn."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from interpreter.errors import BusyError


class Holder(Protocol):
    """An action that takes the lane."""

    thread: int
    """Who iterates over it."""

    def describe(self) -> str:
        """What it does, in a few words."""

    def is_driven(self) -> bool:
        """Whether a thread is inside it now."""

    def can_finish(self) -> bool:
        """Whether what it runs has ended and no thread is reading the end."""

    def finish(self) -> bool:
        """Take it to its end in place of its consumer, who gets the rest later; False if the consumer is doing so."""

    def cancel(self) -> None:
        """Ask it to end."""


class Lane:
    """A ticket lock between actions, not a thread: an action runs in the thread that iterates over it.

    An action whose consumer has stopped reading does not keep the others waiting once it is over: the next one takes it
    to its end. A thread never waits for itself: its own suspended action is cancelled.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.RLock())  # a finaliser may wake in the middle of anything
        self._queue: deque[Holder] = deque()
        self.holder: Holder | None = None
        self.released = 0
        """How often the lane was given back. If it changed, another action has run."""

    def acquire(self, holder: Holder, wait: bool = True, cancelled: Callable[[], bool] = lambda: False) -> bool:
        """Take the lane; False if the wait was cancelled. BusyError if another action has it and `wait` is false."""
        with self._changed:
            self._queue.append(holder)
        try:
            while not cancelled():
                with self._changed:
                    if self._is_free_for(holder):
                        self.holder = holder
                        return True
                    other = self.holder
                if other is not None and self._end_left(other, holder):
                    self.release(other)  # it has done so itself, unless an interrupt came in between
                    continue
                if not wait:
                    raise BusyError((other or self._queue[0]).describe())
                with self._changed:
                    self._changed.wait_for(lambda: cancelled() or self._is_free_for(holder) or self._is_left())
            return False
        finally:
            with self._changed:
                if holder in self._queue:
                    self._queue.remove(holder)
                self._changed.notify_all()

    @property
    def waiting(self) -> int:
        """How many actions wait for it."""
        return len(self._queue)

    def _is_free_for(self, holder: Holder) -> bool:
        while self._queue[0] is not holder and not self._queue[0].is_driven():
            self._queue.popleft()  # an interrupt came before it could leave the queue
        return self.holder is None and self._queue[0] is holder

    def _is_left(self) -> bool:
        return self.holder is not None and self.holder.can_finish()

    def _end_left(self, other: Holder, holder: Holder) -> bool:
        """Finish the holder if no one else will: it is over, or this thread itself has left it suspended."""
        if other.can_finish():
            return other.finish()
        if other.thread == holder.thread:
            other.cancel()
            return other.finish()
        return False

    def release(self, holder: Holder) -> None:
        """Give it back, if this holder has it."""
        with self._changed:
            if self.holder is holder:
                self.holder = None
                self.released += 1
                self._changed.notify_all()

    def wake(self) -> None:
        """Something that waiters look at has changed; from any thread."""
        with self._changed:
            self._changed.notify_all()
