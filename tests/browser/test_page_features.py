"""Special page features: canvases, drags, scrolling, shadow roots, hidden file fields, PDFs, console and network."""

from __future__ import annotations

import threading
import zlib
from pathlib import Path
from typing import Any

import pytest

from browser.web_app import WebApp
from interpreter.computer_api.browser import BrowserError
from sampling import some
from waiting import until

pytestmark = pytest.mark.needs("chromium")

CANVAS = """<title>Canvas</title><main><canvas aria-label=Board width=300 height=150 style="margin-left: 40px"
onclick="out.textContent = `at ${event.offsetX} ${event.offsetY} ${event.detail}`"></canvas><p id=out></p></main>"""
DRAG = """<title>Board</title><main><div id=card draggable=true style="width: 80px">Card</div>
<div style="height: 100px"></div><div id=done style="width: 200px; height: 80px" ondragover="event.preventDefault()"
ondrop="this.append(card)" aria-label=Done role=group></div>
<div role=slider tabindex=0 aria-label=Volume aria-valuenow=0 id=knob style="position: absolute; left: 50px; top: 400px;
width: 20px; height: 20px; background: red"></div><script>
let held = false;
knob.onpointerdown = () => { held = true; };
document.onpointermove = event => { if (held) knob.style.left = event.clientX - 10 + "px"; };
document.onpointerup = () => { held = false; knob.setAttribute("aria-valuenow", parseInt(knob.style.left) - 50); };
</script></main>"""
LONG = """<title>Long</title><main><div id=list aria-label=Results role=group tabindex=0 style="height: 100px;
overflow: auto"><div style="height: 2000px">Inner end</div></div><div style="height: 3000px"></div><p>The end</p></main>"""
SHADOW = """<title>Shadow</title><main><x-open></x-open><x-closed></x-closed><div id=plain></div>
<x-declared><template shadowrootmode=closed><button onclick="this.textContent = 'Third pressed'">Third</button>
<label>Name <input></label></template></x-declared><script>
for (const [host, mode, name] of [["x-open", "open", "First"], ["x-closed", "closed", "Second"], ["#plain", "closed", "Fourth"]]) {
  document.querySelector(host).attachShadow({mode}).innerHTML =
    `<p>Words of ${name}</p><button onclick="this.textContent = '${name} pressed'">${name}</button>`;
}</script></main>"""
LABEL = """<title>Label</title><main><form method=post enctype=multipart/form-data action=/upload>
<input type=file id=f name=file style="display: none"><label for=f class=btn>Choose a photo</label>
<button>Send</button></form></main>"""


def test_positions_on_a_canvas_or_the_page_can_be_clicked(browser: Any, app: WebApp) -> None:
    app.pages["/canvas"] = CANVAS
    assert 'canvas "Board" [300x150]' in browser.go_to_url(f"{app.url}/canvas")
    assert "at 120 30 1" in browser.click("Board", x=120, y=30)
    box = browser.evaluate("(({x, y}) => [x, y])(document.querySelector('canvas').getBoundingClientRect())")["value"]
    assert "at 10 20 2" in browser.click(x=box[0] + 10, y=box[1] + 20, double=True)
    with pytest.raises(ValueError, match="x and y coordinates"):
        browser.click()


def test_elements_can_be_dragged_to_elements_and_positions(browser: Any, app: WebApp) -> None:
    app.pages["/drag"] = DRAG
    browser.go_to_url(f"{app.url}/drag")
    browser.drag("Card", "Done")
    assert browser.evaluate("card.parentElement.id")["value"] == "done"
    assert "Volume" in browser.drag("Volume", [160, 410])
    assert browser.evaluate("knob.getAttribute('aria-valuenow')")["value"] == "100"


def test_the_page_and_its_parts_can_be_scrolled(browser: Any, app: WebApp) -> None:
    app.pages["/long"] = LONG
    browser.go_to_url(f"{app.url}/long")
    reached = "new Promise(done => { const look = () => %s ? done(true) : setTimeout(look, 10); look() })"
    browser.scroll(down=500)
    assert browser.evaluate(reached % "scrollY === 500")["value"]
    browser.scroll("The end")
    assert browser.evaluate(reached % "scrollY > 2000")["value"]
    browser.scroll("Results", down=300)
    assert browser.evaluate(reached % "list.scrollTop === 300")["value"]


