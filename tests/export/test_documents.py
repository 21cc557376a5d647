"""Exports as Markdown and as an HTML page."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from export.conversations import declined, drawn, failed, model, printed, ran, user
from interpreter.export import ExportedConversation
from interpreter.export.documents import markdown, page
from interpreter.messages import Message
from interpreter.session.journal.reader import Entry

HTML: Message = {"role": "computer", "type": "code", "format": "html", "content": "", "recipient": "user"}
EVIL = "<img src=x onerror=\"document.title='taken'\"><script>top.document.title='taken'</script>"
TABLE = "<table><tr><td>7</td></tr></table>"


def everything() -> list[Entry]:
    return [
        user("Look at <b>this</b>"),
        model("I will `look`.\n\n| a |\n|---|\n| 1 |"),
        ran("x = 1 # why", printed("one\n"), drawn()),
        declined("rm -rf /", "shell"),
        failed("1 / 0"),
        ran("t", printed("7\n"), {**HTML, "content": TABLE}),
    ]


def test_markdown_has_everything_in_order() -> None:
    document = markdown(ExportedConversation(everything(), "Title", path=Path("t.md")))
    places = [
        document.text.index(part)
        for part in (
            "# Title",
            "> Look at",
            "I will `look`",
            "```python\nx = 1 # why\n```",
            "```text\none\n```",
            "![Figure 1](t_files/figure-1.png)",
            "```shell\nrm -rf /\n```",
            "*You said no to this block.*",
            "*This block failed.*",
            "```text\n7\n```",
        )
    ]
    assert places == sorted(places)
    assert document.pictures["figure-1.png"].startswith(b"\x89PNG")
    assert "<table>" not in document.text


def test_markdown_keeps_html_that_has_no_text_form() -> None:
    assert "```html\n" + TABLE in markdown(ExportedConversation([ran("t", {**HTML, "content": TABLE})], "T")).text


class Elements(HTMLParser):
    """All elements with their attributes, without quoted ones."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_page_loads_and_runs_nothing_from_the_conversation() -> None:
    entries = [
        user(EVIL),
        model(EVIL + "\n\n[x](javascript:alert(1)) ![far](https://example.com/a.png)"),
        ran("</code></pre>" + EVIL, printed("</pre>" + EVIL), {**HTML, "content": EVIL}, language='x">' + EVIL),
    ]
    found = Elements(page(ExportedConversation(entries, "</title>" + EVIL)).text).found
    assert "script" not in {tag for tag, _ in found}
    assert not any(name.startswith("on") for _, attributes in found for name in attributes)
    sources = [str(attributes.get(name)) for _, attributes in found for name in ("src", "href") if name in attributes]
    assert all(source.startswith(("data:", "https://example.com")) for source in sources)
    assert not any(tag == "img" and "example.com" in str(attributes["src"]) for tag, attributes in found)
    frames = [attributes for tag, attributes in found if tag == "iframe"]
    assert [frame["sandbox"] for frame in frames] == ["allow-scripts"]
    assert EVIL in str(frames[0]["srcdoc"])


def test_the_page_has_highlighted_code_figures_and_a_dark_theme() -> None:
    source = page(ExportedConversation(everything(), "Title")).text
    assert '<span class="' in source and "prefers-color-scheme: dark" in source
    assert 'src="data:image/png;base64,' in source
    assert "<td>1</td>" in source
    assert "This block failed" in source and "You said no" in source
    assert not re.search(r"(src|href)=\"https?:", source)


def test_svg_images_and_unknown_languages_are_shown() -> None:
    svg: Message = {"type": "console", "format": "output", "mime": "image/svg+xml", "content": "<svg onload=x></svg>"}
    source = page(ExportedConversation([ran("draw <it>", svg, language="klingon")], "T")).text
    assert "data:image/svg+xml;base64," in source and "<svg" not in source
    assert "draw &lt;it&gt;" in source


@pytest.mark.needs("chromium")
def test_a_browser_isolates_the_frame(tmp_path: Path) -> None:
    lively = EVIL + "<script>document.body.append('frame ' + 'alive')</script>"
    path = tmp_path / "page.html"
    entries = [user(EVIL), model(EVIL), ran("x", printed(EVIL), {**HTML, "content": lively})]
    path.write_text(page(ExportedConversation(entries, "Mine")).text)
    browser = [str(shutil.which("chromium")), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    done = subprocess.run([*browser, profile, path.as_uri()], capture_output=True, text=True, timeout=100, check=True)
    assert "<title>Mine</title>" in done.stdout
