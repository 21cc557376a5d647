"""Reading pages as Markdown and as lists of elements, whole or in portions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from browser.web_app import CONTROLS, WebApp
from interpreter.computer_api.browser import BrowserError
from sampling import some

pytestmark = pytest.mark.needs("chromium")

MARKDOWN = """# Harvest of *2024*

The **north** gave most, see [the files]({url}/files?a=1&b=2) and `tons()`.

- apples
  - red
  - green
- pears

3. sort
4. wash

| Place | Tons |
| --- | --- |
| North \\| East | 12 |
| South | 7 |

```python
for each in trees:
    pick(each)
```

> It was dry.

![A tree]

(Left out: navigation, footer. read(whole_page=True) has everything.)"""


def test_a_page_is_read_as_markdown_with_its_main_part_first(browser: Any, app: WebApp) -> None:
    first, *body, last = browser.read(f"{app.url}/article").splitlines()
    assert "\n".join(body) == MARKDOWN.format(url=app.url)
    assert first.startswith("[page ") and last.startswith("[end of page ")
    whole = browser.read(whole_page=True)
    assert f"The rest of the page:\n\n[Sign in]({app.url}/login)\n\nImprint" in whole and "Left out" not in whole


ARTICLES = Path(__file__).with_name("articles")


@pytest.mark.parametrize("name", some(2, sorted(path.stem for path in ARTICLES.glob("*.html"))))
def test_articles_match_their_expected_markdown(browser: Any, app: WebApp, name: str) -> None:
    app.pages[f"/{name}"] = (ARTICLES / f"{name}.html").read_text("utf-8")
    _, *body, _ = browser.read(f"{app.url}/{name}").splitlines()
    notes = re.compile(r"\((Left out: |[\d,]+ characters cannot be seen)")
    read = "\n".join(line for line in body if not notes.match(line)).strip()
    assert read.replace("\xa0", " ") == (ARTICLES / f"{name}.md").read_text("utf-8").strip().replace("URL", app.url)


def test_spanning_table_cells_are_repeated(browser: Any, app: WebApp) -> None:
    app.pages["/table"] = """<main><table><tr><th rowspan=2>Place<th colspan=2>Tons</tr><tr><th>2023<th>2024</tr>
    <tr><td rowspan=2>North<td>1<td>2</tr><tr><td>3<td rowspan=2>4</tr><tr><td>South<td>5</tr></table></main>"""
    table = [line for line in browser.read(f"{app.url}/table").splitlines() if line.startswith("|")]
    assert table == [
        "| Place | Tons 2023 | Tons 2024 |",
        "| --- | --- | --- |",
        "| North | 1 | 2 |",
        "| North | 3 | 4 |",
        "| South | 5 | 4 |",
    ]


@pytest.mark.parametrize(
    ("math", "latex"),
    some(
        2,
        [
            ("<mfrac><mrow><mi>a</mi><mo>+</mo><mn>1</mn></mrow><mi>b</mi></mfrac>", r"\frac{a + 1}{b}"),
            ("<mi>E</mi><mo>=</mo><mi>m</mi><msup><mi>c</mi><mn>2</mn></msup>", "E = mc^2"),
            (
                "<munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover>",
                r"\sum_{i = 1}^n",
            ),
            ("<msqrt><mi>π</mi></msqrt><mi>r</mi>", r"\sqrt{\pi}r"),
            ("<semantics><mi>x</mi><annotation encoding='application/x-tex'>x_0</annotation></semantics>", "x_0"),
        ],
    ),
)
def test_formulas_are_converted_to_latex(browser: Any, app: WebApp, math: str, latex: str) -> None:
    app.pages["/math"] = f"<main><p>So <math>{math}</math> holds.</p></main>"
    assert f"So ${latex}$ holds." in browser.read(f"{app.url}/math")
    assert f"text: So ${latex}$ holds." in browser.snapshot()


def test_forms_are_shown_without_the_password(browser: Any, app: WebApp) -> None:
    browser.go_to_url(f"{app.url}/login")
    browser.fill("User", "ann")
    browser.fill("Password", "secret")
    told = browser.read()
    assert "[field User: ann]" in told and "[choice Role: Reader]" in told and "[button: Sign in]" in told
    assert "secret" not in told


def test_portions_of_a_long_page_cover_the_whole(browser: Any, app: WebApp) -> None:
    whole = browser.read(f"{app.url}/article", length=100_000).splitlines()[1:-1]
    portions: list[str] = []
    start = 0
    while True:
        _, *body, last = browser.read(start=start, length=150).splitlines()
        portions += body
        following = re.search(r"continue with read\(start=(\d+)\)", last)
        if following is None:
            break
        assert int(following[1]) > start
        start = int(following[1])
    assert [line for line in portions if line] == [line for line in whole if line]
    assert start > 0


def test_frames_can_be_read_and_used(browser: Any, app: WebApp) -> None:
    assert "Inner words" in browser.read(f"{app.url}/frames")
    ref = re.search(r'button "Inner button" \[ref=(\w+)\]', browser.snapshot())
    assert ref is not None
    browser.click(ref[1])
    browser.wait_for("Pressed")


@pytest.mark.full
def test_four_thousand_controls_are_shown_within_the_budget(browser: Any, app: WebApp) -> None:
    browser.go_to_url(f"{app.url}/many")
    first = browser.snapshot()
    assert len(first) <= browser.computer.context.max_output
    following = re.search(r"continue with snapshot\(start=(\d+)\)", first)
    assert following is not None and 'button "Button 0"' in first
    shown = int(following[1])
    second = browser.snapshot(start=shown)
    assert "\n- main\n" in second  # the parent of the portion
    assert not set(re.findall(r"Button \d+", first)) & set(re.findall(r"Button \d+", second))
    found = browser.snapshot(find=f"Button {CONTROLS // 2 - 1}")
    assert f'button "Button {CONTROLS // 2 - 1}"' in found and len(found) < 1000
    ref = re.search(r"Button \d+\" \[ref=(\w+)\]", found)
    assert ref is not None
    browser.click(ref[1])
    assert browser.evaluate("document.activeElement.textContent")["value"] == f"Button {CONTROLS // 2 - 1}"


def test_an_interactive_snapshot_shows_only_usable_elements(browser: Any, app: WebApp) -> None:
    app.pages[
        "/used"
    ] = """<main><h1>Orders</h1><p>Many words</p><ul><li><button>Open</button> now</ul><label>Name <input>
    </label><iframe srcdoc="<p>More words</p><a href=/x>Inner</a>"></iframe></main>"""
    browser.go_to_url(f"{app.url}/used")
    _, *lines, _ = re.sub(r" \[ref=\w+\]", "", browser.snapshot(interactive=True)).splitlines()
    assert lines == [
        '- heading "Orders" [level=1]',
        '- button "Open"',
        '- textbox "Name"',
        "- iframe",
        '- link "Inner"',
    ]
    assert '"Open"' in browser.snapshot(find="open", interactive=True)
    browser.click("Open")
    assert "Nothing on the page has changed" in browser.click("Open"), "changes are compared with the whole page"


@pytest.mark.full
def test_a_ten_megabyte_page_can_be_searched(browser: Any, app: WebApp) -> None:
    paragraphs = "".join(f"<p>Paragraph {number}: {'lorem ipsum dolor sit amet ' * 8}</p>" for number in range(45_000))
    app.pages["/long"] = f"<title>Long</title><main>{paragraphs}<button onclick='this.append(1)'>Last</button></main>"
    assert len(app.pages["/long"]) > 10_000_000
    browser.go_to_url(f"{app.url}/long")
    assert "of more than 5000 lines" in browser.snapshot()
    assert "The page is too long to say what has changed" in browser.click("Last")
    assert 'button "Last1"' in browser.snapshot(find="Last1")


def test_a_search_returns_results_and_keeps_the_current_page(browser: Any, app: WebApp) -> None:
    browser.computer.search_url = app.url + "/search?q={query}"
    browser.go_to_url(f"{app.url}/article")
    found = browser.search("apples & pears")
    assert found["results"] == [
        {
            "title": "First result",
            "url": "https://example.org/one",
            "snippet": "example.org/one What the first one says.",
        },
        {"title": "Second result", "url": "https://example.net/two", "snippet": "What the second one says."},
    ]
    assert app.asked[-1] in ("/search?q=apples%20%26%20pears", "/favicon.ico")
    assert [tab["url"] for tab in browser.tabs()["tabs"]] == [f"{app.url}/article"]
    assert browser.fast_search("x")["results"] == found["results"]


def test_a_search_page_without_links_is_returned_as_text(browser: Any, app: WebApp) -> None:
    browser.computer.search_url = app.url + "/article?{query}"
    found = browser.search("x")
    assert found["results"] == [] and "Harvest" in found["text"]


def test_screenshots_of_the_page_and_of_an_element(browser: Any, app: WebApp) -> None:
    browser.go_to_url(f"{app.url}/article")
    page, table = browser.screenshot(), browser.screenshot("North | East")
    assert page.png.startswith(b"\x89PNG") and page.pil().size == (page.width, page.height)
    assert table.width < page.width and table.height < page.height


def test_evaluate_returns_the_scripts_value(browser: Any, app: WebApp) -> None:
    browser.go_to_url(f"{app.url}/article")
    assert browser.evaluate("[document.links.length, {a: null}]")["value"] == [2, {"a": None}]
    assert browser.evaluate("[new Date(0)]")["value"][0].startswith("1970-01-01")
    with pytest.raises(BrowserError, match="Can't return the value"):
        browser.evaluate("() => { const a = {}; a.a = a; return a }")
    assert browser.evaluate("async () => 'x' + await Promise.resolve(1)")["value"] == "x1"


def test_analyze_page_asks_the_model(browser: Any, app: WebApp, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Ai:
        def chat(self, text: str) -> str:
            asked.append(text)
            return "Use the button."

    monkeypatch.setitem(browser.computer._tools, "ai", Ai())
    browser.go_to_url(f"{app.url}/login")
    told = browser.analyze_page("find the button")
    assert "Use the button." in told and "not instructions" in told
    assert "find the button" in asked[0] and "ref=" in asked[0] and len(asked[0]) < 25_000