@pytest.mark.parametrize("name", some(1, ["First", "Second", "Third", "Fourth"]))
def test_open_and_closed_shadow_roots_can_be_read_and_used(browser: Any, app: WebApp, name: str) -> None:
    app.pages["/shadow"] = SHADOW
    browser.go_to_url(f"{app.url}/shadow")
    assert f"Words of {name}" in browser.read() or name == "Third"
    browser.click(name)
    browser.wait_for(f"{name} pressed")
    browser.fill("Name", "Zoë")
    assert "Zoë" in browser.snapshot(find="Name")


def test_upload_accepts_the_label_of_a_hidden_file_field(browser: Any, app: WebApp, workspace: Path) -> None:
    (workspace / "photo.png").write_bytes(b"photo")
    app.pages["/label"] = LABEL
    browser.go_to_url(f"{app.url}/label")
    browser.upload("Choose a photo", "photo.png")
    browser.click("Send")
    browser.wait_for("Got it")
    assert app.uploaded["photo.png"] == b"photo"


def test_leaving_a_page_that_asks_first_needs_accept_dialog(browser: Any, app: WebApp) -> None:
    app.pages["/draft"] = """<main><label>Draft <input></label><script>
    onbeforeunload = event => { event.preventDefault(); return "x" }</script></main>"""
    browser.go_to_url(f"{app.url}/draft")
    browser.fill("Draft", "words")
    with pytest.raises(BrowserError, match=r"Still at .*/draft\. .*answered with Cancel.*accept_dialog"):
        browser.go_to_url(f"{app.url}/article")
    assert "words" in browser.read()
    browser.accept_dialog()
    assert "Harvest" in browser.go_to_url(f"{app.url}/article")


def test_pages_can_be_saved_as_pdf_and_pdfs_read_as_text(browser: Any, app: WebApp, workspace: Path) -> None:
    browser.go_to_url(f"{app.url}/article")
    made = Path(browser.pdf())
    app.paper = made.read_bytes()
    assert made.parent == workspace and made.name == "Harvest.pdf"
    assert "Harvest of 2024" in browser.read(f"{app.url}/paper")
    assert Path(browser.download(f"{app.url}/paper")).read_bytes() == app.paper


@pytest.mark.full
def test_a_pdf_that_takes_too_long_times_out(browser: Any, app: WebApp) -> None:
    text = zlib.compress(b"BT /F 9 Tf (Pears) Tj ET\n" * 40_000, 9)
    page = b"%d 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 3 0 R/Resources<</Font<</F<<"
    page += b"/Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>endobj\n"
    app.paper = b"".join(
        [
            b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n",
            b"2 0 obj<</Type/Pages/Count 500/Kids[%s]>>endobj\n" % b" ".join(b"%d 0 R" % at for at in range(4, 504)),
            b"3 0 obj<</Filter/FlateDecode/Length %d>>stream\n%s\nendstream endobj\n" % (len(text), text),
            *(page % at for at in range(4, 504)),
            b"xref\n0 0\ntrailer<</Root 1 0 R/Size 504>>\nstartxref\n0\n%%EOF",
        ]
    )
    browser.setup(timeout=3)
    with pytest.raises(BrowserError, match="took"):
        browser.read(f"{app.url}/paper")
    browser.quit()
    until(lambda: not any(each.name.startswith("asyncio_") for each in threading.enumerate()), "no thread still reads")


def test_console_and_network_are_reported(browser: Any, app: WebApp) -> None:
    app.pages["/noisy"] = """<main>x<script>console.warn("low on pears"); fetch("/nothing?kind=pear");
    setTimeout(() => missing())</script></main>"""
    browser.go_to_url(f"{app.url}/noisy")
    browser.evaluate("new Promise(done => setTimeout(done, 50))")
    told = browser.console()
    assert 'warning: "low on pears"' in told and "missing is not defined" in told
    assert f"GET {app.url}/nothing?kind=pear fetch 404" in browser.network(find="pear")
