"""One thread's own: stand-ins that only the threads running a block see."""

from __future__ import annotations

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
