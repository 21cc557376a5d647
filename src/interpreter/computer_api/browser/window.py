"""A running browser: its thread, its tabs, and the events of its pages.

Calls come from any thread, also from one with its own event loop, and may be given up at any moment: the caller is
interrupted, or the page hangs. So the work is done by an event loop in a thread that nothing can block.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import mimetypes
import re
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, quote_plus

from interpreter.computer_api.browser.boundary import (
    BrowserError,
    BrowserTimeoutError,
    ElementError,
    NotReachableError,
    file_of,
    quoted,
    shown,
)
from interpreter.computer_api.browser.launch import ENGINE, OTHER_PROFILE, BrowserLaunch, BrowserProfile, reason
from interpreter.errors import ComputerError

if TYPE_CHECKING:
    from playwright.async_api import (
        BrowserContext,
        CDPSession,
        ConsoleMessage,
        Dialog,
        Download,
        Frame,
        Locator,
        Page,
        Playwright,
        Request,
        Route,
    )

Result = TypeVar("Result")
# Seconds
CALL_TIMEOUT = 30.0
STEP_SHARE = 0.8  # of the limit for one step, so that the slow step itself reports the error
CANCEL_TIMEOUT = 5.0  # beyond the limit, for a cancelled call to end
DRAW_TIMEOUT = 1.0  # for a page to draw what an action changed
ALIVE_TIMEOUT = 3.0  # for the page to answer anything
LOAD_TIMEOUT = 10.0  # for a page to load before we continue without the rest of it
REST_LOAD_TIMEOUT = 5.0  # for pictures and the like
REQUESTS_TIMEOUT = 2.0  # for what a page asks its server after an action
ELEMENT_TIMEOUT = 10.0  # for an element to appear
CONTEXT_CLOSE_TIMEOUT = 15.0
MAX_TABS = 50
MAX_NOTICES = 20
CANCEL: tuple[bool, str] = (False, "")
MAX_LOGGED = 200  # messages, and requests
MAX_SECRETS = 50
MIN_SECRET_LENGTH = 6  # characters; a shorter one is hidden in its field only
MAX_REDIRECTS = 20  # that a page may make on its own
AFTER_NEXT_FRAME = "() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))"
FILE_URL = re.compile("^file:")
DIALOGS = {
    "alert": "an alert",
    "confirm": "a question",
    "prompt": "a prompt for text",
    "beforeunload": "a confirmation before leaving the page",
}
KEEP_ROOT = "function () { (globalThis.closedRoots ??= new WeakMap()).set(this.host, this) }"


class BrowserWorker:
    """A daemon thread with an event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        # Errors of a call are raised to its caller; those of abandoned calls come here and are dropped.
        self._loop.set_exception_handler(lambda loop, context: None)
        self._thread = threading.Thread(target=self._serve, name="browser", daemon=True)
        self._thread.start()

    def call(self, work: Callable[[], Awaitable[Result]], limit: float) -> Result:
        """Do something in the thread; BrowserTimeoutError if it takes longer than `limit` seconds."""

        from interpreter.computer_api.computer import CALL

        future = asyncio.run_coroutine_threadsafe(asyncio.wait_for(work(), limit), self._loop)
        if (call := CALL.get()) is not None:
            call.on_end = future.cancel  # the thread waits for a lock, which an interrupt would not end
        try:
            return future.result(limit + CANCEL_TIMEOUT)
        except CancelledError:
            raise BrowserError("The call was interrupted.") from None
        except TimeoutError as error:
            raise BrowserTimeoutError(
                f"That took longer than {limit:g} seconds and was cancelled. Try again, or allow more time: "
                f"computer.browser.setup(timeout=120)."
            ) from error
        finally:
            future.cancel()  # for a caller that was interrupted; otherwise it is done

    def stop(self) -> None:
        with contextlib.suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join(CANCEL_TIMEOUT)

    def _serve(self) -> None:
        with asyncio.Runner(
            loop_factory=lambda: self._loop
        ) as runner:  # it cancels the remaining tasks, and closes the loop
            runner.get_loop().run_forever()


