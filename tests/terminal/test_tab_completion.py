"""Tab completion at the prompt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from interpreter import OpenInterpreter
from interpreter.frontends.terminal.prompt import Suggestions
from interpreter.runtimes import live
from model_server import ModelServer, text
from sampling import some
from terminal.person import ENTER, someone

TAB = "\t"


@pytest.fixture
def interpreter(tmp_path: Path) -> Iterator[OpenInterpreter]:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "sales.csv").write_text("")
    (tmp_path / "data.txt").write_text("")
    (tmp_path / "my picture.png").write_text("")
    (tmp_path / ".hidden").write_text("")
    interpreter = OpenInterpreter(workspace=str(tmp_path))
    yield interpreter
    interpreter.computer.terminate()


def completed(interpreter: OpenInterpreter, typed: str) -> list[str]:
    """The lines that Tab offers."""
    found = Suggestions(interpreter).get_completions(Document(typed), CompleteEvent(completion_requested=True))
    return [typed[: len(typed) + each.start_position] + each.text for each in found]


@pytest.mark.parametrize(
    ("typed", "lines"),
    [
        ("%verb", ["%verbose"]),
        ("%save", ["%save_message"]),
        ("%cd d", ["%cd data/"]),
        ("%run data/", ["%run data/sales.csv"]),
        ("%run da", ["%run data/", "%run data.txt"]),
        ("%vars py", ["%vars python"]),
        ("look at @da", ["look at @data/", "look at @data.txt"]),
        ("look at @my", ['look at @"my picture.png']),
        ('look at @"my p', ['look at @"my picture.png']),
        ("don't touch ./da", ["don't touch ./data/", "don't touch ./data.txt"]),
        ("plain words da", []),
        ("it's", []),
        ("%cd data/", []),
        ("!cat da", ["!cat data/", "!cat data.txt"]),
        ("!cat my", ["!cat my\\ picture.png"]),
        ("%% cat data/s", ["%% cat data/sales.csv"]),
        ("%undo 3 --f", ["%undo 3 --files"]),
        ("%why data/s", ["%why data/sales.csv"]),
        ("/verb", ["/verbose"]),
        ("/dev/nul", ["/dev/null"]),
    ],
)
def test_commands_and_files_are_completed(interpreter: OpenInterpreter, typed: str, lines: list[str]) -> None:
    assert completed(interpreter, typed) == lines


def test_a_percent_sign_lists_every_command_with_its_help(interpreter: OpenInterpreter) -> None:
    found = list(Suggestions(interpreter).get_completions(Document("%"), CompleteEvent()))
    assert {"help", "undo", "show", "vars", "model"} <= {each.text for each in found}
    assert all(each.display_meta_text for each in found)


def test_programs_are_completed(interpreter: OpenInterpreter) -> None:
    assert "!bash" in completed(interpreter, "!bas")


def test_live_variables_are_completed(interpreter: OpenInterpreter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "COMPLETE_TIMEOUT", 60.0)  # however busy the machine is
    assert completed(interpreter, ">>> siz") == []
    interpreter.computer.run("python", "sizes = {'small': 1}\ndef sizing(): pass")
    interpreter.computer.run("shell", "place=here")
    assert completed(interpreter, ">>> size") == [">>> sizes"]
    assert completed(interpreter, ">>> print(sizes.ke") == [">>> print(sizes.keys"]
    assert completed(interpreter, ">>> if 1:\n    siz") == [">>> if 1:\n    sizes", ">>> if 1:\n    sizing"]
    assert completed(interpreter, ">>> sizes['") == [">>> sizes['small"]
    assert completed(interpreter, "%show siz") == ["%show sizes"]
    assert completed(interpreter, "!echo $pla") == ["!echo $place"]
    assert completed(interpreter, ">>> sizes") == []


@pytest.mark.usefixtures("no_strays")
def test_tab_completes_at_the_prompt(tmp_path: Path) -> None:
    (tmp_path / "report.txt").write_text("")
    with ModelServer([text("Yes?")]) as server, someone(server=server) as person:
        person.at_prompt()
        person.types("%toke" + TAB)
        person.sees("> %tokens")
        person.types(ENTER)
        person.sees("This session: 0 requests")
        person.says(">>> remarkable = 1")
        person.at_prompt()
        person.types(">>> remark" + TAB)
        person.sees("> >>> remarkable", times=2)
        person.types(" + 41" + ENTER)
        person.sees("42")
        person.at_prompt()
        person.types("%ver" + TAB)
        person.sees("> %verbose")
        person.types("\x03")
        person.at_prompt()
        person.types("%s" + TAB)
        person.sees("%save_message")
        person.sees("Show a value")
        person.types("\x03")
        assert person.leaves() == 0


@pytest.mark.parametrize("sign", some(1, ["%", "/"]))
def test_a_menu_of_commands_opens_while_typing(sign: str) -> None:
    with ModelServer([]) as server, someone("--model", "gpt-4o", server=server) as person:
        person.at_prompt()
        person.types(sign)
        person.sees(f"{sign}vars")
        person.sees("List the live variables")
        person.types("red")
        person.wait_until(lambda: f"{sign}redo" in person.screen and f"{sign}vars" not in person.screen, "the command")
        person.types("\x1b[B")  # down: the menu's entry
        person.sees(f"> {sign}redo")
        person.types(ENTER)
        person.sees("othing to redo")
        assert person.leaves() == 0


def test_prose_opens_no_menu(interpreter: OpenInterpreter) -> None:
    with ModelServer([text("Yes.")]) as server, someone("--model", "gpt-4o", server=server) as person:
        person.says("100% of / is used")
        person.sees("Yes.")
        assert "%vars" not in person.raw and "/vars" not in person.raw
