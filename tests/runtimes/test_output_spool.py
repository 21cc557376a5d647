"""The spool with the full output of a block: in memory if short, in a file if long, deleted unless it is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interpreter.runtimes.block import (
    MAX_IN_MEMORY,
    Spool,
    drop_oldest,
)

MakeSpool = Callable[[], Spool]


@pytest.fixture
def make_spool(tmp_path: Path) -> Iterator[MakeSpool]:
    made: list[Spool] = []

    def make() -> Spool:
        made.append(Spool(lambda: tmp_path))
        return made[-1]

    yield make
    for spool in made:
        spool.close()


def test_short_output_creates_no_file_until_it_is_kept(make_spool: MakeSpool, tmp_path: Path) -> None:
    spool = make_spool()
    spool.write("short")
    assert list(tmp_path.iterdir()) == []
    assert Path(spool.keep()).read_text() == "short"


def test_long_output_is_stored_in_a_file_and_read_back_complete(make_spool: MakeSpool, tmp_path: Path) -> None:
    spool = make_spool()
    for number in range(MAX_IN_MEMORY // 1000 + 10):
        spool.write(f"{number:999}\n")
    assert len(list(tmp_path.iterdir())) == 1
    assert len(spool.read()) == spool.length


def test_files_that_are_not_kept_are_deleted_with_the_spool(make_spool: MakeSpool, tmp_path: Path) -> None:
    dropped, kept = make_spool(), make_spool()
    for spool in (dropped, kept):
        spool.write("x" * (MAX_IN_MEMORY + 1))
    path = kept.keep()
    dropped.close()
    kept.close()
    assert [str(file) for file in tmp_path.iterdir()] == [path]


def test_output_after_the_end_is_dropped(make_spool: MakeSpool, tmp_path: Path) -> None:
    spool = make_spool()
    spool.write("x" * (MAX_IN_MEMORY + 1))
    path = Path(spool.keep())
    spool.close()
    spool.write("late")
    assert not path.read_text().endswith("late")


def test_a_kept_file_can_be_read_while_it_grows(make_spool: MakeSpool, tmp_path: Path) -> None:
    spool = make_spool()
    path = Path(spool.keep())
    spool.write("line\n")
    assert path.read_text() == "line\n"


def test_the_oldest_outputs_are_deleted_first(tmp_path: Path) -> None:
    import os

    for number in range(3):
        file = tmp_path / f"output-{number}.txt"
        file.write_text("x" * 100)
        os.utime(file, (number, number))
    drop_oldest(tmp_path, 200)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["output-1.txt", "output-2.txt"]
