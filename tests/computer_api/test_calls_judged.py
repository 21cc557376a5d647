"""Who has a say in a call: rules, the mode, a sandbox and the user; and what the journal keeps of it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from answering import allowing_calls
from conversation import Chatting, chatting
from gadget import Desk, calls_of, desk, install
from interpreter import OpenInterpreter
from interpreter.errors import NotPreviewableError
from interpreter.session.journal import SavedSession
from model_server import text, tool_call
from sampling import some
from waiting import until

__all__ = ["chatting", "desk"]
SEND = "computer.gadget.mail('ann@example.com', text='Hello Ann')"


def rules(home: Path, words: str) -> None:
    """The user's own policy file."""
    from interpreter.policy.files import user_file

    user_file().parent.mkdir(parents=True, exist_ok=True)
    user_file().write_text("rules:\n" + words)


# -- what sends asks ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("auto_run", [False, True])
def test_sending_asks_and_shows_what_goes_to_whom(desk: Desk, auto_run: bool) -> None:
    desk.interpreter.auto_run = auto_run
    desk.answer_with("y")
    ran = desk.do(f"print({SEND})\nprint({SEND})")
    assert ran.text == "sent\nsent\n"
    assert desk.gadget.sent == [("ann@example.com", "Hello Ann")] * 2
    assert len(desk.asked) == 2
    assert "to: 'ann@example.com'" in desk.asked[0] and "text: 'Hello Ann'" in desk.asked[0]
    asked = [chunk["content"] for chunk in ran.of_type("confirmation")]
    assert [question["content"] for question in asked] == desk.asked
    assert {(question["type"], question["format"]) for question in asked} == {("call", "computer.gadget.mail")}
    assert ran.of_type("input_request") == []  # which is what programs ask for
    assert [call["by"] for call in calls_of(ran)] == ["user", "user"]


@pytest.mark.parametrize(
    ("answer", "words"), [("n", "the user said no"), ("", "the user said no"), (None, "there was no one")]
)
def test_without_a_yes_nothing_is_sent(desk: Desk, answer: str | None, words: str) -> None:
    desk.answer_with(answer)
    ran = desk.do(SEND)
    assert "PermissionError: computer.gadget.mail sent nothing" in ran.stderr and words in ran.stderr
    assert desk.gadget.sent == []
    assert [call["outcome"] for call in calls_of(ran)] == ["refused"]


def test_with_nobody_to_ask_nothing_is_sent(desk: Desk) -> None:
    desk.interpreter.auto_run = True
    assert "there was no one to ask" in desk.do(SEND).stderr
    assert desk.gadget.sent == []


def test_what_answers_programs_does_not_allow_calls(desk: Desk) -> None:
    desk.computer.on_input = lambda prompt, password: "y"
    assert "there was no one to ask" in desk.do(SEND).stderr
    assert desk.gadget.sent == []


def test_an_interrupt_while_the_user_is_asked_sends_nothing(desk: Desk) -> None:
    def allow(words: str) -> bool:
        desk.computer.stop()
        return True

    with allowing_calls(desk.interpreter, allow):
        desk.do(SEND)
    assert desk.do("print('next')").text == "next\n"


def test_a_rule_that_allows_does_not_replace_the_question(desk: Desk, home: Path) -> None:
    rules(home, "  - {decision: allow, call: 'computer.*'}\n")
    assert "there was no one to ask" in desk.do(SEND).stderr


def test_the_users_own_calls_are_not_asked(desk: Desk) -> None:
    assert desk.gadget.mail("ann@example.com", "Hello") == "sent"
    assert desk.gadget.show() == "shown"


