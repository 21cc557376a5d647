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


def test_two_ways_and_one_is_kept(work: Path) -> None:
    with ModelServer([]) as server, someone(server=server) as person:
        person.says(">>> x = 1")
        person.says("%fork")
        person.sees("You are on a way of your own now")
        person.says(">>> x = 2; _ = open('a.txt', 'w').write('two')")
        person.sees("changed a.txt")
        person.says("%switch")
        person.sees("Way 1 of 2")
        person.says(">>> x * 111")
        person.sees("111")
        assert (work / "a.txt").read_text() == "one"
        person.says("%switch")
        person.sees("Way 2 of 2")
        person.says("%keep")
        person.sees("Bring this there, and drop the other way?")
        person.types("y" + ENTER)
        person.sees("1 file brought into the workspace")
        assert (work / "a.txt").read_text() == "two"
        person.says(">>> x * 111")
        person.sees("222")
        assert person.leaves() == 0


def test_a_way_that_is_dropped(work: Path) -> None:
    with ModelServer([]) as server, someone(server=server) as person:
        person.says("%keep")
        person.sees("There is only one way")
        person.says(">>> x = 1")
        person.says("%fork")
        person.sees("You are on a way of your own now")
        person.says(">>> x = 2")
        person.says("%drop")
        person.sees("Drop this way")
        person.types("y" + ENTER)
        person.sees("Dropped.")
        person.says(">>> x * 111")
        person.sees("111")
        assert person.leaves() == 0


def test_three_ways(work: Path) -> None:
    with ModelServer([]) as server, someone(server=server) as person:
        for number in (1, 2):
            person.says("%fork")
            person.sees("You are on a way of your own now", times=number)
        person.says("%switch 2")
        person.sees("Way 2 of 3")
        person.says("%drop")
        person.sees("Way 3 came from this one")
        person.says("%switch 1")
        person.sees("Way 1 of 3")
        person.says("%fork")
        person.sees("You are on a way of your own now", times=3)
        person.says(">>> _ = open('b.txt', 'w').write('four')")
        person.sees("created b.txt")
        person.says("%switch 2")
        person.sees("Way 2 of 4")
        person.says(">>> _ = open('a.txt', 'w').write('two')")
        person.sees("changed a.txt")
        person.says("%keep")
        person.sees("  change a.txt")
        person.sees("drop the other way?")
        person.types("y" + ENTER)
        person.sees("1 file brought into the workspace")
        person.says("%switch 3")
        person.sees("Way 3 of 3")
        person.says("%keep")
        person.sees("  create b.txt")
        person.sees("drop the other way?", times=2)
        person.types("y" + ENTER)
        person.sees("1 file brought into the workspace", times=2)
        assert ((work / "a.txt").read_text(), (work / "b.txt").read_text()) == ("two", "four")
        assert person.leaves() == 0
