"""Undo of conversations that were changed, loaded or resumed, and undo without a user to ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conversation import Chatting
from interpreter import BaseLanguage, OpenInterpreter
from interpreter.errors import UndoError
from interpreter.frontends.terminal import magics
from interpreter.frontends.terminal.terminal import Terminal
from interpreter.frontends.terminal.tty import Tty
from interpreter.messages import Chunk
from model_server import text, tool_call
from terminal.emulator import EmulatedOutput, Emulator


class Files(BaseLanguage):
    """Runs `write NAME`, and does not report how it ended."""

    name = "files"
    folder = Path()

    def run(self, code: str) -> Iterator[Chunk]:
        verb, _, name = code.partition(" ")
        if verb == "write":
            (self.folder / name).write_text("written\n")
        yield {"type": "console", "format": "output", "content": "ran\n"}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def talk(chatting: Chatting, work: Path) -> OpenInterpreter:
    """Three turns, the second of which wrote a file."""
    replies = [text("One."), tool_call("files", "write a.txt"), text("Two."), text("Three.")]
    interpreter, _ = chatting(*replies, auto_run=True, workspace=str(work))
    Files.folder = work
    interpreter.computer.languages.append(Files)
    for words in ("first", "second", "third"):
        interpreter.chat(words, display=False)
    return interpreter


def said(interpreter: OpenInterpreter) -> list[object]:
    return [message["content"] for message in interpreter.messages if message["role"] == "user"]


class Desk:
    """A terminal without a user."""

    def __init__(self, interpreter: OpenInterpreter) -> None:
        self.interpreter = interpreter
        self.emulator = Emulator(columns=250, lines=60)
        self.terminal = Terminal(plain=True, tty=Tty(stdout=EmulatedOutput(self.emulator)))
        self.terminal.tty.can_type = False

    def run(self, line: str) -> str:
        before = len(self.emulator.everything)
        magics.run(self.terminal, self.interpreter, line)
        return "\n".join(self.emulator.everything[before:])


def test_changes_by_a_custom_language_can_be_undone(talk: OpenInterpreter, work: Path) -> None:
    assert (work / "a.txt").exists()
    talk.undo(2)
    assert not (work / "a.txt").exists() and said(talk) == ["first"]
    talk.redo(2)
    assert (work / "a.txt").exists() and said(talk) == ["first", "second", "third"]


def test_undo_works_after_messages_were_deleted_or_inserted(talk: OpenInterpreter) -> None:
    del talk.messages[:2]
    talk.messages.insert(0, {"role": "computer", "type": "message", "content": "a note"})
    talk.undo()
    assert said(talk) == ["second"] and talk.messages[-1]["content"] == "Two."
    talk.undo()
    assert [message["content"] for message in talk.messages] == ["a note"]


def test_undo_works_after_the_conversation_was_replaced(talk: OpenInterpreter, work: Path) -> None:
    talk.messages = [
        {"role": "user", "type": "message", "content": "other"},
        {"role": "assistant", "type": "message", "content": "Yes?"},
        {"role": "user", "type": "message", "content": "more"},
    ]
    talk.undo()
    assert said(talk) == ["other"] and (work / "a.txt").exists()
    talk.undo(3)
    assert said(talk) == [] and not (work / "a.txt").exists()


def test_loaded_messages_get_checkpoints(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("One."))
    interpreter.messages = [
        {"role": "user", "type": "message", "content": "from elsewhere"},
        {"role": "assistant", "type": "message", "content": "Yes?"},
    ]
    interpreter.chat("here", display=False)
    assert [point.label for point in interpreter.checkpoints] == ["from elsewhere", "here"]
    interpreter.undo(2)
    assert interpreter.messages == []
    interpreter.redo(1)
    assert said(interpreter) == ["from elsewhere"]


def test_attachments_are_undone_with_their_message(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("One."), text("Two."))
    interpreter.chat("first", display=False)
    interpreter.messages.append({"role": "user", "type": "message", "content": "look at these"})
    interpreter.messages.append({"role": "user", "type": "file", "format": "path", "content": "/a"})
    interpreter.chat({"type": "file", "format": "path", "content": "/b"}, display=False)
    assert interpreter.checkpoints[-1].label == "look at these"
    interpreter.undo()
    assert [message["content"] for message in interpreter.messages] == ["first", "One."]


def test_a_further_undo_never_restores_messages(talk: OpenInterpreter) -> None:
    talk.undo(3, parts=["conversation"])
    assert said(talk) == []
    undone = talk.undo()
    assert said(talk) == [] and "conversation" not in undone.plan.parts


def resumed(interpreter: OpenInterpreter, chatting: Chatting, work: Path) -> OpenInterpreter:
    """The same conversation in another interpreter."""
    name = interpreter.journal.id
    assert name is not None
    interpreter.journal.close()
    again, _ = chatting(text("Fourth."), workspace=str(work))
    again.journal.resume(name)
    return again


def test_undone_turns_stay_undone_after_restarts(talk: OpenInterpreter, chatting: Chatting, work: Path) -> None:
    talk.undo(2)
    again = resumed(talk, chatting, work)
    assert said(again) == ["first"]
    with pytest.raises(UndoError, match="Only 1 step can be undone"):
        again.undo(2)
    again.chat("fourth", display=False)
    once_more = resumed(again, chatting, work)
    assert [point.label for point in once_more.checkpoints] == ["first", "fourth"]
    once_more.undo(2)
    assert once_more.messages == []
    with pytest.raises(UndoError, match="nothing to undo"):
        resumed(once_more, chatting, work).undo()


def test_undone_loaded_messages_stay_undone_after_a_restart(chatting: Chatting, work: Path) -> None:
    interpreter, _ = chatting(text("One."), workspace=str(work))
    interpreter.messages = [{"role": "user", "type": "message", "content": "from elsewhere"}]
    interpreter.chat("here", display=False)
    interpreter.undo(2)
    again = resumed(interpreter, chatting, work)
    with pytest.raises(UndoError, match="nothing to undo"):
        again.undo()


def test_files_undone_alone_can_be_redone_after_a_restart(
    talk: OpenInterpreter, chatting: Chatting, work: Path
) -> None:
    talk.undo(2, parts=["files"])
    assert not (work / "a.txt").exists()
    again = resumed(talk, chatting, work)
    again.redo(2, parts=["files"])
    assert (work / "a.txt").exists() and said(again) == ["first", "second", "third"]


def test_without_a_user_undo_needs_the_yes_option(talk: OpenInterpreter, work: Path) -> None:
    desk = Desk(talk)
    talk.auto_run = False
    assert "Three." in desk.run("%undo")
    shown = desk.run("%undo")
    assert "  deleted a.txt" in shown and "there is no terminal to ask at" in shown
    assert (work / "a.txt").exists() and said(talk) == ["first", "second"]
    assert "Undone: 4 messages, 1 file." in desk.run("%undo -y")
    assert not (work / "a.txt").exists()
    listed = desk.run("%rewind")
    assert "first" in listed and "now" in listed and "here" in listed
    assert "Redone: 4 messages, 1 file." in desk.run("%rewind 4 -y")
    assert "There is no checkpoint 99." in desk.run("%rewind 99")


def test_without_a_user_files_changed_outside_the_session_stay(talk: OpenInterpreter, work: Path) -> None:
    (work / "a.txt").write_text("mine\n")
    shown = Desk(talk).run("%undo 2 -y")
    assert "a.txt was left unchanged: it was changed after the block." in shown
    assert (work / "a.txt").read_text() == "mine\n" and said(talk) == ["first"]


def test_diff_shows_the_changes_of_a_block_or_a_turn(talk: OpenInterpreter) -> None:
    desk = Desk(talk)
    assert "+written" in desk.run("%diff")
    turns = [point.id for point in talk.checkpoints if point.kind == "turn"]
    assert "+written" in desk.run(f"%diff {turns[1]}")
    assert "No block ran in that turn." in desk.run(f"%diff {turns[0]}")
    assert "There is no checkpoint 99." in desk.run("%diff 99")
    assert "%rewind lists them" in desk.run("%diff last")


def test_long_diffs_are_cut(talk: OpenInterpreter, work: Path) -> None:
    code = "i" * 5 + "\n"

    class Long(BaseLanguage):
        name = "long"

        def run(self, _: str) -> Iterator[Chunk]:
            (work / "long.txt").write_text(code * 500)
            yield {"type": "console", "format": "output", "content": "ran\n"}

    talk.computer.languages.append(Long)
    talk.computer.run("long", "")
    desk = Desk(talk)
    number = talk.checkpoints[-1].id
    assert f"For the full diff: %diff {number} --all" in desk.run("%diff")
    assert desk.run("%diff --all").count("+iiiii") == 500


def test_undo_leaves_files_alone_when_file_undo_is_off(work: Path, chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("files", "write a.txt"), text("Two."), auto_run=True, workspace=str(work))
    interpreter.undo_files = False
    Files.folder = work
    interpreter.computer.languages.append(Files)
    interpreter.chat("write", display=False)
    desk = Desk(interpreter)
    assert "File undo is off" in desk.run("%why a.txt")
    assert "Not covered: File undo is off" in desk.run("%undo")
    assert (work / "a.txt").exists() and interpreter.messages == []


def test_why_says_who_approved_a_block(chatting: Chatting, work: Path) -> None:
    replies = [tool_call("files", f"write {name}") for name in ("a.txt", "b.txt", "c.txt")]
    interpreter, _ = chatting(*replies, text("Done."), workspace=str(work))
    Files.folder = work
    interpreter.computer.languages.append(Files)
    for chunk in interpreter.chat("write them", display=False, stream=True):
        if chunk["type"] == "confirmation" and interpreter.pending is not None:
            if interpreter.pending.code == "write b.txt":
                interpreter.pending.edit("write d.txt")
            interpreter.auto_run = interpreter.pending.code == "write d.txt"
    desk = Desk(interpreter)
    assert ", approved by the calling program at " in desk.run(f"%why {work / 'a.txt'}")
    shown = desk.run(f"%why {work / 'd.txt'}")
    assert ", edited and approved by you at " in shown
    assert "in reply to: write them\n    write d.txt" in shown
    assert ", run without asking (auto_run) at " in desk.run(f"%why {work / 'c.txt'}")
    for command in ("%undo -y", "%redo -y", "%undo --conversation"):
        desk.run(command)
    assert ", edited and approved by you at " in desk.run(f"%why {work / 'd.txt'}")
    assert "No block in this conversation changed" in desk.run("%why /etc/hostname")
    assert "for example %why out.csv" in desk.run("%why")