def test_what_is_asked_cannot_be_dressed_up(desk: Desk) -> None:
    """Names and sizes come from the session too: none of it is shown as it is, and what cannot be sent is not asked."""
    desk.answer_with("y")
    picture = "{'$picture': {'png': '', 'width': '1\\n  to: ann', 'height': 1}}"
    ran = desk.do(
        "report = computer._ask.__self__\n"
        "frame = {'event': 'call', 'block': report.number, 'path': 'gadget.mail', 'how': 'call'}\n"
        f"for number, more in enumerate([{{'args': ['eve', {picture}]}}, "
        f"{{'kwargs': {{'to': 'eve', 'text': '', 'x\\n': 1}}}}]):\n"
        "    send = lambda: report._channel.send({**frame, **more, 'call': 900 + number})\n"
        "    print(report._channel.request(900 + number, send)['error']['type'])"
    )
    assert ran.text == "TypeError\nTypeError\n" and desk.asked == [] and desk.gadget.sent == []
    desk.do(f"computer.gadget.mail('ann', '\\x1b[8m' + {'x' * 5000!r})")
    assert "text: '\\x1b[8mxxx" in desk.asked[0] and "and 1,0" in desk.asked[0] and "more characters" in desk.asked[0]


# -- rules -------------------------------------------------------------------------------------------------------------


def test_a_rule_forbids_a_call_however_it_is_spelled(desk: Desk, home: Path) -> None:
    rules(home, "  - {decision: deny, call: 'computer.gadget.press', reason: Not the button.}\n")
    for code in ("computer.gadget.press()", "getattr(computer.gadget, 'pre' + 'ss')()"):
        ran = desk.do(code)
        assert "PermissionError: The rules don't allow computer.gadget.press: Not the button." in ran.stderr
    assert desk.gadget.sent == []
    assert desk.do("print(computer.gadget.width)").text == "7\n"


def test_a_rule_that_asks_does_so_once_for_a_block(desk: Desk, home: Path) -> None:
    rules(home, "  - {decision: ask, call: 'computer.gadget.pr*', reason: Buttons are asked.}\n")
    desk.answer_with("y")
    assert desk.do("print(computer.gadget.press(), computer.gadget.press())").text == "pressed pressed\n"
    (question,) = desk.asked
    assert question.startswith("Buttons are asked.\nLet the code use computer.gadget.press()?")
    desk.answer_with("n")
    assert (
        "PermissionError: computer.gadget.press was not called: the user said no."
        in desk.do("computer.gadget.press()").stderr
    )


# -- sandbox and plan --------------------------------------------------------------------------------------------------


@pytest.fixture
def real() -> None:
    from interpreter.errors import SandboxUnavailableError
    from interpreter.sandbox import bubblewrap

    try:
        bubblewrap.available()
    except SandboxUnavailableError as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("real")
@pytest.mark.parametrize("language", ["python", pytest.param("javascript", marks=pytest.mark.needs("node"))])
def test_from_a_sandbox_what_reaches_out_of_it_is_asked(desk: Desk, language: str) -> None:
    desk.interpreter.sandbox = "workspace"
    say, wait = ("console.log", "await ") if language == "javascript" else ("print", "")
    refused = desk.do(f"{wait}computer.gadget.press()", language)
    assert "it needs approval, and there was no one to ask" in refused.stderr
    desk.answer_with("yes")
    assert desk.do(f"{say}({wait}computer.gadget.press())", language).text == "pressed\n"
    assert "The code runs in a sandbox, and this call acts outside it." in desk.asked[0]
    desk.answer_with(None)
    assert "computer.gadget.width" in desk.do(f"{say}({wait}computer.help('gadget'))", language).text


