"""The model gets a note about undone files and variables if the conversation stays."""

from __future__ import annotations

import pytest

from checkpoints.conftest import MakeSession
from checkpoints.scripted_session import ScriptedSession, step

pytestmark = pytest.mark.usefixtures("no_strays")
NOTICE = "The user has undone"


def undo_notices(session: ScriptedSession) -> list[str]:
    """The undo notices in the last request to the model."""
    messages = session.server.requests[-1].body["messages"]
    return [str(each["content"]) for each in messages if NOTICE in str(each["content"])]


def test_the_model_is_told_about_undone_files(session: ScriptedSession) -> None:
    session.turn("one", step(1), step(2))
    session.interpreter.undo(parts=["files"])
    session.turn("two")
    (words,) = undo_notices(session)
    assert "what the last 2 blocks did to files (a)" in words and "variables" not in words
    assert [each["role"] for each in session.interpreter.messages[-3:]] == ["computer", "user", "assistant"]
    assert len(session.turn("three")) == 1 and len(undo_notices(session)) == 1  # not again


def test_the_model_is_told_about_undone_variables(session: ScriptedSession) -> None:
    session.turn("one", step(1))
    session.interpreter.undo(parts=["variables"])
    session.turn("two")
    (words,) = undo_notices(session)
    assert "the Python variables of the last block" in words and "files" not in words


def test_a_user_block_before_the_next_turn_keeps_the_notice(session: ScriptedSession) -> None:
    session.turn("one", step(1))
    session.interpreter.undo(parts=["files", "variables"])
    session.run_block("print(1)")
    session.turn("two")
    assert len(undo_notices(session)) == 1
    session.turn("three")
    assert len(undo_notices(session)) == 1


def test_there_is_no_notice_after_a_redo_or_a_full_undo(session: ScriptedSession) -> None:
    session.turn("one", step(1))
    session.interpreter.undo(parts=["files"])
    session.interpreter.redo(parts=["files"])
    session.turn("two")
    assert undo_notices(session) == []
    session.interpreter.undo(2)
    session.turn("three")
    assert undo_notices(session) == []


def test_the_notice_survives_a_restart(make_session: MakeSession) -> None:
    first = make_session()
    first.turn("one", step(1))
    first.interpreter.undo(parts=["files"])
    folder = first.interpreter.journal.path
    first.close()
    second = make_session()
    second.interpreter.journal.resume(folder.name if folder else "")
    second.turn("two")
    assert len(undo_notices(second)) == 1
