"""Undo in sessions that are resumed, branched, killed, damaged, or share a workspace."""

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

from checkpoints.conftest import MakeSession
from checkpoints.scripted_session import ScriptedSession, step
from checkpoints.test_faults import file_size_limit
from interpreter.errors import UndoError
from interpreter.session.checkpoints.file_store import tidy
from interpreter.session.journal import SavedSession, listed
from interpreter.workspace.store import ContentStore

pytestmark = pytest.mark.usefixtures("no_strays")

EARLIER = "Variables from an earlier run of the session can't be restored, but you can run its blocks again."


def close_session(session: ScriptedSession) -> str:
    """Close the session as the end of the program does; return its ID."""
    session_id = session.interpreter.journal.id
    assert session_id is not None
    session.interpreter.computer.terminate()
    session.interpreter.timeline.files.close()
    session.interpreter.journal.close()
    return session_id


def stored(session: ScriptedSession) -> list[bytes]:
    """The contents in the stores of all sessions."""
    stores = [ContentStore(folder) for folder in session.sessions.glob("*/files/*/images")]
    return sorted(images.read(content) for images in stores for content in images.hashes)


# -- resumed sessions --------------------------------------------------------------------------------------------------


def test_turns_of_an_earlier_run_can_be_undone(make_session: MakeSession) -> None:
    first = make_session()
    for number in (1, 2, 3):
        first.turn(f"turn {number}", step(number))
    session_id = close_session(first)
    second = make_session()
    second.interpreter.journal.resume(session_id)
    undone = second.interpreter.undo()
    assert second.state == (["turn 1", "turn 2"], "2", None) and undone.sentences == [EARLIER]
    second.turn("turn 4", step(4))
    undone = second.interpreter.undo()
    assert second.state == (["turn 1", "turn 2"], "2", None) and undone.sentences == []
    second.interpreter.undo(2)
    assert second.state == ([], None, None)
    second.interpreter.redo(2)
    assert second.state == (["turn 1", "turn 2"], "2", None)


def test_turns_undone_in_an_earlier_run_can_be_redone(make_session: MakeSession) -> None:
    first = make_session()
    for number in (1, 2, 3):
        first.turn(f"turn {number}", step(number))
    first.interpreter.undo(2)
    first.interpreter.redo()
    first.interpreter.undo(parts=["files"])
    assert first.state == (["turn 1", "turn 2"], "1", "2")
    session_id = close_session(first)
    second = make_session()
    second.interpreter.journal.resume(session_id)
    places = second.interpreter.timeline.places
    assert places == {"conversation": 4, "files": 2, "variables": 4}
    assert second.interpreter.redo().sentences == []
    assert second.state == (["turn 1", "turn 2"], "2", None)
    assert second.interpreter.redo().sentences == [EARLIER]
    assert second.state == (["turn 1", "turn 2", "turn 3"], "3", None)
    with pytest.raises(UndoError, match="nothing to redo"):
        second.interpreter.redo()


def test_a_new_turn_after_undo_and_restart_clears_redo(make_session: MakeSession) -> None:
    first = make_session()
    for number in (1, 2):
        first.turn(f"turn {number}", step(number))
    first.interpreter.undo()
    session_id = close_session(first)
    second = make_session()
    second.interpreter.journal.resume(session_id)
    second.turn("another way", step(5))
    with pytest.raises(UndoError, match="nothing to redo"):
        second.interpreter.redo()
    close_session(second)
    third = make_session()
    third.interpreter.journal.resume(session_id)
    labels = [point.label for point in third.interpreter.checkpoints if point.kind == "turn"]
    assert labels == ["turn 1", "another way"]
    third.interpreter.undo()
    assert third.state == (["turn 1"], "1", None)


def test_undo_works_after_dropped_messages_and_a_restart(make_session: MakeSession) -> None:
    first = make_session()
    for number in (1, 2):
        first.turn(f"turn {number}", step(number))
    second = next(place for place, each in enumerate(first.interpreter.messages) if each["content"] == "turn 2")
    del first.interpreter.messages[:second]
    session_id = close_session(first)
    again = make_session()
    again.interpreter.journal.resume(session_id)
    again.interpreter.undo()
    assert again.state == ([], "1", None)


def test_a_created_repository_is_removed_by_undo_after_a_restart(make_session: MakeSession) -> None:
    first = make_session()
    first.turn("one", ("shell", "git init -q repo"))
    session_id = close_session(first)
    second = make_session()
    second.interpreter.journal.resume(session_id)
    second.interpreter.undo()
    assert not (second.root / "repo").exists()


PROGRAM = """
import os, signal, sys
sys.path[:0] = [{tests!r}]
from pathlib import Path
from checkpoints.scripted_session import ScriptedSession, step
session = ScriptedSession(Path({folder!r}))
session.turn("turn 1", step(1))
session.turn("turn 2", step(2))
{end}
"""


def run_until_killed(folder: Path, end: str) -> str:
    """Run a session that ends with this code and kills itself; return its ID."""
    tests = str(Path(__file__).parent.parent)
    program = PROGRAM.format(tests=tests, folder=str(folder), end=end)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert done.returncode == -signal.SIGKILL, done.stderr
    (row,) = listed(folder / "sessions")
    return row.id


