"""A running browser: its thread, its tabs, the events of its pages; started when needed, and again when it has gone.

Calls come from any thread, also from one with its own event loop, and may be given up at any moment: the caller is
interrupted, or the page hangs. So the work is done by an event loop in a thread that nothing can block.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import mimetypes
import re
import threading
import weakref
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from interpreter.computer_api.browser.boundary import (
    BrowserError,
    BrowserTimeoutError,
    NotReachableError,
    file_of,
    quoted,
    shown,
)
from interpreter.computer_api.browser.launch import OTHER_PROFILE, Launch, Profile, reason

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Dialog, Download, Page, Playwright, Request, Route

Result = TypeVar("Result")
# Seconds
CALL_LIMIT = 30.0
STEP_SHARE = 0.8  # of the limit for one step, so that the step that took too long is the one that reports it
GRACE = 5.0  # beyond the limit, for a cancelled call to end
TO_START, TO_REVIVE, TO_CLOSE = 60.0, 15.0, 40.0
DRAWN = 1.0  # for a page to draw what an action changed
ALIVE = 3.0  # for it to answer at all
LOADED = 10.0  # for a page to load before we continue without the rest of it
CONTEXT_CLOSED = 15.0
MOST_TABS = 50
MOST_NOTICES = 20
CANCEL: tuple[bool, str] = (False, "")
TWO_FRAMES = "() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))"
FILES = re.compile("^file:")
GONE = "The browser had been closed, so a new one was started; its page is empty."
OTHER = "The settings have changed, so a new browser was started; its page is empty."
DIALOGS = {"alert": "an alert", "confirm": "a question", "prompt": "a question for text"}


class Worker:
    """A daemon thread with an event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        # Errors of a call are raised to its caller; only those of abandoned calls come here, and nothing prints.
        self._loop.set_exception_handler(lambda loop, context: None)
        self._thread = threading.Thread(target=self._serve, name="browser", daemon=True)
        self._thread.start()

    def call(self, work: Callable[[], Awaitable[Result]], limit: float) -> Result:
        """Do something in the thread; BrowserTimeoutError if it takes longer than `limit` seconds."""

        future = asyncio.run_coroutine_threadsafe(asyncio.wait_for(work(), limit), self._loop)
        try:
            return future.result(limit + GRACE)
        except TimeoutError as error:
            raise BrowserTimeoutError(
                f"That took longer than {limit:g} seconds and was given up. Try again, or give it more time: "
                "computer.browser.setup(timeout=120)."
            ) from error
        finally:
            future.cancel()  # for a caller that was interrupted; otherwise it is done

    def stop(self) -> None:
        """End the thread."""
        with contextlib.suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join(GRACE)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        finally:
            self._loop.close()


