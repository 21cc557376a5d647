"""The whole output of a block: in memory while short, in a file when long, gone when nobody was told of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interpreter.runtimes.block import (
    IN_MEMORY,
    Spool,
    drop_oldest,
)

Making = Callable[[], Spool]


@pytest.fixture
def spools(tmp_path: Path) -> Iterator[Making]:
    made: list[Spool] = []

    def make() -> Spool:
        made.append(Spool(lambda: tmp_path))
        return made[-1]

    yield make
    for spool in made:
        spool.close()


def test_a_short_output_makes_no_file_until_somebody_wants_one(spools: Making, tmp_path: Path) -> None:
    spool = spools()
    spool.write("short")
    assert list(tmp_path.iterdir()) == []
    assert Path(spool.keep()).read_text() == "short"


def test_a_long_output_is_in_a_file_and_is_read_back_whole(spools: Making, tmp_path: Path) -> None:
    spool = spools()
    for number in range(IN_MEMORY // 1000 + 10):
        spool.write(f"{number:999}\n")
    assert len(list(tmp_path.iterdir())) == 1
    assert len(spool.read()) == spool.length


def test_a_file_that_nobody_was_told_of_goes_with_the_spool(spools: Making, tmp_path: Path) -> None:
    forgotten, told = spools(), spools()
    for spool in (forgotten, told):
        spool.write("x" * (IN_MEMORY + 1))
    path = told.keep()
    forgotten.close()
    told.close()
    assert [str(file) for file in tmp_path.iterdir()] == [path]


def test_what_comes_after_the_end_is_dropped(spools: Making, tmp_path: Path) -> None:
    spool = spools()
    spool.write("x" * (IN_MEMORY + 1))
    path = Path(spool.keep())
    spool.close()
    spool.write("late")
    assert not path.read_text().endswith("late")


def test_a_kept_file_can_be_read_while_it_grows(spools: Making, tmp_path: Path) -> None:
    spool = spools()
    path = Path(spool.keep())
    spool.write("line\n")
    assert path.read_text() == "line\n"


def test_the_oldest_outputs_go_first(tmp_path: Path) -> None:
    import os

    for number in range(3):
        file = tmp_path / f"output-{number}.txt"
        file.write_text("x" * 100)
        os.utime(file, (number, number))
    drop_oldest(tmp_path, 200)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["output-1.txt", "output-2.txt"]
