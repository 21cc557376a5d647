"""The web page in a real browser, used by mouse and keyboard."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from interpreter.export import EXPORTERS
from interpreter.frontends.server.application import Application
from model_replies import Reply, Stall, text, tool_call
from running_server import Serving, serving
from waiting import until
from web_page import LIMIT, open_page

pytestmark = pytest.mark.needs("chromium")
AXE = Path(__file__).parent / "axe" / "axe.min.js"
TABLE = """import pandas as pd
df = pd.DataFrame({"n": range(20_000), "half": [number / 2 for number in range(20_000)], "word": ["a", "b"] * 10_000})"""
FIGURE = "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.show()"


def test_approved_code_runs_and_the_answer_is_rendered(home: Path, chromium: Browser) -> None:
    block = tool_call("python", "open('made.txt', 'w').write('x')\nprint(6 * 7)")
    said = (
        "The answer is **42**.\n\n```python\nx = 42  # new\n```\n<script>alert(1)</script> [bad](javascript:alert(1))"
    )
    with open_page(chromium, text("Let me see. ").then(block), text(said, 7)) as visit:
        page = visit.page
        assert "token" not in page.url
        visit.say("What is 6 × 7?")
        approval = page.get_by_role("group", name="Approval")
        expect(approval).to_contain_text("Creates made.txt")
        expect(approval).to_contain_text("You can undo this.")
        expect(page).to_have_title(re.compile(r"^\(\?\)"))
        assert not Path("made.txt").exists()
        visit.approve()
        expect(page.get_by_label("Output")).to_have_text("42\n")
        visit.idle()
        answer = page.locator(".said").last
        expect(answer.locator("strong")).to_have_text("42")
        expect(answer.locator("pre.code .c1")).to_have_text("# new")
        expect(answer).to_contain_text("<script>alert(1)</script>")
        assert answer.locator("script, a[href^=javascript]").count() == 0
        expect(page.locator(".block .k, .block .nb").first).to_be_visible()
        expect(page.locator(".top .facts")).to_contain_text("gpt-4o")
        expect(page.locator(".top .facts")).to_contain_text("$0.0")
        page.reload()
        expect(page.locator(".said").last.locator("strong")).to_have_text("42")
        expect(page.locator(".bubble")).to_have_text(["What is 6 × 7?"])


def test_an_invented_number_is_marked_below_the_answer(home: Path, chromium: Browser) -> None:
    with open_page(chromium, tool_call("python", "print('ok')"), text("The mean is 3.48."), auto_run=True) as visit:
        visit.say("What is the mean?")
        visit.idle()
        expect(visit.page.locator(".said").last).to_have_text("The mean is 3.48.")
        expect(visit.page.locator(".note").last).to_have_text("3.48 is not in any output.")
        visit.page.reload()
        expect(visit.page.locator(".note").last).to_have_text("3.48 is not in any output.")


@pytest.mark.full
def test_code_can_be_edited_or_refused_with_instructions(home: Path, chromium: Browser) -> None:
    one, two = tool_call("python", "print('first')"), tool_call("python", "print('second')")
    with open_page(chromium, one, text("Done."), two, text("As you like.")) as visit:
        page = visit.page
        visit.say("Go.")
        page.get_by_role("button", name="Edit").click()
        page.get_by_label("Edit the code").fill("print('changed')")
        page.get_by_role("button", name="Use this code").click()
        expect(page.get_by_label("python code")).to_have_text("print('changed')")
        visit.approve()
        expect(page.get_by_label("Output")).to_have_text("changed\n")
        visit.idle()
        visit.say("Again.")
        expect(page.get_by_role("group", name="Approval")).to_be_visible()
        visit.key("t")
        expect(page.get_by_label("Message")).to_be_focused()
        visit.say("Use a loop.")
        expect(page.locator(".decision")).to_have_text("You said no: Use a loop.")
        expect(page.locator(".said").last).to_have_text("As you like.")
        assert "Use a loop." in str(visit.served.model.requests[-1].body)


def test_a_declined_block_is_no_message_of_the_user_now_or_later(home: Path, chromium: Browser) -> None:
    with open_page(chromium, tool_call("python", "print('first')"), text("Fine.")) as visit:
        page = visit.page
        visit.say("Go.")
        expect(page.get_by_role("group", name="Approval")).to_be_visible()
        page.get_by_role("button", name="Refuse").click()
        visit.idle()

        def shows_it() -> None:
            expect(page.locator(".decision")).to_have_text("You said no.")
            expect(page.locator(".bubble")).to_have_text(["Go."])

        shows_it()
        page.reload()
        shows_it()
        again = restart(visit.served)
        try:
            page.reload()
            shows_it()
        finally:
            page.close()
            again.close()


@pytest.mark.full
def test_a_dry_run_can_be_discarded_or_applied(home: Path, chromium: Browser) -> None:
    Path("notes.txt").write_text("one\n")
    block = tool_call("python", "open('notes.txt', 'w').write('two\\n')\nprint('tried')")
    with open_page(chromium, block, text("Done.")) as visit:
        page = visit.page
        visit.say("Go.")
        trial = page.get_by_role("region", name="Dry run")
        expect(page.get_by_role("group", name="Approval")).to_be_visible()
        visit.key("p")
        expect(trial).to_contain_text("tried")
        expect(trial.locator("summary")).to_have_text("~ changed notes.txt")
        expect(trial.locator(".diff .removed")).to_contain_text(["--- a/notes.txt", "-one"])
        expect(trial.locator(".diff .added")).to_contain_text(["+++ b/notes.txt", "+two"])
        assert Path("notes.txt").read_text() == "one\n"
        visit.key("r")
        expect(trial).to_have_count(0)
        page.get_by_role("button", name="Dry run").click()
        page.get_by_role("button", name="Apply these changes").click()
        visit.idle()
        assert Path("notes.txt").read_text() == "two\n"
        expect(page.get_by_label("Output")).to_have_text("tried\n")
        page.get_by_role("button", name="What changed in notes.txt").click()
        expect(page.get_by_role("dialog").locator(".diff .added").last).to_have_text("+two\n")


@pytest.mark.full
def test_code_can_ask_for_text_and_a_password(home: Path, chromium: Browser) -> None:
    code = "from getpass import getpass\nname = input('Name? ')\nword = getpass('Word? ')\nprint(name, len(word))"
    with open_page(chromium, tool_call("python", code), text("Hello."), mode="auto") as visit:
        page = visit.page
        visit.say("Ask me.")
        expect(page.get_by_label("Name?")).to_be_focused()
        page.get_by_label("Name?").fill("Ada")
        page.get_by_label("Name?").press("Enter")
        expect(page.get_by_label("Word?")).to_have_attribute("type", "password")
        page.get_by_label("Word?").fill("secret")
        page.get_by_role("button", name="Answer").click()
        expect(page.locator(".output").last).to_contain_text("Ada 6")
        visit.idle()
        assert "secret" not in page.content()


@pytest.mark.full
def test_a_turn_can_be_stopped_and_errors_are_shown(home: Path, chromium: Browser) -> None:
    endless = tool_call("python", "import time\nprint('on', flush=True)\ntime.sleep(600)")
    with open_page(chromium, endless, tool_call("python", "1/0"), text("It failed."), mode="auto") as visit:
        page = visit.page
        visit.say("Sleep.")
        expect(page.get_by_label("Output")).to_have_text("on\n")
        page.keyboard.press("Control+.")
        visit.idle()
        expect(page.locator(".block .state")).to_have_text("stopped")
        visit.say("Divide.")
        expect(page.locator(".output").last).to_contain_text("ZeroDivisionError")
        expect(page.locator(".block .state").last).to_have_text("failed")


def test_files_figures_and_html_from_code_are_shown(home: Path, chromium: Browser) -> None:
    html = "HTML('<b>bold</b><script>document.title = 1; try { parent.document.title } catch { document.body.append(\"apart\") }</script>')"
    made = f"open('made.csv', 'w').write('city,n\\nOslo,1\\n\"a, b\",2\\n')\n{FIGURE}\nfrom IPython.display import HTML\n{html}"
    with open_page(chromium, tool_call("python", made), text("Here."), text("Thanks."), mode="auto") as visit:
        page = visit.page
        visit.say("Make files.")
        expect(page.locator(".card")).to_contain_text("made.csv")
        page.get_by_role("button", name="Preview made.csv").click()
        expect(page.get_by_role("dialog").locator("td")).to_have_text(["Oslo", "1", "a, b", "2"])
        page.keyboard.press("Escape")
        with page.expect_download() as download:
            page.get_by_role("link", name="Download made.csv").click()
        assert Path(download.value.path()).read_text().startswith("city,n")
        page.get_by_role("button", name=re.compile("Zoom")).click()
        page.get_by_role("button", name="Larger").click()
        expect(page.get_by_role("dialog").get_by_role("link", name="Save")).to_have_attribute(
            "download", re.compile("png")
        )
        page.keyboard.press("Escape")
        frame = page.locator("iframe")
        assert frame.get_attribute("sandbox") == "allow-scripts"
        expect(page.frame_locator("iframe").locator("body")).to_contain_text("boldapart")
        visit.problems.clear()  # the browser reports that the frame's access to the page was blocked
        visit.idle()
        page.locator("input[type=file]").set_input_files(
            {"name": "mine.txt", "mimeType": "text/plain", "buffer": b"mine"}
        )
        expect(page.locator(".chip")).to_contain_text("mine.txt")
        visit.say("Look at it.")
        expect(page.locator(".bubble").last).to_contain_text("Files I added to the folder: mine.txt")
        assert Path("mine.txt").read_text() == "mine"


@pytest.mark.full
def test_a_live_table_can_be_scrolled_sorted_and_filtered(home: Path, chromium: Browser) -> None:
    with open_page(chromium) as visit:
        page, rows = visit.page, list[int]()
        visit.served.run(visit.session, TABLE)
        page.on(
            "response",
            lambda answer: rows.append(int(found[1])) if (found := re.search(r"[?&]rows=(\d+)", answer.url)) else None,
        )
        visit.key("v")
        page.get_by_role("complementary", name="Variables").get_by_role("button", name=re.compile("^df")).click()
        grid = page.get_by_role("table", name="df")
        expect(page.locator(".grid-bar .facts")).to_have_text("20,000 rows · 3 columns")
        expect(page.locator(".grid-name svg.chart").first).to_be_visible()
        expect(page.locator(".chart.words")).to_contain_text("a 5")
        grid.evaluate("box => box.scrollTop = box.scrollHeight")
        expect(grid.get_by_role("row").last).to_contain_text("19999")
        page.get_by_role("button", name="Sort by n").click()
        page.get_by_role("button", name="Sort by n").click()
        expect(grid.get_by_role("rowheader").first).to_have_text("19999")
        page.get_by_label("Filter").fill("n < 10 and word == 'b'")
        page.keyboard.press("Enter")
        expect(page.locator(".grid-bar .facts")).to_have_text("5 of 20,000 rows · 3 columns")
        expect(grid.get_by_role("rowheader")).to_have_text(["9", "7", "5", "3", "1"])
        page.get_by_role("button", name="Give me the code").click()
        code = page.locator(".grid-code pre").inner_text()
        assert visit.served.run(visit.session, f"print(len({code}), ({code}).n.iloc[0])") == "5 9\n"
        page.get_by_label("Filter").fill("nothing > 1")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("nothing")
        assert sum(rows) < 2_000, "only visible rows leave the runtime"
        page.get_by_label("Filter").fill("")
        page.keyboard.press("Enter")
        visit.served.run(visit.session, "df = df.head(3)")
        expect(page.locator(".grid-bar .facts")).to_have_text("3 rows · 3 columns")


@pytest.mark.full
def test_turns_can_be_undone_and_redone(home: Path, chromium: Browser) -> None:
    replies = [tool_call("python", f"open('{name}.txt', 'w').write('x')") for name in ("one", "two")]
    with open_page(chromium, replies[0], text("One."), replies[1], text("Two."), mode="auto") as visit:
        page = visit.page
        for words, file in (("First.", "one"), ("Second.", "two")):
            visit.say(words)
            expect(page.locator(".card").last).to_contain_text(f"{file}.txt")
            visit.idle()
        visit.key("u")
        expect(page.locator(".entry .note")).to_contain_text("Undone: two.txt.")
        expect(page.locator(".entry.undone .bubble")).to_have_text("Second.")
        assert not Path("two.txt").exists() and Path("one.txt").exists()
        visit.key("U")
        expect(page.locator(".entry.undone")).to_have_count(0)
        assert Path("two.txt").exists()
        visit.key("h")
        points = page.get_by_role("complementary", name="Timeline").get_by_role("listitem")
        expect(points).to_have_count(5)
        points.first.get_by_role("button").click()
        expect(page.locator(".entry.undone .bubble")).to_have_text(["First.", "Second."])
        assert not Path("one.txt").exists() and not Path("two.txt").exists()


def restart(served: Serving) -> Serving:
    """Stop the server and start it again on the same port."""
    settings = served.application.settings
    settings.server_port = served.application.port
    served.close()
    return Serving(Application(settings), served.model)


def test_a_server_restart_loses_and_repeats_nothing(home: Path, chromium: Browser) -> None:
    with open_page(
        chromium, text("One two three. ", 3), tool_call("python", "print(1)"), text("Four five.", 2)
    ) as visit:
        page, served = visit.page, visit.served
        visit.say("Count.")
        expect(page.locator(".said")).to_have_text("One two three.")
        visit.idle()
        visit.say("More.")
        expect(page.get_by_role("group", name="Approval")).to_be_visible()
        again = restart(served)
        try:
            expect(page.locator(".connection")).to_have_class(re.compile("open"))
            expect(page.get_by_role("group", name="Approval")).to_have_count(0)
            visit.idle()
            visit.say("Go on.")
            expect(page.locator(".said")).to_have_text(["One two three.", "Four five."])
            expect(page.locator(".bubble")).to_have_text(["Count.", "More.", "Go on."])
            visit.idle()
            shown = page.locator(".column").inner_text()
            page.reload()
            expect(page.locator(".said")).to_have_text(["One two three.", "Four five."])
            expect(page.locator(".bubble")).to_have_text(["Count.", "More.", "Go on."])
            until(lambda: page.locator(".column").inner_text().split() == shown.split(), "the same conversation")
        finally:
            page.close()
            again.close()


@pytest.mark.full
def test_a_connection_lost_during_a_message_is_resumed(home: Path, chromium: Browser) -> None:
    gate = threading.Event()
    first, second = text("One two ", 2), text("three four.", 2)
    with open_page(chromium, Reply((*first.deltas, Stall(gate), *second.deltas))) as visit:
        page = visit.page
        visit.say("Count.")
        expect(page.locator(".said")).to_have_text("One two")
        page.evaluate("dispatchEvent(new Event('online'))")  # as after a laptop's sleep: reconnect at the last position
        gate.set()
        expect(page.locator(".said")).to_have_text("One two three four.")
        visit.idle()
        expect(page.locator(".said")).to_have_text("One two three four.")


@pytest.mark.full
def test_sessions_can_be_created_searched_renamed_and_deleted(home: Path, chromium: Browser) -> None:
    with open_page(chromium, text("Hi.")) as visit:
        page, first = visit.page, visit.session
        page.get_by_role("navigation").get_by_role("button", name="New session").click()
        until(lambda: visit.session != first, "the new session")
        page.get_by_role("button", name="New session").last.click()  # its title
        page.get_by_label("Title").fill("About whales")
        page.keyboard.press("Enter")
        expect(page.locator(".session.here")).to_have_text("About whales")
        page.get_by_label("Search sessions").fill("whales")
        expect(page.locator(".session")).to_have_count(1)
        page.get_by_label("Search sessions").fill("sharks")
        expect(page.locator(".sessions .note")).to_have_text("Nothing found.")
        page.get_by_label("Search sessions").fill("")
        expect(page.locator(".session")).to_have_count(2)
        visit.key("m")
        page.get_by_role("menuitem", name="Delete").click()
        page.get_by_role("button", name="Delete", exact=True).click()
        expect(page.locator(".session")).to_have_count(1)
        assert visit.session == first


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not here")
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.full)])
def test_axe_finds_no_serious_violation(home: Path, chromium: Browser, scheme: Any) -> None:
    code = f"{TABLE}\nopen('made.csv', 'w').write('a,b\\n1,2\\n')\n{FIGURE}\ndf.head(2)"
    with open_page(chromium, tool_call("python", code), text("**Done.**\n\n```python\nx = 1 # one\n```\n"), tool_call("shell", "rm made.csv")) as visit:  # fmt: skip
        page = visit.page
        page.emulate_media(color_scheme=scheme)

        def check(where: str) -> None:
            page.evaluate(AXE.read_text(encoding="utf-8"))
            found = page.evaluate("axe.run({ iframes: false, resultTypes: ['violations'] })")
            serious = [
                (each["id"], [(node["target"], node["failureSummary"]) for node in each["nodes"]][:3])
                for each in found["violations"]
                if each["impact"] in ("serious", "critical")
            ]
            assert serious == [], where

        check("an empty session")
        visit.say("Go.")
        expect(page.get_by_role("group", name="Approval")).to_be_visible()
        check("an approval")
        page.get_by_role("button", name="Dry run").click()
        expect(page.get_by_role("region", name="Dry run")).to_contain_text("made.csv")
        check("a dry run")
        page.get_by_role("button", name="Apply these changes").click()
        visit.idle()
        visit.say("Delete it.")
        expect(page.get_by_role("group", name="Approval")).to_be_visible()
        check("a conversation")
        visit.key("h")
        expect(page.locator(".points li").first).to_be_visible()
        check("the timeline")
        visit.key("v")
        page.get_by_role("button", name=re.compile("^df")).click()
        expect(page.locator(".chart.words")).to_contain_text("a 5")
        check("the grid")
        page.keyboard.press("Escape")
        visit.key("?")
        check("the keys")


@pytest.mark.full
def test_everything_works_by_keyboard(home: Path, chromium: Browser) -> None:
    with open_page(chromium, tool_call("python", "print(1)"), text("One."), tool_call("python", "print(2)")) as visit:
        page, first = visit.page, visit.session
        page.keyboard.type("Go.")
        page.keyboard.press("Enter")
        expect(page.get_by_role("group", name="Approval")).to_be_visible()
        page.keyboard.press("Escape")
        page.keyboard.press("a")
        expect(page.locator(".said")).to_have_text("One.")
        visit.idle()
        page.keyboard.press("c")
        page.keyboard.type("More.")
        page.keyboard.press("Enter")
        expect(page.get_by_role("group", name="Approval")).to_be_visible()
        page.keyboard.press("Escape")
        page.keyboard.press("e")
        expect(page.get_by_label("Edit the code")).to_be_focused()
        page.get_by_role("button", name="Cancel").click()
        visit.key("r")
        expect(page.locator(".decision")).to_have_text("You said no.")
        visit.idle()
        visit.key("?")
        expect(page.get_by_role("dialog")).to_contain_text("Search sessions")
        page.keyboard.press("Escape")
        visit.key("n")
        until(lambda: visit.session != first, "the new session")
        expect(page.get_by_label("Message")).to_be_focused()
        page.keyboard.press("Escape")
        visit.key("]")
        until(lambda: visit.session == first, "the first session")
        visit.key("/")
        expect(page.get_by_label("Search sessions")).to_be_focused()
        visit.key("f")
        expect(page.get_by_role("complementary", name="Files")).to_be_visible()
        visit.key("d")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"


@pytest.mark.full
@pytest.mark.parametrize("screen", [(1440, 900), (1024, 768), (390, 844)])
def test_nothing_is_wider_than_the_screen(home: Path, chromium: Browser, screen: tuple[int, int]) -> None:
    long = "x = '" + "y" * 400 + "'\nprint(x)\n" + FIGURE
    with open_page(chromium, tool_call("python", long), text("`" + "w" * 300 + "`"), screen=screen) as visit:
        page = visit.page
        visit.say("Go. " + "z" * 300)
        visit.approve()
        visit.idle()
        assert page.evaluate("document.documentElement.scrollWidth") <= screen[0]
        assert page.locator(".scroller").evaluate("box => box.scrollWidth <= box.clientWidth")
        if screen[0] > 760:  # a phone shows one thing at a time
            visit.key("v")
            expect(page.get_by_role("complementary", name="Variables")).to_be_visible()
            page.locator("#composer").click(timeout=3000)
            send = page.get_by_role("button", name="Send").bounding_box()
            pane = page.get_by_role("complementary", name="Variables").bounding_box()
            assert send is not None and pane is not None and send["x"] + send["width"] <= pane["x"]
            assert page.evaluate("document.documentElement.scrollWidth") <= screen[0]
        if screen[0] < 760:
            assert not page.locator(".sidebar").is_visible()
            page.get_by_role("button", name="Show the sessions").click()
            expect(page.locator(".sidebar")).to_be_visible()


@pytest.mark.full
def test_a_session_can_be_exported_and_forked(home: Path, chromium: Browser) -> None:
    with open_page(chromium, tool_call("python", "print(7)"), text("Seven."), mode="auto") as visit:
        page = visit.page
        visit.say("Seven?")
        visit.idle()
        visit.key("m")
        offered = page.get_by_role("menuitem", name="Export as").all_inner_texts()
        assert {words.strip() for words in offered} == {
            f"Export as {each.label}" for form, each in EXPORTERS.items() if form != "markdown"
        }
        visit.key("Escape")
        for form, part in (("notebook", '"nbformat"'), ("script", "print(7)"), ("HTML", "<!doctype html>")):
            visit.key("m")
            with page.expect_download() as download:
                page.get_by_role("menuitem", name=f"Export as {form}").click()
            assert part in Path(download.value.path()).read_text(), form
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        visit.key("m")
        page.get_by_role("menuitem", name="Copy as Markdown").click()
        expect(page.locator(".toast")).to_have_text("Copied as Markdown.")
        assert "```python\nprint(7)" in page.evaluate("navigator.clipboard.readText()")
        first = visit.session
        visit.key("m")
        page.get_by_role("menuitem", name="Continue in a copy").click()
        until(lambda: visit.session != first, "the fork")
        expect(page.locator(".said")).to_have_text("Seven.")


@pytest.mark.full
def test_a_viewer_can_read_but_not_change_a_session(home: Path, chromium: Browser) -> None:
    with open_page(chromium, tool_call("python", "print(1)")) as visit:
        visit.say("Go.")
        expect(visit.page.get_by_role("group", name="Approval")).to_be_visible()
        visit.served.users.add("eve:viewer")
        visit.key("m")
        visit.page.get_by_role("menuitem", name="Share").click()
        visit.page.get_by_label("Users who may read it").fill("eve")
        visit.page.get_by_role("button", name="Save", exact=True).click()
        expect(visit.page.locator(".toast")).to_have_text("eve can read this session.")
        context = chromium.new_context()
        page = context.new_page()
        page.goto(f"{visit.served.url}/start?token={visit.served.users.link('eve')}")
        expect(page.get_by_role("group", name="Approval")).to_be_visible()
        assert page.get_by_role("button", name="Approve").count() == 0
        expect(page.locator(".composer")).to_have_text("You can read this session, not change it.")
        for button in ("More", "New session"):
            assert page.get_by_role("button", name=button).count() == 0
        expect(page.get_by_title("Change the model")).to_be_disabled()
        visit.served.http.put(f"/api/sessions/{visit.session}/share", json={"users": []})
        visit.served.answer(visit.session, "refuse")
        expect(page.locator(".alone")).to_contain_text("This session no longer exists")
        context.close()


@pytest.mark.full
def test_files_can_be_dropped_on_the_page(home: Path, chromium: Browser) -> None:
    with open_page(chromium, text("I see.")) as visit:
        page = visit.page
        page.evaluate(
            """() => { const data = new DataTransfer(); data.items.add(new File(["1,2"], "dropped.csv"));
            document.querySelector(".app").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true })); }"""
        )
        expect(page.locator(".chip")).to_contain_text("dropped.csv")
        assert Path("dropped.csv").read_text() == "1,2"
        visit.say("Look.")
        expect(page.locator(".said")).to_have_text("I see.")


def test_a_used_link_shows_a_readable_error(home: Path, chromium: Browser) -> None:
    with open_page(chromium) as visit:
        context = chromium.new_context()
        page, link = context.new_page(), visit.served.application.start_link
        page.goto(link)
        expect(page.get_by_label("Message")).to_be_visible()
        context.clear_cookies()
        page.goto(link)
        expect(page.get_by_role("heading")).to_have_text("Open Interpreter")
        expect(page.locator("p")).to_contain_text("This link was used before")
        page.goto(f"{visit.served.url}/api/sessions?<b>")
        assert link.partition("token=")[2] not in page.content()
        context.close()


def test_the_web_flag_opens_the_page_in_a_browser(home: Path, chromium: Browser) -> None:
    opened, program = home / "opened", home / "browser"
    program.write_text(f'#!/bin/sh\necho "$1" > {opened}.part && mv {opened}.part {opened}\n')
    program.chmod(0o755)
    arguments = ["--web", "--port", "0", "--model", "openai/x", "--api_key", "x", "--api_base", "http://127.0.0.1:1/v1"]
    environment = {**os.environ, "BROWSER": f"{program} %s"}
    process = subprocess.Popen(
        [sys.executable, "-m", "interpreter", *arguments], env=environment, stderr=subprocess.PIPE
    )
    try:
        until(opened.exists, "the browser")
        page = chromium.new_page()
        page.goto(opened.read_text().strip())
        expect(page.get_by_label("Message")).to_be_visible(timeout=LIMIT)
        page.close()
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_without_a_token_the_page_shows_how_to_sign_in(home: Path, chromium: Browser) -> None:
    with serving() as served:
        page = chromium.new_page()
        answer = page.goto(served.url)
        assert answer is not None and answer.status == 401
        expect(page.locator("body")).to_contain_text("open the link")
        page.close()
