"""Forks at the prompt: %fork, %switch, %keep and %drop."""

from __future__ import annotations

from pathlib import Path

import pytest

from model_server import ModelServer
from terminal.person import ENTER, someone


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("one")
    monkeypatch.chdir(folder)
    return folder


def test_keep_applies_one_fork_and_drops_the_other(work: Path) -> None:
    with ModelServer([]) as server, someone(server=server) as person:
        person.says(">>> x = 1")
        person.says("%fork")
        person.sees("Working in a fork")
        person.says(">>> x = 2; _ = open('a.txt', 'w').write('two')")
        person.sees("changed a.txt")
        person.says("%switch")
        person.sees("Fork 1 of 2")
        person.says(">>> x * 11111 + 5")
        person.sees("11116")
        assert (work / "a.txt").read_text() == "one"
        person.says("%switch")
        person.sees("Fork 2 of 2")
        person.says("%keep")
        person.sees("Make these changes and drop the other fork?")
        person.types("y" + ENTER)
        person.sees("1 file changed in the workspace")
        assert (work / "a.txt").read_text() == "two"
        person.says(">>> x * 11111 + 5")
        person.sees("22227")
        assert person.leaves() == 0


def test_drop_discards_a_fork(work: Path) -> None:
    with ModelServer([]) as server, someone(server=server) as person:
        person.says("%keep")
        person.sees("There are no forks yet")
        person.says(">>> x = 1")
        person.says("%fork")
        person.sees("Working in a fork")
        person.says(">>> x = 2")
        person.says("%drop")
        person.sees("Drop this fork")
        person.types("y" + ENTER)
        person.sees("Dropped.")
        person.says(">>> x * 11111 + 5")
        person.sees("11116")
        assert person.leaves() == 0


@pytest.mark.full
def test_several_forks_are_kept_one_after_the_other(work: Path) -> None:
    with ModelServer([]) as server, someone(server=server) as person:
        for number in (1, 2):
            person.says("%fork")
            person.sees("Working in a fork", times=number)
        person.says("%switch 2")
        person.sees("Fork 2 of 3")
        person.says("%drop")
        person.sees("Fork 3 was made from this one")
        person.says("%switch 1")
        person.sees("Fork 1 of 3")
        person.says("%fork")
        person.sees("Working in a fork", times=3)
        person.says(">>> _ = open('b.txt', 'w').write('four')")
        person.sees("created b.txt")
        person.says("%switch 2")
        person.sees("Fork 2 of 4")
        person.says(">>> _ = open('a.txt', 'w').write('two')")
        person.sees("changed a.txt")
        person.says("%keep")
        person.sees("  change a.txt")
        person.sees("drop the other fork?")
        person.types("y" + ENTER)
        person.sees("1 file changed in the workspace")
        person.says("%switch 3")
        person.sees("Fork 3 of 3")
        person.says("%keep")
        person.sees("  create b.txt")
        person.sees("drop the other fork?", times=2)
        person.types("y" + ENTER)
        person.sees("1 file changed in the workspace", times=2)
        assert ((work / "a.txt").read_text(), (work / "b.txt").read_text()) == ("two", "four")
        assert person.leaves() == 0
