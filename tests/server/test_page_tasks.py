"""More tasks on the web page, in a real browser. The quick core is in test_page.py."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Request, Route, expect

from interpreter.frontends.server import routes
from interpreter.session.events import PlanStep
from model_replies import Reply, Stall, error, text, tool_call
from running_server import Serving
from tiny_package import write_wheel
from waiting import until
from web_page import LIMIT, open_page

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.full]
FIGURE = "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3], [1, 4, 9], label='squares')\nplt.bar([1, 2], [5, 6])\nplt.show()"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def live_session(served: Serving, session: str):  # type: ignore[no-untyped-def]
    found = served.hub.find(served.hub.locate(served.users.find("local"), session))  # type: ignore[arg-type]
    assert found is not None
    return found.interpreter


# -- approval --------------------------------------------------------------------------------------------------------


def test_a_saved_rule_prevents_the_next_question(home: Path, chromium: Browser) -> None:
    blocks = [tool_call("python", f"open('notes.txt', 'w').write('{word}')") for word in ("one", "two")]
    with open_page(chromium, blocks[0], text("One."), blocks[1], text("Two.")) as visit:
        page = visit.page
        visit.say("Go.")
        expect(page.get_by_role("group", name="Approval")).to_be_visible()
        visit.key("w")
        card = page.locator(".dry-run")
        expect(card).to_contain_text("Always allow writing notes.txt, in python code.")
        card.locator("summary").click()
        expect(card.locator("pre")).to_contain_text("decision: allow")
        page.get_by_role("button", name="Wider rule").click()
        expect(card).to_contain_text("Always allow writing files in this folder, in python code.")
        page.get_by_role("button", name="Back").click()
        page.get_by_role("button", name="Always allow").click()
        page.get_by_role("button", name="Save this rule and run the code").click()
        visit.idle()
        visit.say("Again.")
        expect(page.locator(".said").last).to_have_text("Two.")
        assert Path("notes.txt").read_text() == "two"


def test_no_rule_is_offered_for_code_that_cannot_be_judged(home: Path, chromium: Browser) -> None:
    with open_page(chromium, tool_call("python", "exec(open('x').read())")) as visit:
        visit.say("Go.")
        visit.page.get_by_role("button", name="Always allow").click()
        expect(visit.page.locator(".toast")).to_contain_text("no rule can safely allow it")
        expect(visit.page.get_by_role("button", name="Approve")).to_be_visible()


def test_one_key_installs_a_missing_package(
    home: Path, chromium: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_wheel(tmp_path, "squarify")
    for name, value in {"CONFIG_FILE": os.devnull, "NO_INDEX": "1", "FIND_LINKS": str(tmp_path)}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    with open_page(
        chromium, tool_call("python", "import squarify\nprint('it is', squarify.answer)"), text("So.")
    ) as visit:
        visit.say("Go.")
        expect(visit.page.get_by_role("group", name="Approval")).to_be_visible()
        visit.key("a")
        expect(visit.page.locator(".question")).to_contain_text("Install squarify and run the block?")
        visit.key("a")
        visit.idle()
        expect(visit.page.locator(".outputs")).to_contain_text("it is 42")
        expect(visit.page.locator("body")).to_contain_text("Installed squarify.")


def test_the_approval_says_what_cannot_be_undone(home: Path, chromium: Browser) -> None:
    with open_page(chromium, tool_call("shell", "curl -d x=1 https://example.com")) as visit:
        visit.say("Go.")
        approval = visit.page.get_by_role("group", name="Approval")
        expect(approval).to_contain_text("Contacts example.com (sends data)")
        expect(approval.locator(".undo-line.bad")).to_contain_text("sending data to example.com")


def test_two_tabs_stay_in_sync_and_one_answer_is_enough(home: Path, chromium: Browser) -> None:
    with open_page(chromium, tool_call("python", "print('once')"), text("Done.")) as visit:
        second = visit.page.context.new_page()
        second.goto(f"{visit.served.url}/#{visit.session}")
        visit.say("Go.")
        expect(second.get_by_role("group", name="Approval")).to_be_visible()
        second.get_by_role("button", name="Approve").click()
        for page in (visit.page, second):
            expect(page.get_by_role("group", name="Approval")).to_have_count(0)
            expect(page.get_by_label("Output")).to_have_text("once\n")
            expect(page.locator(".said")).to_have_text("Done.")


def test_a_question_notifies_when_the_page_is_hidden(home: Path, chromium: Browser) -> None:
    hidden = """() => { Object.defineProperty(document, 'hidden', { value: true }); window.shown = [];
        window.Notification = class { static permission = 'granted'; constructor(title) { shown.push(title); } }; }"""
    gate = threading.Event()
    block = tool_call("python", "print(1)")
    with open_page(chromium, Reply((Stall(gate), *block.deltas))) as visit:
        visit.say("Go.")
        visit.page.evaluate(hidden)
        gate.set()
        until(lambda: visit.page.evaluate("shown") == ["A question waits for you"], "one notification")
        expect(visit.page).to_have_title(re.compile(r"^\(\?\)"))
        expect(visit.page.locator(".session .badge")).to_be_visible()


# -- output ----------------------------------------------------------------------------------------------------------


def test_the_data_of_a_figure_can_be_shown_and_saved(home: Path, chromium: Browser) -> None:
    with open_page(chromium, tool_call("python", FIGURE), text("Here."), mode="auto") as visit:
        page = visit.page
        visit.say("Draw.")
        page.get_by_role("button", name="Data").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.locator("th")).to_have_text(["panel", "series", "x", "y"])
        cells = [row.split() for row in dialog.locator("tbody tr").all_inner_texts()]
        assert ["1", "squares", "3", "9"] in cells and len(cells) == 5
        with page.expect_download() as download:
            dialog.get_by_role("link", name="Save as CSV").click()
        assert Path(download.value.path()).read_text().startswith("panel,series,x,y\n1,squares,1,1\n")


def test_a_figure_can_be_zoomed_and_saved(home: Path, chromium: Browser) -> None:
    with open_page(chromium, tool_call("python", FIGURE), text("Here."), mode="auto") as visit:
        page = visit.page
        visit.say("Draw.")
        with page.expect_download() as download:
            page.locator("figcaption").get_by_role("link", name="Save").click()
        assert Path(download.value.path()).read_bytes().startswith(b"\x89PNG")
        page.get_by_role("button", name=re.compile("Zoom")).click()
        picture = page.get_by_role("dialog").get_by_role("img")
        fits = picture.bounding_box()
        page.get_by_role("button", name="Larger").click()
        page.get_by_role("button", name="Larger").click()
        until(lambda: picture.bounding_box() != fits, "another size")
        page.get_by_role("button", name="Fit").click()
        until(lambda: picture.bounding_box() == fits, "the size before")


def test_html_from_code_cannot_reach_the_page_the_server_or_the_network(home: Path, chromium: Browser) -> None:
    script = (
        "const out = []; const note = (word) => { out.push(word); document.body.textContent = out.sort().join(' '); };"
        "fetch('/api/me').then(() => note('server'), () => note('no-server'));"
        "try { parent.document.title; note('page'); } catch { note('no-page'); }"
        "try { localStorage.x = 1; note('storage'); } catch { note('no-storage'); }"
        "const image = new Image(); image.onload = () => note('image'); image.onerror = () => note('no-image');"
        "image.src = '/web/icon.svg';"
    )
    code = f'from IPython.display import HTML\nHTML("""<p></p><script>{script}</script>""")'
    with open_page(chromium, tool_call("python", code), text("Shown."), mode="auto") as visit:
        visit.say("Show.")
        body = visit.page.frame_locator("iframe").locator("body")
        expect(body).to_have_text("no-image no-page no-server no-storage")
        policy = visit.served.http.get(visit.page.locator("iframe").get_attribute("src") or "").headers
        assert "sandbox allow-scripts" in policy["content-security-policy"]
        visit.problems.clear()  # the browser reports what it refused


def test_markdown_streams_without_raw_html_or_remote_images(home: Path, chromium: Browser) -> None:
    gate = threading.Event()
    first = text("| a | b |\n|---|---|\n| 1 | 2 |\n\n", 3)
    second = text(
        "- [x] done\n\n<img src=x onerror=alert(1)> ![far](https://example.com/x.png)\n\n```sql\nselect 1\n```", 4
    )
    with open_page(chromium, Reply((*first.deltas, Stall(gate), *second.deltas))) as visit:
        answer = visit.page.locator(".said")
        visit.say("Go.")
        expect(answer.locator("td")).to_have_text(["1", "2"])
        assert not gate.is_set(), "the table appears before the answer is complete"
        gate.set()
        expect(answer.locator("pre.code .k")).to_have_text("select")
        assert answer.locator("img").count() == 0
        expect(answer.locator("a", has_text="far")).to_have_attribute("rel", "noopener noreferrer")


def test_a_wide_table_scrolls_without_wrapping_cells(home: Path, chromium: Browser) -> None:
    head = "| Region | Q1 | Q2 | Q3 | Q4 | Total | Remark |\n|---|---|---|---|---|---|---|\n"
    row = "| North | 4000 | 4400 | 4800 | 5200 | 18400 | A rather long remark about the north, which is wide |\n"
    lines = "cell => { const range = document.createRange(); range.selectNodeContents(cell); return range.getClientRects().length; }"
    with open_page(chromium, text(head + row), screen=(390, 844)) as visit:
        visit.say("A table, please.")
        cells = visit.page.locator(".said td, .said th")
        expect(cells).to_have_count(14)
        assert [cells.nth(each).evaluate(lines) for each in range(13)] == [1] * 13
        assert visit.page.locator(".said table").evaluate("table => table.scrollWidth > table.clientWidth")
        assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_progress_bars_colours_and_long_output_are_shown(home: Path, chromium: Browser) -> None:
    code = "print('10%\\r20%\\r100%')\nprint('\\x1b[31mred\\x1b[0m')\nprint('x' * 30_000 + 'end')"
    with open_page(chromium, tool_call("python", code), text("Done."), mode="auto", max_output=100_000) as visit:
        visit.say("Go.")
        visit.idle()
        output = visit.page.get_by_label("Output").last
        output.get_by_role("button", name="Show all").click()
        expect(output).to_contain_text(re.compile("^100%"))
        expect(output.locator(".fg1")).to_have_text("red")


def test_code_shared_by_the_user_is_shown_once(home: Path, chromium: Browser) -> None:
    with open_page(chromium, text("Five.")) as visit:
        run = {"language": "python", "code": "print(5)", "shared": True}
        visit.served.http.post(f"/api/sessions/{visit.session}/run", json=run)
        block = visit.page.locator(".block")
        expect(block.locator("header")).to_contain_text("run by you")
        expect(block.get_by_label("python code")).to_have_text("print(5)")
        visit.say("What was it?")
        expect(visit.page.locator(".said")).to_have_text("Five.")
        expect(block).to_have_count(1)
        expect(visit.page.get_by_label("Output")).to_have_text("5\n")


def test_a_model_error_is_shown_and_the_next_message_works(home: Path, chromium: Browser) -> None:
    with open_page(chromium, error(401), text("Back.")) as visit:
        visit.say("Go.")
        expect(visit.page.get_by_role("alert")).to_be_visible()
        visit.idle()
        visit.say("Again.")
        expect(visit.page.locator(".said")).to_have_text("Back.")


# -- files, variables, plan --------------------------------------------------------------------------------------------


def test_files_can_be_listed_opened_and_previewed(home: Path, chromium: Browser) -> None:
    Path("folder").mkdir()
    Path("folder/read.md").write_text("# Title\n\nSome *words*.")
    Path("folder/code.py").write_text("x = 1  # one")
    Path("dot.png").write_bytes(base64.b64decode(PIXEL))
    Path("page.html").write_text("<h1>Page</h1><script>document.body.append('ran')</script>")
    with open_page(chromium) as visit:
        page = visit.page
        visit.key("f")
        pane, dialog = page.get_by_role("complementary", name="Files"), page.get_by_role("dialog")

        def opened(name: str) -> None:
            pane.get_by_role("button", name=re.compile(f"^{name}")).click()

        opened("dot.png")
        expect(dialog.locator("img.preview-picture")).to_be_visible()
        page.keyboard.press("Escape")
        opened("page.html")
        expect(page.frame_locator("dialog iframe").locator("body")).to_contain_text("Pageran")
        page.keyboard.press("Escape")
        opened("folder")
        opened("read.md")
        expect(dialog.locator("em")).to_have_text("words")
        page.keyboard.press("Escape")
        opened("code.py")
        expect(dialog.locator(".c1")).to_have_text("# one")
        page.keyboard.press("Escape")
        with page.expect_download() as download:
            pane.get_by_role("link", name="Download code.py").click()
        assert Path(download.value.path()).read_text() == "x = 1  # one"


def test_a_pasted_image_is_sent_to_the_model(home: Path, chromium: Browser) -> None:
    with open_page(chromium, text("A dot.")) as visit:
        page = visit.page
        page.get_by_label("Message").focus()
        page.evaluate(
            """(pixel) => { const data = new DataTransfer();
            data.items.add(new File([Uint8Array.from(atob(pixel), (each) => each.charCodeAt(0))], "dot.png", { type: "image/png" }));
            document.activeElement.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true })); }""",
            PIXEL,
        )
        expect(page.locator(".chip img")).to_be_visible()
        expect(page.locator(".chip", has_text="dot.png")).to_be_visible()
        visit.say("What is it?")
        expect(page.locator(".said")).to_have_text("A dot.")
        expect(page.locator("img.sent")).to_be_visible()
        assert PIXEL[:60] in str(visit.served.model.requests[-1].body)


def test_variables_can_be_searched_and_shown_as_text_or_table(home: Path, chromium: Browser) -> None:
    with open_page(chromium) as visit:
        page = visit.page
        visit.served.run(visit.session, "word = 'hello'\nrows = [{'a': 1, 'b': 'x'}, {'a': 2, 'b': 'y'}]")
        visit.key("v")
        pane = page.get_by_role("complementary", name="Variables")
        expect(pane.get_by_role("button", name=re.compile("^word"))).to_contain_text("hello")
        pane.get_by_label("Find a variable").fill("ro")
        expect(pane.locator(".variable")).to_have_count(1)
        pane.get_by_role("button", name=re.compile("^rows")).click()
        expect(page.locator(".grid-bar .facts")).to_have_text("2 rows · 2 columns")
        page.keyboard.press("Escape")
        pane.get_by_label("Find a variable").fill("word")
        pane.get_by_role("button", name=re.compile("^word")).click()
        expect(page.get_by_role("dialog").locator("pre")).to_contain_text("hello")


def test_a_table_with_many_columns_can_be_sorted_searched_and_scrolled(home: Path, chromium: Browser) -> None:
    code = "import pandas as pd\nwide = pd.DataFrame({f'c{n}': [n, n + 1, -n] for n in range(300)})\nwide['c299'] = ['red', 'blue', 'red']"
    with open_page(chromium) as visit:
        page, columns = visit.page, set[str]()
        visit.served.run(visit.session, code)
        page.on("response", lambda answer: columns.update(re.findall(r"[?&]column=(\d+)", answer.url)))
        visit.key("v")
        page.get_by_role("button", name=re.compile("^wide")).click()
        grid = page.get_by_role("table", name="wide")
        expect(grid.get_by_role("columnheader", name="c0")).to_be_visible()
        page.get_by_role("button", name="Sort by c1", exact=True).focus()
        page.keyboard.press("Enter")
        expect(grid.get_by_role("rowheader").first).to_have_text("2")
        page.get_by_label("Find text").fill("blue")
        page.keyboard.press("Enter")
        expect(page.locator(".grid-bar .facts")).to_contain_text("1 of 3 rows")
        page.get_by_role("button", name="Give me the code").click()
        shown = page.locator(".grid-code pre").inner_text()
        assert visit.served.run(visit.session, f"print({shown}.c299.iloc[0])") == "blue\n"
        grid.focus()
        grid.evaluate("box => box.scrollLeft = box.scrollWidth")
        expect(grid.get_by_role("cell", name="blue")).to_be_visible()
        assert columns < {str(number) for number in range(0, 300, 20)}, "only visible columns leave the runtime"


def test_the_plan_shows_its_progress(home: Path, chromium: Browser) -> None:
    with open_page(chromium) as visit:
        interpreter = live_session(visit.served, visit.session)
        steps = [PlanStep("Read the file", "done"), PlanStep("Clean it", "running"), PlanStep("Save it")]
        interpreter.session.plan(steps, interpreter.agent.actor)
        plan = visit.page.locator(".plan")
        expect(plan.locator("summary")).to_have_text("Plan: 1 of 3 done · Clean it")
        plan.locator("summary").click()
        expect(plan.get_by_role("listitem")).to_have_text(["Read the file done", "Clean it running", "Save it "])
        interpreter.session.plan([PlanStep("Read the file", "done")], interpreter.agent.actor)
        expect(plan.locator("summary")).to_have_text("Plan: 1 of 1 done")


def test_cost_and_context_grow_with_the_conversation(home: Path, chromium: Browser) -> None:
    with open_page(chromium, text("One."), text("Two. " * 400)) as visit:
        facts = visit.page.locator(".top .facts")
        visit.say("Go.")
        visit.idle()
        expect(facts).to_contain_text("$0.00")
        before = facts.inner_text()
        visit.say("More.")
        visit.idle()
        until(lambda: facts.inner_text() != before, "another cost")
        assert int(visit.page.locator(".context").get_attribute("title").split()[0].replace(",", "")) > 400  # type: ignore[union-attr]


# -- connection, sessions, appearance ------------------------------------------------------------------------------------


def test_a_sleeping_laptop_catches_up(home: Path, chromium: Browser) -> None:
    gate = threading.Event()
    first, second = text("Before ", 1), text("and after.", 2)
    with open_page(chromium, Reply((*first.deltas, Stall(gate), *second.deltas))) as visit:
        page = visit.page
        visit.say("Count.")
        expect(page.locator(".said")).to_have_text("Before")
        page.context.set_offline(True)
        page.evaluate("dispatchEvent(new Event('online'))")  # the old connection is dropped, and a new one fails
        expect(page.locator(".connection")).to_contain_text("Reconnecting")
        gate.set()
        until(lambda: not visit.served.http.get(f"/api/sessions/{visit.session}").json()["running"], "the end")
        page.context.set_offline(False)
        expect(page.locator(".said")).to_have_text("Before and after.")
        expect(page.locator(".connection")).to_have_class(re.compile("open"))
        visit.idle()


def test_one_block_can_be_undone_and_redone(home: Path, chromium: Browser) -> None:
    reply = tool_call("python", "open('one.txt', 'w').write('x')")
    with open_page(
        chromium, reply, tool_call("python", "open('two.txt', 'w').write('x')"), text("Both."), mode="auto"
    ) as visit:
        page = visit.page
        visit.say("Make both.")
        visit.idle()
        visit.key("h")
        pane = page.get_by_role("complementary", name="Timeline")
        pane.get_by_role("button", name="Undo block").click()
        expect(page.locator(".note", has_text="Undone")).to_contain_text("two.txt")
        assert Path("one.txt").exists() and not Path("two.txt").exists()
        pane.get_by_role("button", name="Redo").click()
        until(Path("two.txt").exists, "the file again")


def test_the_theme_persists_after_a_reload(home: Path, chromium: Browser) -> None:
    with open_page(chromium) as visit:
        page = visit.page
        page.emulate_media(color_scheme="dark")
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.get_by_role("button", name="Light or dark").click()
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert dark != light
        page.reload()
        expect(page.get_by_label("Message")).to_be_visible()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == light


def test_displayed_html_follows_the_system_theme(home: Path, chromium: Browser) -> None:
    code = "from IPython.display import HTML\nHTML('<b>bold</b>')"
    with open_page(chromium, tool_call("python", code), text("Shown."), mode="auto") as visit:
        visit.page.emulate_media(color_scheme="light")
        visit.say("Show.")
        frame = visit.page.frame_locator("iframe").locator(":root")
        expect(frame).to_have_css("color-scheme", "light")
        visit.page.emulate_media(color_scheme="dark")
        expect(frame).to_have_css("color-scheme", "dark")


def test_a_task_works_on_a_phone(home: Path, chromium: Browser) -> None:
    with open_page(chromium, tool_call("python", "x = 1\nprint('small')"), text("Done."), screen=(390, 844)) as visit:
        page, first = visit.page, visit.session
        page.get_by_role("button", name="Show the sessions").click()
        page.get_by_role("navigation").get_by_role("button", name="New session").click()
        until(lambda: visit.session != first, "the new session")
        expect(page.locator(".sidebar")).not_to_be_visible()
        visit.say("Go.")
        box = page.get_by_role("button", name="Approve").bounding_box()
        assert box is not None and box["height"] >= 40
        visit.approve()
        expect(page.get_by_label("Output")).to_have_text("small\n")
        visit.idle()
        page.get_by_role("button", name="Variables").click()
        pane = page.get_by_role("complementary", name="Variables")
        assert (pane.bounding_box() or {})["width"] == 390
        pane.get_by_role("button", name="Close").click()
        expect(page.get_by_label("Message")).to_be_visible()


def test_model_and_mode_of_a_session_can_be_changed(home: Path, chromium: Browser) -> None:
    with open_page(chromium, text("Planned.")) as visit:
        page = visit.page
        page.get_by_role("button", name="gpt-4o").click()
        page.get_by_label("Model").fill("gpt-4o-mini")
        page.get_by_role("combobox").select_option("plan")
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.locator(".top .facts")).to_contain_text("gpt-4o-mini")
        expect(page.locator(".tag")).to_have_text("plan")
        visit.say("Look.")
        expect(page.locator(".said")).to_have_text("Planned.")
        assert visit.served.model.requests[-1].body["model"] == "gpt-4o-mini"


def test_missing_and_deleted_sessions_are_handled(home: Path, chromium: Browser) -> None:
    with open_page(chromium) as visit:
        page, session = visit.page, visit.session
        page.goto(f"{visit.served.url}/#0123456789abcdef")
        until(lambda: visit.session != "0123456789abcdef", "another address")
        page.goto(f"{visit.served.url}/#{session}")
        expect(page.get_by_label("Message")).to_be_visible()
        visit.served.http.delete(f"/api/sessions/{session}")
        expect(page.locator(".alone")).to_contain_text("This session no longer exists")


def test_replacing_a_token_signs_an_idle_page_out(
    home: Path, chromium: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "_HEARTBEAT", 1.0)
    with open_page(chromium) as visit:
        visit.served.users.add("anna")
        context = chromium.new_context()
        page = context.new_page()
        page.goto(f"{visit.served.url}/start?token={visit.served.users.link('anna')}")
        expect(page.get_by_label("Message")).to_be_visible(timeout=LIMIT)
        page.wait_for_timeout(500)  # the page has no more requests to send
        visit.served.users.add("anna")
        expect(page.get_by_role("heading", name="You are signed out")).to_be_visible()
        context.close()


# -- races and lists ---------------------------------------------------------------------------------------------------


def test_a_page_hidden_during_an_answer_still_notifies(home: Path, chromium: Browser) -> None:
    asked = "() => { window.requestAnimationFrame = () => 1; document.getElementById('composer').dispatchEvent(new Event('input', { bubbles: true })); }"
    hidden = """() => { Object.defineProperty(document, 'hidden', { value: true }); window.shown = [];
        window.Notification = class { static permission = 'granted'; constructor(title) { shown.push(title); } }; }"""
    gate, block = threading.Event(), tool_call("python", "print(1)")
    with open_page(chromium, Reply((Stall(gate), *block.deltas))) as visit:
        visit.say("Go.")
        visit.page.evaluate(asked)  # the page requests a frame, which a browser doesn't give to a hidden page
        visit.page.evaluate(hidden)
        gate.set()
        until(lambda: visit.page.evaluate("shown") == ["A question waits for you"], "one notification")


def test_a_turn_that_ends_before_its_request_returns_is_shown_as_ended(home: Path, chromium: Browser) -> None:
    with open_page(chromium, text("Quick."), text("Again.")) as visit:

        def slow(route: Route) -> None:
            answer = route.fetch()
            visit.page.wait_for_timeout(1500)
            route.fulfill(response=answer)

        visit.page.route("**/messages", slow)
        visit.say("Go.")
        expect(visit.page.locator(".said")).to_have_text("Quick.")
        visit.idle()
        visit.say("Go on.")
        expect(visit.page.locator(".said").last).to_have_text("Again.")
        visit.idle()


def test_a_stale_response_does_not_hide_a_question(home: Path, chromium: Browser) -> None:
    with open_page(chromium, text("Hello."), tool_call("python", "print(1)")) as visit:
        page, held = visit.page, list[tuple[Route, Any]]()
        visit.say("Hi.")
        visit.idle()

        def hold(route: Route) -> None:
            held.append((route, route.fetch()))

        page.route("**/questions", hold, times=1)
        page.evaluate("() => dispatchEvent(new Event('online'))")  # it reconnects and requests the questions
        until(lambda: page.wait_for_timeout(20) or held, "the request")
        visit.say("Go.")
        expect(page.get_by_role("group", name="Approval")).to_be_visible()
        route, answer = held[0]
        route.fulfill(response=answer)  # from before the question
        page.wait_for_timeout(500)
        expect(page.get_by_role("group", name="Approval")).to_be_visible()


def test_a_turn_left_open_by_a_killed_server_is_shown_as_ended(home: Path, chromium: Browser) -> None:
    with open_page(chromium, Reply((Stall(),))) as visit:
        page = visit.page
        visit.say("Go.")
        assert visit.served.model.stalled.wait(60)
        root = visit.served.hub.root("local")
        shutil.copytree(root / visit.session, root / "0123456789abcdef")  # the state on disk after kill -9
        page.goto(f"{visit.served.url}/#0123456789abcdef")
        expect(page.locator(".bubble")).to_have_text("Go.")
        visit.idle()


def test_a_long_answer_is_rendered_only_in_its_latest_version(home: Path, chromium: Browser) -> None:
    words = "".join(f"word **{number}** and more text\n\n" for number in range(1500))
    with open_page(chromium, text(words, 40)) as visit:
        sizes = list[list[int]]()

        def note(request: Request) -> None:
            if request.url.endswith("/api/render"):
                sizes.append([len(item["text"]) for item in json.loads(request.post_data or "{}")["items"]])

        visit.page.on("request", note)
        visit.say("Talk.")
        expect(visit.page.locator(".said strong").last).to_have_text("1499")
        visit.idle()
        assert all(len(each) == 1 for each in sizes) and sizes[-1] == [len(words)]
        assert sizes == sorted(sizes)


def test_an_invalid_filter_shows_an_error_and_is_not_retried(home: Path, chromium: Browser) -> None:
    code = "import pandas as pd\ndf = pd.DataFrame({'n': range(50)})"
    with open_page(chromium, tool_call("python", code), text("Done."), mode="auto") as visit:
        page, asked = visit.page, list[str]()
        visit.say("Go.")
        visit.idle()
        visit.key("v")
        page.locator(".variable", has_text="df").click()
        expect(page.locator(".grid-row").first).to_contain_text("0")
        page.on("request", lambda request: asked.append(request.url) if "/df" in request.url else None)
        page.get_by_label("Filter").fill("n >")
        page.get_by_role("button", name="Apply").click()
        expect(page.locator(".grid .note.bad")).to_be_visible()
        page.wait_for_timeout(1000)
        assert len(asked) <= 3
        page.get_by_label("Filter").fill("n > 47")
        page.get_by_role("button", name="Apply").click()
        expect(page.locator(".grid .facts")).to_contain_text("2 of 50 rows")
        expect(page.locator(".grid .note.bad")).to_have_count(0)


def test_a_question_in_another_session_is_shown_in_the_list(home: Path, chromium: Browser) -> None:
    gate, block = threading.Event(), tool_call("python", "print(1)")
    with open_page(chromium, Reply((Stall(gate), *block.deltas)), text("Done.")) as visit:
        page, first = visit.page, visit.session
        visit.say("Go.")
        page.get_by_role("navigation").get_by_role("button", name="New session").click()
        until(lambda: visit.session != first, "the new session")
        row = page.locator(f"a[href='#{first}']")
        expect(row.get_by_title("Running")).to_be_visible()
        gate.set()
        expect(row.get_by_title("A question waits")).to_be_visible()
        expect(page).to_have_title(re.compile(r"^\(\?\)"))
        row.click()
        visit.approve()
        expect(page.locator(".said").last).to_have_text("Done.")
        expect(row.locator(".badge")).to_have_count(0)


def test_an_invalid_session_address_sends_no_request(home: Path, chromium: Browser) -> None:
    with open_page(chromium) as visit:
        asked = list[str]()
        visit.page.on("request", lambda request: asked.append(request.url))
        visit.page.evaluate("() => { location.hash = '../me' }")
        expect(visit.page.locator(".alone")).to_contain_text("Nothing is open")
        assert not any(url.endswith("/api/me") for url in asked)


def test_the_message_is_kept_when_sending_fails(home: Path, chromium: Browser) -> None:
    with open_page(chromium, tool_call("python", "print(1)")) as visit:
        page = visit.page
        box = page.get_by_label("Message", exact=True)
        page.route("**/messages", lambda route: route.abort())
        box.fill("Hello.")
        page.keyboard.press("Enter")
        expect(page.locator(".toast.error")).to_be_visible()
        expect(box).to_have_value("Hello.")
        page.unroute("**/messages")
        expect(page.get_by_role("button", name="Send", exact=True)).to_be_enabled()
        page.keyboard.press("Enter")
        expect(page.get_by_role("group", name="Approval")).to_be_visible()
        page.route("**/questions/*", lambda route: route.abort())
        box.fill("Use a loop.")
        page.keyboard.press("Enter")
        expect(page.locator(".toast.error")).to_be_visible()
        expect(box).to_have_value("Use a loop.")