class Window:
    """The tabs of a browser, and its notices for the caller. Everything here runs in the worker's thread."""

    error: type[Exception]
    """What Playwright raises; set when the browser is open."""
    timeout_error: type[Exception]

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.notices: list[str] = []
        self.dialog_answer = CANCEL  # to the next dialog of a page
        self.closed = False
        self.step_limit = LOADED  # seconds that a step of a call may take
        self.download_offered = asyncio.Event()
        self.page_changed = asyncio.Event()
        self.wanted_download: asyncio.Future[Download] | None = None
        self.failed_url = ""  # the last address that a tab could not load
        self.worker = Worker()
        self._playwright: Playwright | None = None
        self._context: BrowserContext | None = None
        self._profile: Profile | None = None
        self._page: Page | None = None
        self._loading: dict[Page, asyncio.Event] = {}
        self._cdp_sessions: dict[Page, CDPSession] = {}

    # -- beginning and end -----------------------------------------------------------------------------------------

    async def open(self) -> None:
        self._playwright, self._context, self._profile = await self.launch.start()
        from playwright.async_api import Error
        from playwright.async_api import TimeoutError as PlaywrightTimeout

        self.error, self.timeout_error = Error, PlaywrightTimeout
        context = self.context
        for page in context.pages:
            await self._set_up(page)
        context.on("page", self._on_page)
        context.on("close", self._on_close)
        context.on("dialog", self._on_dialog)
        context.on("request", self._on_request)
        context.on("requestfailed", self._on_request_failed)
        self._page = context.pages[-1] if context.pages else None
        if self._profile is not None and not self._profile.is_usual:
            self.notify(OTHER_PROFILE)

    async def close(self) -> None:
        context, self._context = self._context, None
        self.closed = True
        if context is None or self._playwright is None:
            return
        if not self.launch.attach_to:
            with contextlib.suppress(self.error, TimeoutError):
                await asyncio.wait_for(context.close(), CONTEXT_CLOSED)
        # The driver owns the browser's pipe: the browser ends with it, and an attached one is let go.
        with contextlib.suppress(self.error, TimeoutError):
            await asyncio.wait_for(self._playwright.stop(), CONTEXT_CLOSED)
        if self._profile is not None:
            self._profile.release()

    @property
    def context(self) -> BrowserContext:
        if self._context is None:
            raise BrowserError("The browser was closed. The next call starts it again.")
        return self._context

    def _on_close(self, *_: Any) -> None:
        self.closed = True
        self.page_changed.set()

    async def run(self, act: Callable[[Window], Awaitable[Result]], limit: float) -> Result:
        """Do something with the browser; Playwright's errors become ours."""
        self.step_limit = limit * STEP_SHARE
        self.context.set_default_timeout(self.step_limit * 1000)
        try:
            return await act(self)
        except self.timeout_error as error:
            raise BrowserTimeoutError(f"It took too long: {reason(error)}") from error
        except self.error as error:
            await asyncio.sleep(0)  # the event that the browser has closed may be right behind
            if self.closed:
                raise BrowserError("The browser was closed meanwhile. The next call starts a new one.") from error
            raise BrowserError(reason(error)) from error

    # -- tabs ------------------------------------------------------------------------------------------------------

    @property
    def tabs(self) -> list[Page]:
        return [page for page in self.context.pages if not page.is_closed()]

    async def page(self) -> Page:
        """The current tab; if it was closed, the last one that is left, or a new one."""
        if self._page is None or self._page.is_closed():
            if self._page is not None:
                self.notify("The tab was closed; the last one that is left is the current one now.")
            await self.go_to_last_tab()
        assert self._page is not None
        return self._page

    async def go_to_last_tab(self) -> None:
        """The current tab was closed on purpose."""
        self._page = self.tabs[-1] if self.tabs else await self.context.new_page()

    async def show(self, page: Page) -> None:
        self._page = page
        await page.bring_to_front()

    async def _set_up(self, page: Page) -> None:
        page.on("download", self._on_download)
        page.on("crash", self._on_crash)
        page.on("domcontentloaded", self._finish_loading)
        page.on("close", self._on_tab_close)
        page.on("framenavigated", lambda _: self.page_changed.set())
        if not self.launch.is_firefox:
            # Opened ahead: a page that is busy forever takes no new one, and this is how it is stopped.
            with contextlib.suppress(self.error):
                self._cdp_sessions[page] = await self.context.new_cdp_session(page)

    async def _on_page(self, page: Page) -> None:
        if len(self.tabs) > MOST_TABS and not self.launch.attach_to:
            await page.close()
            return
        await self._set_up(page)
        with contextlib.suppress(self.error):
            if await page.opener() is None:
                return  # one of ours, or one that the user opened
            self._page = page
            self.page_changed.set()
            self.notify(f"The page opened a new tab, {shown(page.url)}: it is the current one now.")

    def _on_tab_close(self, page: Page) -> None:
        self._cdp_sessions.pop(page, None)
        self.page_changed.set()
        self._finish_loading(page)

    async def _on_crash(self, page: Page) -> None:
        self.notify(f"The page {shown(page.url)} crashed, and its tab was closed.")
        await page.close()

    # -- loading ---------------------------------------------------------------------------------------------------

    def _on_request(self, request: Request) -> None:
        if (page := self._navigating(request)) is not None:
            self._loading.setdefault(page, asyncio.Event())

    def _on_request_failed(self, request: Request) -> None:
        if (page := self._navigating(request)) is not None:
            self.failed_url = request.url
            self._finish_loading(page)

    def _finish_loading(self, page: Page) -> None:
        if (event := self._loading.pop(page, None)) is not None:
            event.set()

    def _navigating(self, request: Request) -> Page | None:
        """The tab whose address the request is for, if it is for one."""
        if not request.is_navigation_request():
            return None
        with contextlib.suppress(self.error):  # before the tab is known
            frame = request.frame
            return frame.page if frame.parent_frame is None else None
        return None

    async def settle(self, page: Page) -> None:
        """Wait until the page has drawn the effect of an action, and loaded what it led to."""
        with contextlib.suppress(self.error, TimeoutError):
            await asyncio.wait_for(page.evaluate(TWO_FRAMES), DRAWN)
        if (loading := self._loading.get(page)) is not None:
            try:
                await asyncio.wait_for(loading.wait(), min(LOADED, self.step_limit))
            except TimeoutError:
                self.notify("The next page is still loading.")
                return
        await self.loaded(page)

    async def loaded(self, page: Page) -> None:
        """Wait for what a page loads, but not forever."""
        if page.is_closed():
            return
        try:
            await page.wait_for_load_state("load", timeout=min(LOADED, self.step_limit) * 1000)
        except self.timeout_error:
            self.notify("The page is still loading.")
        except self.error:
            pass  # its tab was closed, which the next call reports

    async def check_file_requests(self) -> None:
        """From the first file on: links lead from files to other files, anywhere."""
        await self.context.unroute(FILES)
        await self.context.route(FILES, self._on_file_request)

    async def _on_file_request(self, route: Route) -> None:
        """Give the browser the file that was checked; a link that is put there meanwhile leads nowhere."""
        url = route.request.url
        try:
            content = self.launch.boundary.content(url)
        except NotReachableError as error:
            self.notify(str(error))
            await route.abort()
        else:
            kind = mimetypes.guess_type(file_of(url).name)[0] or "text/plain"
            await route.fulfill(body=content, content_type=kind)

    # -- what a page does by itself --------------------------------------------------------------------------------

    async def _on_dialog(self, dialog: Dialog) -> None:
        """A dialog blocks everything until it is answered."""
        (accept, text), self.dialog_answer = self.dialog_answer, CANCEL
        kind = DIALOGS.get(dialog.type, f"a {dialog.type} dialog")
        said = f"The page showed {kind} that says {quoted(dialog.message)}"
        with contextlib.suppress(self.error):
            if dialog.type in ("alert", "beforeunload"):
                self.notify(f"{said}; it was accepted.")
                await dialog.accept()
            elif accept:
                self.notify(f"{said}; it was accepted, as asked.")
                await dialog.accept(text)
            else:
                self.notify(
                    f"{said}; it was answered with Cancel. To accept it, call computer.browser.accept_dialog() first "
                    "and then do the same again."
                )
                await dialog.dismiss()

    async def _on_download(self, download: Download) -> None:
        self.download_offered.set()
        if self.wanted_download is not None and not self.wanted_download.done():
            self.wanted_download.set_result(download)
            return
        self.notify(f"The page offered a file, {quoted(download.suggested_filename)}; download() would take it.")
        with contextlib.suppress(self.error):
            await download.cancel()

    # -- notices ---------------------------------------------------------------------------------------------------

    def notify(self, notice: str) -> None:
        self.notices = [*self.notices, notice][-MOST_NOTICES:]

    def take_notices(self) -> list[str]:
        taken, self.notices = self.notices, []
        return taken

    def report(self, words: str) -> str:
        """Our words, and what happened since the last call."""
        return " ".join([words, *self.take_notices()])

    def with_notices(self, values: dict[str, Any]) -> dict[str, Any]:
        notices = self.take_notices()
        return values | ({"notices": notices} if notices else {})

    # -- a page that hangs -----------------------------------------------------------------------------------------

    async def revive(self) -> None:
        """After a call that took too long: end what keeps the page busy, or the page."""
        page = self._page
        if page is None or page.is_closed():
            return
        for remedy in ("Page.stopLoading", "Runtime.terminateExecution"):
            await self.command(page, remedy)
            try:
                if await asyncio.wait_for(page.evaluate("1"), ALIVE):
                    return
            except TimeoutError:
                continue
            except self.error:
                return  # an error is an answer: it is between two pages
        self.notify(f"The page {shown(page.url)} did not answer any more, and its tab was closed.")
        with contextlib.suppress(self.error, TimeoutError):
            await asyncio.wait_for(page.close(), ALIVE)

    async def command(self, page: Page, name: str) -> None:
        """Send a command to a tab's process, which takes it also while the page is busy."""
        if page in self._cdp_sessions:
            with contextlib.suppress(self.error, TimeoutError):
                await asyncio.wait_for(self._cdp_sessions[page].send(name), DRAWN)