class BrowserWindow:
    """The tabs of a browser, and its notices for the caller. Everything here runs in the worker's thread."""

    # What Playwright raises; set when the browser is open.
    error: type[Exception]
    timeout_error: type[Exception]

    def __init__(self, launch: BrowserLaunch) -> None:
        self.launch = launch
        self.notices: list[str] = []
        self.dialog_answer = CANCEL  # to the next dialog of a page
        self.closed = False
        self.step_limit = LOAD_TIMEOUT  # seconds that a step of a call may take
        self.download_offered = False  # in place of a page, since the last address was asked for
        self.load_failed = asyncio.Event()  # there is an error page or a file instead
        self.wanted_download: asyncio.Future[Download] | None = None
        self.failed_url = ""  # the last address that a tab could not load
        self.worker = BrowserWorker()
        self._playwright: Playwright | None = None
        self._context: BrowserContext | None = None
        self._profile: BrowserProfile | None = None
        self._page: Page | None = None
        self.wait = ELEMENT_TIMEOUT  # seconds for an element to appear
        self.changes = 0  # characters that a report has of what an action changed
        self.navigations = 0  # how many addresses were requested
        self.stayed = False  # a page asked before it was left, and the answer was no
        self.last_ref = 0  # so that no two elements ever have the same ref, even on different pages
        self.document = ""  # the document in which elements were last looked up
        self.shown: tuple[str, list[str]] = ("", [])  # the document and the elements in it that the caller knows
        self.console: deque[str] = deque(maxlen=MAX_LOGGED)
        self.network: deque[str] = deque(maxlen=MAX_LOGGED)
        self._secrets: list[str] = []  # the present and past content of secret fields
        self._frames: list[Frame] = []  # frames that have refs, by number
        self._loading: dict[Page, asyncio.Event] = {}
        self._unfinished: set[Page] = set()  # known to be loading without end
        self.asking: set[Request] = set()  # requests of scripts that have no answer yet
        self._answered = asyncio.Event()
        self._moves = 0  # how often the current page has redirected since the last requested address
        self._cdp_sessions: dict[Page, CDPSession] = {}
        self._worlds: dict[str, int] = {}  # where page.js runs, by frame

    # -- beginning and end -----------------------------------------------------------------------------------------

    async def open(self) -> None:
        self._playwright, self._context, self._profile = await self.launch.start()
        from playwright import async_api

        self.error, self.timeout_error = async_api.Error, async_api.TimeoutError
        context = self.context
        for page in context.pages:
            await self._set_up(page)
        context.on("page", self._on_page)
        context.on("close", self._on_close)
        context.on("dialog", self._on_dialog)
        context.on("request", self._on_request)
        context.on("requestfailed", self._on_request_failed)
        context.on("requestfinished", self._on_request_finished)
        context.on("response", lambda response: self._log(response.request, str(response.status)))
        context.on("console", self._on_console)
        context.on("weberror", lambda error: self.console.append(f"error: {quoted(str(error.error), 500)}"))
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
                await asyncio.wait_for(context.close(), CONTEXT_CLOSE_TIMEOUT)
        # The driver owns the browser's pipe: the browser ends with it, and an attached one is let go.
        with contextlib.suppress(self.error, TimeoutError):
            await asyncio.wait_for(self._playwright.stop(), CONTEXT_CLOSE_TIMEOUT)
        if self._profile is not None:
            self._profile.release()

    @property
    def context(self) -> BrowserContext:
        if self._context is None:
            raise BrowserError("The browser was closed. The next call starts it again.")
        return self._context

    def _on_close(self, *_: Any) -> None:
        self.closed = True

    async def run(self, act: Callable[[BrowserWindow], Awaitable[Result]], limit: float) -> Result:
        """Do something with the browser; raise Playwright's errors as ours."""
        self.step_limit = limit * STEP_SHARE
        self.context.set_default_timeout(self.step_limit * 1000)
        try:
            try:
                result = await act(self)
            finally:
                await self.collect_secrets()
            hidden: Result = self.without_secrets(result)
            return hidden
        except ComputerError as error:
            error.args = self.without_secrets(error.args)
            raise
        except self.timeout_error as error:
            raise BrowserTimeoutError(self.without_secrets(f"It took too long: {reason(error)}")) from error
        except self.error as error:
            await asyncio.sleep(0)  # the event that the browser has closed may follow at once
            if self.closed:
                raise BrowserError("The browser was closed in the meantime. The next call starts a new one.") from error
            raise BrowserError(self.without_secrets(reason(error))) from error

    # -- what is on a page -----------------------------------------------------------------------------------------

    async def ask(self, frame: Frame, command: str, **given: Any) -> Any:
        """Return the answer of page.js in a frame."""
        packed = base64.b64encode(json.dumps({"command": command, **given}).encode()).decode()
        return json.loads(await frame.locator(f"{ENGINE}={packed}").text_content() or "null")

    def prefix(self, frame: Frame) -> str:
        """Return the beginning of all refs in a frame."""
        if frame.parent_frame is None:
            return ""
        if frame not in self._frames:
            self._frames.append(frame)
        return f"f{self._frames.index(frame) + 1}"

    def frame_of(self, ref: str) -> tuple[Frame, str]:
        """Return the frame that a ref is in, and the ref there; ElementError if the frame has gone."""
        number, inner = re.fullmatch(r"(?:f(\d+))?(e\d+)", ref).groups()  # type: ignore[union-attr]
        if number is None and self._page is not None:
            return self._page.main_frame, inner
        if number is None or int(number) > len(self._frames) or self._frames[int(number) - 1].is_detached():
            raise ElementError(f"The frame of {ref} is no longer on the page. Take a new computer.browser.snapshot().")
        return self._frames[int(number) - 1], inner

    def located(self, ref: str) -> Locator:
        frame, inner = self.frame_of(ref)
        return frame.locator(f"{ENGINE}={inner}")

    async def expose_closed_shadow_roots(self, page: Page) -> None:
        """Pass the closed shadow roots to page.js, since only the browser itself can see them."""
        session = self._cdp_sessions.get(page)
        if session is None or not await self.ask(page.main_frame, "closed_roots"):
            return
        with contextlib.suppress(self.error, KeyError):
            tree = await session.send("DOM.getDocument", {"depth": -1, "pierce": True})
            nodes = [(tree["root"], "")]
            while nodes:
                node, frame = nodes.pop()
                frame = node.get("frameId", frame)
                nodes += [(each, frame) for each in (*node.get("children", ()), *node.get("shadowRoots", ()))]
                nodes += [(node["contentDocument"], frame)] if "contentDocument" in node else []
                if node.get("shadowRootType") == "closed":
                    world = self._worlds.get(frame) or self._worlds[tree["root"].get("frameId", "")]
                    where = {"backendNodeId": node["backendNodeId"], "executionContextId": world}
                    root = (await session.send("DOM.resolveNode", where))["object"]["objectId"]
                    await session.send("Runtime.callFunctionOn", {"objectId": root, "functionDeclaration": KEEP_ROOT})

    def _on_world(self, event: dict[str, Any]) -> None:
        context = event["context"]
        if context["name"].startswith("__playwright_utility_world"):
            self._worlds[context["auxData"]["frameId"]] = context["id"]

    # -- secrets ---------------------------------------------------------------------------------------------------

    def keep_secret(self, value: str, shortest: int = MIN_SECRET_LENGTH) -> None:
        """Leave a value out of everything that the caller gets from now on."""
        if len(value) >= shortest and value not in self._secrets:
            # What was typed letter by letter was a secret only as a whole.
            others = [each for each in self._secrets if not value.startswith(each)]
            self._secrets = sorted([*others[-MAX_SECRETS:], value], key=len, reverse=True)

    async def collect_secrets(self) -> None:
        """Remember the values of the page's secret fields, since the page may show them elsewhere, too."""
        page = self._page
        if page is None or page.is_closed() or page in self._loading:
            return
        for frame in page.frames[:5]:
            with contextlib.suppress(self.error, TimeoutError, ValueError):
                for value in await asyncio.wait_for(self.ask(frame, "secrets"), DRAW_TIMEOUT):
                    self.keep_secret(value)

    def without_secrets(self, value: Any) -> Any:
        """Replace each secret by a mask, also in addresses."""
        if isinstance(value, str):
            for secret in self._secrets:
                for form in {secret, quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1]}:
                    value = value.replace(form, "•••")
        elif isinstance(value, dict):
            return {self.without_secrets(key): self.without_secrets(each) for key, each in value.items()}
        elif isinstance(value, list | tuple):
            return type(value)(map(self.without_secrets, value))
        return value

    # -- logs ------------------------------------------------------------------------------------------------------

    def _on_console(self, message: ConsoleMessage) -> None:
        location = message.location
        where = f" ({shown(location['url'])}:{location['lineNumber'] + 1})" if location.get("url") else ""
        self.console.append(f"{message.type}: {quoted(message.text, 500)}{where}")

    def _log(self, request: Request, outcome: str) -> None:
        self.network.append(f"{request.method} {shown(request.url)} {request.resource_type} {outcome}")

    # -- tabs ------------------------------------------------------------------------------------------------------

    @property
    def tabs(self) -> list[Page]:
        return [page for page in self.context.pages if not page.is_closed()]

    def numbered_tab(self, number: int) -> Page:
        if not 1 <= number <= len(self.tabs):
            raise ValueError(f"There is no tab {number}, only {len(self.tabs)}. See computer.browser.tabs().")
        return self.tabs[number - 1]

    async def page(self) -> Page:
        """Return the current tab; if it was closed, the last one that is left, or a new one."""
        if self._page is None or self._page.is_closed():
            if self._page is not None:
                self.notify("The tab was closed. The last remaining one is now the current tab.")
            await self.go_to_last_tab()
        assert self._page is not None
        return self._page

    async def go_to_last_tab(self) -> None:
        """Make the last tab the current one, after the current one was closed on purpose."""
        self._page = self.tabs[-1] if self.tabs else await self.context.new_page()

    async def show(self, page: Page) -> None:
        self._page = page
        await page.bring_to_front()

    async def _set_up(self, page: Page) -> None:
        page.on("download", self._on_download)
        page.on("crash", self._on_crash)
        page.on("domcontentloaded", self._finish_loading)
        page.on("close", self._on_tab_close)
        page.on("framenavigated", self._on_navigated)
        if not self.launch.is_firefox:
            # Opened ahead: a page that hangs accepts no new connection, and this one can stop it.
            with contextlib.suppress(self.error):
                session = self._cdp_sessions[page] = await self.context.new_cdp_session(page)
                session.on("Runtime.executionContextCreated", self._on_world)
                await session.send("Runtime.enable")

    async def _on_page(self, page: Page) -> None:
        if len(self.tabs) > MAX_TABS and not self.launch.attach_to:
            await page.close()
            return
        await self._set_up(page)
        with contextlib.suppress(self.error):
            if await page.opener() is None:
                return  # one of ours, or one that the user opened
            self._page = page
            self.notify(f"The page opened a new tab, {shown(page.url)}, which is now the current one.")

    def _on_tab_close(self, page: Page) -> None:
        self._cdp_sessions.pop(page, None)
        self._unfinished.discard(page)
        self._finish_loading(page)

    async def _on_crash(self, page: Page) -> None:
        self.notify(f"The page {shown(page.url)} crashed, and its tab was closed.")
        await page.close()

    # -- loading ---------------------------------------------------------------------------------------------------

    def _on_request(self, request: Request) -> None:
        if (page := self._navigating(request)) is not None:
            self._loading.setdefault(page, asyncio.Event())
            self._unfinished.discard(page)
        elif request.resource_type in ("xhr", "fetch"):
            self.asking.add(request)

    def _on_request_finished(self, request: Request) -> None:
        self.asking.discard(request)
        self._answered.set()

    def _on_request_failed(self, request: Request) -> None:
        self._on_request_finished(request)
        self._log(request, str(request.failure))
        if (page := self._navigating(request)) is not None:
            self.failed_url = request.url
            self._finish_loading(page)

    def _on_navigated(self, frame: Frame) -> None:
        if frame.parent_frame is None:
            self._moves += 1

    def _finish_loading(self, page: Page) -> None:
        if (event := self._loading.pop(page, None)) is not None:
            event.set()

    def _navigating(self, request: Request) -> Page | None:
        """Return the tab whose address the request is for; None for any other request."""
        with contextlib.suppress(self.error):  # before the tab is known
            if request.is_navigation_request() and request.frame.parent_frame is None:
                return request.frame.page
        return None

    def begin_navigation(self) -> None:
        """Reset what is known about the last address, because a new one is requested."""
        self.failed_url, self.download_offered, self.stayed, self._moves = "", False, False, 0
        self.load_failed.clear()
        self.navigations += 1

    async def settle(self, page: Page, before: set[Request]) -> None:
        """Wait until the page has drawn the effect of an action, and finished the requests it caused.

        `before`: the requests by the page's scripts that were already pending.
        """
        with contextlib.suppress(self.error, TimeoutError):
            await asyncio.wait_for(page.evaluate(AFTER_NEXT_FRAME), DRAW_TIMEOUT)
        if self.asking - before:
            with contextlib.suppress(self.error, TimeoutError):
                async with asyncio.timeout(min(REQUESTS_TIMEOUT, self.step_limit)):
                    while self.asking - before:
                        self._answered.clear()
                        await self._answered.wait()
                    await page.evaluate(AFTER_NEXT_FRAME)
        if (loading := self._loading.get(page)) is not None:
            try:
                await asyncio.wait_for(loading.wait(), min(LOAD_TIMEOUT, self.step_limit))
            except TimeoutError:
                self.notify("The next page is still loading.")
                return
        await self.loaded(page)

    async def loaded(self, page: Page) -> None:
        """Wait for what a page loads, but not forever: its text first, then the rest."""
        if page.is_closed() or page in self._unfinished:
            return
        try:
            async with asyncio.timeout(self.step_limit):
                await page.wait_for_load_state("domcontentloaded", timeout=LOAD_TIMEOUT * 1000)
                await page.wait_for_load_state("load", timeout=REST_LOAD_TIMEOUT * 1000)
        except (self.timeout_error, TimeoutError):
            self._unfinished.add(page)
            self._finish_loading(page)
            if self._moves > MAX_REDIRECTS:
                await self.command(page, "Page.stopLoading")
                self.notify("The page kept redirecting and was stopped.")
            else:
                self.notify("The page is still loading.")
        except self.error:
            pass  # its tab was closed, which the next call reports

    async def check_file_requests(self) -> None:
        """Check every further request for a file, because links lead from files to other files, anywhere."""
        await self.context.unroute(FILE_URL)
        await self.context.route(FILE_URL, self._on_file_request)

    async def _on_file_request(self, route: Route) -> None:
        """Serve the file that was checked, so that a link that replaces it leads nowhere."""
        url = route.request.url
        try:
            content = self.launch.boundary.content(url)
        except NotReachableError as error:
            self.notify(str(error))
            await route.abort()
        else:
            kind = mimetypes.guess_type(file_of(url).name)[0] or "text/plain"
            await route.fulfill(body=content, content_type=kind)

    # -- what a page does on its own -------------------------------------------------------------------------------

    async def _on_dialog(self, dialog: Dialog) -> None:
        """Answer a dialog, which blocks everything until then. Alerts are accepted; a text waits for a prompt."""
        accept, text = self.dialog_answer
        if dialog.type == "prompt":
            accept, self.dialog_answer = accept or bool(text), CANCEL
        elif dialog.type != "alert":
            self.dialog_answer = (False, text) if accept else CANCEL
        kind = DIALOGS.get(dialog.type, f"a {dialog.type} dialog")
        description = f"The page showed {kind} that says {quoted(dialog.message)}"
        with contextlib.suppress(self.error):
            if dialog.type == "alert":
                self.notify(f"{description}; it was accepted.")
                await dialog.accept()
            elif accept:
                self.notify(f"{description}; it was accepted, as asked.")
                await dialog.accept(text if dialog.type == "prompt" else "")
            else:
                self.notify(
                    f"{description}; it was answered with Cancel. To accept it, call computer.browser.accept_dialog() "
                    "first and then do the same again."
                )
                if dialog.type == "beforeunload":
                    self.stayed = True
                    self.load_failed.set()
                await dialog.dismiss()

    async def _on_download(self, download: Download) -> None:
        self.download_offered = True
        self.load_failed.set()
        if self.wanted_download is not None and not self.wanted_download.done():
            self.wanted_download.set_result(download)
            return
        self.notify(f"The page offered a file, {quoted(download.suggested_filename)}. To get it, use download().")
        with contextlib.suppress(self.error):
            await download.cancel()

    # -- notices ---------------------------------------------------------------------------------------------------

    def notify(self, notice: str) -> None:
        self.notices = [*self.notices, notice][-MAX_NOTICES:]

    def take_notices(self) -> list[str]:
        taken, self.notices = self.notices, []
        return taken

    def report(self, text: str) -> str:
        """Return our text, and what happened since the last call."""
        return " ".join([text, *self.take_notices()])

    def with_notices(self, values: dict[str, Any]) -> dict[str, Any]:
        notices = self.take_notices()
        return values | ({"notices": notices} if notices else {})

    # -- a page that hangs -----------------------------------------------------------------------------------------

    async def revive(self) -> None:
        """End what keeps the page busy, or the page, after a call that took too long."""
        page = self._page
        if page is None or page.is_closed():
            return
        for remedy in ("Page.stopLoading", "Runtime.terminateExecution"):
            await self.command(page, remedy)
            try:
                if await asyncio.wait_for(page.evaluate("1"), ALIVE_TIMEOUT):
                    return
            except TimeoutError:
                continue
            except self.error:
                return  # an error is an answer: it is between two pages
        self.notify(f"The page {shown(page.url)} stopped responding, and its tab was closed.")
        with contextlib.suppress(self.error, TimeoutError):
            await asyncio.wait_for(page.close(), ALIVE_TIMEOUT)

    async def command(self, page: Page, name: str) -> None:
        """Send a command to a tab's process, which accepts it even while the page is busy."""
        if page in self._cdp_sessions:
            with contextlib.suppress(self.error, TimeoutError):
                await asyncio.wait_for(self._cdp_sessions[page].send(name), DRAW_TIMEOUT)
