"""The use cases of a front end: each yields events, asks questions and returns its result."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from conversation import Chatting, chatting
from interpreter import OpenInterpreter
from interpreter.app import attachments, checkpoints, conversations, exports, models, own_blocks, result_of
from interpreter.errors import ConversationFileError, LanguageNotFound, UndoError, UsageError
from interpreter.script.verify import verify
from interpreter.session import ANSWER, APPROVE, REFUSE, Answer, Event, Question
from model_server import text, tool_call

__all__ = ["chatting"]
pytestmark = pytest.mark.usefixtures("no_strays")


@pytest.fixture
def interpreter(tmp_path: Path) -> Iterator[OpenInterpreter]:
    work = tmp_path / "work"
    work.mkdir()
    made = OpenInterpreter(workspace=str(work))
    made.computer.context.cwd = str(work)
    yield made
    made.computer.terminate()
    made.journal.close()


def answered(interpreter: OpenInterpreter, events: Generator[Event, None, Any], *choices: str) -> Any:
    """The result when the questions get these answers, all of which must be used."""
    left = list(choices)

    def decide(question: Question) -> Answer:
        return Answer(left.pop(0))

    with interpreter.session.questions.answerable(("block", "confirm", "overwrite"), decide):
        result = result_of(events)
    assert not left
    return result


def code_run(interpreter: OpenInterpreter, code: str) -> str:
    return "".join(str(message["content"]) for message in interpreter.computer.run("python", code))


# -- undo --------------------------------------------------------------------------------------------------------------


def test_an_outdated_undo_plan_is_not_carried_out(interpreter: OpenInterpreter) -> None:
    file = Path(interpreter.workspace, "a")
    interpreter.computer.run("python", "_ = open('a', 'w').write('1')")
    plan = checkpoints.plan_undo(interpreter)
    interpreter.computer.run("python", "_ = open('a', 'w').write('2')")
    with pytest.raises(UndoError, match="out of date"):
        result_of(checkpoints.carry_out(interpreter, plan, "undo"))
    assert file.read_text() == "2"
    assert answered(
        interpreter, checkpoints.carry_out(interpreter, checkpoints.plan_undo(interpreter), "undo"), APPROVE
    )
    assert file.read_text() == "1"


def test_code_can_run_while_an_undo_asks(interpreter: OpenInterpreter) -> None:
    interpreter.computer.run("python", "_ = open('a', 'w').write('1')")
    ran: list[str] = []

    def decide(question: Question) -> Answer:
        thread = threading.Thread(target=lambda: ran.append(code_run(interpreter, "print('meanwhile')")))
        thread.start()
        thread.join(30)
        return Answer(APPROVE)

    with interpreter.session.questions.answerable(["confirm"], decide), pytest.raises(UndoError, match="out of date"):
        result_of(checkpoints.carry_out(interpreter, checkpoints.plan_undo(interpreter), "undo"))
    assert ran == ["meanwhile\n"] and Path(interpreter.workspace, "a").exists()


def test_an_unanswerable_question_changes_nothing(interpreter: OpenInterpreter) -> None:
    interpreter.computer.run("python", "x = 1; _ = open('a', 'w').write('1')")
    assert result_of(checkpoints.carry_out(interpreter, checkpoints.plan_undo(interpreter), "undo")) is None
    assert Path(interpreter.workspace, "a").exists() and code_run(interpreter, "print(x)") == "1\n"


def test_restore_goes_to_a_checkpoint_and_to_the_newest_state(interpreter: OpenInterpreter) -> None:
    for number in (1, 2):
        interpreter.computer.run("python", f"x = {number}")
    first = interpreter.checkpoints[1].id
    assert result_of(checkpoints.carry_out(interpreter, checkpoints.plan_restore(interpreter, first))) is not None
    assert interpreter.timeline.places["variables"] == 1
    assert result_of(checkpoints.carry_out(interpreter, checkpoints.plan_restore(interpreter, None))) is not None
    assert code_run(interpreter, "print(x)") == "2\n"


# -- forks -------------------------------------------------------------------------------------------------------------


def test_a_fork_is_dropped_after_confirmation(interpreter: OpenInterpreter) -> None:
    forks = checkpoints.Forks(interpreter)
    fork = forks.fork()
    assert not answered(fork, forks.drop(), REFUSE) and forks.current is fork
    assert answered(fork, forks.drop(), APPROVE)
    assert not Path(fork.workspace).exists() and forks.all == [interpreter] == [forks.current]
    with pytest.raises(UndoError, match="no forks"):
        forks.switch()


def test_drop_others_drops_the_other_forks(interpreter: OpenInterpreter) -> None:
    forks = checkpoints.Forks(interpreter)
    first = forks.fork()
    second = forks.fork()
    with pytest.raises(UndoError, match="Keep it or drop it"):
        result_of(forks.drop_others())
    forks.switch(1)
    assert answered(interpreter, forks.drop_others(), APPROVE)
    assert forks.all == [interpreter] and not Path(first.workspace).exists() and not Path(second.workspace).exists()


def test_keeping_a_fork_asks_about_files_changed_in_both(interpreter: OpenInterpreter) -> None:
    file = Path(interpreter.workspace, "a")
    file.write_text("old")
    forks = checkpoints.Forks(interpreter)
    fork = forks.fork()
    Path(fork.workspace, "a").write_text("fork")
    Path(fork.workspace, "b").write_text("fork")
    file.write_text("mine")
    assert answered(fork, forks.keep(), REFUSE) is None and not Path(interpreter.workspace, "b").exists()
    origin = Path(interpreter.workspace)
    merged = answered(fork, forks.keep(), APPROVE, "keep")
    assert merged.paths == ["b"] and file.read_text() == "mine" and (origin / "b").read_text() == "fork"
    fork.computer.terminate()
    fork.journal.close()


# -- the user's own code -----------------------------------------------------------------------------------------------


def test_the_model_sees_only_shared_blocks(interpreter: OpenInterpreter) -> None:
    run: Callable[..., Any] = own_blocks.run_own_block
    assert result_of(run(interpreter, "python", "print(1)", shared=False)) == "done"
    assert interpreter.messages == []
    assert result_of(run(interpreter, "python", "1 / 0", shared=True)) == "error"
    assert [message["type"] for message in interpreter.messages] == ["code", "console"]


def test_a_file_is_run_in_its_language(interpreter: OpenInterpreter) -> None:
    work = Path(interpreter.workspace)
    (work / "two.py").write_text("print('in', __name__)")
    (work / "two.xyz").write_text("")
    assert result_of(own_blocks.run_file(interpreter, "two.py")) == "done"
    for name, words in {"two.xyz": "No language", "gone.py": "Could not read"}.items():
        with pytest.raises(UsageError, match=words):
            result_of(own_blocks.run_file(interpreter, name))


def test_all_runtimes_change_their_folder(interpreter: OpenInterpreter) -> None:
    Path(interpreter.workspace, "sub").mkdir()
    folder = result_of(own_blocks.change_folder(interpreter, "sub"))
    assert code_run(interpreter, "import os; print(os.getcwd())").strip() == folder
    with pytest.raises(UsageError, match="no folder"):
        result_of(own_blocks.change_folder(interpreter, "elsewhere"))


def test_on_input_takes_precedence_over_a_front_end(interpreter: OpenInterpreter) -> None:
    questions = interpreter.session.questions
    with questions.answerable(["text", "password"], lambda question: Answer(ANSWER, "front end")):
        assert code_run(interpreter, "print(input())") == "front end\n"
        interpreter.computer.on_input = lambda prompt, password: "on_input"
        assert code_run(interpreter, "print(input())") == "on_input\n"
        interpreter.computer.on_input = lambda prompt, password: None
        assert "EOFError" in code_run(interpreter, "input()")


# -- messages and conversations ----------------------------------------------------------------------------------------


def test_a_message_includes_files_and_data(interpreter: OpenInterpreter) -> None:
    Path(interpreter.workspace, "data.csv").write_text("a,b\n")
    outgoing = attachments.prepare(interpreter, "Sum @data.csv, not @gone.csv", "@data.csv is not meant here")
    said, file = outgoing.messages
    assert said["content"] == "Sum @data.csv, not @gone.csv\n\n@data.csv is not meant here"
    assert (file["type"], file["content"]) == ("file", str(Path(interpreter.workspace, "data.csv")))
    assert outgoing.missing == ("gone.csv",) and not outgoing.hides_images


def test_a_conversation_is_saved_to_a_file_and_loaded(interpreter: OpenInterpreter) -> None:
    interpreter.messages = [{"role": "user", "type": "message", "content": "Hi"}]
    path = conversations.save_messages(interpreter, "kept")
    interpreter.messages = []
    assert result_of(conversations.load_messages(interpreter, "kept.json")) == path
    assert interpreter.messages == json.loads(Path(path).read_text())
    Path(path).write_text("{}")
    with pytest.raises(ConversationFileError, match="not a conversation"):
        result_of(conversations.load_messages(interpreter, "kept"))


def test_a_rerun_asks_about_each_block_and_stops_at_a_refusal(chatting: Chatting) -> None:
    replies = [tool_call("python", "x = 1"), tool_call("python", "y = 2"), text("Done.")]
    interpreter, _ = chatting(*replies, auto_run=True)
    interpreter.chat("go", display=False)
    interpreter.auto_run = False
    with pytest.raises(LanguageNotFound):
        conversations.Rerun(interpreter, "cobol")
    again = conversations.Rerun(interpreter, "python")
    assert answered(interpreter, again.events(), APPROVE, REFUSE) == again.done == 1
    assert [block.code for block in again.blocks] == ["x = 1", "y = 2"]
    assert code_run(interpreter, "print(x, 'y' in globals())") == "1 False\n"


def test_resuming_replaces_the_current_conversation(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("One."), text("Two."))
    interpreter.chat("first", display=False)
    (first,) = conversations.list_conversations(interpreter)
    interpreter.reset()
    interpreter.chat("second", display=False)
    assert len(conversations.list_conversations(interpreter)) == 2
    assert [row.id for row in conversations.list_conversations(interpreter, "fir")] == [first.id]
    session = result_of(conversations.resume(interpreter, first, leave=True))
    assert session.messages is interpreter.messages and interpreter.messages[0]["content"] == "first"
    assert interpreter.journal.id == first.id
    new = result_of(conversations.branch(interpreter, "another try"))
    assert interpreter.journal.id == new != first.id


# -- exports and models ------------------------------------------------------------------------------------------------


def test_a_conversation_is_exported_and_verified(chatting: Chatting, tmp_path: Path) -> None:
    interpreter, _ = chatting(tool_call("python", "_ = open('a', 'w').write('1')"), text("Done."), auto_run=True)
    assert result_of(exports.export(interpreter, "markdown")) is None
    interpreter.chat("Write it", display=False)
    notes = result_of(exports.export(interpreter, "markdown", str(tmp_path / "notes")))
    assert notes is not None and "Write it" in notes.path.read_text()
    script = result_of(exports.export(interpreter, "script", str(tmp_path / "script")))
    assert script is not None and script.program is not None and script.program.kept == 1
    interpreter.auto_run = False
    assert answered(interpreter, verify(interpreter, script), REFUSE) is None
    report = answered(interpreter, verify(interpreter, script), APPROVE)
    assert report.same == ["a"] and report.reproduced


def test_usable_models_are_returned_as_data() -> None:
    nothing_here = {"OLLAMA_HOST": "127.0.0.1:9"}
    (openai,) = models.usable_models(["gpt-4o-mini"], {"OPENAI_API_KEY": "k", **nothing_here})
    assert (openai.kind, openai.name, openai.key) == ("provider", "openai", "OPENAI_API_KEY")
    (mini,) = [each for each in openai.models if each.model == "openai/gpt-4o-mini"]
    assert mini.window == 128_000 and mini.price is not None and mini.price.read == 0.15
    without = {source.name: source.key for source in models.models_without_key(["gpt-4o-mini"], nothing_here)}
    assert without["openai"] == "OPENAI_API_KEY"
