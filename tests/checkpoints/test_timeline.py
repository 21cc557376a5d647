"""Undo and redo of turns and blocks: conversation, files and variables, together or separately."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

from checkpoints.conftest import MakeSession
from checkpoints.scripted_session import ScriptedSession, step
from interpreter.errors import UndoError, UsageError
from interpreter.workspace.snapshot import FileSnapshot
from model_server import text, tool_call

pytestmark = pytest.mark.usefixtures("no_strays")


def test_turns_can_be_undone_and_redone(session: ScriptedSession) -> None:
    states = [session.state]
    for number in (1, 2, 3):
        session.turn(f"turn {number}", step(number))
        states.append(session.state)
    assert states[-1] == (["turn 1", "turn 2", "turn 3"], "3", "3")
    undo, redo = session.interpreter.undo, session.interpreter.redo
    for expected in (2, 1, 0):
        undone = undo()
        assert session.state == states[expected] and undone.restored == ("a",) and undone.sentences == []
    with pytest.raises(UndoError, match="nothing to undo"):
        undo()
    redo(2)
    assert session.state == states[2]
    redo()
    assert session.state == states[3]
    with pytest.raises(UndoError, match="nothing to redo"):
        redo()
    undo(3)
    assert session.state == states[0]
    with pytest.raises(UndoError, match="Only 3 steps can be redone"):
        redo(4)


def test_blocks_of_a_turn_can_be_undone_one_by_one(session: ScriptedSession) -> None:
    session.turn("three", step(1), step(2), step(3))
    whole = list(session.interpreter.messages)
    undo, redo = session.interpreter.undo, session.interpreter.redo
    undo(blocks=True)
    assert session.state == (["three"], "2", "2")
    last = session.interpreter.messages[-1]
    assert last["role"] == "computer"  # the output of the second block
    undo(2, blocks=True)
    assert session.state == (["three"], None, None) and len(session.interpreter.messages) == 1
    redo(blocks=True)
    assert session.state == (["three"], "1", "1")
    redo(2, blocks=True)
    assert session.state == (["three"], "3", "3") and session.interpreter.messages == whole


def test_user_blocks_can_be_undone(session: ScriptedSession) -> None:
    for number in (1, 2):
        session.run_block(step(number))
    points = session.interpreter.checkpoints
    assert [(point.kind, point.language) for point in points] == [("own", "python")] * 2
    session.interpreter.undo()
    assert session.state == ([], "1", "1")
    session.turn("go on", step(3))
    session.interpreter.undo(2)
    assert session.state == ([], None, None)
    session.interpreter.redo(2)
    assert session.state == (["go on"], "3", "3")


def test_what_saves_variables_does_not_count_as_a_process_of_the_block(session: ScriptedSession) -> None:
    """The block's own processes do, with what they are called."""
    computer = session.interpreter.computer
    computer.run("python", "import os\nlarge = os.urandom(100_000_000)")
    assert computer.runtimes.save(10**9, 60, {})  # goes on while the block is undone
    assert session.interpreter.undo(blocks=True).variables["Python"].running == []  # type: ignore[union-attr]
    computer.run("python", "import subprocess\nchild = subprocess.Popen(['sleep', '30'])")
    (running,) = session.interpreter.undo(blocks=True).variables["Python"].running  # type: ignore[union-attr]
    assert running.startswith("sleep ")
    os.kill(int(running.partition("(")[2][:-1]), 9)


def test_any_checkpoint_can_be_restored(session: ScriptedSession) -> None:
    session.turn("one", step(1))
    session.turn("two", step(2), step(3))
    points = session.interpreter.checkpoints
    assert [(point.kind, point.label) for point in points if point.kind == "turn"] == [("turn", "one"), ("turn", "two")]
    kinds = [point.kind for point in points]
    assert kinds == ["turn", "block", "turn", "block", "block"]
    expected = {0: ([], None, None), 2: (["one"], "1", "1"), 4: (["one", "two"], "2", "2")}
    for place in (4, 0, 2, 0, 4, 2):
        session.interpreter.restore(points[place].id)
        assert session.state == expected[place]
    with pytest.raises(UndoError, match="There is no checkpoint 99"):
        session.interpreter.restore(99)


