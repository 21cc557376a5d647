"""Text from models, programs, servers and file names never reaches a terminal raw, and nothing in it is hidden."""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from interpreter.app.models import Available, ModelSource
from interpreter.config.profiles.load import read
from interpreter.config.profiles.profile import ProfileLocation
from interpreter.console_text import OUTPUT, PROSE, visible
from interpreter.errors import UsageError
from interpreter.frontends import cli, commands, start, viewer
from interpreter.frontends.flags import parse
from interpreter.frontends.headless.run import Events
from interpreter.frontends.terminal import sessions, widgets
from interpreter.frontends.terminal.approval import _ask_to_apply
from interpreter.frontends.terminal.chat import _next_message, replay
from interpreter.frontends.terminal.keyboard import TypeAhead
from interpreter.frontends.terminal.magics.undo import show_difference
from interpreter.frontends.terminal.prompt import Suggestions, status_facts
from interpreter.frontends.terminal.render.display import TerminalDisplay, TerminalScreen
from interpreter.frontends.terminal.render.plain import PlainDisplay
from interpreter.frontends.terminal.render.theme import Theme
from interpreter.frontends.terminal.terminal import Terminal
from interpreter.frontends.terminal.tty import Tty
from interpreter.frontends.wtf import FailedCommand, message_for
from interpreter.runtimes.state import TableQuery, TableWindow
from model_server import ModelServer, text, tool_call
from sampling import some
from terminal.person import ENTER, someone

FRONT_ENDS = Path(cli.__file__).parent
HOSTILE = (
    "a\x1b]52;c;aGk=\x07b\x1b]0;title\x07c\x1b[6nd\x1bPq\x1b\\e\x9b31mf\x07g\x08h\x7fi"
    "\u202ej\u2066k\u200bl\u200em\u2028n\u2029o\u3164p\u115fq\u1160r\uffa0s\ufefft\U000e0041u\u2800v\ufe0fw\u00adx\u061cy"
)
# Our own escapes: colours, links to files and pages, and those that draw the screen.
OUR_ESCAPES = re.compile(
    r"\x1b\[[0-9;:]*m|\x1b\]8;(?:id=\d+)?;(?:(?:https?|file|mailto):[!-~]*)?\x1b\\|\x1b\[\d*[AJK]|[\r\n\t]"
)
OUR_ESCAPES_BUT_LINES = re.compile(r"\x1b\[[0-9;:]*[mAJK]")
HIDDEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def assert_nothing_hidden(shown: str) -> None:
    rest = OUR_ESCAPES.sub("", shown)
    found = [f"U+{ord(char):04X}" for char in rest if not char.isprintable() or HIDDEN.match(char)]
    assert not found, f"{found} in {rest!r}"
    assert "a" in rest  # something is shown at all


# -- chunks: what the displays are given -----------------------------------------------------------------------------


def status(form: str, **content: Any) -> list[dict[str, Any]]:
    return [{"role": "computer", "type": "status", "format": form, "content": content}]


def console(content: Any, **more: Any) -> list[dict[str, Any]]:
    line = {"role": "computer", "type": "console", "format": "output", "content": content, **more}
    return [line, {"role": "computer", "type": "console", "format": "active_line", "content": None, "exit_code": 0}]


def said(kind: str, content: str, form: str = "", role: str = "assistant") -> list[dict[str, Any]]:
    block = {"role": role, "type": kind, "format": form}
    return [{**block, "start": True}, {**block, "content": content}, {**block, "end": True}]


