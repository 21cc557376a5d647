"""Approval of calls by rules, the permission mode, the sandbox and the user, and their record in the journal."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from call_answers import allowing_calls
from conversation import Chatting, chatting
from example_computer_tool import CallTester, calls_of, install, tester
from interpreter import OpenInterpreter
from interpreter.errors import NotPreviewableError
from interpreter.session.journal import SavedSession
from model_server import text, tool_call
from sampling import some
from waiting import until

__all__ = ["chatting", "tester"]
SEND = "computer.example.mail('ann@example.com', text='Hello Ann')"


def write_rules(home: Path, words: str) -> None:
    """Write the user's policy file."""
    from interpreter.policy.files import user_file

    user_file().parent.mkdir(parents=True, exist_ok=True)
    user_file().write_text("rules:\n" + words)


# -- sending needs approval --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("auto_run", [False, True])
def test_sending_asks_and_shows_recipient_and_content(tester: CallTester, auto_run: bool) -> None:
    tester.interpreter.auto_run = auto_run
    tester.answer_with("y")
    ran = tester.do(f"print({SEND})\nprint({SEND})")
    assert ran.text == "sent\nsent\n"
    assert tester.example.sent == [("ann@example.com", "Hello Ann")] * 2
    assert len(tester.asked) == 2
    assert "to: 'ann@example.com'" in tester.asked[0] and "text: 'Hello Ann'" in tester.asked[0]
    asked = [chunk["content"] for chunk in ran.of_type("confirmation")]
    assert [question["content"] for question in asked] == tester.asked
    assert {(question["type"], question["format"]) for question in asked} == {("call", "computer.example.mail")}
    assert ran.of_type("input_request") == []  # those are for a program's `input()`
    assert [call["by"] for call in calls_of(ran)] == ["user", "user"]


@pytest.mark.parametrize(
    ("answer", "words"), [("n", "the user said no"), ("", "the user said no"), (None, "there was no one")]
)
def test_nothing_is_sent_without_approval(tester: CallTester, answer: str | None, words: str) -> None:
    tester.answer_with(answer)
    ran = tester.do(SEND)
    assert "PermissionError: computer.example.mail sent nothing" in ran.stderr and words in ran.stderr
    assert tester.example.sent == []
    assert [call["outcome"] for call in calls_of(ran)] == ["refused"]


def test_nothing_is_sent_when_unattended(tester: CallTester) -> None:
    tester.interpreter.auto_run = True
    assert "there was no one to ask" in tester.do(SEND).stderr
    assert tester.example.sent == []


def test_on_input_does_not_approve_calls(tester: CallTester) -> None:
    tester.computer.on_input = lambda prompt, password: "y"
    assert "there was no one to ask" in tester.do(SEND).stderr
    assert tester.example.sent == []


def test_an_approval_that_comes_after_an_interrupt_sends_nothing(tester: CallTester) -> None:
    def allow(words: str) -> bool:
        tester.computer.stop()
        return True

    with allowing_calls(tester.interpreter, allow):
        tester.do(SEND)
    assert tester.do("print('next')").text == "next\n" and tester.example.sent == []


def test_an_allow_rule_does_not_replace_the_question(tester: CallTester, home: Path) -> None:
    write_rules(home, "  - {decision: allow, call: 'computer.*'}\n")
    assert "there was no one to ask" in tester.do(SEND).stderr


def test_calls_by_the_user_need_no_approval(tester: CallTester) -> None:
    assert tester.example.mail("ann@example.com", "Hello") == "sent"
    assert tester.example.show() == "shown"


