"""HTML and React blocks: a page for the user, and a screenshot from a real browser."""

from __future__ import annotations

import base64
import http.server
import io
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from interpreter import OpenInterpreter
from interpreter.languages.html import HTML, React
from interpreter.languages.html.react import SourceMap, decoded
from interpreter.runtimes.launch import RuntimeContext
from interpreter.runtimes.sharing import take
from interpreter.session import APPROVE, Answer

RED = (255, 0, 0)


class Pages:
    """A session that shows pages in the current folder."""

    def __init__(self, language: type[HTML]) -> None:
        self.context = RuntimeContext()
        self.language = language(self)

    def show(self, code: str) -> list[dict[str, Any]]:
        return [dict(chunk) for chunk in self.language.run(code)]


def text(chunks: list[dict[str, Any]]) -> str:
    return "".join(each["content"] for each in chunks if each.get("format") == "output")


def page(chunks: list[dict[str, Any]]) -> str:
    (found,) = [each for each in chunks if each.get("format") == "html"]
    assert (found["type"], found["recipient"]) == ("code", "user")
    return str(found["content"])


def screenshot(chunks: list[dict[str, Any]]) -> Image.Image:
    (found,) = [each for each in chunks if each["type"] == "image"]
    assert found["format"] == "base64.png"
    assert "recipient" not in found
    return Image.open(io.BytesIO(base64.b64decode(found["content"]))).convert("RGB")


@pytest.fixture
def pages(no_strays: None) -> Iterator[Pages]:
    session = Pages(HTML)
    if session.language.browser() is None:
        pytest.skip("no browser is installed")
    yield session
    session.language.terminate()


class TestHTML:
    def test_the_model_gets_a_screenshot_and_the_user_a_page(self, pages: Pages) -> None:
        shown = pages.show("<body style='background: red'><h1>Grüße</h1>\n<p style='height: 1000px'>")
        assert screenshot(shown).getpixel((500, 900)) == RED  # below the first screen
        assert "<h1>Grüße</h1>" in page(shown)
        assert (shown[-1]["ended"], text(shown)) == ("done", "")

        long = pages.show("<p style='height: 100000px'>")
        assert screenshot(long).size == (960, 2160)

    def test_console_messages_and_errors_are_output(self, pages: Pages) -> None:
        code = "<script>\nconsole.log('one', { two: 2 }, [3]);\nconsole.error('bad %s', 'thing');\nalert('hello')\n</script>"
        shown = pages.show(code)
        assert text(shown) == "one {two: 2} [3]\nbad thing\nalert: hello\n"
        assert [each["content"] for each in shown if each.get("stream") == "stderr"] == ["bad thing\n"]

        thrown = pages.show("<p>\n<script>\nfunction f() { throw new TypeError('no') }\nf()\n</script>")
        assert (
            text(thrown) == "Uncaught TypeError: no\n    at f (line 3, column 22)\n    at the page (line 4, column 1)\n"
        )
        assert (thrown[-1]["ended"], thrown[-1]["exit_code"]) == ("error", 1)
        assert screenshot(thrown)
        wrong = pages.show("<script>\nlet x = ;\n</script>")
        assert "SyntaxError: Unexpected token ';'\n    at the page (line 2, column 9)" in text(wrong)

    def test_only_workspace_files_are_loaded(self, pages: Pages, home: Path) -> None:
        image, secret = Image.new("RGB", (300, 300), RED), home / "secret.png"
        image.save("red.png")
        image.save(secret)
        Path("link.png").symlink_to(secret)
        assert screenshot(pages.show("<body style='margin: 0'><img src='red.png'>")).getpixel((100, 100)) == RED
        for place in (secret.as_uri(), "link.png"):
            shown = pages.show(f"<body style='margin: 0'><img src='{place}'>")
            assert "is outside the workspace" in text(shown)
            assert screenshot(shown).getpixel((100, 100)) != RED
        read = f"<script>fetch('{secret.as_uri()}').then(() => console.log('read'), () => console.log('not'))</script>"
        assert "not" in text(pages.show(read)).split()

    def test_offline_mode_loads_nothing_from_the_network(self, pages: Pages) -> None:
        asked = []

        class Server(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"console.log('loaded')")

            def log_message(self, *_: object) -> None: ...

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            code = f"<script src='http://127.0.0.1:{server.server_port}/a.js'></script>"
            assert text(pages.show(code)) == "loaded\n"
            pages.context.offline = True
            assert "a.js was not loaded, because offline mode is on." in text(pages.show(code))
            server.shutdown()
        assert [path for path in asked if path != "/favicon.ico"] == ["/a.js"]

    @pytest.mark.full
    def test_pages_see_shared_values(self, pages: Pages) -> None:
        table = '{"table": [{"name": "n", "type": "integer", "values": [1, 2]}]}'
        take(pages.context.shared, "rows", table, 1000)
        take(pages.context.shared, "title", '{"value": "</script><b>"}', 1000)
        code = "<script>console.log(rows.length, rows[1].n, title)</script>"
        assert text(pages.show(code)) == "2 2 </script><b>\n"
        assert text(pages.show("<script>const rows = 1; console.log(rows)</script>")) == "1\n"


