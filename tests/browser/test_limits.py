"""Nothing hangs: after any failure, the next call works."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import psutil
import pytest

from browser.web_app import WebApp
from interpreter.computer_api.browser import BrowserError, BrowserTimeoutError, window
from ports import closed_port

pytestmark = pytest.mark.needs("chromium")


@pytest.mark.parametrize(
    "hang",
    [
        pytest.param(lambda browser, url: browser.go_to_url(f"{url}/slow"), id="server does not answer"),
        pytest.param(lambda browser, url: browser.evaluate("() => { while (true) {} }"), id="endless script"),
    ],
)
def test_a_hanging_call_times_out_and_the_next_one_works(browser: Any, app: WebApp, hang: Any) -> None:
    browser.go_to_url(f"{app.url}/article")
    browser.setup(timeout=1)
    with pytest.raises(BrowserTimeoutError):
        hang(browser, app.url)
    browser.setup(timeout=100)
    assert browser.evaluate("1 + 1")["value"] == 2


def test_a_page_that_keeps_loading_can_be_used(browser: Any, app: WebApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "LOAD_TIMEOUT", 1.0)
    app.answer.clear()
    assert "The page is still loading." in browser.go_to_url(f"{app.url}/stream")
    assert "First words" in browser.read() and "more to come" in browser.read()
    assert "Clicked" in browser.click("Follow")


@pytest.mark.full
def test_a_page_with_endless_redirects_can_be_left(browser: Any, app: WebApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "LOAD_TIMEOUT", 1.0)
    app.pages["/a"] = "<p>A<script>location.href = '/b?' + Math.random()</script>"
    app.pages["/b"] = "<p>B<script>location.href = '/a?' + Math.random()</script>"
    with suppress(BrowserError):
        browser.go_to_url(f"{app.url}/a")
    assert "Harvest" in browser.go_to_url(f"{app.url}/article")


def test_a_redirect_loop_is_an_error(browser: Any, app: WebApp) -> None:
    browser.go_to_url(f"{app.url}/article")
    with pytest.raises(BrowserError, match=rf"{app.url}/loop could not be loaded: .*ERR_TOO_MANY_REDIRECTS"):
        browser.go_to_url(f"{app.url}/loop")
    with closed_port() as port:
        app.redirect_to = f"http://127.0.0.1:{port}/gone"
        with pytest.raises(BrowserError, match=rf"127\.0\.0\.1:{port}/gone could not be loaded"):
            browser.go_to_url(f"{app.url}/redirect")


def test_waiting_for_missing_text_times_out(browser: Any, app: WebApp) -> None:
    browser.go_to_url(f"{app.url}/article")
    with pytest.raises(BrowserTimeoutError, match='"no such text" did not appear'):
        browser.wait_for("no such text", timeout=0.2)


@pytest.mark.full
def test_an_abandoned_call_does_not_block_the_next(browser: Any, app: WebApp) -> None:
    app.wanted.clear()
    left: list[BaseException] = []

    def leave() -> None:
        try:
            browser.go_to_url(f"{app.url}/slow")
        except BrowserError as error:
            left.append(error)

    thread = threading.Thread(target=leave)
    thread.start()
    assert app.wanted.wait(60)
    assert "Harvest" in browser.read(f"{app.url}/article")
    thread.join(60)
    assert left  # the other page was loaded instead


def test_calls_work_from_any_thread_and_inside_an_event_loop(browser: Any, app: WebApp) -> None:
    browser.go_to_url(f"{app.url}/article")

    async def notebook() -> Any:
        return browser.evaluate("document.title")["value"]

    assert asyncio.run(notebook()).strip() == "Harvest"
    with ThreadPoolExecutor(4) as pool:
        values = pool.map(lambda number: browser.evaluate(f"{number} * 2")["value"], range(12))
        assert list(values) == [number * 2 for number in range(12)]


def test_when_a_page_closes_its_tab_another_is_used(browser: Any, app: WebApp) -> None:
    browser.go_to_url(f"{app.url}/tabs")
    browser.click("Open article")
    browser.wait_for("Harvest")
    browser.evaluate("setTimeout(() => window.close())")
    browser.wait_for("Open article")
    assert "The tab was closed" in str(browser.tabs()) or len(browser.tabs()["tabs"]) == 1


def test_a_crashed_browser_is_restarted_with_a_notice(browser: Any, app: WebApp) -> None:
    browser.go_to_url(f"{app.url}/article")
    programs = [
        each for each in psutil.Process().children(recursive=True) if "--remote-debugging-pipe" in each.cmdline()
    ]
    assert programs
    for each in programs:
        each.kill()
    psutil.wait_procs(programs, timeout=60)
    try:
        told = browser.evaluate("1 + 1")
    except BrowserError:  # the browser's end was noticed during the call
        told = browser.evaluate("1 + 1")
    assert told["value"] == 2
    assert "a new one was started" in told["notices"][0]
