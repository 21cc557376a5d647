"""Questions: who can answer, what an answer covers, and when continuing counts as consent."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conversation import Chatting, chatting
from example_computer_tool import install
from interpreter import OpenInterpreter
from interpreter.policy.files import user_file
from interpreter.session import APPROVE, EDIT, REFUSE, Answer, Block, Question
from model_server import text, tool_call
from waiting import until

__all__ = ["chatting"]
LIMIT = 20


def printed(interpreter: OpenInterpreter) -> str:
    return "".join(str(m["content"]) for m in interpreter.messages if m["type"] == "console")


def decisions(interpreter: OpenInterpreter) -> list[str]:
    return [event.data["format"] for event in interpreter.session.log.read() if event.kind == "decision"]


def answers(interpreter: OpenInterpreter) -> list[tuple[str, str]]:
    read = interpreter.session.log.read()
    return [(event.data["choice"], event.data["by"]) for event in read if event.kind == "answer"]


def in_thread(function: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(function())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, found


def join(thread: threading.Thread) -> None:
    thread.join(LIMIT)
    assert not thread.is_alive(), "the chat hangs"


def wait_for_question(interpreter: OpenInterpreter) -> Question:
    until(lambda: bool(interpreter.session.questions.open), "a question", LIMIT)
    return interpreter.session.questions.open[0]


def write_rules(words: str) -> None:
    """Write the user's policy file."""
    user_file().parent.mkdir(parents=True, exist_ok=True)
    user_file().write_text("rules:\n" + words)


ASKS_MKDIR = "- decision: ask\n  command: mkdir\n  reason: folders are mine\n"
DENIES_MKDIR = "- decision: deny\n  command: mkdir\n  reason: folders are mine\n"


# -- continuing as consent ---------------------------------------------------------------------------------------------


def test_continuing_is_consent_if_only_the_mode_asks(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("echo", "hi"), text("Done."))
    list(interpreter.chat("go", display=False, stream=True))
    assert printed(interpreter) == "hi\n" and answers(interpreter) == [("approve", "continued")]


def test_continuing_is_not_consent_if_a_front_end_should_have_answered(chatting: Chatting) -> None:
    """A browser that lost its connection has not approved anything."""
    interpreter, _ = chatting(tool_call("echo", "hi"), text("Done."), question_timeout=0.1)
    with interpreter.session.questions.answerable(["block"]):
        list(interpreter.chat("go", display=False, stream=True))
    assert printed(interpreter) == "" and answers(interpreter) == [("refuse", "nobody")]


def test_continuing_is_not_consent_for_readers_of_events(chatting: Chatting) -> None:
    """Only the chunks of `chat` have the meaning that they had in 0.4.3."""
    interpreter, _ = chatting(tool_call("echo", "hi"), text("Done."))
    list(interpreter.respond("go"))
    assert printed(interpreter) == "" and answers(interpreter) == [("refuse", "nobody")]


def test_continuing_is_not_consent_if_a_rule_asks(chatting: Chatting, tmp_path: Path) -> None:
    write_rules(ASKS_MKDIR)
    interpreter, _ = chatting(tool_call("shell", "mkdir made"), text("Done."), workspace=str(tmp_path))
    list(interpreter.chat("go", display=False, stream=True))
    assert not (tmp_path / "made").exists() and answers(interpreter) == [("refuse", "nobody")]


def test_continuing_is_not_consent_if_a_scan_asks(chatting: Chatting) -> None:
    grave = "import subprocess, sys\ncommand = sys.argv[0]\nsubprocess.run('echo hi; ' + command, shell=True)"
    interpreter, _ = chatting(tool_call("python", grave), text("Done."), safe_mode="auto", auto_run=True)
    list(interpreter.chat("go", display=False, stream=True))
    assert "Not run" in printed(interpreter) and answers(interpreter) == [("refuse", "nobody")]


