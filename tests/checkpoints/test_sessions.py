"""Undo in the life of a session: taken up again, branched, written late or not at all, beside another one."""

from __future__ import annotations

import hashlib
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from checkpoints.conftest import Travelling
from checkpoints.test_faults import largest_file
from checkpoints.traveller import Traveller, step
from interpreter.errors import UndoError
from interpreter.session.checkpoints.file_store import tidy
from interpreter.session.journal import SavedSession, listed
from interpreter.workspace.store import ContentStore

pytestmark = pytest.mark.usefixtures("no_strays")

EARLIER = "Variables from an earlier run of the session can't be restored, but you can run its blocks again."


def leave(traveller: Traveller) -> str:
    """End the process's part in the session; its id."""
    session = traveller.interpreter.journal.id
    assert session is not None
    traveller.interpreter.computer.terminate()
    traveller.interpreter.timeline.files.close()
    traveller.interpreter.journal.close()
    return session


def stored(traveller: Traveller) -> list[bytes]:
    """The contents that the stores of all sessions hold."""
    stores = [ContentStore(folder) for folder in traveller.sessions.glob("*/files/*/images")]
    return sorted(images.read(content) for images in stores for content in images.hashes)


# -- taken up again ----------------------------------------------------------------------------------------------------


def test_an_earlier_run_is_taken_back(travelling: Travelling) -> None:
    first = travelling()
    for number in (1, 2, 3):
        first.turn(f"turn {number}", step(number))
    session = leave(first)
    second = travelling()
    second.interpreter.journal.resume(session)
    undone = second.interpreter.undo()
    assert second.state == (["turn 1", "turn 2"], "2", None) and undone.sentences == [EARLIER]
    second.turn("turn 4", step(4))
    undone = second.interpreter.undo()
    assert second.state == (["turn 1", "turn 2"], "2", None) and undone.sentences == []
    second.interpreter.undo(2)
    assert second.state == ([], None, None)
    second.interpreter.redo(2)
    assert second.state == (["turn 1", "turn 2"], "2", None)


def test_what_an_earlier_run_took_back_is_done_again(travelling: Travelling) -> None:
    first = travelling()
    for number in (1, 2, 3):
        first.turn(f"turn {number}", step(number))
    first.interpreter.undo(2)
    first.interpreter.redo()
    first.interpreter.undo(parts=["files"])
    assert first.state == (["turn 1", "turn 2"], "1", "2")
    session = leave(first)
    second = travelling()
    second.interpreter.journal.resume(session)
    places = second.interpreter.timeline.places
    assert places == {"conversation": 4, "files": 2, "variables": 4}
    assert second.interpreter.redo().sentences == []
    assert second.state == (["turn 1", "turn 2"], "2", None)
    assert second.interpreter.redo().sentences == [EARLIER]
    assert second.state == (["turn 1", "turn 2", "turn 3"], "3", None)
    with pytest.raises(UndoError, match="nothing to redo"):
        second.interpreter.redo()


def test_something_new_after_an_undo_and_a_restart(travelling: Travelling) -> None:
    first = travelling()
    for number in (1, 2):
        first.turn(f"turn {number}", step(number))
    first.interpreter.undo()
    session = leave(first)
    second = travelling()
    second.interpreter.journal.resume(session)
    second.turn("another way", step(5))
    with pytest.raises(UndoError, match="nothing to redo"):
        second.interpreter.redo()
    leave(second)
    third = travelling()
    third.interpreter.journal.resume(session)
    labels = [point.label for point in third.interpreter.checkpoints if point.kind == "turn"]
    assert labels == ["turn 1", "another way"]
    third.interpreter.undo()
    assert third.state == (["turn 1"], "1", None)


