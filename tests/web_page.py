"""A user of the web page in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page, expect

from running_server import Serving, serving
from waiting import until

LIMIT = 30_000  # milliseconds: only a hang takes this long
expect.set_options(timeout=LIMIT)


class OpenPage:
    """An open page, and the problems that occurred on it."""

    def __init__(self, page: Page, served: Serving) -> None:
        self.page, self.served = page, served
        self.problems: list[str] = []
        page.set_default_timeout(LIMIT)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda message: self._note(message))
        self.requests: dict[Any, str] = {}
        page.on("request", lambda request: self.requests.update({request: "no answer"}))
        page.on("requestfailed", lambda request: self.requests.update({request: request.failure or "failed"}))
        page.on("response", lambda answer: self.requests.update({answer.request: f"{answer.status}, unfinished"}))
        page.on("requestfinished", lambda request: self.requests.pop(request, None))

    def _note(self, message: Any) -> None:
        # The browser reports each failed request, which includes expected ones: a stopped server, or a refusal.
        if message.type == "error" and not re.search(r"Failed to load resource|WebSocket connection", message.text):
            self.problems.append(message.text)

    @property
    def session(self) -> str:
        return str(self.page.evaluate("location.hash.slice(1)"))

    def say(self, words: str) -> None:
        self.page.get_by_label("Message", exact=True).fill(words)
        expect(
            self.page.get_by_role("button", name="Send", exact=True)
        ).to_be_enabled()  # disabled while something runs
        self.page.keyboard.press("Enter")
        expect(self.page.get_by_label("Message", exact=True)).to_have_value("")  # the server has received it

    def key(self, *keys: str) -> None:
        self.page.get_by_role("log").focus()
        for key in keys:
            self.page.keyboard.press(key)

    def idle(self) -> None:
        expect(self.page.get_by_role("button", name="Send", exact=True)).to_be_visible()
        expect(self.page.locator(".approval, .working")).to_have_count(0)

    def approve(self) -> None:
        self.page.get_by_role("button", name="Approve").click()


@contextmanager
def open_page(
    chromium: Browser, *replies: Any, screen: tuple[int, int] = (1200, 800), **settings: Any
) -> Iterator[OpenPage]:
    """Open the start link in a new browser context. Fails if there are problems on the page."""
    with serving(*replies, server_rate=100_000, **settings) as served:
        context = chromium.new_context(
            viewport={"width": screen[0], "height": screen[1]}, accept_downloads=True, reduced_motion="reduce"
        )
        visit = OpenPage(context.new_page(), served)
        try:
            visit.page.goto(served.application.start_link)
            expect(visit.page.get_by_label("Message", exact=True)).to_be_visible()
            until(lambda: visit.session, "a session")
            yield visit
            assert visit.problems == []
        except BaseException as error:
            unfinished = [f"{request.method} {request.url}: {state}" for request, state in visit.requests.items()]
            error.add_note("\n".join(["Requests that did not finish:", *unfinished, "Problems:", *visit.problems]))
            raise
        finally:
            context.close()
