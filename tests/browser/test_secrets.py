"""Text typed into a secret field reaches neither the model nor the journal."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from browser.web_app import WebApp
from interpreter.computer_api.browser import BrowserError, NotReachableError

pytestmark = pytest.mark.needs("chromium")

SECRET = "tr0ub4dor&3"
FORM = """<title>Form</title><main><form action=/article>
<label>Password <input id=p type=password name=p></label>
<button type=button onclick="p.type = 'text'">Show</button>
<label>Card <input autocomplete="billing cc-number" name=c></label>
<label>Code <input autocomplete=one-time-code name=o></label>
<label>Word <input style="-webkit-text-security: disc" name=w></label>
<label>Your PIN <input name=n></label>
<label>City <input name=city></label>
<button type=button onclick="out.textContent = 'You typed ' + p.value; console.log('it is ' + p.value)">Echo</button>
<button>Send</button></form><p id=out></p></main>"""
FIELDS = ("Password", "Card", "Code", "Word", "Your PIN")


def views(browser: Any) -> str:
    found = [browser.snapshot(), browser.snapshot(find="Password"), browser.read(), browser.console()]
    return "\n".join([*found, str(browser.tabs()), str(browser.evaluate("document.querySelector('input').value"))])


def test_secret_fields_are_masked_in_every_view(browser: Any, app: WebApp) -> None:
    app.pages["/form"] = FORM
    browser.go_to_url(f"{app.url}/form")
    told = [browser.fill(field, SECRET) for field in FIELDS]
    told += [browser.fill("City", "Oslo"), browser.click("Show"), browser.click("Echo"), views(browser)]
    told += [browser.click("Send"), browser.network(), browser.go_to_url(f"{app.url}/article?again={SECRET}")]
    everything = "\n".join(told)
    assert SECRET not in everything and "tr0ub4dor%263" not in everything
    assert everything.count("•••") > 10 and "Oslo" in everything and "You typed •••" in everything


def test_a_password_revealed_by_the_page_is_masked(browser: Any, app: WebApp) -> None:
    app.pages["/shown"] = "<main><label>Login <input id=p type=password></label></main>"
    browser.go_to_url(f"{app.url}/shown")
    browser.evaluate("new Promise(done => setTimeout(() => { p.value = 'correct horse'; p.type = 'text'; done() }))")
    assert "correct horse" not in views(browser)


def test_screenshots_hide_the_content_of_secret_fields(browser: Any, app: WebApp) -> None:
    app.pages["/form"] = FORM
    browser.go_to_url(f"{app.url}/form")
    pictures = []
    for number in ("4111 1111 1111 1111", "5500 0000 0000 0004"):
        browser.fill("Card", number)
        pictures.append(browser.screenshot("Card").png)
    assert pictures[0] == pictures[1]


def test_errors_mask_the_secret(browser: Any, app: WebApp) -> None:
    app.pages["/form"] = FORM
    browser.go_to_url(f"{app.url}/form")
    browser.fill("Password", SECRET)
    with pytest.raises(BrowserError) as raised:
        browser.evaluate("() => { throw new Error('wrong: ' + p.value) }")
    assert "wrong: •••" in str(raised.value) and SECRET not in str(raised.value)


def test_the_record_of_a_call_masks_the_secret(computer: Any, app: WebApp) -> None:
    app.pages["/form"] = FORM
    code = f"""
word = "dor&3".join(["tr0ub4", ""])
computer.browser.go_to_url("{app.url}/form")
print(computer.browser.fill("Password", word))
print(computer.browser.snapshot())
"""
    chunks = list(computer.run("python", code, stream=True))
    session = computer.session
    events = list(islice(session.events(), session.log.last))
    everything = json.dumps([chunks, [event.data for event in events]], default=str, ensure_ascii=False)
    assert "computer.browser.fill" in everything and "•••" in everything
    assert SECRET not in everything


@pytest.fixture
def registered(browser: Any, app: WebApp, monkeypatch: pytest.MonkeyPatch) -> Any:
    app.pages["/form"] = FORM
    app.pages["/frame"] = "<iframe src=/form title=inner></iframe>"
    monkeypatch.setenv("SHOP_WORD", SECRET)
    source = {"password_variable": "SHOP_WORD"}
    browser.computer.browser_secrets = {
        "shop": {"hosts": ["127.0.0.*", "shop.example.org"], **source},
        "other": {"hosts": "*.example.org", **source},
    }
    yield browser
    browser.computer.browser_secrets = None


def test_a_registered_secret_is_filled_in_by_name(registered: Any, app: WebApp) -> None:
    registered.go_to_url(f"{app.url}/frame")
    told = registered.fill("City", "key <secret:shop>") + registered.snapshot() + registered.read()
    assert SECRET not in told and "key •••" in told
    value = "document.querySelector('iframe').contentDocument.querySelector('[name=city]').value.split('').join(' ')"
    assert registered.evaluate(value)["value"] == " ".join(f"key {SECRET}")


def test_a_registered_secret_is_only_for_its_hosts(registered: Any, app: WebApp, tmp_path: Path) -> None:
    registered.go_to_url(f"{app.url}/form")
    with pytest.raises(NotReachableError, match=r"The secret other is for \*\.example\.org, not for 127\.0\.0\.1"):
        registered.fill("City", "<secret:other>")
    with pytest.raises(BrowserError, match=r"There is no secret none\. .*registered: shop, other"):
        registered.fill("City", "<secret:none>")
    registered.go_to_url(f"http://localhost:{app.server_port}/form")
    with pytest.raises(NotReachableError, match=r"not for localhost"):
        registered.fill("City", "<secret:shop>")
    assert registered.evaluate("document.querySelector('[name=city]').value")["value"] == ""