def test_continuing_is_not_consent_if_a_tool_call_asks(chatting: Chatting, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    code = "computer.example.mail('ann@example.com', text='Hello Ann')"
    interpreter, _ = chatting(tool_call("python", code), text("Done."), auto_run=True)
    list(interpreter.chat("go", display=False, stream=True))
    assert interpreter.computer.example.sent == [] and answers(interpreter) == [("refuse", "nobody")]


@pytest.mark.parametrize("python", [None, "in-process"])
def test_a_question_about_a_call_is_one_event_with_one_answer(
    chatting: Chatting, monkeypatch: pytest.MonkeyPatch, python: str | None
) -> None:
    """Also where code runs in this process, which can't be suspended during a question."""
    install(monkeypatch)
    code = "computer.example.mail('ann@example.com', text='Hello Ann')"
    interpreter, _ = chatting(tool_call("python", code), text("Done."), auto_run=True)
    interpreter.computer.python = python
    with interpreter.session.questions.answerable(["call"], yes):
        events = list(interpreter.respond("go"))
    assert interpreter.computer.example.sent == [("ann@example.com", "Hello Ann")]
    assert answers(interpreter) == [("approve", "user")]
    (logged,) = [event for event in interpreter.session.log.read() if event.kind == "confirmation"]
    (given,) = [event for event in events if event.kind == "confirmation"]
    assert (given.number, given.data["question"]) == (logged.number, logged.data["question"])


# -- who answers -------------------------------------------------------------------------------------------------------


def test_an_action_waits_for_a_front_end_in_another_thread(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("echo", "hi"), text("Done."))
    with interpreter.session.questions.answerable(["block"]):
        thread, _ = in_thread(lambda: interpreter.chat("go", display=False))
        question = wait_for_question(interpreter)
        assert interpreter.pending is not None and interpreter.pending.question is question
        assert interpreter.session.lane.holder is None
        assert interpreter.session.answer(question.id, APPROVE)
        join(thread)
    assert printed(interpreter) == "hi\n"
    assert not interpreter.session.answer(question.id, REFUSE), "a second answer counted"


def test_the_first_of_many_answers_wins(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("echo", "hi"), text("Done."))
    with interpreter.session.questions.answerable(["block"]):
        chat, _ = in_thread(lambda: interpreter.chat("go", display=False))
        question = wait_for_question(interpreter)
        start = threading.Barrier(8)

        def answer(who: int) -> bool:
            start.wait(LIMIT)
            return interpreter.session.answer(
                question.id, Answer(APPROVE if who % 2 else REFUSE, by=f"front end {who}")
            )

        threads = [in_thread(lambda who=who: answer(who)) for who in range(8)]
        for thread, _ in threads:
            join(thread)
        join(chat)
    won = [who for who, (_, found) in enumerate(threads) if found == [True]]
    assert len(won) == 1 and [found for _, found in threads if found not in ([True], [False])] == []
    assert answers(interpreter) == [(APPROVE if won[0] % 2 else REFUSE, f"front end {won[0]}")]
    assert printed(interpreter) == ("hi\n" if won[0] % 2 else "")


def test_a_handler_is_asked_before_waiting_for_other_front_ends(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("echo", "hi"), text("Done."))
    questions = interpreter.session.questions
    with questions.answerable(["block"]), questions.answerable(["block"], lambda question: Answer(APPROVE, by="here")):
        interpreter.chat("go", display=False)
    assert answers(interpreter) == [("approve", "here")] and printed(interpreter) == "hi\n"


def test_an_invalid_choice_is_an_error_and_keeps_the_question_open(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("echo", "hi"), text("Done."))
    with interpreter.session.questions.answerable(["block"]):
        thread, _ = in_thread(lambda: interpreter.chat("go", display=False))
        question = wait_for_question(interpreter)
        with pytest.raises(Exception, match="takes approve, refuse, edit"):
            interpreter.session.answer(question.id, "perhaps")
        assert question.is_open
        interpreter.session.answer(question.id, REFUSE, "not now")
        join(thread)
    assert interpreter.messages[-2]["content"] == "not now" or "not now" in str(interpreter.messages)


@pytest.mark.parametrize("how", ["cancel", "cancel the actor", "close"])
def test_an_open_question_is_withdrawn(chatting: Chatting, how: str) -> None:
    interpreter, _ = chatting(tool_call("echo", "hi"), text("Done."))
    with interpreter.session.questions.answerable(["block"]):
        thread, _ = in_thread(lambda: interpreter.chat("go", display=False))
        question = wait_for_question(interpreter)
        if how == "cancel":
            interpreter.cancel()
        elif how == "cancel the actor":
            interpreter.session.cancel(interpreter.agent.actor)
        else:
            interpreter.session.close()
        join(thread)
    assert question.withdrawn and printed(interpreter) == "" and not interpreter.session.questions.open
    assert answers(interpreter) == [("withdrawn", "")]


def test_an_undo_by_another_actor_withdraws_an_open_approval(chatting: Chatting, tmp_path: Path) -> None:
    interpreter, _ = chatting(tool_call("echo", "hi"), text("Done."), workspace=str(tmp_path))
    guest = OpenInterpreter(computer=interpreter.computer, workspace=str(tmp_path))
    with interpreter.session.questions.answerable(["block"]):
        thread, _ = in_thread(lambda: interpreter.chat("go", display=False))
        question = wait_for_question(interpreter)
        guest.session.perform(Block("shell", "echo x > made"), guest.user).result()
        guest.undo(parts=["files"], blocks=True)
        join(thread)
    assert question.withdrawn and printed(interpreter) == "" and not (tmp_path / "made").exists()


# -- what an answer covers ---------------------------------------------------------------------------------------------


class FrontEnd:
    """Answers one question after the other, and records what it was shown."""

    def __init__(self, *says: Callable[[Question], Answer]) -> None:
        self.says, self.shown = list(says), list[str]()

    def __call__(self, question: Question) -> Answer:
        self.shown.append(question.chunk["content"]["content"])
        return self.says.pop(0)(question)


def yes(question: Question) -> Answer:
    return Answer(APPROVE)


def no(question: Question) -> Answer:
    return Answer(REFUSE)


def edit_to(code: str | None) -> Callable[[Question], Answer]:
    return lambda question: Answer(EDIT, code)


def test_an_edited_block_is_asked_about_again(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("echo", "hi"), text("Done."))
    front_end = FrontEnd(edit_to("bye"), yes)
    with interpreter.session.questions.answerable(["block"], front_end):
        interpreter.chat("go", display=False)
    assert front_end.shown == ["hi", "bye"] and printed(interpreter) == "bye\n"
    assert decisions(interpreter) == ["edited"]


def test_an_edited_block_can_be_refused(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("echo", "hi"), text("Done."))
    with interpreter.session.questions.answerable(["block"], FrontEnd(edit_to("bye"), no)):
        interpreter.chat("go", display=False)
    assert printed(interpreter) == "" and decisions(interpreter) == ["edited", "declined"]


@pytest.mark.parametrize("code", ["hi", None])
def test_an_edit_that_changes_nothing_is_not_an_approval(chatting: Chatting, code: str | None) -> None:
    interpreter, _ = chatting(tool_call("echo", "hi"), text("Done."))
    front_end = FrontEnd(edit_to(code), no)
    with interpreter.session.questions.answerable(["block"], front_end):
        interpreter.chat("go", display=False)
    assert front_end.shown == ["hi", "hi"] and printed(interpreter) == ""


def test_rewriting_the_stored_message_edits_the_block(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("echo", "hi"), text("Done."))
    shown: list[str] = []
    for chunk in interpreter.chat("go", display=False, stream=True):
        if chunk["type"] == "confirmation":
            shown.append(chunk["content"]["content"])
            interpreter.messages[-1]["content"] = "bye"
    assert shown == ["hi", "bye"] and printed(interpreter) == "bye\n"


def test_an_edited_block_is_scanned_again(chatting: Chatting, monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter, _ = chatting(tool_call("echo", "hi"), text("Done."), safe_mode="auto")
    scanned: list[str] = []
    scan = interpreter.scanner.scan
    monkeypatch.setattr(
        interpreter.scanner, "scan", lambda language, code: (scanned.append(code), scan(language, code))[1]
    )
    with interpreter.session.questions.answerable(["block"], FrontEnd(edit_to("bye"), yes)):
        interpreter.chat("go", display=False)
    assert scanned == ["hi", "bye"] and printed(interpreter) == "bye\n"


# -- changes during a question -----------------------------------------------------------------------------------------


def chat_and_approve(interpreter: OpenInterpreter, *steps_during_question: Callable[[], Any]) -> list[str]:
    """Chat; run the steps while the first question is open, then approve every question."""
    shown: list[str] = []
    steps = list(steps_during_question)

    def handler(question: Question) -> Answer:
        shown.append(str(question.chunk["content"]["content"]))
        while steps:
            thread, found = in_thread(steps.pop(0))
            join(thread)
            assert not isinstance(found[0], BaseException), found
        return Answer(APPROVE)

    with interpreter.session.questions.answerable(["block"], handler):
        interpreter.chat("go", display=False)
    return shown


def run_shell(interpreter: OpenInterpreter, code: str = "true") -> Callable[[], Any]:
    return lambda: interpreter.computer.run("shell", code)


def test_an_approval_stays_valid_after_unrelated_actions(chatting: Chatting, tmp_path: Path) -> None:
    interpreter, _ = chatting(tool_call("shell", "mkdir made"), text("Done."), workspace=str(tmp_path))
    assert chat_and_approve(interpreter, run_shell(interpreter)) == ["mkdir made"]
    assert (tmp_path / "made").is_dir()


def test_a_deny_rule_added_during_the_question_overrides_the_approval(chatting: Chatting, tmp_path: Path) -> None:
    interpreter, _ = chatting(tool_call("shell", "mkdir made"), text("Done."), workspace=str(tmp_path))
    chat_and_approve(interpreter, lambda: write_rules(DENIES_MKDIR), run_shell(interpreter))
    assert not (tmp_path / "made").exists() and "denied" in decisions(interpreter)


def test_an_ask_rule_added_during_the_question_asks_again(chatting: Chatting, tmp_path: Path) -> None:
    interpreter, _ = chatting(tool_call("shell", "mkdir made"), text("Done."), workspace=str(tmp_path))
    shown = chat_and_approve(interpreter, lambda: write_rules(ASKS_MKDIR), run_shell(interpreter))
    assert shown == ["mkdir made"] * 2 and (tmp_path / "made").is_dir()


def test_an_approval_does_not_cover_different_effects(chatting: Chatting, tmp_path: Path) -> None:
    """The folder changed during the question, so the block would delete something other than what was shown."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "precious").write_text("x")
    interpreter, _ = chatting(tool_call("shell", "rm precious"), text("Done."), workspace=str(inside))
    shown = chat_and_approve(interpreter, run_shell(interpreter, f"cd {outside}"))
    assert len(shown) == 2


def test_a_waiting_block_is_asked_about_if_the_mode_changes(chatting: Chatting, tmp_path: Path) -> None:
    go = tmp_path / "go"
    wait = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)"
    interpreter, _ = chatting(tool_call("shell", "echo hi"), text("Done."), auto_run=True)
    running, _ = in_thread(lambda: interpreter.computer.run("python", wait))
    until(lambda: interpreter.session.lane.holder is not None, "the first block", LIMIT)
    asked: list[Question] = []

    def handler(question: Question) -> Answer:
        asked.append(question)
        return Answer(REFUSE)

    with interpreter.session.questions.answerable(["block"], handler):
        thread, _ = in_thread(lambda: interpreter.chat("go", display=False))
        until(lambda: interpreter.session.lane.waiting > 0, "the second block", LIMIT)
        interpreter.auto_run = False
        go.touch()
        join(thread)
    join(running)
    assert len(asked) == 1 and printed(interpreter) == ""
