"""A browser that runs: its tabs, which of them is the current one, and what it has to tell."""

from __future__ import annotations

import asyncio
import contextlib
import mimetypes
import re
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.browser.errors import BrowserError, NotReachableError
from interpreter.computer_api.browser.frame import quoted, shown
from interpreter.computer_api.browser.launch import Launch, Started
from interpreter.computer_api.browser.local_files import content_of
from interpreter.computer_api.browser.reach import file_of

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Dialog, Download, Page, Request, Route

MOST_TABS = 50
NO: tuple[bool, str] = (False, "")
MOST_NOTICES = 20
DRAWN = 1.0  # seconds that a page has to draw what an action changed
ALIVE = 3.0  # seconds that it has to answer at all
LOADED = 10.0  # seconds that a page has to load before we go on without the rest of it
TO_CLOSE = 15.0
TWO_FRAMES = "() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))"


class Window:
    """Everything here happens in the worker's thread."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.notices: list[str] = []
        self.answer = NO  # to the next question of a page
        self.closed = False
        self.patience = LOADED  # seconds that a step of a call may take
        self.offered = asyncio.Event()  # a page offers a file
        self.changed = asyncio.Event()  # another tab is the current one
        self.wanted: asyncio.Future[Download] | None = None
        self.failed: str = ""  # the last address that a tab could not load
        self._started: Started | None = None
        self._page: Page | None = None
        self._loading: dict[Page, asyncio.Event] = {}
        self._lines: dict[Page, CDPSession] = {}

    # -- beginning and end ---------------------------------------------------------------------------------------

    async def open(self) -> None:
        self._started = await self.launch.start()
        context = self.context
        for page in context.pages:
            await self._adopt(page)
        context.on("page", self._opened)
        context.on("close", self._ended)
        context.on("dialog", self._asked)
        context.on("request", self._requested)
        context.on("requestfailed", self._request_failed)
        self._page = context.pages[-1] if context.pages else None
        if self._started.word:
            self.tell(self._started.word)

    async def close(self) -> None:
        started, self._started = self._started, None
        self.closed = True
        if started is not None:
            await started.close(TO_CLOSE)

    @property
    def context(self) -> BrowserContext:
        if self._started is None:
            raise BrowserError("The browser was closed. The next call starts it again.")
        return self._started.context

    def _ended(self, *_: Any) -> None:
        self.closed = True
        self.changed.set()

    # -- tabs ----------------------------------------------------------------------------------------------------

    @property
    def tabs(self) -> list[Page]:
        return [page for page in self.context.pages if not page.is_closed()]

    async def page(self) -> Page:
        """The current tab; if it was closed, the last one that is left, or a new one."""
        if self._page is None or self._page.is_closed():
            if self._page is not None:
                self.tell("The tab was closed; the last one that is left is the current one now.")
            await self.leave()
        assert self._page is not None
        return self._page

    async def leave(self) -> None:
        """The current tab was closed on purpose: go to the last one."""
        self._page = self.tabs[-1] if self.tabs else await self.context.new_page()

    async def show(self, page: Page) -> None:
        self._page = page
        await page.bring_to_front()

    async def _adopt(self, page: Page) -> None:
        page.on("download", self._downloaded)
        page.on("crash", self._crashed)
        page.on("domcontentloaded", self._loaded)
        page.on("close", self._forget)
        if not self.launch.is_firefox:
            # Opened ahead: a page that is busy for ever takes no new one, and this is how it is stopped.
            with contextlib.suppress(self.launch.error):
                self._lines[page] = await self.context.new_cdp_session(page)

    async def _opened(self, page: Page) -> None:
        if len(self.tabs) > MOST_TABS and not self.launch.attach_to:
            await page.close()
            return
        await self._adopt(page)
        with contextlib.suppress(self.launch.error):
            if await page.opener() is None:
                return  # one of ours, or one that the user opened
            self._page = page
            self.changed.set()
            self.tell(f"The page opened a new tab, {shown(page.url)}: it is the current one now.")

    def _forget(self, page: Page) -> None:
        self._lines.pop(page, None)
        self.changed.set()
        self._finish(page)

    async def _crashed(self, page: Page) -> None:
        self.tell(f"The page {shown(page.url)} crashed, and its tab was closed.")
        await page.close()

    # -- loading -------------------------------------------------------------------------------------------------

    def _requested(self, request: Request) -> None:
        if (page := self._navigating(request)) is not None:
            self._loading.setdefault(page, asyncio.Event())

    def _request_failed(self, request: Request) -> None:
        if (page := self._navigating(request)) is not None:
            self.failed = request.url
            self._finish(page)

    def _loaded(self, page: Page) -> None:
        self._finish(page)

    def _finish(self, page: Page) -> None:
        if (event := self._loading.pop(page, None)) is not None:
            event.set()

    def _navigating(self, request: Request) -> Page | None:
        """The tab whose address the request is for, if it is for one."""
        if not request.is_navigation_request():
            return None
        with contextlib.suppress(self.launch.error):  # before the tab is known
            frame = request.frame
            return frame.page if frame.parent_frame is None else None
        return None

    async def settle(self, page: Page) -> None:
        """Wait until the page has drawn what an action did, and loaded what it led to."""
        with contextlib.suppress(self.launch.error, TimeoutError):
            await asyncio.wait_for(page.evaluate(TWO_FRAMES), DRAWN)
        if (loading := self._loading.get(page)) is not None:
            try:
                await asyncio.wait_for(loading.wait(), min(LOADED, self.patience))
            except TimeoutError:
                self.tell("The next page is still loading.")
                return
        await self.loaded(page)

    async def loaded(self, page: Page) -> None:
        """Wait for what a page loads, but not for ever."""
        if page.is_closed():
            return
        try:
            await page.wait_for_load_state("load", timeout=min(LOADED, self.patience) * 1000)
        except self.launch.timeout_error:
            self.tell("The page is still loading.")
        except self.launch.error:
            pass  # its tab was closed, which the next call tells

    async def keep_to_workspace(self) -> None:
        """From the first file on: links lead from files to other files, anywhere."""
        await self.context.unroute(re.compile("^file:"))
        await self.context.route(re.compile("^file:"), self._judge_file)

    async def _judge_file(self, route: Route) -> None:
        """Give the browser the file that was judged; a link that is put there meanwhile leads nowhere."""
        url = route.request.url
        try:
            self.launch.reach.check(url)
            content = content_of(file_of(url))
        except (NotReachableError, FileNotFoundError) as error:
            self.tell(str(error))
            await route.abort()
        else:
            kind = mimetypes.guess_type(file_of(url).name)[0] or "text/plain"
            await route.fulfill(body=content, content_type=kind)

    # -- what a page does by itself ----------------------------------------------------------------------------------

    async def _asked(self, dialog: Dialog) -> None:
        """A dialog holds everything up until it is answered."""
        (yes, text), self.answer = self.answer, NO
        said = f"The page showed {article(dialog.type)} that says {quoted(dialog.message)}"
        with contextlib.suppress(self.launch.error):
            if dialog.type in ("alert", "beforeunload"):
                self.tell(f"{said}; it was accepted.")
                await dialog.accept()
            elif yes:
                self.tell(f"{said}; it was accepted, as asked.")
                await dialog.accept(text)
            else:
                self.tell(
                    f"{said}; it was answered with Cancel. To accept it, call computer.browser.accept_dialog() first "
                    "and then do the same again."
                )
                await dialog.dismiss()

    async def _downloaded(self, download: Download) -> None:
        self.offered.set()
        if self.wanted is not None and not self.wanted.done():
            self.wanted.set_result(download)
            return
        self.tell(f"The page offered a file, {quoted(download.suggested_filename)}; download() would take it.")
        with contextlib.suppress(self.launch.error):
            await download.cancel()

    # -- telling ---------------------------------------------------------------------------------------------------

    def tell(self, notice: str) -> None:
        self.notices = [*self.notices, notice][-MOST_NOTICES:]

    def take_notices(self) -> list[str]:
        taken, self.notices = self.notices, []
        return taken

    def telling(self, words: str) -> str:
        """Words of ours, with what happened since the last call."""
        return " ".join([words, *self.take_notices()])

    def with_notices(self, told: dict[str, Any]) -> dict[str, Any]:
        notices = self.take_notices()
        return told | ({"notices": notices} if notices else {})

    async def revive(self) -> None:
        """After a call that took too long: end what keeps the page busy, or the page."""
        page = self._page
        if page is None or page.is_closed():
            return
        for remedy in ("Page.stopLoading", "Runtime.terminateExecution"):
            await self.command(page, remedy)
            if await self._answers(page):
                return
        self.tell(f"The page {shown(page.url)} did not answer any more, and its tab was closed.")
        with contextlib.suppress(self.launch.error, TimeoutError):
            await asyncio.wait_for(page.close(), ALIVE)

    async def command(self, page: Page, name: str) -> None:
        """Say something to a tab's process; it takes that also while the page is busy."""
        if page in self._lines:
            with contextlib.suppress(self.launch.error, TimeoutError):
                await asyncio.wait_for(self._lines[page].send(name), DRAWN)

    async def _answers(self, page: Page) -> bool:
        try:
            return bool(await asyncio.wait_for(page.evaluate("1"), ALIVE))
        except TimeoutError:
            return False
        except self.launch.error:
            return True  # an error is an answer: it is between two pages


def article(kind: str) -> str:
    return {"alert": "an alert", "confirm": "a question", "prompt": "a question for text"}.get(kind, f"a {kind} dialog")
