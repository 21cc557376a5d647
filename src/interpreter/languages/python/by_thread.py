"""One thread's own: stand-ins that only the threads running a block see, and an interrupt for one thread."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class ByThread:
    """Stands in for an attribute of a module: threads that run a block see their own, others the original."""

    def __init__(self, owner: Any, name: str) -> None:
        self._owner, self._name = owner, name
        self._lock = threading.Lock()
        self._own: dict[int, list[Any]] = {}
        self._original: Any = None

    @contextmanager
    def replaced(self, value: Any) -> Iterator[None]:
        """For the calling thread the attribute is this value."""
        thread = threading.get_ident()
        with self._lock:
            if not self._own:
                self._original = getattr(self._owner, self._name)
                setattr(self._owner, self._name, self)
            self._own.setdefault(thread, []).append(value)
        try:
            yield
        finally:
            with self._lock:
                self._own[thread].pop()
                if not self._own[thread]:
                    del self._own[thread]
                if not self._own and getattr(self._owner, self._name) is self:  # else code has put in its own
                    setattr(self._owner, self._name, self._original)

    def _mine(self) -> Any:
        own = self._own.get(threading.get_ident())
        return own[-1] if own else self._original

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mine(), name)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._mine()(*arguments, **named)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._mine())


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
    default = signal.getsignal(signal.SIGINT) is signal.default_int_handler and hasattr(signal, "pthread_kill")
    if error is KeyboardInterrupt and default and thread == threading.main_thread().ident:
        signal.pthread_kill(thread, signal.SIGINT)  # this wakes it from a sleep, too
        return
    import ctypes

    exception = ctypes.py_object(error) if error is not None else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), exception)