def test_code_cannot_disguise_what_the_question_shows(tester: CallTester) -> None:
    """Names and sizes come from the session too: they are shown escaped, and a call with wrong arguments asks nothing."""
    tester.answer_with("y")
    picture = "{'$picture': {'png': '', 'width': '1\\n  to: ann', 'height': 1}}"
    ran = tester.do(
        "report = computer._ask.__self__\n"
        "frame = {'event': 'call', 'block': report.number, 'path': 'example.mail', 'how': 'call'}\n"
        f"for number, more in enumerate([{{'args': ['eve', {picture}]}}, "
        f"{{'kwargs': {{'to': 'eve', 'text': '', 'x\\n': 1}}}}]):\n"
        "    send = lambda: report._channel.send({**frame, **more, 'call': 900 + number})\n"
        "    print(report._channel.request(900 + number, send)['error']['type'])"
    )
    assert ran.text == "TypeError\nTypeError\n" and tester.asked == [] and tester.example.sent == []
    tester.do(f"computer.example.mail('ann', '\\x1b[8m' + {'x' * 5000!r})")
    assert (
        "text: '\\x1b[8mxxx" in tester.asked[0]
        and "and 1,0" in tester.asked[0]
        and "more characters" in tester.asked[0]
    )


# -- rules -------------------------------------------------------------------------------------------------------------


def test_a_deny_rule_applies_however_the_call_is_written(tester: CallTester, home: Path) -> None:
    write_rules(home, "  - {decision: deny, call: 'computer.example.press', reason: Not the button.}\n")
    for code in ("computer.example.press()", "getattr(computer.example, 'pre' + 'ss')()"):
        ran = tester.do(code)
        assert "PermissionError: The rules don't allow computer.example.press: Not the button." in ran.stderr
    assert tester.example.sent == []
    assert tester.do("print(computer.example.width)").text == "7\n"


def test_an_ask_rule_asks_once_per_block(tester: CallTester, home: Path) -> None:
    write_rules(home, "  - {decision: ask, call: 'computer.example.pr*', reason: Buttons are asked.}\n")
    tester.answer_with("y")
    assert tester.do("print(computer.example.press(), computer.example.press())").text == "pressed pressed\n"
    (question,) = tester.asked
    assert question.startswith("Buttons are asked.\nLet the code use computer.example.press()?")
    tester.answer_with("n")
    assert (
        "PermissionError: computer.example.press was not called: the user said no."
        in tester.do("computer.example.press()").stderr
    )


# -- sandbox and plan --------------------------------------------------------------------------------------------------


@pytest.fixture
def sandbox_available() -> None:
    from interpreter.errors import SandboxUnavailableError
    from interpreter.sandbox import bubblewrap

    try:
        bubblewrap.available()
    except SandboxUnavailableError as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("sandbox_available")
@pytest.mark.parametrize("language", ["python", pytest.param("javascript", marks=pytest.mark.needs("node"))])
def test_sandboxed_code_needs_approval_for_calls_that_act_outside(tester: CallTester, language: str) -> None:
    tester.interpreter.sandbox = "workspace"
    say, wait = ("console.log", "await ") if language == "javascript" else ("print", "")
    refused = tester.do(f"{wait}computer.example.press()", language)
    assert "it needs approval, and there was no one to ask" in refused.stderr
    tester.answer_with("yes")
    assert tester.do(f"{say}({wait}computer.example.press())", language).text == "pressed\n"
    assert "The code runs in a sandbox, and this call acts outside it." in tester.asked[0]
    tester.answer_with(None)
    assert "computer.example.width" in tester.do(f"{say}({wait}computer.help('example'))", language).text