@pytest.mark.parametrize("part", ["conversation", "files", "variables"])
def test_one_part_can_be_undone_alone(session: ScriptedSession, part: str) -> None:
    states = []
    for number in (1, 2):
        session.turn(f"turn {number}", step(number))
        states.append(session.state)
    index = ["conversation", "files", "variables"].index(part)
    mixed = tuple(states[0 if place == index else 1][place] for place in range(3))
    session.interpreter.undo(parts=[part])  # type: ignore[list-item]
    assert session.state == mixed
    session.interpreter.redo(parts=[part])  # type: ignore[list-item]
    assert session.state == states[1]
    session.interpreter.undo(parts=[part])  # type: ignore[list-item]
    session.interpreter.undo(parts=[each for each in ("conversation", "files", "variables") if each != part])  # type: ignore[misc]
    assert session.state == states[0]


def test_undo_works_after_undoing_files_only_and_a_new_turn(session: ScriptedSession) -> None:
    for number in (1, 2):
        session.turn(f"turn {number}", step(number))
    session.interpreter.undo(parts=["files"])
    assert session.state == (["turn 1", "turn 2"], "1", "2")
    session.turn("turn 3", step(3))
    session.interpreter.undo()
    assert session.state == (["turn 1", "turn 2"], "1", "2")
    session.interpreter.undo()
    assert session.state == (["turn 1"], "1", "1")
    session.interpreter.redo(2)
    assert session.state == (["turn 1", "turn 2", "turn 3"], "3", "3")
    session.interpreter.undo(3)
    assert session.state == ([], None, None)


def test_undo_works_after_undoing_the_conversation_only_and_a_new_turn(session: ScriptedSession) -> None:
    for number in (1, 2):
        session.turn(f"turn {number}", step(number))
    session.interpreter.undo(parts=["conversation"])
    session.turn("turn 3", step(3))
    assert session.state == (["turn 1", "turn 3"], "3", "3")
    session.interpreter.undo()
    assert session.state == (["turn 1"], "2", "2")
    session.interpreter.undo()
    assert session.state == (["turn 1"], "1", "1")
    session.interpreter.undo()
    assert session.state == ([], None, None)


def test_a_new_turn_clears_redo(session: ScriptedSession) -> None:
    for number in (1, 2):
        session.turn(f"turn {number}", step(number))
    session.interpreter.undo()
    session.turn("another way", step(7))
    with pytest.raises(UndoError, match="nothing to redo"):
        session.interpreter.redo()
    assert [point.label for point in session.interpreter.checkpoints if point.kind == "turn"] == [
        "turn 1",
        "another way",
    ]
    session.interpreter.undo()
    assert session.state == (["turn 1"], "1", "1")


def test_turns_without_blocks_can_be_undone(session: ScriptedSession) -> None:
    session.turn("hello")
    session.turn("do it", step(1))
    session.turn("thanks")
    session.interpreter.undo()
    assert session.state == (["hello", "do it"], "1", "1")
    session.interpreter.undo()
    assert session.state == (["hello"], None, None)
    session.interpreter.redo(2)
    assert session.state == (["hello", "do it", "thanks"], "1", "1")


def test_invalid_counts_and_parts_are_rejected(session: ScriptedSession) -> None:
    session.run_block(step(1))
    for count in (0, -1, 2):
        with pytest.raises(UndoError, match="Only 1 step can be undone"):
            session.interpreter.undo(count)
    for parts in ([], ["everything"]):
        with pytest.raises(UsageError, match="conversation, files, variables"):
            session.interpreter.undo(parts=parts)  # type: ignore[arg-type]
    assert session.read("a") == "1"


def test_an_outdated_plan_is_refused(session: ScriptedSession) -> None:
    session.run_block(step(1))
    timeline = session.interpreter.timeline
    plan = timeline.plan(timeline.destination("undo"))
    assert plan.changes_files and [each.language for each in plan.variables] == ["Python"]
    session.run_block(step(2))
    with pytest.raises(UndoError, match="out of date"):
        timeline.go(plan)
    assert session.read("a") == "2"