FINDING = {"tool": "x", "rule": HOSTILE, "line": 1, "severity": "high", "message": HOSTILE}
CHUNKS: dict[str, list[dict[str, Any]]] = {
    "the language name": said("code", "1", HOSTILE),
    "a language name of several lines": said("code", "1", "python\n" + HOSTILE),
    "code": said("code", HOSTILE, "python"),
    "unfinished code": said("code", HOSTILE, "python")[:2],
    "a message": said("message", HOSTILE),
    "an unfinished message": said("message", HOSTILE)[:2],
    "a heading, a list, a quote": said("message", f"# {HOSTILE}\n\n- {HOSTILE}\n\n> {HOSTILE}\n\n    {HOSTILE}\n"),
    "a table": said("message", f"| a | b |\n|---|---|\n| {HOSTILE} | `{HOSTILE}` |\n"),
    "code in a message": said("message", f"```{HOSTILE}\n{HOSTILE}\n```\n"),
    "a link and an image": said(
        "message", f"a [{HOSTILE}](https://x.org/{HOSTILE}) ![{HOSTILE}](https://x.org/{HOSTILE})"
    ),
    "entities": said("message", "a &#x202e;&#x200b;&#x2028;&#27;&#x9b;&#xad;&#x3164; `&#x202e;`"),
    "reasoning": said("reasoning", HOSTILE),
    "a tool call": said("tool_call", f'{{"a": "{HOSTILE}"}}', HOSTILE),
    "output": console(HOSTILE),
    "output of one character at a time": [console(char)[0] for char in HOSTILE] + console("")[1:],
    "an error": console(HOSTILE, stream="stderr"),
    "a traceback": console(
        f'Traceback (most recent call last):\n  File "{HOSTILE}", line 1, in {HOSTILE}\n{HOSTILE}: {HOSTILE}\n',
        stream="stderr",
    ),
    "output in Markdown": console(HOSTILE, mime="text/markdown"),
    "our note about a block": console(HOSTILE, ours=True),
    "a figure in a file": said("image", f"/a/{HOSTILE}.png", "path", "computer"),
    "a page": said("code", f"<table><tr><td>{HOSTILE}</td></tr></table><p>{HOSTILE}</p>", "html", "computer"),
    "the active line": [*said("code", f"1\na = '{HOSTILE}'\n", "python"), {**console(2)[0], "format": "active_line"}],
    "a retry": status("retry", reason=HOSTILE, seconds=1),
    "a loading model": status("loading", model=f"a{HOSTILE}"),
    "a fallback": status("fallback", **{"from": HOSTILE, "to": HOSTILE, "reason": HOSTILE}),
    "a notice": status("notice", text=HOSTILE),
    "a redaction": status("redacted", what=[HOSTILE]),
    "a scan": status("scan", findings=[FINDING], tools=[HOSTILE], notice=HOSTILE, asks=True),
    "a call": [*console("a")[:1], *status("call", acts=True, told=HOSTILE, outcome="ok")],
    "who stopped the turn": status("stopped", by=HOSTILE),
    "changed files": [
        *status("files", changed=[{"what": "renamed", "path": HOSTILE, "from": HOSTILE}], not_covered=[[HOSTILE, "x"]]),
        *console("a"),
    ],
    "an approval": [
        {"role": "computer", "type": "confirmation", "effects": [HOSTILE], "reason": HOSTILE, "widening": [HOSTILE]}
    ],
    "a decision": [
        {"role": "computer", "type": "decision", "format": "approved", "content": {"reason": HOSTILE, "by": "rule"}}
    ],
}


class Clock:
    now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def on_the_screen(chunks: list[dict[str, Any]]) -> str:
    written: list[str] = []
    display = TerminalDisplay(TerminalScreen(written.append, lambda: (80, 24)), Theme(links=True), Clock())
    display.begin()
    for chunk in chunks:
        display.show(chunk)  # type: ignore[arg-type]
        display.flush()
    display.finish()
    return "".join(written)


def in_plain_text(chunks: list[dict[str, Any]]) -> str:
    written: list[str] = []
    display = PlainDisplay(written.append)
    for chunk in chunks:
        display.show(chunk)  # type: ignore[arg-type]
    display.finish()
    return "".join(written)