@pytest.mark.usefixtures("sandbox_available")
def test_sandboxed_code_sees_the_screen_only_with_approval_or_in_os_mode(
    tester: CallTester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    tester.interpreter.sandbox = "workspace"
    assert "there was no one to ask" in tester.do("computer.display.view()").stderr
    tester.interpreter.os = True
    assert "NoDisplay" in (told := tester.do("computer.view()").stderr) or "display" in told
    assert "there was no one" not in told


@pytest.mark.usefixtures("sandbox_available")
def test_approving_one_program_does_not_approve_another(tester: CallTester) -> None:
    tester.interpreter.sandbox = "workspace"
    tester.answer_with("n")
    code = "for word in ('a', 'b', 'a'):\n    try:\n        computer.os.launch('no such program', word * 500)\n    except PermissionError: pass"
    tester.do(code)
    assert len(tester.asked) == 3 and "a" * 500 in tester.asked[0] and "b" * 500 in tester.asked[1]
    tester.asked.clear()
    tester.answer_with("y")
    tester.do(code.replace("PermissionError", "Exception"))
    assert len(tester.asked) == 2


@pytest.mark.usefixtures("sandbox_available")
def test_an_allow_rule_lets_sandboxed_code_call(tester: CallTester, home: Path) -> None:
    write_rules(home, "  - {decision: allow, call: 'computer.example.*'}\n")
    tester.interpreter.sandbox = "workspace"
    ran = tester.do(
        "print(computer.example.press())\npicture = "
        "computer.example.picture()\nprint(picture)\ncomputer.example.show('x');"
    )
    assert ran.text == "pressed\n<Picture 2 x 1>\nx\n"


@pytest.mark.usefixtures("sandbox_available")
@pytest.mark.parametrize(("settings", "words"), [({"sandbox": "read-only"}, "the read-only sandbox"), ({"mode": "plan"}, "plan mode")], ids=["read-only", "plan"])  # fmt: skip
def test_read_only_and_plan_mode_refuse_calls_that_act(
    tester: CallTester, settings: dict[str, str], words: str
) -> None:
    for name, value in settings.items():
        setattr(tester.interpreter, name, value)
    tester.answer_with("y")
    for code in ("computer.example.press()", SEND):
        ran = tester.do(code)
        assert "PermissionError" in ran.stderr and words in ran.stderr
    assert tester.example.sent == []
    assert tester.do("print(computer.example.width)").text == "7\n"


JOB = """
computer.example.wait()
def told(function, *args):
    try:
        return str(function(*args))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
print(told(computer.files.read, KEY))
print(told(computer.files.edit, "a.txt", "old", "new"))
print(told(computer.example.press))
"""


@pytest.mark.usefixtures("sandbox_available")
@pytest.mark.parametrize(
    ("began", "now"), some(1, [("read-only", "off"), ("workspace", "read-only"), ("off", "read-only")])
)
def test_a_background_job_keeps_the_sandbox_it_started_in(
    tester: CallTester, home: Path, tmp_path: Path, began: str, now: str
) -> None:
    write_rules(home, "  - {decision: allow, call: 'computer.example.*'}\n")
    (home / "key").write_text("private")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("old")
    tester.interpreter.workspace, tester.interpreter.sandbox = str(tmp_path / "work"), began
    to_background = threading.Thread(
        target=lambda: tester.example.entered.wait(20) and tester.computer.runtimes.detach()
    )
    to_background.start()
    assert tester.do(f"KEY = {str(home / 'key')!r}\n{JOB}").ended == "background"
    to_background.join()
    (job,) = tester.computer.jobs
    tester.interpreter.sandbox = now
    tester.do("1")
    tester.example.released.set()
    until(lambda: not job.running, "the end of the job")
    read, edited, pressed = job.output().splitlines()
    assert read.startswith("private") == (began == "off")
    assert ("read-only" in pressed) == (began == "read-only")
    assert (tmp_path / "work" / "a.txt").read_text() == ("old" if began == "read-only" else "new"), edited


# -- in a conversation -------------------------------------------------------------------------------------------------


@pytest.fixture
def example_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)


def chat_chunks(interpreter: OpenInterpreter, answer: bool = True) -> list[Any]:
    seen = []
    for chunk in interpreter.chat("Go", display=False, stream=True):
        seen.append(chunk)
        if chunk["type"] == "confirmation" and chunk["format"] == "execution":
            assert interpreter.pending is not None
            interpreter.pending.approve() if answer else interpreter.pending.decline()
    return seen