# -- external changes to the conversation and to files ---------------------------------------------------------------


def test_externally_changed_files_are_kept(session: ScriptedSession) -> None:
    session.write("a", "0")
    session.turn("one", step(1))
    session.write("a", "mine")
    undone = session.interpreter.undo()
    assert session.state == ([], "mine", None)
    assert undone.sentences == ["a was left unchanged: it was changed after the block."]
    session.interpreter.redo()
    session.interpreter.undo(overwrite=["a"])
    assert session.read("a") == "0"


def test_undo_works_after_the_conversation_was_truncated(session: ScriptedSession) -> None:
    for number in (1, 2, 3):
        session.turn(f"turn {number}", step(number))
    del session.interpreter.messages[3:]
    session.turn("turn 4", step(4))
    session.interpreter.undo()
    assert session.state == (["turn 1"], "3", "3")
    session.interpreter.undo(3)
    assert session.state == ([], None, None)


def test_undo_works_after_the_first_messages_were_dropped(session: ScriptedSession) -> None:
    """Programs drop them when the context is full."""
    for number in (1, 2, 3):
        session.turn(f"turn {number}", step(number))
    second = next(place for place, each in enumerate(session.interpreter.messages) if each["content"] == "turn 2")
    session.interpreter.messages = [{**each} for each in session.interpreter.messages[second:]]  # type: ignore[misc]
    session.interpreter.undo()
    assert session.state == (["turn 2"], "2", "2")
    session.interpreter.redo()
    assert session.state == (["turn 2", "turn 3"], "3", "3")
    session.interpreter.undo(2)
    assert session.state == ([], "1", "1")


def test_undo_works_after_the_conversation_was_replaced(session: ScriptedSession) -> None:
    for number in (1, 2):
        session.turn(f"turn {number}", step(number))
    session.interpreter.messages = []
    session.turn("anew", step(3))
    session.interpreter.undo()
    assert session.state == ([], "2", "2")
    session.interpreter.undo(2)
    assert session.state == ([], None, None)


def test_redo_keeps_a_conversation_changed_after_undo(session: ScriptedSession) -> None:
    for number in (1, 2):
        session.turn(f"turn {number}", step(number))
    session.interpreter.undo()
    session.interpreter.messages.append({"role": "user", "type": "message", "content": "a word between"})
    undone = session.interpreter.redo()
    assert session.state == (["turn 1", "a word between"], "2", "2")
    assert "changed since" in undone.sentences[0]


def test_a_turn_given_as_messages_can_be_undone(session: ScriptedSession) -> None:
    session.turn("one", step(1))
    session.server.add("Yes.")
    session.interpreter.chat([{"role": "user", "type": "message", "content": "other"}], display=False)
    session.interpreter.undo()
    assert session.state == ([], "1", "1")
    session.interpreter.undo()
    assert session.state == ([], None, None)


def test_reset_removes_all_checkpoints(session: ScriptedSession) -> None:
    session.turn("one", step(1))
    session.interpreter.reset()
    assert session.interpreter.checkpoints == [] and session.read("a") == "1"
    with pytest.raises(UndoError, match="nothing to undo"):
        session.interpreter.undo()
    session.turn("two", step(2))
    session.interpreter.undo()
    assert session.state == ([], "1", None)


# -- how blocks end ----------------------------------------------------------------------------------------------------


def test_a_turn_with_a_declined_block_can_be_undone(make_session: MakeSession) -> None:
    session: ScriptedSession = make_session(auto_run=False)
    session.turn("first", step(1))
    session.server.add({"code": step(2)})
    for chunk in session.interpreter.chat("second", display=False, stream=True):
        if chunk["type"] == "confirmation":
            session.interpreter.pending.decline()  # type: ignore[union-attr]
    assert [point.kind for point in session.interpreter.checkpoints] == ["turn", "block", "turn"]
    session.interpreter.undo()
    assert session.state == (["first"], "1", "1")
    session.interpreter.undo()
    assert session.state == ([], None, None)


