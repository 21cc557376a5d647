"""`p` at the approval previews a block, which is then applied, discarded or edited."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpreter.frontends.terminal.approval import APPLIED, DISCARDED, PREVIEW_BEGINS, PREVIEW_QUESTION, QUESTION
from model_server import ModelServer, text, tool_call
from preview.preview_session import needs_views
from sampling import some
from terminal.person import CTRL_C, Person, someone

pytestmark = [needs_views, pytest.mark.usefixtures("no_strays")]

CODE = "x = 40 + 2\nprint('it is', x)\nopen('new.txt', 'w').write('hello\\n')"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def open_preview(person: Person, times: int = 1) -> None:
    person.answers(QUESTION, "p", times=times)
    person.sees(PREVIEW_QUESTION, times=times)


def test_a_preview_is_shown_and_applied(workspace: Path) -> None:
    second = tool_call("python", "print('still', x)")
    replies = [tool_call("python", CODE), second, text("Done.")]
    with ModelServer(replies) as server, someone(server=server) as person:
        person.says("run")
        open_preview(person)
        for words in (PREVIEW_BEGINS, "it is 42", "+ created  new.txt", "+hello"):
            assert words in person.screen
        assert not (workspace / "new.txt").exists()
        person.types("y\r")
        person.sees(APPLIED)
        person.sees("files: created new.txt")
        person.answers(QUESTION, "y", times=2)
        person.sees("still 42")
        person.sees("Done.")
        assert person.screen.count("it is 42") == person.screen.count("files: created") == 1
        assert (workspace / "new.txt").read_text() == "hello\n"
        assert "it is 42" in str(server.requests[1].messages)


@pytest.mark.parametrize(("language", "code"), some(1, [("python", "x = 1 / 0"), ("shell", "cat missing")]))
def test_a_preview_that_only_failed_asks_for_no_changes(workspace: Path, language: str, code: str) -> None:
    with ModelServer([tool_call(language, code), text("Done.")]) as server, someone(server=server) as person:
        person.says("run")
        person.answers(QUESTION, "p")
        person.sees("It failed, so there is nothing to apply.")
        assert PREVIEW_QUESTION not in person.screen
        person.answers(QUESTION, "n", times=2)
        assert person.leaves() == 0


@pytest.mark.full
def test_table_changes_are_described_by_rows_columns_and_cells(workspace: Path) -> None:
    (workspace / "sales.csv").write_text("id,amount\n" + "".join(f"{n},{n}0\n" for n in range(1, 101)))
    code = (
        "lines = open('sales.csv').read().replace('7,70', '7,71').split('\\n')[:-11]\n"
        "open('sales.csv', 'w').write('\\n'.join(f'{line},x' for line in lines) + '\\n')"
    )
    with ModelServer([tool_call("python", code), text("Done.")]) as server, someone(server=server) as person:
        person.says("run")
        open_preview(person)
        described = (
            "sales.csv: 100 -> 90 rows, 2 -> 3 columns",
            "columns added: x",
            "10 rows removed, 1 cell changed",
            "id 7, amount: 70 -> 71",
        )
        for words in described:
            assert words in person.screen, words
        assert "+++" not in person.screen
        person.types("d\r")
        person.sees("+++ b/sales.csv")
        person.answers(PREVIEW_QUESTION, "y", times=2)
        person.sees("files: changed sales.csv")
        person.says("%diff")
        person.sees("sales.csv: 100 -> 90 rows, 2 -> 3 columns", times=2)
        person.sees("For the full diff: %diff")
        assert person.leaves() == 0


@pytest.mark.full
def test_excel_changes_are_described_by_rows_and_cells(workspace: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [("id", "amount"), *((n, 10 * n) for n in range(1, 101))]:
        book.active.append(row)
    book.save(workspace / "sales.xlsx")
    code = (
        "import openpyxl\nbook = openpyxl.load_workbook('sales.xlsx')\nbook.active['B8'] = 71\n"
        "book.active.delete_rows(92, 10)\nbook.save('sales.xlsx')"
    )
    with ModelServer([tool_call("python", code), text("Done.")]) as server, someone(server=server) as person:
        person.says("run")
        open_preview(person)
        for words in ("100 -> 90 rows, 2 columns", "10 rows removed, 1 cell changed", "id 7, amount: 70 -> 71"):
            assert words in person.screen, words
        person.types("d\r")
        person.sees("id 7, amount: 70 -> 71", times=2)
        assert "Binary" not in person.screen
        person.answers(PREVIEW_QUESTION, "y", times=2)
        person.sees("files: changed sales.xlsx")
        person.says("%diff")
        person.sees("id 7, amount: 70 -> 71", times=3)
        assert person.leaves() == 0


@pytest.mark.parametrize("answer", some(1, ["n\r", CTRL_C]))
def test_a_discarded_preview_asks_again(workspace: Path, answer: str) -> None:
    with ModelServer([tool_call("python", CODE), text("Fine.")]) as server, someone(server=server) as person:
        person.says("run")
        open_preview(person)
        person.types(answer)
        person.sees(DISCARDED)
        person.sees(QUESTION, times=2)
        assert not (workspace / "new.txt").exists()
        person.types("y\r")
        person.sees("Fine.")
        assert (workspace / "new.txt").exists()


@pytest.mark.full
def test_other_answers_explain_the_choices(workspace: Path) -> None:
    with (
        ModelServer([tool_call("shell", "echo so > new.txt"), text("Fine.")]) as server,
        someone(server=server) as person,
    ):
        person.says("run")
        open_preview(person)
        person.types("what\r")
        person.sees("Type one of the letters in brackets.")
        person.sees(PREVIEW_QUESTION, times=2)
        person.types("d\r")
        person.sees("+so", times=2)
        person.sees(PREVIEW_QUESTION, times=3)
        person.types("y\r")
        person.sees("Fine.")
        assert (workspace / "new.txt").read_text() == "so\n"


def test_the_preview_option_previews_every_block(workspace: Path) -> None:
    replies = [tool_call("python", CODE), text("Done.")]
    with ModelServer(replies) as server, someone("--preview", server=server) as person:
        person.says("run")
        person.sees(PREVIEW_QUESTION)
        assert QUESTION not in person.screen
        person.types("y\r")
        person.sees("Done.")
        assert (workspace / "new.txt").exists()


@pytest.mark.full
@pytest.mark.needs("node")
def test_blocks_that_cannot_be_previewed_return_to_the_question(workspace: Path) -> None:
    replies = [tool_call("javascript", "console.log(6 * 7)"), text("Fine.")]
    with ModelServer(replies) as server, someone(server=server) as person:
        person.says("run")
        person.answers(QUESTION, "p")
        person.sees("can't be previewed")
        person.sees("The code was not run. Reading it shows:")
        person.answers(QUESTION, "y", times=2)
        person.sees("42")
        person.sees("Fine.")


def test_ctrl_c_ends_a_running_preview(workspace: Path) -> None:
    code = "open('new.txt', 'w').close(); print('beg' + 'un')\nimport time; time.sleep(1000)"
    with ModelServer([tool_call("python", code), text("Fine.")]) as server, someone(server=server) as person:
        person.says("run")
        person.answers(QUESTION, "p")
        person.sees("begun")
        person.types(CTRL_C)
        person.at_prompt()
        assert not (workspace / "new.txt").exists()
        person.says("go on")
        person.sees("Fine.")