@pytest.mark.usefixtures("example_installed")
def test_calls_approved_with_the_block_are_not_asked_again(chatting: Chatting, home: Path) -> None:
    write_rules(home, "  - {decision: ask, call: 'computer.example.*'}\n")
    code = "print(computer.example.press())"
    interpreter, _ = chatting(tool_call("python", code), text("Done."), auto_run=True)
    seen = chat_chunks(interpreter)
    (question,) = [chunk for chunk in seen if chunk["type"] == "confirmation"]
    assert any("Uses computer.example.press" in line for line in question["effects"])
    assert question["undo"]["kind"] == "not"
    assert any(chunk.get("content") == "pressed\n" for chunk in seen)


@pytest.mark.usefixtures("example_installed")
def test_the_journal_records_each_call_with_its_pictures(chatting: Chatting) -> None:
    code = "computer.example.picture()\ncomputer.example.press('x')\ncomputer.example.mail('a', 'b')"
    interpreter, _ = chatting(tool_call("python", code), text("Done."), auto_run=True)
    chat_chunks(interpreter)
    assert interpreter.journal.path is not None
    session = SavedSession.open(interpreter.journal.path)
    (block,) = session.blocks
    told = [(call["call"], call["outcome"], call.get("by")) for call in block.calls]
    assert told == [
        ("computer.example.picture", "ok", "block"),
        ("computer.example.press", "ok", "block"),
        ("computer.example.mail", "refused", None),
    ]
    (reference,) = block.calls[0]["pictures"]
    assert session.blobs.get(reference).startswith("iVBOR")
    assert "there was no one" in block.calls[2]["error"]


# -- in this process ---------------------------------------------------------------------------------------------------


def test_in_process_python_uses_the_same_tools_and_approvals(tester: CallTester) -> None:
    tester.computer.python = "in-process"
    ran = tester.do("print(computer.example.width, computer.example.echo(object) is object, computer.emit_images)\n"
                  "computer.example.show('words');\ncomputer.example.fail('ValueError')")  # fmt: skip
    assert ran.stdout == "7 True True\nwords\n", ran.chunks
    assert "ValueError: not today" in ran.stderr
    assert "there was no one to ask" in tester.do(SEND).stderr
    tester.answer_with("y")
    assert tester.do(f"print({SEND})").stdout == "sent\n"
    assert [call["outcome"] for call in calls_of(ran)] == ["ok", "ok", "ok", "failed"]


def test_two_in_process_interpreters_have_separate_computers(tester: CallTester) -> None:
    """Even though they share the variables of the main module."""
    other = CallTester()
    for each in (tester, other, tester):
        each.computer.python = "in-process"
        assert each.do("computer.example.show('words');").stdout == "words\n"
    assert tester.do("computer = 5\nprint(computer)").stdout == "5\n"
    assert other.do("print(computer)\ndel computer").stdout == "5\n"
    assert other.do("computer.example.show('again');").stdout == "again\n"


def test_a_dry_run_cannot_use_the_computer(tester: CallTester) -> None:
    tester.do("width = computer.example.width")
    try:
        preview = tester.computer.preview("python", "print(width)\ncomputer.example.press()")
        ran = "".join(str(chunk.get("content")) for chunk in preview)
    except NotPreviewableError as error:
        pytest.skip(str(error))
    assert "PermissionError: A dry run can't use the computer" in ran
    preview.discard()
    assert tester.example.sent == []
    assert tester.do("print(computer.example.press())").text == "pressed\n"


def test_tools_move_to_a_new_worker(tester: CallTester) -> None:
    """Where a snapshot can't be resumed, the variables are copied, including references to tools."""
    tester.do(
        "from computer import example\npress = example.press\nimport computer\nx = 5\npicture = example.picture()"
    )
    python = tester.computer.runtimes.runtime("python")
    session = python.runtime  # type: ignore[attr-defined]
    lost = session.snapshots.carry()
    assert lost == []
    assert tester.do("print(example.width, press(), x, picture, computer.example is example)").text == (
        "7 pressed 5 <Picture 2 x 1> True\n"
    )
