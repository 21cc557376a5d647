"""Keeps the browser: started when it is needed, started again when it has gone, closed at the end."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import threading
import weakref
from collections.abc import Awaitable, Callable
from typing import TypeVar

from interpreter.computer_api.browser.errors import BrowserError, BrowserTimeoutError
from interpreter.computer_api.browser.launch import Launch, reason
from interpreter.computer_api.browser.window import Window
from interpreter.computer_api.browser.worker import Worker

Result = TypeVar("Result")
LIMIT = 30.0  # seconds that a call may take
SHARE = 0.8  # of it for one step, so that the step that took too long is the one that tells
TO_START = 60.0
TO_REVIVE = 15.0
TO_CLOSE = 40.0
GONE = "The browser had been closed, so a new one was started; its page is empty."
OTHER = "The settings have changed, so a new browser was started; its page is empty."


class Holder:
    """One browser, and the thread that it is used in."""

    def __init__(self) -> None:
        self.limit = LIMIT
        self._window: Window | None = None
        self._worker: Worker | None = None
        self._lock = threading.Lock()
        _holders.add(self)

    def do(self, launch: Launch, act: Callable[[Window], Awaitable[Result]], limit: float | None = None) -> Result:
        """Have something done with the browser, in time or not at all."""
        limit = self.limit if limit is None else limit
        with self._lock:
            worker, window = self._ready(launch)
        try:
            return worker.call(lambda: spoken(window, act, self.limit), limit)
        except BrowserTimeoutError:
            with contextlib.suppress(BrowserTimeoutError):
                worker.call(window.revive, TO_REVIVE)
            raise

    def _ready(self, launch: Launch) -> tuple[Worker, Window]:
        worker, window = self._worker, self._window
        if worker is not None and window is not None and not window.closed and window.launch == launch:
            window.launch = launch  # the sandbox may let it do more or less than before
            return worker, window
        word = ""
        if window is not None:
            word = GONE if window.closed else OTHER
        self._close()
        return self._start(launch, word)

    def _start(self, launch: Launch, word: str) -> tuple[Worker, Window]:
        worker, window = Worker(), Window(launch)
        try:
            worker.call(window.open, TO_START)
        except BaseException:
            put_away(worker, window)
            raise
        self._worker, self._window = worker, window
        if word:
            window.tell(word)
        return worker, window

    def close(self) -> None:
        """Close the browser, if there is one."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        worker, window = self._worker, self._window
        self._worker = self._window = None
        if worker is not None and window is not None:
            put_away(worker, window)

    def __del__(self) -> None:
        worker, window = self._worker, self._window
        if worker is not None and window is not None:
            # Whichever thread this is, it may be the browser's own, which must not wait for itself.
            threading.Thread(target=put_away, args=(worker, window), name="browser end", daemon=True).start()


def put_away(worker: Worker, window: Window) -> None:
    with contextlib.suppress(BrowserTimeoutError):
        worker.call(window.close, TO_CLOSE)
    worker.stop()


async def spoken(window: Window, act: Callable[[Window], Awaitable[Result]], limit: float) -> Result:
    """Do it; what Playwright raises is an error of ours."""
    window.patience = limit * SHARE
    window.context.set_default_timeout(window.patience * 1000)
    try:
        return await act(window)
    except window.launch.timeout_error as error:
        raise BrowserTimeoutError(f"It took too long: {reason(error)}") from error
    except window.launch.error as error:
        await asyncio.sleep(0)  # the word that the browser has gone may be right behind
        if window.closed:
            raise BrowserError("The browser was closed meanwhile. The next call starts a new one.") from error
        raise BrowserError(reason(error)) from error


_holders: weakref.WeakSet[Holder] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for holder in list(_holders):
        holder.close()
