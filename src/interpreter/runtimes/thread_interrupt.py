"""An interrupt for one thread: what Ctrl-C is to a process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from interpreter.sigint import interrupt_user_code


class Interrupt:
    """Raises KeyboardInterrupt in the thread that runs a statement, and never outside of one."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._lock = threading.Lock()
        self._thread: int | None = None

    @property
    def asked(self) -> bool:
        """Whether this block was asked to end."""
        return self._asked.is_set()

    def begin(self) -> None:
        """A new block starts."""
        self._asked.clear()

    def ask(self) -> None:
        """From any thread: end what runs; what has not started yet does not."""
        with self._lock:
            self._asked.set()
            if self._thread is not None:
                raise_in(self._thread, KeyboardInterrupt)

    @contextmanager
    def may_strike(self) -> Iterator[None]:
        thread = threading.get_ident()
        with self._lock:
            if self._asked.is_set():
                raise KeyboardInterrupt
            self._thread = thread
        try:
            yield
        finally:
            with self._lock:
                self._thread = None
                if self._asked.is_set():
                    raise_in(thread, None)  # in case it has not struck yet


def raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Raise an error in a thread, at its next instruction; None takes back one that was not raised yet."""
    if error is KeyboardInterrupt and interrupt_user_code(thread):
        return
    import ctypes

    exception = ctypes.py_object(error) if error is not None else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), exception)