def test_an_abandoned_turn_can_be_undone(session: ScriptedSession) -> None:
    session.server.add({"code": step(1) + "\nprint('here')\nimport time; time.sleep(60)"})
    for chunk in session.interpreter.chat("long", display=False, stream=True):
        if "here" in str(chunk.get("content")) and chunk["role"] == "computer":
            break
    session.interpreter.undo()
    assert session.state == ([], None, None)


def test_an_interrupted_block_can_be_undone(session: ScriptedSession) -> None:
    session.run_block(step(1))
    chunks = session.interpreter.computer.run(
        "python", step(2) + "\nprint('here')\nimport time; time.sleep(60)", stream=True
    )
    ended = None
    for chunk in chunks:
        if "here" in str(chunk.get("content")):
            session.interpreter.computer.stop()
        ended = chunk.get("ended", ended)
    assert ended == "interrupted" and session.state == ([], "2", "2")
    session.interpreter.undo()
    assert session.state == ([], "1", "1")
    session.interpreter.redo()
    assert session.state == ([], "2", "2")


def test_a_block_that_kills_its_runtime_can_be_undone(session: ScriptedSession) -> None:
    session.run_block(step(1))
    session.run_block(step(2) + "\nimport os; os._exit(3)")
    assert session.state == ([], "2", "1")  # its variables are lost, its file changes are not
    session.interpreter.undo()
    assert session.state == ([], "1", "1")
    session.interpreter.undo()
    assert session.state == ([], None, None)


def test_file_changes_of_a_background_block_can_be_undone(session: ScriptedSession) -> None:
    session.run_block(step(1))
    code = step(2) + "\nprint('here')\nimport time; time.sleep(60)"
    for chunk in session.interpreter.computer.run("python", code, stream=True):
        if "here" in str(chunk.get("content")):
            session.interpreter.computer.runtimes.detach()
    assert len(session.interpreter.computer.jobs) == 1 and session.read("a") == "2"
    undone = session.interpreter.undo()
    assert session.read("a") == "1"
    assert any(words.startswith("Python: ") for words in undone.sentences)  # its runtime is in the background
    session.run_block(step(5))
    session.interpreter.undo()
    assert session.read("a") == "1"


def test_languages_that_cannot_restore_variables_say_so(session: ScriptedSession) -> None:
    session.run_block(("javascript", "require('fs').writeFileSync('a', 'js')"))
    timeline = session.interpreter.timeline
    plan = timeline.plan(timeline.destination("undo"))
    assert [(each.language, each.obstacle is not None) for each in plan.variables] == [("JavaScript", True)]
    undone = session.interpreter.undo()
    assert [words for words in undone.sentences if words.startswith("The JavaScript variables stay as they are: ")]
    assert session.read("a") is None


def test_shell_and_python_are_undone_together(session: ScriptedSession) -> None:
    (session.root / "sub").mkdir()
    session.turn("shell", ("shell", "export WORD=one; x=1; cd sub"))
    session.turn(
        "both",
        ("shell", "export WORD=two; x=2; cd .."),
        "import os; seen = os.environ['WORD'], os.path.basename(os.getcwd())",
    )
    assert session.value("seen") == "('two', 'work')"
    session.interpreter.undo()
    session.run_block(("shell", 'echo "$WORD $x $(basename "$PWD")" > ../told'))
    session.run_block("import os; seen = os.environ['WORD'], os.path.basename(os.getcwd())")
    assert session.value("seen") == "('one', 'sub')" and session.read("told") == "one 1 sub\n"


def test_runtimes_work_in_the_restored_folder(session: ScriptedSession) -> None:
    session.run_block("import os, shutil; os.makedirs('sub/deep'); os.chdir('sub/deep')")
    session.run_block(("shell", ":"))
    session.run_block("os.chdir('../..'); shutil.rmtree('sub')")
    session.interpreter.undo()
    session.run_block(("shell", "echo shell > told"))
    assert session.read("sub/deep/told") == "shell\n"
    session.run_block("_ = open('told', 'w').write(os.getcwd())")
    assert session.read("sub/deep/told") == str(session.root / "sub/deep")