@pytest.mark.usefixtures("real")
def test_from_a_sandbox_the_screen_is_seen_only_by_a_yes_or_in_os_mode(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    desk.interpreter.sandbox = "workspace"
    assert "there was no one to ask" in desk.do("computer.display.view()").stderr
    desk.interpreter.os = True
    assert "NoDisplay" in (told := desk.do("computer.view()").stderr) or "display" in told
    assert "there was no one" not in told


@pytest.mark.usefixtures("real")
def test_a_yes_to_one_program_is_none_to_another(desk: Desk) -> None:
    desk.interpreter.sandbox = "workspace"
    desk.answer_with("n")
    code = "for word in ('a', 'b', 'a'):\n    try:\n        computer.os.launch('no such program', word * 500)\n    except PermissionError: pass"
    desk.do(code)
    assert len(desk.asked) == 3 and "a" * 500 in desk.asked[0] and "b" * 500 in desk.asked[1]
    desk.asked.clear()
    desk.answer_with("y")
    desk.do(code.replace("PermissionError", "Exception"))
    assert len(desk.asked) == 2


@pytest.mark.usefixtures("real")
def test_a_rule_lets_sandboxed_code_call(desk: Desk, home: Path) -> None:
    rules(home, "  - {decision: allow, call: 'computer.gadget.*'}\n")
    desk.interpreter.sandbox = "workspace"
    ran = desk.do(
        "print(computer.gadget.press())\npicture = "
        "computer.gadget.picture()\nprint(picture)\ncomputer.gadget.show('x');"
    )
    assert ran.text == "pressed\n<Picture 2 x 1>\nx\n"


@pytest.mark.usefixtures("real")
@pytest.mark.parametrize(("settings", "words"), [({"sandbox": "read-only"}, "the read-only sandbox"), ({"mode": "plan"}, "plan mode")])  # fmt: skip
def test_where_code_only_looks_nothing_acts(desk: Desk, settings: dict[str, str], words: str) -> None:
    for name, value in settings.items():
        setattr(desk.interpreter, name, value)
    desk.answer_with("y")
    for code in ("computer.gadget.press()", SEND):
        ran = desk.do(code)
        assert "PermissionError" in ran.stderr and words in ran.stderr
    assert desk.gadget.sent == []
    assert desk.do("print(computer.gadget.width)").text == "7\n"


JOB = """
computer.gadget.wait()
def told(function, *args):
    try:
        return str(function(*args))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
print(told(computer.files.read, KEY))
print(told(computer.files.edit, "a.txt", "old", "new"))
print(told(computer.gadget.press))
"""


@pytest.mark.usefixtures("real")
@pytest.mark.parametrize(
    ("began", "now"), some(1, [("read-only", "off"), ("workspace", "read-only"), ("off", "read-only")])
)
def test_a_job_in_the_background_calls_from_the_sandbox_that_it_began_in(
    desk: Desk, home: Path, tmp_path: Path, began: str, now: str
) -> None:
    rules(home, "  - {decision: allow, call: 'computer.gadget.*'}\n")
    (home / "key").write_text("private")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("old")
    desk.interpreter.workspace, desk.interpreter.sandbox = str(tmp_path / "work"), began
    to_background = threading.Thread(target=lambda: desk.gadget.entered.wait(20) and desk.computer.runtimes.detach())
    to_background.start()
    assert desk.do(f"KEY = {str(home / 'key')!r}\n{JOB}").ended == "background"
    to_background.join()
    (job,) = desk.computer.jobs
    desk.interpreter.sandbox = now
    desk.do("1")
    desk.gadget.released.set()
    until(lambda: not job.running, "the end of the job")
    read, edited, pressed = job.output().splitlines()
    assert read.startswith("private") == (began == "off")
    assert ("read-only" in pressed) == (began == "read-only")
    assert (tmp_path / "work" / "a.txt").read_text() == ("old" if began == "read-only" else "new"), edited


# -- in a conversation -------------------------------------------------------------------------------------------------


@pytest.fixture
def home_with_gadget(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)


def chunks_of(interpreter: OpenInterpreter, answer: bool = True) -> list[Any]:
    seen = []
    for chunk in interpreter.chat("Go", display=False, stream=True):
        seen.append(chunk)
        if chunk["type"] == "confirmation" and chunk["format"] == "execution":
            assert interpreter.pending is not None
            interpreter.pending.approve() if answer else interpreter.pending.decline()
    return seen


@pytest.mark.usefixtures("home_with_gadget")
def test_what_the_user_approved_in_the_block_is_not_asked_again(chatting: Chatting, home: Path) -> None:
    rules(home, "  - {decision: ask, call: 'computer.gadget.*'}\n")
    code = "print(computer.gadget.press())"
    interpreter, _ = chatting(tool_call("python", code), text("Done."), auto_run=True)
    seen = chunks_of(interpreter)
    (question,) = [chunk for chunk in seen if chunk["type"] == "confirmation"]
    assert any("Uses computer.gadget.press" in line for line in question["effects"])
    assert question["undo"]["kind"] == "not"
    assert any(chunk.get("content") == "pressed\n" for chunk in seen)


@pytest.mark.usefixtures("home_with_gadget")
def test_the_journal_has_each_call_with_its_pictures(chatting: Chatting) -> None:
    code = "computer.gadget.picture()\ncomputer.gadget.press('x')\ncomputer.gadget.mail('a', 'b')"
    interpreter, _ = chatting(tool_call("python", code), text("Done."), auto_run=True)
    chunks_of(interpreter)
    assert interpreter.journal.path is not None
    session = SavedSession.open(interpreter.journal.path)
    (block,) = session.blocks
    told = [(call["call"], call["outcome"], call.get("by")) for call in block.calls]
    assert told == [
        ("computer.gadget.picture", "ok", "block"),
        ("computer.gadget.press", "ok", "block"),
        ("computer.gadget.mail", "refused", None),
    ]
    (reference,) = block.calls[0]["pictures"]
    assert session.blobs.get(reference).startswith("iVBOR")
    assert "there was no one" in block.calls[2]["error"]


# -- in this process ---------------------------------------------------------------------------------------------------


def test_python_in_this_process_uses_the_same_tools_and_asks_too(desk: Desk) -> None:
    desk.computer.python = "in-process"
    ran = desk.do("print(computer.gadget.width, computer.gadget.echo(object) is object, computer.emit_images)\n"
                  "computer.gadget.show('words');\ncomputer.gadget.fail('ValueError')")  # fmt: skip
    assert ran.stdout == "7 True True\nwords\n", ran.chunks
    assert "ValueError: not today" in ran.stderr
    assert "there was no one to ask" in desk.do(SEND).stderr
    desk.answer_with("y")
    assert desk.do(f"print({SEND})").stdout == "sent\n"
    assert [call["outcome"] for call in calls_of(ran)] == ["ok", "ok", "ok", "failed"]


def test_two_in_this_process_have_each_their_own_computer(desk: Desk) -> None:
    """They share the variables of the main module."""
    other = Desk()
    for each in (desk, other, desk):
        each.computer.python = "in-process"
        assert each.do("computer.gadget.show('words');").stdout == "words\n"
    assert desk.do("computer = 5\nprint(computer)").stdout == "5\n"
    assert other.do("print(computer)\ndel computer").stdout == "5\n"
    assert other.do("computer.gadget.show('again');").stdout == "again\n"


def test_a_block_that_is_only_tried_out_uses_nothing(desk: Desk) -> None:
    desk.do("width = computer.gadget.width")
    try:
        preview = desk.computer.preview("python", "print(width)\ncomputer.gadget.press()")
        ran = "".join(str(chunk.get("content")) for chunk in preview)
    except NotPreviewableError as error:
        pytest.skip(str(error))
    assert "PermissionError: A dry run can't use the computer" in ran
    preview.discard()
    assert desk.gadget.sent == []
    assert desk.do("print(computer.gadget.press())").text == "pressed\n"


def test_tools_move_along_to_a_new_worker(desk: Desk) -> None:
    """Where a snapshot cannot go on by itself, variables are carried: names of tools among them."""
    desk.do("from computer import gadget\npress = gadget.press\nimport computer\nx = 5\npicture = gadget.picture()")
    python = desk.computer.runtimes.runtime("python")
    session = python.runtime  # type: ignore[attr-defined]
    lost = session.snapshots.carry()
    assert lost == []
    assert desk.do("print(gadget.width, press(), x, picture, computer.gadget is gadget)").text == (
        "7 pressed 5 <Picture 2 x 1> True\n"
    )
