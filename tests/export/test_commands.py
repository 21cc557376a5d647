"""%jupyter, %markdown, %html and %script, on real conversations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from export.conversations import run_conversation
from interpreter import OpenInterpreter
from interpreter.frontends.terminal import magics
from interpreter.frontends.terminal.terminal import Terminal
from interpreter.frontends.terminal.tty import Tty
from terminal.emulator import EmulatedOutput, Emulator

BLOCKS = (
    ("shell", "cat numbers.csv"),
    ("python", "import csv\nrows = list(csv.reader(open('numbers.csv')))\nrows"),
    ("python", "rows.nope"),
    ("python", "total = sum(int(row[0]) for row in rows)\nopen('total.txt', 'w').write(str(total))"),
    (
        "python",
        "import matplotlib.pyplot as plt\nplt.bar(range(3), [int(row[0]) for row in rows])\nplt.savefig('bars.png')",
    ),
)


class TerminalSession:
    def __init__(self, interpreter: OpenInterpreter) -> None:
        self.interpreter = interpreter
        self.emulator = Emulator(columns=240, lines=60)
        self.terminal = Terminal(plain=True, tty=Tty(stdout=EmulatedOutput(self.emulator)))
        self.asked: list[str] = []
        self.terminal.ask = self.answer  # type: ignore[method-assign]

    def answer(self, words: str, guarded: bool = False) -> str:
        self.asked.append(words)
        return "y"

    def run(self, line: str) -> str:
        before = len(self.emulator.everything)
        magics.run(self.terminal, self.interpreter, line)
        return "\n".join(self.emulator.everything[before:])


@pytest.fixture
def session(tmp_path: Path) -> Iterator[TerminalSession]:
    (tmp_path / "numbers.csv").write_text("1\n2\n3\n")
    interpreter = run_conversation(str(tmp_path), "Add up the numbers.", *BLOCKS)
    yield TerminalSession(interpreter)
    interpreter.computer.terminate()
    interpreter.journal.close()


def test_a_conversation_can_be_exported_in_every_form(session: TerminalSession, tmp_path: Path) -> None:
    for command, name in {"jupyter": "ipynb", "markdown": "md", "html": "html"}.items():
        assert f"add-up-the-numbers.{name}" in session.run(f"%{command}")
        assert "rows.nope" in (tmp_path / f"add-up-the-numbers.{name}").read_text()
    assert (tmp_path / "add-up-the-numbers_files" / "figure-1.png").exists()
    assert "add-up-the-numbers-2.html" in session.run("%html")

    shown = session.run("%script")
    code = (tmp_path / "add-up-the-numbers.py").read_text()
    assert "3 of 4 blocks" in shown or "3 of 5 blocks" in shown
    assert "cat numbers.csv" not in code and "nope" not in code and "plt.show()" in code

    session.interpreter.auto_run = True
    shown = session.run("%script --verify 'again here.py'")
    assert (tmp_path / "again here.py").exists()
    assert len(session.asked) == 1 and "sandbox" in session.asked[0]
    assert "Verified: " in shown
    assert "the same: total.txt" in shown and "the same: bars.png" in shown and "figure 1: the same" in shown


@pytest.mark.full
def test_mistakes_print_an_error(session: TerminalSession, tmp_path: Path) -> None:
    from interpreter.errors import ExportError

    (tmp_path / "taken.md").write_text("mine")
    with pytest.raises(ExportError, match="--force"):
        session.run("%markdown taken.md")
    assert "There is no --bogus" in session.run("%script --bogus")
    assert not list(tmp_path.glob("*.py"))
    session.interpreter.messages = []
    assert "nothing to export" in session.run("%html")


@pytest.mark.full
def test_the_documented_commands_work(session: TerminalSession, tmp_path: Path) -> None:
    page = Path(__file__).parent.parent.parent / "docs" / "export.md"
    lines = [line[2:] for line in page.read_text("utf-8").splitlines() if line.startswith("> %")]
    assert len(lines) >= 8
    session.interpreter.auto_run = True
    for line in lines:
        shown = session.run(line)
        assert " was saved to " in shown, line
        assert "--verify" not in line or "Verified: " in shown
    assert (tmp_path / "pages" / "add-up-the-numbers.html").exists()