def test_a_session_killed_during_a_block_can_be_undone(make_session: MakeSession, tmp_path: Path) -> None:
    end = """
session.server.add({"code": step(3) + "\\nprint('here')\\nimport time; time.sleep(60)"})
for chunk in session.interpreter.chat("turn 3", display=False, stream=True):
    if "here" in str(chunk.get("content")) and chunk["role"] == "computer":
        os.kill(os.getpid(), signal.SIGKILL)
"""
    session_id = run_until_killed(tmp_path.resolve(), end)
    session = make_session()
    assert tidy(session.sessions, recent=0) == 0  # its copies are still needed
    session.interpreter.journal.resume(session_id)
    session.interpreter.undo(blocks=True)
    assert session.state == (["turn 1", "turn 2", "turn 3"], "2", None)
    session.interpreter.undo(2)
    assert session.state == (["turn 1"], "1", None)


def test_an_undo_killed_midway_is_finished_on_resume(make_session: MakeSession, tmp_path: Path) -> None:
    end = """
def audit(event, args):
    if event == "os.rename" and str(args[1]) == "a":
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(audit)
session.interpreter.undo()
"""
    session_id = run_until_killed(tmp_path.resolve(), end)
    session = make_session()
    assert session.read("a") == "2"
    session.interpreter.journal.resume(session_id)
    timeline = session.interpreter.timeline
    assert timeline.destination("undo", parts=["files"]) == 0  # the undo was finished first
    assert session.state == (["turn 1", "turn 2"], "1", None)
    session.interpreter.redo(parts=["files"])
    assert session.read("a") == "2"
    session.interpreter.undo(2)
    assert session.state == ([], None, None)


# -- the store -----------------------------------------------------------------------------------------------------------


def test_the_record_moves_to_the_session_folder_with_the_first_turn(session: ScriptedSession) -> None:
    session.write("b", "not changed")
    session.run_block(step(1))
    store = session.interpreter.timeline.files
    record = store.record()
    assert record is not None and not session.sessions.exists()
    passing = record.folder
    session.turn("two", step(2))
    assert store.record() is record and session.sessions in record.folder.parents and not passing.exists()
    session.interpreter.undo(2)
    assert session.state == ([], None, None)


def test_a_branch_and_its_origin_can_both_be_undone(make_session: MakeSession) -> None:
    session = make_session()
    for number in (1, 2):
        session.turn(f"turn {number}", step(number))
    old = session.interpreter.journal.id
    new = session.interpreter.journal.branch()
    session.turn("turn 3", step(3))
    session.interpreter.undo(3)
    assert session.state == ([], None, None)
    session.interpreter.redo(2)
    close_session(session)
    assert session.read("a") == "2"
    for session_id in (old, new):
        other = make_session()
        other.interpreter.journal.resume(session_id)  # type: ignore[arg-type]
        other.interpreter.undo(parts=["conversation", "files"])
        assert other.state == (["turn 1"], "1", None)
        other.interpreter.redo(parts=["conversation", "files"])
        assert other.state[:2] == (["turn 1", "turn 2"], "2")
        close_session(other)


def test_a_branch_of_a_resumed_session_can_be_undone(make_session: MakeSession) -> None:
    first = make_session()
    first.turn("one", step(1))
    session_id = close_session(first)
    second = make_session()
    second.interpreter.journal.resume(session_id)
    second.interpreter.journal.branch()
    second.interpreter.undo()
    assert second.state == ([], None, None)


def test_no_live_file_is_linked_to_a_store(session: ScriptedSession) -> None:
    session.write("b", "not changed" * 10_000)
    session.turn("one", step(1))
    session.interpreter.journal.branch()
    session.turn("two", step(2))
    session.interpreter.undo()
    stores = {path.stat().st_ino for path in session.sessions.rglob("*") if path.is_file()}
    live = {path.stat().st_ino for path in session.root.iterdir()}
    assert len(stored(session)) > 2 and not stores & live