class BrowserHolder:
    """One browser: started when it is needed, started again when it has gone, closed at the end."""

    def __init__(self) -> None:
        self.limit = CALL_LIMIT
        self._window: Window | None = None
        self._lock = threading.RLock()
        _holders.add(self)

    def do(self, launch: Launch, act: Callable[[Window], Awaitable[Result]], limit: float | None = None) -> Result:
        """Do something with the browser, in time or not at all."""
        limit = self.limit if limit is None else limit
        with self._lock:
            window = self._ready(launch)
        try:
            return window.worker.call(lambda: window.run(act, self.limit), limit)
        except BrowserTimeoutError:
            with contextlib.suppress(BrowserTimeoutError):
                window.worker.call(window.revive, TO_REVIVE)
            raise

    def _ready(self, launch: Launch) -> Window:
        before = self._window
        if before is not None and not before.closed and before.launch == launch:
            before.launch = launch  # the sandbox may allow more or less than before
            return before
        notice = "" if before is None else GONE if before.closed else OTHER
        self.close()
        window = Window(launch)
        try:
            window.worker.call(window.open, TO_START)
        except BaseException:
            _end(window)
            raise
        if notice:
            window.notify(notice)
        self._window = window
        return window

    def close(self) -> None:
        """Close the browser, if there is one."""
        with self._lock:
            window, self._window = self._window, None
            if window is not None:
                _end(window)

    def __del__(self) -> None:
        if self._window is not None:
            # This may be the browser's own thread, which must not wait for itself.
            threading.Thread(target=_end, args=(self._window,), name="browser end", daemon=True).start()


def _end(window: Window) -> None:
    with contextlib.suppress(BrowserTimeoutError):
        window.worker.call(window.close, TO_CLOSE)
    window.worker.stop()


_holders: weakref.WeakSet[BrowserHolder] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for holder in list(_holders):
        holder.close()