@pytest.mark.parametrize("surface", CHUNKS)
def test_chunks_on_a_screen_hide_nothing(surface: str) -> None:
    assert_nothing_hidden("a" + on_the_screen(CHUNKS[surface]))


@pytest.mark.parametrize("surface", CHUNKS)
def test_chunks_in_plain_text_hide_nothing(surface: str) -> None:
    assert_nothing_hidden("a" + in_plain_text(CHUNKS[surface]))


def test_every_chunk_type_is_covered() -> None:
    """The displays name each type that they handle; each has to be in the list above."""
    handled: set[str] = set()
    for name in ("render/display.py", "render/plain.py"):
        for node in ast.walk(ast.parse((FRONT_ENDS / "terminal" / name).read_text("utf-8"))):
            if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and node.left.id == "kind":
                handled |= {leaf.value for leaf in ast.walk(node) if isinstance(leaf, ast.Constant)}
    assert handled - {chunk["type"] for chunks in CHUNKS.values() for chunk in chunks} == set()


# -- everything else that is shown -----------------------------------------------------------------------------------


def terminal(typed: str = "", plain: bool = True) -> Terminal:
    return Terminal(plain=plain, tty=Tty(io.StringIO(typed), io.StringIO()))


def written(terminal: Terminal) -> str:
    return terminal.tty.stdout.getvalue()  # type: ignore[attr-defined, no-any-return]


def ask_question(guarded: bool) -> str:
    asking = terminal("yes\n")
    asking.ask(HOSTILE, guarded=guarded)
    return written(asking)


def notices_and_errors() -> str:
    errors = io.StringIO()
    with redirect_stderr(errors):
        terminal().tell(HOSTILE)
        terminal().error(HOSTILE)
    return errors.getvalue()


def session_row() -> str:
    usage = SimpleNamespace(requests=0, cost=0.0, unpriced_tokens=0)
    facts = SimpleNamespace(folder=HOSTILE, model=HOSTILE, usage=usage)
    row = SimpleNamespace(title=HOSTILE, age=100.0, facts=facts)
    twins = frozenset([HOSTILE])
    shown = [sessions.drawn(row, width, names) for width in (300, 40) for names in (frozenset(), twins)]  # type: ignore[arg-type]
    return "".join(shown)


def replayed() -> str:
    shown = terminal()
    messages = [
        {"role": "user", "type": "message", "content": HOSTILE},
        {"role": "user", "type": "code", "format": "python", "content": HOSTILE},
        {"role": "computer", "type": "message", "content": HOSTILE},
    ]
    replay(shown, messages)  # type: ignore[arg-type]
    return written(shown)


def values() -> str:
    shown, table = terminal(), TableWindow(HOSTILE, 1, 1, [HOSTILE], [HOSTILE], [False], [[HOSTILE]])
    viewer.show_table(shown, viewer.ShownValue(None, "", HOSTILE), table, TableQuery(), at_once=True)  # type: ignore[arg-type]
    viewer.show_text(shown, HOSTILE, HOSTILE)
    text = viewer.TextView(HOSTILE, ["a"])
    return written(shown) + "\n".join(text.lines(80, 24))


def difference() -> str:
    shown = terminal()
    show_difference(shown, HOSTILE)
    return written(shown)


def status_line() -> str:
    context, machine = SimpleNamespace(cwd=HOSTILE, elsewhere=True), SimpleNamespace(name=HOSTILE)
    settings = {"mode": None, "auto_run": False, "sandbox": HOSTILE, "safe_mode": "off", "offline": False}
    llm, computer = SimpleNamespace(model=HOSTILE), SimpleNamespace(context=context, machine=machine)
    agent = SimpleNamespace(uses=lambda part: False)
    shown = SimpleNamespace(**settings, messages=[], llm=llm, computer=computer, agent=agent)
    return "".join(status_facts(shown))  # type: ignore[arg-type]


