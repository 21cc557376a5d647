"""Actions on pages: forms, files, dialogs, tabs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from browser.web_app import WebApp
from interpreter.computer_api.browser import BrowserError, BrowserTimeoutError, ElementError
from ports import closed_port

pytestmark = pytest.mark.needs("chromium")


def test_a_login_form_signs_in_and_keeps_its_cookie(browser: Any, app: WebApp) -> None:
    browser.go_to_url(f"{app.url}/login")
    browser.fill("User", "Zoë ✓")
    browser.select("Role", "Writer")
    browser.fill("Password", "secret", submit=True)
    browser.wait_for("Welcome Zoë ✓-w")
    browser.go_to_url(f"{app.url}/login")
    assert "Welcome" in browser.read(f"{app.url}/home")  # the cookie stays
    browser.back()
    assert "Sign in" in browser.read()


def test_an_unknown_option_lists_the_available_ones(browser: Any, app: WebApp) -> None:
    browser.go_to_url(f"{app.url}/login")
    browser.setup(wait=1)
    with pytest.raises(ElementError, match="'Reader', 'Writer'"):
        browser.select("Role", "Editor")
    browser.setup(wait=10)
    browser.select("Role", "w")
    assert browser.evaluate("document.querySelector('select').value")["value"] == "w"


def test_fields_can_be_used_by_ref_and_with_keys(browser: Any, app: WebApp) -> None:
    browser.go_to_url(f"{app.url}/login")
    refs = dict(re.findall(r'textbox "(\w+)" \[ref=(\w+)\]', browser.snapshot()))
    browser.fill(refs["User"], "ann")
    browser.press("End", refs["User"])
    browser.press("x")
    assert browser.evaluate("document.querySelector('input').value")["value"] == "annx"


def test_a_stale_ref_asks_for_a_new_snapshot(browser: Any, app: WebApp) -> None:
    browser.go_to_url(f"{app.url}/changing")
    old = re.search(r'"First" \[ref=(\w+)\]', browser.snapshot())
    assert old is not None
    browser.click("Renew")
    with pytest.raises(ElementError, match="Take a new"):
        browser.click(old[1])


def test_an_ambiguous_name_lists_the_elements(browser: Any, app: WebApp) -> None:
    browser.go_to_url(f"{app.url}/changing")
    with pytest.raises(ElementError, match="3 elements on the page are called") as error:
        browser.click("Twin")
    browser.click(re.findall(r"\w*e\d+(?= \(button)", str(error.value))[1])


def test_a_disabled_button_says_why_it_cannot_be_clicked(browser: Any, app: WebApp) -> None:
    browser.go_to_url(f"{app.url}/changing")
    browser.setup(timeout=4)
    with pytest.raises(BrowserTimeoutError, match=r"Closed can't be used right now: .*not enabled"):
        browser.click("Closed")


def test_a_late_dialog_is_reported(browser: Any, app: WebApp) -> None:
    browser.go_to_url(f"{app.url}/dialogs")
    told = browser.click("Later") + browser.wait_for("alert is over")
    assert 'an alert that says "late words"; it was accepted' in told


def test_dialogs_are_cancelled_unless_accepted(browser: Any, app: WebApp) -> None:
    browser.go_to_url(f"{app.url}/dialogs")
    assert '"Really delete?"; it was answered with Cancel' in browser.click("Delete")
    assert "kept" in browser.read()
    browser.accept_dialog()
    browser.click("Delete")
    assert "deleted" in browser.read()
    browser.click("Delete")
    assert "kept" in browser.read()  # the acceptance was for one dialog
    browser.accept_dialog("Zoë")
    browser.click("Name")
    assert "hello Zoë" in browser.read()


def test_in_a_chain_of_dialogs_the_text_is_for_the_prompt(browser: Any, app: WebApp) -> None:
    app.pages["/chain"] = """<main><button onclick="const sure = confirm('Sure?'), code = prompt('Code?');
    alert('Got it'); out.textContent = `${sure} ${code}`">Start</button>
    <button onclick="alert('First'); out.textContent = [confirm('One?'), confirm('Two?')]">Twice</button>
    <p id=out></p></main>"""
    browser.go_to_url(f"{app.url}/chain")
    browser.accept_dialog("apollo")
    told = browser.click("Start")
    assert told.count("accepted, as asked") == 2 and '"Got it"; it was accepted' in told
    assert "true apollo" in browser.read()
    browser.click("Start")
    assert "false null" in browser.read()  # one answer is for one chain
    browser.accept_dialog("apollo")
    browser.click("Twice")
    assert "true,false" in browser.read()  # one question is one consent, and an alert is no question
    browser.click("Start")
    assert "false null" in browser.read()  # nor is the text for a prompt after a question that was cancelled


def test_a_new_tab_is_followed_and_reported(browser: Any, app: WebApp) -> None:
    browser.go_to_url(f"{app.url}/tabs")
    told = browser.click("Open article") + browser.wait_for("Harvest")
    assert "opened a new tab" in told
    tabs = browser.tabs()["tabs"]
    assert [(tab["url"], tab["current"]) for tab in tabs] == [(f"{app.url}/tabs", False), (f"{app.url}/article", True)]
    browser.tab(1)
    assert "Open article" in browser.read()
    browser.tab(2)
    browser.close_tab()
    assert len(browser.tabs()["tabs"]) == 1 and "Open article" in browser.read()
    with pytest.raises(ValueError, match="no tab 2"):
        browser.tab(2)


def test_files_can_be_uploaded(browser: Any, app: WebApp, workspace: Path) -> None:
    (workspace / "one.png").write_bytes(b"one")
    (workspace / "two.png").write_bytes(b"two")
    browser.go_to_url(f"{app.url}/upload")
    browser.upload("Picture", "one.png")
    browser.click("Send")
    browser.wait_for("Got it")
    browser.go_to_url(f"{app.url}/upload")
    browser.upload("Choose another way", str(workspace / "two.png"))
    browser.click("Send")
    browser.wait_for("Got it")
    assert app.uploaded == {"one.png": b"one", "two.png": b"two"}
    with pytest.raises(FileNotFoundError, match=r"three\.png"):
        browser.upload("Picture", "three.png")


def test_downloads_are_saved_in_the_workspace(browser: Any, app: WebApp, workspace: Path) -> None:
    browser.go_to_url(f"{app.url}/files")
    first, second = Path(browser.download("The report")), Path(browser.download(f"{app.url}/report"))
    assert first.parent == second.parent == workspace and first != second
    assert first.read_text() == second.read_text() == "a;b\n1;2\n"
    shown = Path(browser.download(f"{app.url}/article"))
    assert "Harvest" in shown.read_text("utf-8")


def test_an_unrequested_download_is_reported_and_not_saved(browser: Any, app: WebApp, workspace: Path) -> None:
    before = set(workspace.iterdir())
    with pytest.raises(BrowserError, match=r"is a file, not a page. computer.browser.download"):
        browser.go_to_url(f"{app.url}/report")
    assert set(workspace.iterdir()) == before


def test_unreachable_addresses_are_reported(browser: Any, app: WebApp) -> None:
    assert "status 404" in browser.go_to_url(f"{app.url}/nothing")
    with closed_port() as port, pytest.raises(BrowserError, match=r"could not be loaded: .*ERR_CONNECTION_REFUSED"):
        browser.go_to_url(f"localhost:{port}")