def test_a_missing_browser_is_reported_to_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HTML, "browser", lambda self: None)
    session = Pages(HTML)
    shown = session.show("<h1>Hi</h1>")
    session.language.terminate()
    assert "There is no picture of the page: no browser is installed here" in text(shown)
    assert "<h1>Hi</h1>" in page(shown)
    assert shown[-1]["ended"] == "done"


def test_a_browser_that_cannot_start_is_explained(no_strays: None) -> None:
    session = Pages(HTML)
    session.context.browser = shutil.which("false")
    shown = session.show("<h1>Hi</h1>")
    session.language.terminate()
    assert "There is no picture of the page: the browser ended" in text(shown)
    assert "<h1>Hi</h1>" in page(shown)


@pytest.mark.needs("npm")
def test_react_says_what_to_install() -> None:
    session = Pages(React)
    shown = session.show("<h1>Hi</h1>")
    assert session.language.missing == "react react-dom esbuild"
    assert "run this as a React block: npm install react react-dom esbuild" in text(shown)
    assert shown[-1]["ended"] == "error"
    session.context.offline = True
    assert "When you are online again, run this as a React block: npm" in text(session.show("<h1>Hi</h1>"))
    assert session.language.missing == ""
    session.language.terminate()


def test_source_maps_are_decoded() -> None:
    assert decoded("AAgBC") == [0, 0, 16, 1]
    assert decoded("hB") == [-16]
    lines = SourceMap({"sources": ["react.js", "<stdin>"], "mappings": ";AAAA,KCAA;AACE"}, before=10)
    assert (lines(11, 0), lines(11, 5), lines(12, 3), lines(50, 0)) == (None, (0, 0), (1, 2), None)


# -- React from npm ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """React, installed once."""
    folder = tmp_path_factory.mktemp("npm")
    command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(folder)]
    try:
        subprocess.run(
            [*command, "react@19", "react-dom@19", "esbuild@0.28"], check=True, capture_output=True, timeout=300
        )
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"npm can't install React: {error}")
    return folder


@pytest.fixture
def react(packages: Path, home: Path, pages: Pages) -> Iterator[Pages]:
    (home / ".cache" / "open-interpreter").mkdir(parents=True)
    (home / ".cache" / "open-interpreter" / "react").symlink_to(packages)
    session = Pages(React)
    yield session
    session.language.terminate()