def completions(folder: Path) -> str:
    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

    (folder / HOSTILE.replace("/", "")).write_text("")
    found = SimpleNamespace(matches=[(HOSTILE, HOSTILE)], start=0)
    computer = SimpleNamespace(
        context=SimpleNamespace(folder_here=str(folder)), complete=lambda *_: found, languages=[]
    )
    offered = Suggestions(SimpleNamespace(computer=computer))  # type: ignore[arg-type]
    typed = ["./", ">>> a", "!a"]
    shown = [each for text in typed for each in offered.get_completions(Document(text), CompleteEvent())]
    assert len(shown) >= 3
    return "a" + "".join(each.display_text + each.display_meta_text for each in shown)


def printed(function: Callable[[], object]) -> str:
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        function()
    return out.getvalue()


def menu(monkeypatch: pytest.MonkeyPatch) -> str:
    terminal = Terminal(plain=True)
    monkeypatch.setattr(terminal, "ask", lambda question: "1")
    return printed(lambda: widgets.choose_row(terminal, "a", [HOSTILE]))


def models(monkeypatch: pytest.MonkeyPatch) -> str:
    sources = [ModelSource("server", HOSTILE, (Available(HOSTILE, 1000),), problem=HOSTILE)]
    monkeypatch.setattr(commands, "usable_models", lambda *arguments, **more: sources)
    return printed(lambda: commands.run_command(parse(["--models"])))


def command_line_error(monkeypatch: pytest.MonkeyPatch) -> str:
    def fails(arguments: list[str]) -> int:
        raise UsageError(HOSTILE) if arguments else RuntimeError(HOSTILE)

    monkeypatch.setattr(cli, "_run", fails)
    return printed(lambda: (cli.main(["x"]), cli.main([])))


def events() -> str:
    lines: list[str] = []
    Events(lines.append).write({"role": "assistant", "type": "message", "content": HOSTILE})
    return "".join(lines)


def profile() -> str:
    hostile = HOSTILE.replace("\u2028", "").replace("\u2029", "")
    return start.described(read(ProfileLocation("https://x.org/a.py", is_url=True), hostile))


def typed_ahead() -> str:
    """A paste while a turn runs: shown at the bottom, and again when it is sent."""
    ahead, shown = TypeAhead(), terminal()
    ahead.feed(b"\x1b[200~" + HOSTILE.replace("\x1b", "").encode() + b"\x1b[201~\r")
    lines: list[str] = []
    display = TerminalDisplay(TerminalScreen(lines.append, lambda: (400, 24)), Theme(), Clock())
    display.typed(ahead.shown)
    shown.typed = ahead
    _next_message(shown, None, None)  # type: ignore[arg-type]
    return "".join(lines) + written(shown)


SURFACES: dict[str, Callable[..., str]] = {
    "a paste during a turn": typed_ahead,
    "a question about a block, a tool or a rule": lambda: ask_question(guarded=True),
    "input(prompt) of a program": lambda: ask_question(guarded=False),
    "notices and errors without a terminal": notices_and_errors,
    "the list of saved conversations": session_row,
    "a resumed conversation": replayed,
    "%show of tables and texts": values,
    "%diff, and what an undo would overwrite": difference,
    "the status line": status_line,
    "events of --json": events,
    "a profile from a URL": profile,
    "what wtf --show prints": lambda: visible(message_for(FailedCommand(HOSTILE, 1, output=HOSTILE)), OUTPUT),
}


@pytest.mark.parametrize("surface", SURFACES)
def test_other_surfaces_hide_nothing(surface: str) -> None:
    assert_nothing_hidden(SURFACES[surface]())