def test_a_missing_working_directory_falls_back_to_its_parent(session: ScriptedSession) -> None:
    session.run_block("import os, shutil; os.makedirs('sub/deep'); os.chdir('sub/deep')")
    session.run_block("os.chdir('../..'); shutil.rmtree('sub')")
    session.interpreter.undo(parts=["variables"])
    assert session.interpreter.computer.context.cwd == str(session.root)
    session.run_block("here = os.getcwd()")
    assert session.value("here") == repr(str(session.root))


def test_a_crash_in_a_deleted_directory_falls_back_to_its_parent(session: ScriptedSession) -> None:
    session.run_block("import os; os.mkdir('sub'); os.chdir('sub')")
    session.run_block("os.rmdir(os.getcwd()); os._exit(1)")
    session.run_block("here = os.getcwd()")
    assert session.value("here") == repr(str(session.root))


# -- settings ----------------------------------------------------------------------------------------------------------


def test_files_are_kept_if_file_undo_is_off(make_session: MakeSession) -> None:
    session: ScriptedSession = make_session(undo_files=False)
    session.turn("one", step(1))
    undone = session.interpreter.undo()
    assert session.state == ([], "1", None) and undone.sentences == ["File undo is off (setting `undo_files`)."]
    assert not list(session.sessions.glob("*/files"))


def test_file_undo_can_be_turned_on_later(make_session: MakeSession) -> None:
    session: ScriptedSession = make_session(undo_files=False)
    session.turn("one", step(1))
    session.interpreter.undo_files = True
    session.turn("two", step(2))
    undone = session.interpreter.undo(2)
    assert session.state == ([], "1", None)
    assert undone.sentences == [
        "Files that some of these blocks changed stay as they are: file undo was off at the time."
    ]


def test_undo_only_restores_files_of_the_current_workspace(session: ScriptedSession) -> None:
    session.turn("one", step(1))
    other = session.folder / "other"
    other.mkdir()
    session.interpreter.workspace = str(other)
    session.turn("two", f"import os; os.chdir({str(other)!r})\n{step(2)}")
    assert (other / "a").read_text() == "2"
    undone = session.interpreter.undo(2)
    assert not (other / "a").exists() and session.read("a") == "1"
    assert undone.sentences == [
        f"Files that some of these blocks changed stay as they are: the workspace was {session.root} at the time."
    ]
    session.interpreter.workspace = str(session.root)
    session.interpreter.undo(1, parts=["files"])
    assert session.read("a") is None


def test_uncovered_files_are_reported_before_the_block_and_after_undo(make_session: MakeSession) -> None:
    session = make_session(undo_max_file_bytes=10)
    session.write("big", "x" * 100)
    chunks = list(session.interpreter.computer.stream("python", "open('big', 'w').write('1')"))
    notices = [chunk["content"].get("text") for chunk in chunks if chunk["type"] == "status"]
    assert notices[0] == "Undo doesn't cover: big (100 bytes)"
    undone = session.interpreter.undo()
    assert undone.sentences == ["big cannot be restored: its content is not stored."] and session.read("big") == "1"


@pytest.mark.parametrize(
    ("settings", "kind", "reason"),
    [
        ({}, "reversible", ""),
        ({"undo_max_file_bytes": 3}, "not", "a (too large for undo)"),
        ({"undo_files": False}, "not", "a (file undo is off)"),
    ],
)
def test_the_approval_question_says_what_undo_does_not_cover(
    make_session: MakeSession, settings: dict[str, Any], kind: str, reason: str
) -> None:
    session: ScriptedSession = make_session(auto_run=False, **settings)
    session.write("a", "long")
    session.server.add(tool_call("python", "_ = open('a', 'w').write('b')"), text("Done."))
    chunks = session.interpreter.chat("go", display=False, stream=True)
    (question,) = [dict(chunk) for chunk in chunks if chunk["type"] == "confirmation"]
    assert question["undo"] == {"kind": kind, "reasons": [reason] if reason else []}
    assert question["effects"] == ["Overwrites a", f"Not undoable: {reason}" if reason else "Undoable"]