def test_messages_that_were_dropped_before_a_restart(travelling: Travelling) -> None:
    first = travelling()
    for number in (1, 2):
        first.turn(f"turn {number}", step(number))
    second = next(place for place, each in enumerate(first.interpreter.messages) if each["content"] == "turn 2")
    del first.interpreter.messages[:second]
    session = leave(first)
    again = travelling()
    again.interpreter.journal.resume(session)
    again.interpreter.undo()
    assert again.state == ([], "1", None)


def test_a_repository_that_a_block_made_goes_after_a_restart(travelling: Travelling) -> None:
    first = travelling()
    first.turn("one", ("shell", "git init -q repo"))
    session = leave(first)
    second = travelling()
    second.interpreter.journal.resume(session)
    second.interpreter.undo()
    assert not (second.root / "repo").exists()


PROGRAM = """
import os, signal, sys
sys.path[:0] = [{tests!r}]
from pathlib import Path
from checkpoints.traveller import Traveller, step
traveller = Traveller(Path({folder!r}))
traveller.turn("turn 1", step(1))
traveller.turn("turn 2", step(2))
{end}
"""


def killed(folder: Path, end: str) -> str:
    """A run that is killed there; gives the id of its session."""
    tests = str(Path(__file__).parent.parent)
    program = PROGRAM.format(tests=tests, folder=str(folder), end=end)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert done.returncode == -signal.SIGKILL, done.stderr
    (row,) = listed(folder / "sessions")
    return row.id


def test_killed_in_the_middle_of_a_block(travelling: Travelling, tmp_path: Path) -> None:
    end = """
traveller.server.add({"code": step(3) + "\\nprint('here')\\nimport time; time.sleep(60)"})
for chunk in traveller.interpreter.chat("turn 3", display=False, stream=True):
    if "here" in str(chunk.get("content")) and chunk["role"] == "computer":
        os.kill(os.getpid(), signal.SIGKILL)
"""
    session = killed(tmp_path.resolve(), end)
    traveller = travelling()
    assert tidy(traveller.sessions, recent=0) == 0  # its copies are needed yet
    traveller.interpreter.journal.resume(session)
    traveller.interpreter.undo(blocks=True)
    assert traveller.state == (["turn 1", "turn 2", "turn 3"], "2", None)
    traveller.interpreter.undo(2)
    assert traveller.state == (["turn 1"], "1", None)


def test_killed_in_the_middle_of_an_undo(travelling: Travelling, tmp_path: Path) -> None:
    end = """
def hear(event, args):
    if event == "os.rename" and str(args[1]) == "a":
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hear)
traveller.interpreter.undo()
"""
    session = killed(tmp_path.resolve(), end)
    traveller = travelling()
    assert traveller.read("a") == "2"
    traveller.interpreter.journal.resume(session)
    timeline = traveller.interpreter.timeline
    assert timeline.back(parts=["files"]) == 0  # the undo was finished first
    assert traveller.state == (["turn 1", "turn 2"], "1", None)
    traveller.interpreter.redo(parts=["files"])
    assert traveller.read("a") == "2"
    traveller.interpreter.undo(2)
    assert traveller.state == ([], None, None)


# -- the store -----------------------------------------------------------------------------------------------------------


def test_a_journal_that_begins_after_the_first_block(traveller: Traveller) -> None:
    traveller.write("b", "not changed")
    traveller.own(step(1))
    store = traveller.interpreter.timeline.files
    record = store.record()
    assert record is not None and not traveller.sessions.exists()
    passing = record.folder
    traveller.turn("two", step(2))
    assert store.record() is record and traveller.sessions in record.folder.parents and not passing.exists()
    traveller.interpreter.undo(2)
    assert traveller.state == ([], None, None)