@pytest.mark.parametrize("surface", [menu, models, command_line_error])
def test_command_output_hides_nothing(
    surface: Callable[[pytest.MonkeyPatch], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_nothing_hidden(surface(monkeypatch))


def test_completions_hide_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert_nothing_hidden(completions(tmp_path))


def test_the_policy_check_hides_nothing() -> None:
    assert_nothing_hidden(printed(lambda: commands.run_command(parse(["--policy_check", HOSTILE.replace("\x08", "")]))))


def test_program_output_keeps_colours_but_no_other_escapes() -> None:
    shown = on_the_screen(
        console("\x1b[31mred\x1b[0m \x1b]8;;https://x.org\x1b\\link\x1b]8;;\x1b\\ \x1b]52;c;eA==\x07\x1b]2;t\x07")
    )
    assert "\x1b[31mred" in shown
    assert "52;c" not in shown
    assert "]2;t" not in shown


# -- a new place that writes to the terminal has to be listed --------------------------------------------------------

# Every function in frontends/ that writes to the terminal, to standard output, or into a widget. If this test fails,
# make sure that the new one's text goes through `visible`, add a case above, and list it here.
WRITERS = {
    "cli.py": "run_program _run",
    "commands.py": "run_command _check_installation open_folder _list_models _check_policy",
    "headless/run.py": "write status error _turn",
    "notebook.py": "show_chat _approve show",
    "server/application.py": "announce _print_failure",
    "server/commands.py": "make_token",
    "server/gate.py": "write _note",  # to the audit trail, as JSON
    "server/routes.py": "note",
    "start.py": "start write say piped_text configured _load_profile _accepted",
    "terminal/approval.py": "_answer _edit_in_program",
    "terminal/chat.py": "_next_message replay",
    "terminal/magics/runtimes.py": "list_variables",
    "terminal/magics/undo.py": "show_difference",
    "terminal/prompt.py": "_ask _command _code _shell _files",
    "terminal/render/ansi.py": "_put",
    "terminal/render/code_block.py": "feed _fold",
    "terminal/render/display.py": "paint",
    "terminal/render/markdown.py": "rich_rows",
    "terminal/render/plain.py": "show _console _section finish line _write asking",
    "terminal/setup.py": "run_installer",
    "terminal/terminal.py": "tell notify ask _line",
    "terminal/tty.py": "write read_line keys restore query hide_early_keys",
    "terminal/widgets.py": "choose_row search_row",
    "viewer.py": "show _show _run_full_screen copy",
    "wtf/__init__.py": "_run print_hook recorded_output",
    "wtf/recorder.py": "add",
}
SINKS = {
    "print",
    "write",
    "_write",
    "_out",
    "input",
    "read_line",
    "getpass",
    "prompt",
    "Completion",
    "FormattedTextControl",
}


def writers(tree: ast.Module) -> list[str]:
    found: dict[str, None] = {}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            inner = [node for each in function.body for node in ast.walk(each)]
            nested = {id(node) for each in inner if isinstance(each, ast.FunctionDef) for node in ast.walk(each)}
            for node in inner:
                if isinstance(node, ast.Call) and id(node) not in nested:
                    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                    if name in SINKS:
                        found[function.name] = None
    return list(found)


def test_every_writer_is_listed() -> None:
    found = {
        str(file.relative_to(FRONT_ENDS)): set(writers(ast.parse(file.read_text("utf-8"))))
        for file in FRONT_ENDS.rglob("*.py")
    }
    assert {name: names for name, names in found.items() if names} == {
        name: set(names.split()) for name, names in WRITERS.items()
    }


# -- the program itself ----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_strays")
@pytest.mark.parametrize("flags", some(1, [["-y"], ["-y", "--plain"]]))
def test_a_language_name_and_a_prompt_cannot_reach_the_clipboard(flags: list[str]) -> None:
    replies = [
        tool_call("\x1b]0;title\x07\u202epython", "print(1)"),
        tool_call("python", "print('got ' + input('\\x1b]52;c;aGk=\\x07\\u202ename? '))"),
        text("Done."),
    ]
    with ModelServer(replies) as server, someone(*flags, server=server) as person:
        person.says("run")
        person.sees("<U+202E>name?")
        person.types("Ada" + ENTER)
        person.sees("got Ada")
        person.sees("Done.")
        assert "\x1b]0;title" not in person.raw
        assert "\x1b]52;" not in person.raw
        assert "\u202e" not in person.raw
        assert "<U+202E>" in person.raw
        assert person.leaves() == 0


# -- text that has to stay readable ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "👩‍💻 👨‍👩‍👧‍👦 ❤️ ☎︎ 1️⃣ 👋🏽 🇩🇪 🏳️‍🌈",
        "🏴󠁧󠁢󠁥󠁮󠁧󠁿",
        "می‌خواهم",
        "क्‍ष",
        "ශ්‍රී",
        "עברית العربية",
        "é ȩ̂ नि",
        "日本語　テスト 葛\U000e0100城",
        "10\u00a0000\u202f€ « oui »",
        "– — … „“ “” ‘’ ± ² ½",
    ],
)
def test_scripts_and_emoji_stay_readable_in_prose(text: str) -> None:
    assert visible(text, PROSE) == text
    written: list[str] = []
    display = PlainDisplay(written.append)
    # One character at a time, but a flag made of tag characters has to arrive whole.
    for char in [text] if "\U000e007f" in text else text:
        display.show({"role": "assistant", "type": "message", "content": char})
    assert "".join(written).strip() == text