def test_only_the_owner_can_read_the_store(session: ScriptedSession) -> None:
    session.turn("one", step(1))
    for path in session.sessions.glob("*/files/**/*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_unneeded_copies_are_removed_when_the_session_ends(session: ScriptedSession) -> None:
    session.write("b", "not changed")
    session.turn("one", step(1))
    assert stored(session) == [b"1", b"not changed"]
    close_session(session)
    assert stored(session) == [b"1"]


def test_copies_of_a_killed_session_are_removed_later(make_session: MakeSession, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "b").write_text("not changed")
    session_id = run_until_killed(tmp_path.resolve(), "os.kill(os.getpid(), signal.SIGKILL)")
    session = make_session()
    assert stored(session) == [b"1", b"2", b"not changed"]
    assert tidy(session.sessions) == 0  # it was just killed, and may be resumed
    session.interpreter.journal.resume(session_id)
    assert tidy(session.sessions, recent=0) == 0  # it is open here
    session.interpreter.journal.close()
    assert [row.id for row in listed(session.sessions)] == [session_id]
    assert tidy(session.sessions, recent=0) == 1 and stored(session) == [b"1", b"2"]
    assert tidy(session.sessions, recent=0) == 0
    session.interpreter.journal.resume(session_id)
    session.interpreter.undo(2)
    assert session.state == ([], None, None)


def test_the_next_session_tidies_up_in_the_background(make_session: MakeSession, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "b").write_text("not changed")
    run_until_killed(tmp_path.resolve(), "os.kill(os.getpid(), signal.SIGKILL)")
    session = make_session()
    (ledger,) = session.sessions.glob("*/files/*/files.jsonl")
    os.utime(ledger, (0, 0))
    session.turn("something else", "x = 1")
    for thread in threading.enumerate():
        if thread.name == "tidy file records":
            thread.join()
    assert not (ledger.parent / "untrimmed").exists()
    assert ContentStore(ledger.parent / "images").hashes == {hashlib.sha256(data).hexdigest() for data in (b"1", b"2")}
    assert len(list(session.sessions.glob("*/files/*/untrimmed"))) == 1  # that of the running session


@pytest.mark.full
def test_a_session_killed_during_a_block_is_tidied_up_eventually(make_session: MakeSession, tmp_path: Path) -> None:
    end = """
record = session.interpreter.timeline.files.record()
record.before(99)
os.kill(os.getpid(), signal.SIGKILL)
"""
    run_until_killed(tmp_path.resolve(), end)
    session = make_session()
    assert tidy(session.sessions, recent=0) == 0
    for ledger in session.sessions.glob("*/files/*/files.jsonl"):
        os.utime(ledger, (0, 0))
    assert tidy(session.sessions) == 1


# -- errors ----------------------------------------------------------------------------------------------------------------


def test_undo_works_without_a_writable_journal(make_session: MakeSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    session = make_session(conversation_history_path=str(tmp_path / "file" / "sessions"))
    session.turn("one", step(1))
    session.turn("two", step(2))
    session.interpreter.undo()
    assert session.state == (["one"], "1", "1")
    session.interpreter.undo()
    assert session.state == ([], None, None)


def test_missing_space_in_the_store_is_reported_and_undo_still_works(session: ScriptedSession) -> None:
    session.run_block("x = 0")
    session.write("b", "x" * 200_000)
    with file_size_limit(100_000):
        chunks = list(session.interpreter.computer.stream("python", step(1)))
    notices = [
        chunk["content"]["text"] for chunk in chunks if chunk["type"] == "status" and chunk["format"] == "notice"
    ]
    assert notices == ["Undo doesn't cover: b (no copy could be stored: File too large)"]
    session.interpreter.undo()
    assert session.state == ([], None, "0")
    session.run_block(step(2))
    session.interpreter.undo()
    assert session.state == ([], None, "0")


def test_a_session_with_damaged_records_can_be_undone(make_session: MakeSession) -> None:
    first = make_session()
    for number in (1, 2):
        first.turn(f"turn {number}", step(number))
    session_id = close_session(first)
    (folder,) = first.sessions.glob("*/files/*")
    with (folder / "files.jsonl").open("a") as ledger:
        ledger.write('{"event":"end"}\n')
    (folder / "intent.json").write_text("{")
    second = make_session()
    second.interpreter.journal.resume(session_id)
    second.interpreter.undo()
    assert second.state == (["turn 1"], "1", None)


def test_a_deleted_store_only_affects_earlier_blocks(session: ScriptedSession) -> None:
    session.turn("one", step(1))
    subprocess.run(["rm", "-r", *map(str, session.sessions.glob("*/files"))], check=True)
    session.turn("two", step(2))
    session.interpreter.undo()
    assert session.read("a") == "2"  # its old content is lost with the store, and nothing worse happens
    session.turn("three", step(3))
    session.turn("four", step(4))
    session.interpreter.undo()
    assert session.read("a") == "3"


def test_sessions_in_one_workspace_undo_only_their_own_changes(make_session: MakeSession) -> None:
    one, other = make_session(), make_session()
    one.turn("one", step(1))
    other.turn("other", step(2), "open('b', 'w').write('b')")
    undone = one.interpreter.undo()
    assert one.state == ([], "2", None)  # the change of the other session is kept
    assert undone.sentences == ["a was left unchanged: it was changed after the block."]
    one.turn("again", "open('c', 'w').write('c')")
    other.interpreter.undo()
    assert other.state == ([], "1", None) and other.read("b") is None and other.read("c") == "c"
    one.interpreter.undo()
    assert one.read("c") is None


def test_why_finds_the_block_that_changed_a_file(session: ScriptedSession) -> None:
    session.turn("one", step(1))
    session.turn("two", step(2))
    point = session.interpreter.timeline.why("a")
    assert point is not None and point.label.startswith("x = 2") and point.block == 2
    journal = session.interpreter.journal.read()
    assert isinstance(journal, SavedSession) and [
        entry["label"] for entry in journal.points if entry["kind"] == "turn"
    ] == [
        "one",
        "two",
    ]
    assert "-1" in session.interpreter.timeline.diff(point.id)["a"]