def test_undo_cancels_a_suspended_block_of_its_own_thread(session: ScriptedSession) -> None:
    code = step(1) + "\nprint('he' + 're', flush=True)\nimport time\ntime.sleep(60)"
    chunks = session.interpreter.computer.run("python", code, stream=True)
    for chunk in chunks:
        if "here" in str(chunk.get("content")):
            session.interpreter.undo()
    assert chunk["ended"] == "interrupted"
    assert session.state == ([], None, None)


def test_a_raised_limit_applies_to_later_blocks(make_session: MakeSession) -> None:
    session: ScriptedSession = make_session(undo_max_files=2)
    for number, name in enumerate("abcd"):
        session.write(name, name)
        os.utime(session.root / name, (number, number))
    session.run_block(step(1))
    assert "a cannot be restored: its content is not stored." in " ".join(session.interpreter.undo().sentences)
    session.interpreter.undo_max_files = 100
    session.run_block(step(2))
    assert session.interpreter.undo().sentences == [] and session.read("a") == "1"


def test_undo_works_without_a_journal(make_session: MakeSession) -> None:
    session: ScriptedSession = make_session(conversation_history=False)
    session.turn("one", step(1))
    session.run_block(step(2))
    session.interpreter.undo(2)
    assert session.state == ([], None, None) and not session.sessions.exists()
    session.interpreter.redo(2)
    assert session.state == (["one"], "2", "2")


def test_a_turn_in_another_thread_can_be_undone(session: ScriptedSession) -> None:
    def talk() -> None:
        session.turn("one", step(1))

    thread = threading.Thread(target=talk)
    thread.start()
    thread.join()
    session.interpreter.undo()
    assert session.state == ([], None, None)


def test_a_forked_process_leaves_the_record_to_its_parent(make_session: MakeSession) -> None:
    session: ScriptedSession = make_session(conversation_history=False)
    session.run_block(step(1))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            record = session.interpreter.timeline.files.record()
            code = 0 if record is not None and record.blocks == () else 2
            session.interpreter.timeline.files.close()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    session.interpreter.undo()
    assert session.read("a") is None


def test_undo_does_what_the_approval_question_promises(make_session: MakeSession) -> None:
    session: ScriptedSession = make_session(auto_run=False)
    names = ("a", "b", "c", "d")
    for name in names:
        session.write(name, f"was {name}")
    code = "import os\n" + "\n".join(f"os.rename('{name}', '{name}.old')" for name in names)
    session.server.add(tool_call("python", code), text("Done."))
    chunks = session.interpreter.chat("go", display=False, stream=True)
    (question,) = [dict(chunk) for chunk in chunks if chunk["type"] == "confirmation"]
    listed = ", ".join(f"{name} to {name}.old" for name in names)
    assert question["effects"] == [f"Renames 4 files: {listed}", "Undoable"]
    assert session.read("a.old") == "was a"
    session.interpreter.undo()
    assert [session.read(name) for name in names] == [f"was {name}" for name in names]


def test_undo_is_not_promised_while_the_workspace_is_still_being_read(
    make_session: MakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, refresh = threading.Event(), FileSnapshot.refresh

    def slow(self: FileSnapshot, seconds: float | None = None) -> Any:
        asked.wait(20)
        return refresh(self, seconds)

    monkeypatch.setattr(FileSnapshot, "refresh", slow)
    session: ScriptedSession = make_session(auto_run=False)
    session.server.add(tool_call("python", "_ = open('a', 'w').write('b')"), text("Done."))
    for chunk in session.interpreter.chat("go", display=False, stream=True):
        if chunk["type"] == "confirmation":
            assert chunk["effects"][-1] == "Can't tell yet which files undo covers here, so undo isn't guaranteed."
            asked.set()
    assert asked.is_set()