def test_a_branch_can_be_taken_back_and_so_can_what_it_came_from(travelling: Travelling) -> None:
    traveller = travelling()
    for number in (1, 2):
        traveller.turn(f"turn {number}", step(number))
    old = traveller.interpreter.journal.id
    new = traveller.interpreter.journal.branch()
    traveller.turn("turn 3", step(3))
    traveller.interpreter.undo(3)
    assert traveller.state == ([], None, None)
    traveller.interpreter.redo(2)
    leave(traveller)
    assert traveller.read("a") == "2"
    for session in (old, new):
        other = travelling()
        other.interpreter.journal.resume(session)  # type: ignore[arg-type]
        other.interpreter.undo(parts=["conversation", "files"])
        assert other.state == (["turn 1"], "1", None)
        other.interpreter.redo(parts=["conversation", "files"])
        assert other.state[:2] == (["turn 1", "turn 2"], "2")
        leave(other)


def test_a_branch_of_an_earlier_run_before_any_block(travelling: Travelling) -> None:
    first = travelling()
    first.turn("one", step(1))
    session = leave(first)
    second = travelling()
    second.interpreter.journal.resume(session)
    second.interpreter.journal.branch()
    second.interpreter.undo()
    assert second.state == ([], None, None)


def test_no_live_file_is_linked_to_a_store(traveller: Traveller) -> None:
    traveller.write("b", "not changed" * 10_000)
    traveller.turn("one", step(1))
    traveller.interpreter.journal.branch()
    traveller.turn("two", step(2))
    traveller.interpreter.undo()
    stores = {path.stat().st_ino for path in traveller.sessions.rglob("*") if path.is_file()}
    live = {path.stat().st_ino for path in traveller.root.iterdir()}
    assert len(stored(traveller)) > 2 and not stores & live


