"""Code in a live session uses the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from browser.web_app import WebApp

pytestmark = pytest.mark.needs("chromium")

CODE = """
b = computer.browser
b.setup(headless=True, timeout=60)
b.go_to_url("{url}/login")
b.fill("User", "ann")
b.fill("Password", "secret")
b.click("Sign in")
b.wait_for("Welcome ann")
print(b.read())
print(b.screenshot().width)
print(open(b.download("{url}/report")).read())
b.setup(wait=1)
try:
    b.click("No such button")
except Exception as error:
    print(type(error).__name__, error)
"""


def test_code_can_sign_in_and_download_a_file(computer: Any, app: WebApp, workspace: Path) -> None:
    messages = computer.run("python", CODE.format(url=app.url))
    told = "".join(str(message.get("content")) for message in messages)
    assert "# Welcome ann-r" in told and "1280" in told and "a;b\n1;2" in told
    assert 'Nothing on the page is called "No such button"' in told
