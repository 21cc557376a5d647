"""Ctrl-C in the main thread: recorded while our own code runs, raised where it cannot lose anything.

Inside `next()` of a guarded iterator, SIGINT sets a flag and asks a helper thread to cancel the work. The remaining
items still come, and then KeyboardInterrupt is raised instead of StopIteration. User code (a custom language, a
callback, an in-process block) runs through `call_user_code`, where Ctrl-C raises KeyboardInterrupt at once.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` wraps every handler and number in an enum, which is slow
import atexit
import contextlib
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from types import FrameType, TracebackType
from typing import Any, TypeVar

T = TypeVar("T")

SIGINT = _signal.SIGINT
_NOTHING: Any = object()
_WAKE_AFTER = (0.05, 0.5)  # seconds: by then a handler has run, unless the main thread blocks

# Only the main thread writes these three, except for `_targeted`, which `interrupt_user_code` sets.
_active: SigintHandler | None = None  # the handler that is installed
_in_user_code = False
_targeted = False  # the next SIGINT is not Ctrl-C: it is meant for user code alone

_requests: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()  # `put` is safe in a signal handler
_closing: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
_abandoned: deque[Iterator[Any]] = deque()  # iterators that were garbage-collected before their end
_starting = threading.Lock()  # held to start the helpers: two that close would do so at the same time
_helpers: tuple[int, threading.Thread | None] = 0, None  # the process they run in, and the thread that closes iterators
_listening = 0, -1  # the process in which a helper learns of signals, and the descriptor that the kernel writes to


def in_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident


def interrupted() -> bool:
    """Check whether Ctrl-C was pressed during the main thread's present work. May be called from any thread."""
    return _active is not None and _active.interrupted


def interrupted_here() -> bool:
    """Check `interrupted`, but answer False in other threads: Ctrl-C does not concern their work."""
    return interrupted() and in_main_thread()


class SigintHandler:
    """A SIGINT handler that records the signal and raises KeyboardInterrupt in user code only."""

    interrupted = False

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handle the signal; Python calls this. Nothing in here may take a lock or start a thread."""
        global _targeted
        if _targeted:
            _targeted = False
            if _in_user_code:
                raise KeyboardInterrupt
            return
        self.on_sigint(_in_user_code)

    def on_sigint(self, in_user_code: bool) -> None:
        raise NotImplementedError

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Handle SIGINT inside this context. Call it only while Python's default handler is installed."""
        global _active, _targeted
        _start_helpers()
        _targeted = False
        outer, _active = _active, self
        _signal.signal(SIGINT, self.handle)
        try:
            yield
        finally:
            _signal.signal(SIGINT, _signal.default_int_handler)
            _active = outer


class _Raising(SigintHandler):
    def on_sigint(self, in_user_code: bool) -> None:
        raise KeyboardInterrupt


def call_blocking(function: Callable[[], T]) -> T:
    """Call a function that waits in a system call: Ctrl-C ends the wait even if it comes just before it."""
    if not in_main_thread() or _signal.getsignal(SIGINT) is not _signal.default_int_handler:
        return function()
    with _Raising().installed():
        return function()


def _is_ours(handler: object) -> bool:
    return isinstance(getattr(handler, "__self__", None), SigintHandler)


# -- guarded iterators -------------------------------------------------------------------------------------------------