def test_only_the_owner_can_read_the_store(traveller: Traveller) -> None:
    traveller.turn("one", step(1))
    for path in traveller.sessions.glob("*/files/**/*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_copies_that_nobody_needs_go_when_the_session_ends(traveller: Traveller) -> None:
    traveller.write("b", "not changed")
    traveller.turn("one", step(1))
    assert stored(traveller) == [b"1", b"not changed"]
    leave(traveller)
    assert stored(traveller) == [b"1"]


def test_copies_of_a_session_that_was_killed_go_later(travelling: Travelling, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "b").write_text("not changed")
    session = killed(tmp_path.resolve(), "os.kill(os.getpid(), signal.SIGKILL)")
    traveller = travelling()
    assert stored(traveller) == [b"1", b"2", b"not changed"]
    assert tidy(traveller.sessions) == 0  # it has just been killed, and may be taken up
    traveller.interpreter.journal.resume(session)
    assert tidy(traveller.sessions, recent=0) == 0  # it is open here
    traveller.interpreter.journal.close()
    assert [row.id for row in listed(traveller.sessions)] == [session]
    assert tidy(traveller.sessions, recent=0) == 1 and stored(traveller) == [b"1", b"2"]
    assert tidy(traveller.sessions, recent=0) == 0
    traveller.interpreter.journal.resume(session)
    traveller.interpreter.undo(2)
    assert traveller.state == ([], None, None)


def test_the_next_session_tidies_up_in_the_background(travelling: Travelling, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "b").write_text("not changed")
    killed(tmp_path.resolve(), "os.kill(os.getpid(), signal.SIGKILL)")
    traveller = travelling()
    (ledger,) = traveller.sessions.glob("*/files/*/files.jsonl")
    os.utime(ledger, (0, 0))
    traveller.turn("something else", "x = 1")
    for thread in threading.enumerate():
        if thread.name == "tidy file records":
            thread.join()
    assert not (ledger.parent / "untrimmed").exists()
    assert ContentStore(ledger.parent / "images").hashes == {hashlib.sha256(data).hexdigest() for data in (b"1", b"2")}
    assert len(list(traveller.sessions.glob("*/files/*/untrimmed"))) == 1  # that of the session that goes on


@pytest.mark.full
def test_a_session_whose_block_was_cut_off_is_tidied_in_the_end(travelling: Travelling, tmp_path: Path) -> None:
    end = """
record = traveller.interpreter.timeline.files.record()
record.before(99)
os.kill(os.getpid(), signal.SIGKILL)
"""
    killed(tmp_path.resolve(), end)
    traveller = travelling()
    assert tidy(traveller.sessions, recent=0) == 0
    for ledger in traveller.sessions.glob("*/files/*/files.jsonl"):
        os.utime(ledger, (0, 0))
    assert tidy(traveller.sessions) == 1


# -- trouble ---------------------------------------------------------------------------------------------------------------


def test_a_journal_that_cannot_be_written(travelling: Travelling, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    traveller = travelling(conversation_history_path=str(tmp_path / "file" / "sessions"))
    traveller.turn("one", step(1))
    traveller.turn("two", step(2))
    traveller.interpreter.undo()
    assert traveller.state == (["one"], "1", "1")
    traveller.interpreter.undo()
    assert traveller.state == ([], None, None)


def test_no_room_for_the_store(traveller: Traveller) -> None:
    traveller.own("x = 0")
    traveller.write("b", "x" * 200_000)
    with largest_file(100_000):
        told = list(traveller.interpreter.computer.stream("python", step(1)))
    notices = [chunk["content"]["text"] for chunk in told if chunk["type"] == "status" and chunk["format"] == "notice"]
    assert notices == ["Undo doesn't cover: b (no copy could be stored: File too large)"]
    traveller.interpreter.undo()
    assert traveller.state == ([], None, "0")
    traveller.own(step(2))
    traveller.interpreter.undo()
    assert traveller.state == ([], None, "0")


def test_damaged_records_of_a_session(travelling: Travelling) -> None:
    first = travelling()
    for number in (1, 2):
        first.turn(f"turn {number}", step(number))
    session = leave(first)
    (folder,) = first.sessions.glob("*/files/*")
    with (folder / "files.jsonl").open("a") as ledger:
        ledger.write('{"event":"end"}\n')
    (folder / "intent.json").write_text("{")
    second = travelling()
    second.interpreter.journal.resume(session)
    second.interpreter.undo()
    assert second.state == (["turn 1"], "1", None)


def test_a_store_that_somebody_cleared_away(traveller: Traveller) -> None:
    traveller.turn("one", step(1))
    subprocess.run(["rm", "-r", *map(str, traveller.sessions.glob("*/files"))], check=True)
    traveller.turn("two", step(2))
    traveller.interpreter.undo()
    assert traveller.read("a") == "2"  # what it was is gone with the store, and nothing worse happens
    traveller.turn("three", step(3))
    traveller.turn("four", step(4))
    traveller.interpreter.undo()
    assert traveller.read("a") == "3"


def test_two_sessions_in_one_workspace(travelling: Travelling) -> None:
    one, other = travelling(), travelling()
    one.turn("one", step(1))
    other.turn("other", step(2), "open('b', 'w').write('b')")
    undone = one.interpreter.undo()
    assert one.state == ([], "2", None)  # what the other one made of it stays
    assert undone.sentences == ["a was left unchanged: it was changed after the block."]
    one.turn("again", "open('c', 'w').write('c')")
    other.interpreter.undo()
    assert other.state == ([], "1", None) and other.read("b") is None and other.read("c") == "c"
    one.interpreter.undo()
    assert one.read("c") is None


def test_the_journal_tells_which_block_changed_what(traveller: Traveller) -> None:
    traveller.turn("one", step(1))
    traveller.turn("two", step(2))
    point = traveller.interpreter.timeline.why("a")
    assert point is not None and point.label.startswith("x = 2") and point.block == 2
    journal = traveller.interpreter.journal.read()
    assert isinstance(journal, SavedSession) and [
        entry["label"] for entry in journal.points if entry["kind"] == "turn"
    ] == [
        "one",
        "two",
    ]
    assert "-1" in traveller.interpreter.timeline.diff(point.id)["a"]
