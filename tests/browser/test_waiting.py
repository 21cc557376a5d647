"""Calls wait for elements that appear later or are replaced, and list what exists if they don't appear."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from browser.web_app import WebApp
from interpreter.computer_api.browser import BrowserTimeoutError, ElementError

pytestmark = pytest.mark.needs("chromium")

SHOP = """<title>Shop</title><main><button onclick="later()">Products</button><div id=box></div><script>
const later = () => { box.innerHTML = ""; setTimeout(() => { box.innerHTML = `
  <button onclick="this.after(' Added')">Add to cart</button><label>Amount <input></label>
  <label>Size <select></select></label><label>Picture <input type=file></label><p>Details of the product</p>`;
  setTimeout(() => { box.querySelector("select").innerHTML = "<option>Large</option>" }, 300) }, 700) }
</script></main>"""
ASYNC = """<title>Async</title><main><button onclick="fetch('/slow').then(r => r.text()).then(t => out.innerHTML = t)">
Load</button><div id=out></div></main>"""


@pytest.fixture
def shop(browser: Any, app: WebApp) -> Any:
    app.pages["/shop"] = SHOP
    browser.setup(wait=20)
    browser.go_to_url(f"{app.url}/shop")
    browser.click("Products")
    return browser


def test_a_click_waits_for_its_element(shop: Any) -> None:
    assert "+ - text: Added" in shop.click("Add to cart")


def test_every_call_that_names_an_element_waits(shop: Any, workspace: Path) -> None:
    shop.fill("Amount", "3")
    shop.click("Products")
    shop.select("Size", "Large")  # the list exists before its options
    shop.click("Products")
    (workspace / "a.png").write_bytes(b"a")
    shop.upload("Picture", "a.png")
    shop.click("Products")
    assert "Details of the product" in shop.read(ref="Details of the product")
    shop.click("Products")
    assert shop.screenshot("Add to cart").width < 300
    shop.click("Products")
    shop.hover("Add to cart")
    shop.press("Enter", "Add to cart")


def test_an_element_replaced_during_the_wait_is_found_again(browser: Any, app: WebApp) -> None:
    app.pages["/replaced"] = """<main><div id=box><button disabled>Go on</button></div><script>setTimeout(() => {
    box.innerHTML = "<button onclick=\\"this.textContent = 'Gone on'\\">Go on</button>" }, 600)</script></main>"""
    browser.go_to_url(f"{app.url}/replaced")
    browser.click("Go on")
    assert "Gone on" in browser.read()


def test_a_missing_element_lists_the_available_ones(browser: Any, app: WebApp) -> None:
    app.pages["/shop"] = SHOP
    browser.go_to_url(f"{app.url}/shop")
    browser.setup(wait=0.5)
    with pytest.raises(ElementError, match=r'called "Check out", even after 0.5 seconds\. Available: e\d+ \(button "P'):
        browser.click("Check out")


def test_an_actions_changes_include_the_servers_response(browser: Any, app: WebApp) -> None:
    app.pages["/async"] = ASYNC
    app.wanted.clear()
    app.answer.clear()
    browser.go_to_url(f"{app.url}/async")
    release = threading.Thread(target=lambda: app.wanted.wait(60) and app.answer.set())
    release.start()
    assert "+ - text: slow words" in browser.click("Load")
    release.join()


WAITS = """
import sys
from interpreter import OpenInterpreter
browser = OpenInterpreter().computer.browser
browser.setup(timeout=100, wait=90)
browser.go_to_url(sys.argv[1])
try:
    print("ready", flush=True)
    browser.click("Never there")
except KeyboardInterrupt:
    print(browser.evaluate("1 + 1"), flush=True)
"""


@pytest.mark.usefixtures("no_strays")
def test_ctrl_c_ends_the_wait(app: WebApp) -> None:
    command = [sys.executable, "-c", WAITS, f"{app.url}/article"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as started:
        assert started.stdout is not None and started.stdout.readline() == "ready\n"
        os.killpg(started.pid, signal.SIGINT)
        told, _ = started.communicate(timeout=60)  # shorter than the wait
    assert "'value': 2" in told


def test_an_interrupted_block_does_not_click_later(computer: Any, browser: Any, app: WebApp) -> None:
    app.pages["/late"] = """<main><button id=b hidden onclick="this.textContent = 'Pressed'">Buy</button></main>"""
    browser.setup(wait=60)
    browser.go_to_url(f"{app.url}/late")
    began = threading.Event()

    def stop() -> None:
        assert began.wait(60)
        computer.stop()

    stopping = threading.Thread(target=stop)
    stopping.start()
    code = "print('now', flush=True)\ncomputer.browser.click('Buy')"
    for chunk in computer.run("python", code, stream=True):
        if "now" in str(chunk.get("content")) and chunk.get("format") == "output":
            began.set()
    stopping.join()
    browser.evaluate("b.hidden = false")
    browser.setup(wait=0.5)
    assert "Pressed" not in browser.snapshot() and "Buy" in browser.snapshot()


@pytest.mark.full
def test_a_control_that_stays_disabled_says_why(browser: Any, app: WebApp) -> None:
    browser.go_to_url(f"{app.url}/changing")
    browser.setup(timeout=4)
    with pytest.raises(BrowserTimeoutError, match="not enabled"):
        browser.click("Closed")