class Guarded(SigintHandler, Generator[T, None, None]):
    """Yields the items, deferring Ctrl-C inside `next()`. `on_interrupt` runs in a helper thread and ends them.

    `close` waits until the iterator has ended. Garbage collection does not: a helper thread closes the iterator, and
    `wait_for_abandoned` waits for that.
    """

    def __init__(self, items: Iterator[T], on_interrupt: Callable[[], None]) -> None:
        self._items, self._on_interrupt = items, on_interrupt
        self._item: Any = _NOTHING  # fetched, but not returned yet
        self._begun = self._over = False
        self._ending = threading.Lock()  # so that a late cancel cannot hit what runs next
        _start_helpers()

    def __next__(self) -> T:
        if self._item is _NOTHING and not self._over:
            self._advance(self._items.__next__)
        if self._item is _NOTHING:
            self._raise_interrupt()
            raise StopIteration
        item, self._item = self._item, _NOTHING  # Python handles no signal between here and the return
        return item  # type: ignore[no-any-return]

    def send(self, value: None) -> T:
        return self.__next__()

    def throw(self, kind: Any, value: object = None, trace: TracebackType | None = None, /) -> T:
        error = kind() if isinstance(kind, type) else kind
        items = self._items
        if self._over or not isinstance(items, Generator):
            raise error
        self._advance(lambda: items.throw(error))
        return self.__next__()

    def close(self) -> None:
        """End the iterator and wait for it. If Ctrl-C was pressed while waiting, raise KeyboardInterrupt afterwards."""
        if self._begun and not self._over:
            self._advance(self._close_items)
        self._item, self._over = _NOTHING, True
        self._raise_interrupt()

    def _close_items(self) -> Any:
        _close(self._items)
        raise StopIteration

    def _advance(self, step: Callable[[], T]) -> None:
        """Take one step with our handler installed, and store the item before the old handler is back."""
        global _active, _in_user_code, _targeted
        before = _signal.getsignal(SIGINT)
        can_install = before is _signal.default_int_handler or (_in_user_code and _is_ours(before))
        if not can_install or threading.get_ident() != threading.main_thread().ident:
            self._step(step)
            return
        outer = _active, _in_user_code
        _signal.signal(SIGINT, self.handle)
        try:
            _active, _in_user_code, _targeted = self, False, False
            self._step(step)
        finally:
            _active, _in_user_code = outer
            _signal.signal(SIGINT, before)

    def _step(self, step: Callable[[], T]) -> None:
        self._begun = True
        try:
            self._item = step()
        except StopIteration:
            self._end()
        except KeyboardInterrupt:
            self._end()
            self.interrupted = True
        except BaseException as error:
            self._end()
            if not self.interrupted:
                raise
            self.interrupted = False
            raise KeyboardInterrupt from error

    def _end(self) -> None:
        if self.interrupted:
            with self._ending:
                self._over = True
        self._over = True

    def _raise_interrupt(self) -> None:
        if self.interrupted:
            self.interrupted = False
            raise KeyboardInterrupt

    def on_sigint(self, in_user_code: bool) -> None:
        if in_user_code:
            raise KeyboardInterrupt
        self.interrupted = True
        _requests.put(self._cancel)

    def _cancel(self) -> None:
        with self._ending:
            if not self._over:
                self._on_interrupt()

    def __del__(self) -> None:
        if self._begun and not self._over:
            _abandoned.append(self._items)
            _closing.put(_close_abandoned)


def _close(items: object) -> None:
    close = getattr(items, "close", None)
    if close is not None:
        close()


def _close_abandoned() -> None:
    try:
        _close(_abandoned[0])
    finally:
        _abandoned.popleft()


def wait_for_abandoned() -> None:
    """Wait until every guarded iterator that was garbage-collected has ended. Call this before starting new work."""
    if _abandoned and threading.current_thread() is not _helpers[1]:
        closed = threading.Event()
        _closing.put(closed.set)
        closed.wait()


def call_soon(function: Callable[[], None]) -> None:
    """Call a function in a helper thread. Safe in a signal handler."""
    _requests.put(function)


def _start_helpers() -> None:
    """Start two threads that wait for work: one cancels, one closes iterators. They do not survive a fork."""
    global _helpers
    if in_main_thread() and hasattr(_signal, "pthread_kill"):
        _listen()
    if _helpers[0] == os.getpid():
        return
    with _starting:
        if _helpers[0] == os.getpid():
            return  # another thread was first
        threading.Thread(target=_serve, args=[_requests], name="interrupts", daemon=True).start()
        closer = threading.Thread(target=_serve, args=[_closing], name="abandoned iterators", daemon=True)
        closer.start()
        _helpers = os.getpid(), closer
        atexit.register(wait_for_abandoned)


