"""Where the browser can go: `offline`, the sandbox and the workspace limit it, also behind redirects and links."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser.web_app import WebApp
from interpreter.computer_api.browser import BrowserError, NotReachableError
from interpreter.computer_api.browser.boundary import Boundary, completed
from interpreter.errors import SandboxUnavailableError
from interpreter.sandbox import bubblewrap
from interpreter.sandbox.containment import Containment
from interpreter.sandbox.proxy import Proxy
from interpreter.sandbox.sandbox import Sandbox


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("example.com/a", "https://example.com/a"),
        ("localhost:8000/x", "http://localhost:8000/x"),
        ("127.0.0.1", "http://127.0.0.1"),
        (" http://a.b/c ", "http://a.b/c"),
        ("about:blank", "about:blank"),
    ],
)
def test_an_address_is_completed(typed: str, meant: str) -> None:
    assert completed(typed) == meant


@pytest.mark.parametrize(
    "url", ["chrome://settings", "javascript:alert(1)", "view-source:file:///etc/passwd", "ftp://x/"]
)
def test_other_kinds_of_addresses_are_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(NotReachableError, match="http, https and file"):
        Boundary(str(tmp_path)).check(url)


def test_only_workspace_files_can_be_opened(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "link").symlink_to("/etc/passwd")
    boundary = Boundary(str(work))
    boundary.check((work / "a b.html").as_uri())
    for url in ("file:///etc/passwd", (work / "link").as_uri(), f"file://{work}/../x", f"file://{work}/%2e%2e/x"):
        with pytest.raises(NotReachableError, match="not in the workspace"):
            boundary.check(url)
    with pytest.raises(NotReachableError, match="not a file on this machine"):
        boundary.check("file://elsewhere/x")


@pytest.mark.parametrize("host", ["example.com", "10.0.0.1", "169.254.169.254", "localhost.example.com"])
def test_offline_reaches_only_this_machine(host: str, tmp_path: Path) -> None:
    boundary = Boundary(str(tmp_path), offline=True)
    boundary.check("http://127.0.0.1:8000/")
    boundary.check("http://[::1]/")
    with pytest.raises(NotReachableError, match="`offline` is on"):
        boundary.check(f"http://{host}/")
    with pytest.raises(NotReachableError, match="attach"):
        boundary.check_attach("http://127.0.0.1:9222")


def test_a_refused_address_starts_no_browser(computer: Any) -> None:
    computer.offline = True
    for call in (computer.browser.go_to_url, computer.browser.read, computer.browser.search):
        with pytest.raises(NotReachableError, match="`offline` is on"):
            call("example.com")
    assert computer.browser._window is None


@pytest.mark.full
@pytest.mark.needs("chromium")
def test_offline_applies_to_redirects_and_scripts(computer: Any, browser: Any, app: WebApp) -> None:
    computer.offline = True
    browser.go_to_url(f"{app.url}/article")
    app.redirect_to = "http://169.254.169.254/latest"
    with pytest.raises(NotReachableError, match=r"led to http://169\.254\.169\.254/latest"):
        browser.go_to_url(f"{app.url}/redirect")
    browser.go_to_url(f"{app.url}/article")
    with pytest.raises(BrowserError, match="Failed to fetch"):
        browser.evaluate("fetch('http://192.0.2.1/', {mode: 'no-cors'})")


@pytest.fixture
def sandboxed(computer: Any, app: WebApp, workspace: Path) -> Iterator[Any]:
    """The computer in a sandbox that can reach the web application by IP address, but not by name."""
    try:
        bubblewrap.available()
    except SandboxUnavailableError as error:
        pytest.skip(str(error))
    owner = computer.interpreter
    computer.offline = False
    owner.sandbox, owner.sandbox_hosts = "workspace", [f"127.0.0.1:{app.server_port}"]
    proxy = Proxy(owner.sandbox_hosts, allow_private=True)
    computer.context.containment = Containment(Sandbox.from_settings(owner), proxy)
    yield computer
    owner.sandbox, owner.sandbox_hosts = "off", []


@pytest.mark.needs("chromium")
def test_the_sandbox_limits_the_browsers_hosts_and_files(
    sandboxed: Any, browser: Any, app: WebApp, workspace: Path
) -> None:
    assert "Harvest" in browser.read(f"{app.url}/article")
    elsewhere = f"http://localhost:{app.server_port}"
    with pytest.raises(NotReachableError, match=r"Blocked by the sandbox: .*sandbox_hosts"):
        browser.go_to_url(f"{elsewhere}/many")
    app.redirect_to = f"{elsewhere}/many"
    with pytest.raises(NotReachableError, match=r"led to .*Blocked by the sandbox"):
        browser.go_to_url(f"{app.url}/redirect")
    browser.go_to_url(f"{app.url}/article")
    told = browser.evaluate(f"fetch('{elsewhere}/many').then(() => 'reached', () => 'refused')")
    assert told["value"] == "refused"
    assert "/many" not in app.asked
    with pytest.raises(NotReachableError, match="Can't attach to a browser"):
        browser.attach()
    (workspace / "link.txt").symlink_to("/etc/hostname")
    for path in ("/etc/hostname", "link.txt"):
        with pytest.raises(NotReachableError, match="the sandbox only gives access"):
            browser.upload("Picture", path)
    (workspace / "mine.txt").write_text("mine")
    browser.go_to_url(f"{app.url}/upload")
    browser.upload("Picture", "mine.txt")
    browser.click("Send")
    browser.wait_for("Got it")
    assert app.uploaded == {"mine.txt": b"mine"}
    sandboxed.interpreter.sandbox = "read-only"
    with pytest.raises(NotReachableError, match="read-only"):
        browser.download("The report")


@pytest.mark.needs("chromium")
def test_links_in_a_local_file_open_only_workspace_files(computer: Any, browser: Any, workspace: Path) -> None:
    computer.offline = False
    (workspace / "a.html").write_text("<h1>A</h1><a href=file:///etc/passwd>out</a> <a href=b.txt>on</a>")
    (workspace / "b.txt").write_text("words of b")
    assert "# A" in browser.read((workspace / "a.html").as_uri())
    assert "/etc/passwd is not in the workspace" in browser.click("out")
    assert "root:" not in browser.read()
    browser.go_to_url((workspace / "a.html").as_uri())
    browser.click("on")
    browser.wait_for("words of b")
