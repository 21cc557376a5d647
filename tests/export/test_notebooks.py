"""Exported notebooks open and run in Jupyter."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from export.conversations import declined, drawn, failed, model, printed, ran, run_conversation, user
from interpreter.export import ExportedConversation
from interpreter.export.notebook import notebook
from interpreter.session.journal.reader import (
    Entry,
    Shown,
    entries_from_messages,
)

pytestmark = pytest.mark.filterwarnings("ignore")


def read(entries: list[Entry]) -> Any:
    import nbformat  # slow to import, and every worker collects every test

    book = nbformat.reads(notebook(ExportedConversation(entries, "Title")).text, as_version=4)
    nbformat.validate(book)
    return book


def executed(book: Any, folder: Path) -> list[str]:
    """The text output of each code cell when the notebook runs."""
    import nbclient

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nbclient.NotebookClient(book, timeout=60, resources={"metadata": {"path": str(folder)}}).execute()
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    texts = ("".join(output.get("text", "") for output in cell.outputs) for cell in cells)
    return [text.replace("\r\n", "\n") for text in texts]  # `!` runs in a terminal


@pytest.mark.needs("node")
def test_a_real_conversation_runs_again_as_a_notebook(tmp_path: Path) -> None:
    interpreter = run_conversation(
        str(tmp_path),
        "Count, please.",
        ("python", "import os\nx = 20\nx += 1\nprint(x)"),
        ("python", "1 / 0"),
        ("shell", "mkdir sub && cd sub\nexport WHO=me\necho $WHO > who.txt"),
        ("shell", "echo $WHO in $(basename $PWD)"),
        ("python", "!cat who.txt\nprint(os.environ['WHO'], await __import__('asyncio').sleep(0, x * 2))"),
        ("javascript", "let a = 6"),
        ("javascript", "console.log('js', a * 7)"),
        ("python", "import matplotlib.pyplot as plt\nplt.plot([1, 2])"),
    )
    interpreter.computer.terminate()
    book = read(entries_from_messages(interpreter.messages))
    recorded = [str(output) for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("image/png" in output for output in recorded)
    (tmp_path / "sub" / "who.txt").unlink()
    (tmp_path / "sub").rmdir()
    texts = executed(book, tmp_path)
    assert "21\n" in texts
    assert "me in sub\n" in texts
    assert "me\nme 42\n" in texts
    assert any("js" in text and "42" in text for text in texts)
    assert (tmp_path / "sub" / "who.txt").read_text() == "me\n"


def test_stateless_shell_blocks_are_plain_bash_cells(tmp_path: Path) -> None:
    book = read([ran("echo one\nls", language="bash"), ran("echo $((1+1))", language="sh")])
    assert [cell.source for cell in book.cells if cell.cell_type == "code"] == [
        "%%bash\necho one\nls",
        "%%bash\necho $((1+1))",
    ]
    assert executed(book, tmp_path)[1] == "2\n"


def test_the_notebook_has_messages_images_and_outputs() -> None:
    frame = ran(
        "df",
        printed("before\n   a\n0  1\n"),
        {
            "role": "computer",
            "type": "code",
            "format": "html",
            "content": "<table><tr><th></th><th>a</th></tr><tr><td>0</td><td>1</td></tr></table>",
        },
        drawn(),
        {"role": "computer", "type": "console", "format": "output", "content": "# Hi", "mime": "text/markdown"},
    )
    picture = Shown({**drawn("blue"), "role": "user"})
    book = read([user("Show me.\nAll of it."), picture, model("Here *it* is."), frame])
    title, question, image, answer, code = book.cells
    assert title.source == "# Title"
    assert question.source == "> Show me.\n> All of it."
    assert "image/png" in next(iter(image.attachments.values()))
    assert answer.source == "Here *it* is."
    stream, table, plot, words = code.outputs
    assert stream.text == "before\n"  # without the table's text form
    assert "<table>" in table.data["text/html"]
    assert plot.data["image/png"] == drawn()["content"]
    assert words.data["text/markdown"] == "# Hi"


@pytest.mark.full
def test_a_failed_block_does_not_stop_the_others(tmp_path: Path) -> None:
    book = read([failed("1 / 0"), failed("exit 3", "shell"), ran("print('on')")])
    assert executed(book, tmp_path)[-1] == "on\n"


def test_blocks_that_did_not_run_or_complete_become_markdown() -> None:
    endless = ran("while True: pass", ended="interrupted", exit_code=None)
    dead = ran("import os; os.abort()", ended="died", exit_code=-6)
    book = read([declined("rm -rf /", "shell"), endless, dead, ran("DISPLAY 1", language="cobol")])
    assert [cell.cell_type for cell in book.cells] == ["markdown"] * 5
    assert "You said no" in book.cells[1].source and "rm -rf /" in book.cells[1].source
    assert "interrupted" in book.cells[2].source
    assert "cobol" in book.cells[4].source


def test_a_fence_inside_code_is_escaped() -> None:
    cell = read([declined('print("""\n```\n""")')]).cells[1]
    assert cell.source.count("````") == 2


def test_the_file_is_plain_json_with_a_kernel() -> None:
    data = json.loads(notebook(ExportedConversation([ran("1")], "t")).text)
    assert (data["nbformat"], data["nbformat_minor"]) == (4, 5)
    assert data["metadata"]["kernelspec"]["name"] == "python3"
    assert len({cell["id"] for cell in data["cells"]}) == len(data["cells"])