@pytest.mark.parametrize(
    "text", ["a\u200db", "x\u200c", "a\ufe0f", "\U000e0041", "❤\ufe0f\ufe0f"[2:], "\u200d\u200d", "ab\u2060"]
)
def test_meaningless_invisible_characters_are_shown(text: str) -> None:
    assert "<U+" in visible(text, PROSE)


@pytest.mark.parametrize("text", ["👩‍💻", "می‌خواهم", "a\u00a0b", "\ue0b0", "a\U00016fe4", "\U00013441", "日　本", "❤️"])
def test_invisible_characters_are_shown_in_code(text: str) -> None:
    assert "<U+" in visible(text)


def test_plain_text_is_not_touched() -> None:
    text = "".join(map(chr, range(32, 127))) + "\n\t" + "äöüéñçßøåłżčšž ΑΒΓ абв 中文 한국어 ไทย ±√∑ ─│┌ ░▒▓ ✓✗"
    assert visible(text) == text


NAME = "a\nundo: yes"


@pytest.mark.parametrize(
    "chunks",
    [
        said("tool_call", '{"a": "b"}', NAME),
        said("tool_call", "no JSON\nundo: yes", "a"),
        status("files", changed=[{"what": "renamed", "path": NAME, "from": NAME}], not_covered=[[NAME, "x"]])
        + console("b"),
        [{"role": "computer", "type": "confirmation", "effects": [], "reason": "", "widening": [NAME]}],
    ],
    ids=["tool name", "tool arguments", "file names", "sandbox request"],
)
def test_a_name_cannot_imitate_our_own_lines(chunks: list[dict[str, Any]]) -> None:
    for shown in (on_the_screen(chunks), in_plain_text(chunks)):
        assert not any(
            line.startswith("undo: yes") for line in re.split(r"[\r\n]+", OUR_ESCAPES_BUT_LINES.sub("", shown))
        )


def test_a_preview_shows_each_file_and_line_on_one_row() -> None:
    change = SimpleNamespace(what="created", path=NAME, source=None, before=None, after=None)
    diffs = {"a": "+b\u2028undo: yes\n"}
    preview = SimpleNamespace(changes=[change], data_diffs=diffs, denied=[], read_only=[], lost=[], can_apply=False)
    shown = terminal()
    _ask_to_apply(shown, preview)  # type: ignore[arg-type]
    assert "a␊undo: yes" in written(shown)
    assert "+b<U+2028>undo: yes" in written(shown)


def test_font_icons_stay_in_output() -> None:
    assert visible("\ue0b0 \U000f0001", OUTPUT) == "\ue0b0 \U000f0001"
