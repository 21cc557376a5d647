"""The model is told of files and variables that were taken back while the conversation stayed."""

from __future__ import annotations

import pytest

from checkpoints.conftest import Travelling
from checkpoints.traveller import Traveller, step

pytestmark = pytest.mark.usefixtures("no_strays")
TOLD = "The user has undone"


def told(traveller: Traveller) -> list[str]:
    """What the model was told in the last request, each time."""
    messages = traveller.server.requests[-1].body["messages"]
    return [str(each["content"]) for each in messages if TOLD in str(each["content"])]


def test_files_alone(traveller: Traveller) -> None:
    traveller.turn("one", step(1), step(2))
    traveller.interpreter.undo(parts=["files"])
    traveller.turn("two")
    (words,) = told(traveller)
    assert "what the last 2 blocks did to files (a)" in words and "variables" not in words
    assert [each["role"] for each in traveller.interpreter.messages[-3:]] == ["computer", "user", "assistant"]
    assert len(traveller.turn("three")) == 1 and len(told(traveller)) == 1  # not again


def test_variables_alone(traveller: Traveller) -> None:
    traveller.turn("one", step(1))
    traveller.interpreter.undo(parts=["variables"])
    traveller.turn("two")
    (words,) = told(traveller)
    assert "the Python variables of the last block" in words and "files" not in words


def test_a_block_of_the_users_own_comes_before_the_next_turn(traveller: Traveller) -> None:
    traveller.turn("one", step(1))
    traveller.interpreter.undo(parts=["files", "variables"])
    traveller.own("print(1)")
    traveller.turn("two")
    assert len(told(traveller)) == 1
    traveller.turn("three")
    assert len(told(traveller)) == 1


def test_nothing_to_tell(traveller: Traveller) -> None:
    traveller.turn("one", step(1))
    traveller.interpreter.undo(parts=["files"])
    traveller.interpreter.redo(parts=["files"])
    traveller.turn("two")
    assert told(traveller) == []
    traveller.interpreter.undo(2)
    traveller.turn("three")
    assert told(traveller) == []


def test_after_a_restart(travelling: Travelling) -> None:
    first = travelling()
    first.turn("one", step(1))
    first.interpreter.undo(parts=["files"])
    session = first.interpreter.journal.path
    first.close()
    second = travelling()
    second.interpreter.journal.resume(session.name if session else "")
    second.turn("two")
    assert len(told(second)) == 1