@pytest.mark.full
class TestReact:
    @pytest.mark.parametrize(
        "code",
        [
            "export default function App() { return <h1 style={{ background: 'red' }}>{useState(1)[0]}</h1> }",
            "import { useState } from 'react';\nconst App: React.FC = () => <h1 style={{ background: 'red' }}>1</h1>",
            "function Other() { return <h1 style={{ background: 'red' }}>1</h1> }",
            "<h1 style={{ background: 'red' }}>1</h1>",
            "const App = () => <h1 style={{ background: 'red' }}>1</h1>\n"
            "ReactDOM.createRoot(document.getElementById('root')).render(<App />)",
            "import ReactDOM from 'react-dom/client'\nconst App = () => <h1 style={{ background: 'red' }}>1</h1>\n"
            "ReactDOM.createRoot(document.getElementById('root')).render(<App />)",
        ],
        ids=["default export", "typed constant", "other name", "JSX only", "createRoot", "createRoot with import"],
    )
    def test_components_can_be_written_in_several_styles(self, react: Pages, code: str) -> None:
        shown = react.show(code)
        assert (text(shown), shown[-1]["ended"]) == ("", "done")
        assert screenshot(shown).getpixel((500, 40)) == RED
        assert "http://" not in page(shown).replace("http://www.w3.org", "")  # nothing comes from a CDN
        assert len(page(shown)) < 400_000

    def test_errors_have_the_lines_of_the_block(self, react: Pages) -> None:
        broken = react.show("export default function App() {\n  return <h1>Hi\n}")
        assert "line 3, column" in text(broken)
        assert broken[-1]["ended"] == "error"
        thrown = react.show(
            "export default function App() {\n  const data = undefined\n  return <p>{data.length}</p>\n}"
        )
        assert "Uncaught TypeError: Cannot read properties of undefined" in text(thrown)
        assert "at App (line 3, column 19)" in text(thrown)
        assert thrown[-1]["ended"] == "error"
        assert 'a unique "key" prop' in text(react.show("<ul>{[1, 2].map(n => <li>{n}</li>)}</ul>"))
        assert "There is nothing to show" in text(react.show("const x = 1"))

    def test_files_and_packages_of_the_workspace_can_be_imported(self, react: Pages) -> None:
        Path("rows.json").write_text('[{"n": 7}]')
        Path("style.css").write_text("h1 { background: red }")
        code = "import rows from './rows.json'\nimport './style.css'\nexport default () => <h1>{rows[0].n}</h1>"
        assert screenshot(react.show(code)).getpixel((500, 40)) == RED
        missing = react.show("import { x } from 'no-such-package/deep'\nconsole.log(x)\nexport default () => <p />")
        assert react.language.missing == "no-such-package"
        assert "npm install no-such-package" in text(missing)


@pytest.mark.full
@pytest.mark.needs("chromium-headless-shell", "bwrap")
def test_the_browser_runs_inside_the_sandbox(no_strays: None) -> None:
    computer = OpenInterpreter(auto_run=True, sandbox="workspace").computer
    shown = computer.run("html", "<body style='background: red'><script src='https://a.example/x.js'></script>")
    computer.terminate()
    assert screenshot(shown).getpixel((500, 300)) == RED
    assert "a.example" in text(shown)


@pytest.mark.full
@pytest.mark.needs("npm")
def test_accepting_the_offer_installs_react_and_shows_the_page(no_strays: None) -> None:
    computer = OpenInterpreter(auto_run=True).computer
    with computer.session.questions.answerable(("offer",), lambda question: Answer(APPROVE)):
        shown = computer.run("react", "<h1>Hi</h1>")
    computer.terminate()
    if "can't be reached" in text(shown):
        pytest.skip("npm can't install React")
    assert screenshot(shown)
    assert "function" in page(shown)


@pytest.mark.full
@pytest.mark.needs("npm")
def test_a_missing_network_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9")
    computer = OpenInterpreter(auto_run=True).computer
    with computer.session.questions.answerable(("offer",), lambda question: Answer(APPROVE)):
        shown = computer.run("react", "<h1>Hi</h1>")
    computer.terminate()
    assert "no network connection.\nNot installed: react, react-dom and esbuild." in text(shown)