def _listen() -> None:
    """Let the kernel wake a helper when a signal comes. Call it in the main thread.

    Python runs its handlers between two instructions. A signal that comes just before a blocking system call is
    therefore not handled until that call returns, which may be never. The helper ends the call with another signal.
    """
    global _listening
    if _listening[0] != os.getpid():
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        _listening = os.getpid(), writing
        if _signal.getsignal(_signal.SIGURG) == _signal.SIG_DFL:
            _signal.signal(_signal.SIGURG, lambda number, frame: None)
            threading.Thread(target=_wake_main_thread, args=[reading], name="signals", daemon=True).start()
    others = _signal.set_wakeup_fd(_listening[1], warn_on_full_buffer=False)
    if others not in (-1, _listening[1]):  # an event loop uses it
        _signal.set_wakeup_fd(others)


def _wake_main_thread(signals: int) -> None:
    with open(signals, "rb", buffering=0) as arriving:
        while numbers := arriving.read(64):
            for delay in _WAKE_AFTER if SIGINT in numbers else ():
                time.sleep(delay)
                if _active is not None:
                    _signal.pthread_kill(threading.main_thread().ident, _signal.SIGURG)


def _forked() -> None:
    global _starting
    _starting = threading.Lock()  # another thread of the parent may have held it
    if _listening[0] and in_main_thread():
        _signal.set_wakeup_fd(-1)  # signals of this process are not for the parent


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forked)


def _serve(calls: queue.SimpleQueue[Callable[[], None]]) -> None:
    while True:
        function = calls.get()
        with contextlib.suppress(BaseException):  # there is no caller to tell, and the thread must continue
            function()
        del function  # or it would keep its iterator alive until the next call


# -- user code ---------------------------------------------------------------------------------------------------------


def call_user_code(function: Callable[..., T], *args: Any) -> T:
    """Call code that is not ours: Ctrl-C raises KeyboardInterrupt in it, and it does not start after Ctrl-C."""
    global _in_user_code
    if _active is None or threading.get_ident() != threading.main_thread().ident:
        return function(*args)
    outer = _in_user_code
    try:
        _in_user_code = True
        if _active.interrupted:
            raise KeyboardInterrupt
        return function(*args)
    finally:
        _in_user_code = outer


def iterate_user_code(items: Iterable[T]) -> Iterator[T]:
    """Iterate over an iterable that is not ours; Ctrl-C can interrupt its code."""
    iterator = call_user_code(iter, items)
    try:
        while (item := call_user_code(next, iterator, _NOTHING)) is not _NOTHING:
            yield item
    finally:
        _close(iterator)


def interrupt_user_code(thread: int) -> bool:
    """Raise KeyboardInterrupt in user code on the main thread, even if it sleeps. False if SIGINT cannot do that."""
    global _targeted
    if thread != threading.main_thread().ident or not hasattr(_signal, "pthread_kill"):
        return False
    handler = _signal.getsignal(SIGINT)
    if handler is not _signal.default_int_handler:
        if not _is_ours(handler):
            return False
        _targeted = True
    _signal.pthread_kill(thread, SIGINT)
    return True


# -- steps that belong together ----------------------------------------------------------------------------------------


class Hold:
    """A context that defers Ctrl-C in the main thread, for changes that must not be interrupted halfway."""

    def __init__(self) -> None:
        self._depth = 0
        self._handler: Any = None
        self._frame: FrameType | None = None
        self._pressed = False

    def __enter__(self) -> Hold:
        if in_main_thread():
            if self._depth == 0:
                self._pressed = False
                handler = _signal.getsignal(SIGINT)
                self._handler = handler if callable(handler) else None
                if self._handler is not None:
                    _signal.signal(SIGINT, self._note)
            self._depth += 1  # only now: Ctrl-C may still raise before this
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if not in_main_thread():
            return
        self._depth -= 1
        if self._depth == 0 and self._handler is not None:
            _signal.signal(SIGINT, self._handler)
            try:
                self._pass_on()
            finally:
                self._handler = self._frame = None  # a hold may live longer than whose handler it was

    def let_through(self) -> None:
        """Raise KeyboardInterrupt here, at a safe point, if Ctrl-C was pressed, unless the user has another handler."""
        if in_main_thread():
            self._pass_on()
            if interrupted():
                raise KeyboardInterrupt

    def _pass_on(self) -> None:
        if self._pressed:
            self._pressed = False
            self._handler(SIGINT, self._frame)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._pressed, self._frame = True, frame
