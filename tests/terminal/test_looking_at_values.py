"""%vars and %show: what is in the live sessions, on the screen."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from interpreter.frontends.terminal.magics.runtimes import drawn
from interpreter.frontends.terminal.render.ansi import cells
from interpreter.runtimes.state import Table
from model_server import ModelServer
from terminal.person import Person, someone

pytestmark = pytest.mark.usefixtures("no_strays")
DOWN, UP, RIGHT, PAGE_DOWN, END = "\x1b[B", "\x1b[A", "\x1b[C", "\x1b[6~", "\x1b[F"
MAKE = ">>> import pandas as pd; df = pd.DataFrame({f'c{n}': range(500) for n in range(40)})"


@pytest.fixture
def person() -> Iterator[Person]:
    with ModelServer() as server, someone(server=server) as person:
        yield person


def test_a_large_table_is_moved_with_the_arrow_keys(person: Person) -> None:
    person.says(MAKE)
    person.says("%show df")
    person.sees("rows 1-22 of 500, columns 1-")
    person.types(DOWN * 3 + UP)
    person.sees("rows 3-24 of 500")
    person.types(PAGE_DOWN)
    person.sees("rows 24-45 of 500")
    person.types(RIGHT * 4)
    person.sees("columns 5-")
    assert re.match(r"\s+c4 +c5", person.emulator.visible[0])
    person.types(END)
    person.sees("rows 479-500 of 500")
    assert person.emulator.visible[-2].split()[:2] == ["499", "499"]
    person.types("q")
    person.says("%exit")
    assert person.ends() == 0
    assert person.mode_is_restored


def test_what_fits_is_printed(person: Person) -> None:
    person.says(">>> rows = [{'a': 1, 'b': 'x'}, {'a': 22, 'b': 'y'}]; word = 'hello'")
    person.says("%show rows")
    person.sees("rows (list, 2 × 2)")
    assert "    a  b\n0   1  x\n1  22  y" in person.screen
    person.says("%show word")
    person.sees("hello\nword (str)")
    person.says("%show nothing")
    person.sees("not defined")
    person.says("%show")
    person.sees("%vars lists")


def test_a_long_text_has_the_screen_to_itself(person: Person) -> None:
    person.says(">>> text = '\\n'.join(f'line {n}' for n in range(200))")
    person.says("%show text")
    person.sees("lines 1-22 of 200")
    person.types(END)
    person.sees("line 199")
    person.types("q")
    person.at_prompt()


def test_variables_of_all_languages(person: Person) -> None:
    person.says("%vars")
    person.sees("No session has any variables yet.")
    person.says(">>> sizes = [1, 2, 3]")
    person.says("!place=here")
    person.says("%vars")
    person.sees("Python")
    person.sees("[1, 2, 3]")
    person.sees("Shell")
    assert re.search(r"name +type +shape +size +preview\n +sizes +list +3 ", person.screen)
    person.says("%vars shell")
    person.sees("place", times=3)
    person.says("%vars cobol")
    person.sees("`cobol` is disabled or not supported")


def test_columns_that_do_not_fit_are_left_out_and_long_cells_cut() -> None:
    page = Table(
        "", 2, 3, ["0", "1"], ["a", "long", "b"], [True, False, False], [["1", "22"], ["x" * 90, "漢" * 50], ["p", "q"]]
    )
    for width in range(12, 100):
        lines, columns = drawn(page, width)
        assert 1 <= columns <= 3
        assert all(cells(line) <= width for line in lines)
    assert drawn(page, 99)[1] == 3
