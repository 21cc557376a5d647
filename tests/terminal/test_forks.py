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
