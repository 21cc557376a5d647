"""The diff on the card: what it shows is what the block then does, or it shows none."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interpreter import OpenInterpreter
from interpreter.frontends.terminal.render.notes import card_diff
from interpreter.policy import Policy, analyze
from interpreter.policy.rules import Rule
from interpreter.questions import Answer, Question
from interpreter.repo import card
from interpreter.repo.card import git_notes
from interpreter.session import Block
from repo.repositories import git

FILES = {
    "shop.py": "def price(pens):\n    return sum(pens)\n",
    "sales.csv": "name,price\npen,2\nink,5\n",
    "notes.txt": "one\ntwo\nthree\n",
    "config.json": '{"a": 1}\n',
    "old.txt": "old\n",
    "lib/util.py": "X = 1\n",
    "book.ipynb": json.dumps(
        {"cells": [{"cell_type": "code", "id": "aa", "metadata": {}, "outputs": [], "source": "x"}]}
    ),
}
BLOCKS = [
    ("python", "open('shop.py', 'a').write('\\n\\ndef tax(pens):\\n    return 0\\n')"),
    ("python", "from pathlib import Path\np = Path('shop.py')\np.write_text(p.read_text().replace('sum', 'max'))"),
    ("python", "import csv\nwith open('sales.csv', 'a') as f:\n    csv.writer(f).writerow(['pad', 3])"),
    ("python", "import json\nd = json.load(open('config.json'))\nd['b'] = 2\njson.dump(d, open('config.json', 'w'))"),
    ("python", "import os\nos.truncate('old.txt', 1)"),
    ("python", "import os\nos.remove('old.txt')"),
    ("python", "import shutil\nshutil.copy('notes.txt', 'copy.txt')"),
    ("python", "for n in ('a.txt', 'b.txt'):\n    open(n, 'w').write(n)"),
    ("python", "computer.files.replace('shop.py', 'sum(pens)', 'max(pens)')"),
    ("python", "print(computer.files.replace('notes.txt', 'two\\n', 'zwei\\n'))\ncomputer.files.replace('notes.txt', 'one', 'eins')"),
    ("python", "computer.files.patch('''*** Begin Patch\n*** Update File: lib/util.py\n@@\n-X = 1\n+X = 2\n"
               "*** Add File: lib/more.py\n+Y = 1\n*** Delete File: old.txt\n*** End Patch''')"),
    ("python", "computer.files.replace('book.ipynb', 'x', 'y = 1', cell='aa')"),
    ("python", "lines = open('notes.txt').readlines()\nopen('notes.txt', 'w').writelines(sorted(lines))"),
    ("shell", "sed -i s/two/deux/ notes.txt"),
    ("shell", "echo four >> notes.txt"),
    ("shell", "mkdir -p src && cp old.txt src/old.txt"),
    ("shell", "cat > made.py <<'END'\nprint('hello')\nEND"),
    ("shell", "rm old.txt && cp notes.txt old2.txt"),
    ("shell", "sort -r notes.txt > sorted.txt"),
    ("shell", "sed -i 's/pen,2/pen,3/' sales.csv; tr a-z A-Z < notes.txt > loud.txt"),
]  # fmt: skip


class Cards:
    """A session whose questions are answered by a test, which keeps them."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder, self.shown, self.choice = folder, list[Question](), "approve"
        self.interpreter = OpenInterpreter(workspace=str(folder), **settings)
        for name, text in FILES.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        self.interpreter.computer.run("python", "started = True")
        self.interpreter.computer.run("shell", "true")
        self.delays: list[float] = []

    def run(self, language: str, code: str) -> str:
        """Run a block, and return the diff on its card."""
        began = time.perf_counter()

        def answer(question: Question) -> Answer:
            self.delays.append(time.perf_counter() - began)
            self.shown.append(question)
            return Answer(self.choice)

        with self.interpreter.session.questions.answerable({"block"}, answer):
            for _ in self.interpreter.session.perform(Block(language, code), self.interpreter.agent.actor):
                pass
        return str(self.shown[-1].subject.diff)

    def did(self) -> dict[str, str]:
        """What the last block changed, as diffs."""
        timeline = self.interpreter.timeline
        return timeline.diff(timeline.checkpoints[-1].id, data=True)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """The question waits for the dry run, however busy the machine is, unless a test is about that."""
    if "truth" not in request.node.name:
        monkeypatch.setattr(card, "LONGEST_WAIT", 30.0)


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cards]:
    made = Cards(tmp_path_factory.mktemp("work"))
    yield made
    made.interpreter.computer.terminate()


def changed_lines(text: str) -> list[str]:
    """The lines that a diff adds, removes or says of a table, in any order of files."""
    return sorted(line for line in text.split("\n") if line.startswith(("+", "-", "  ")) or "cells" in line)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_the_card_shows_the_diff_that_the_block_then_makes(cards: Cards, number: int) -> None:
    language, code = BLOCKS[number]
    shown = cards.run(language, code)
    did = "\n".join(text.rstrip("\n") for text in cards.did().values() if text)
    cards.interpreter.undo(parts={"files"})
    assert shown and changed_lines(shown) == changed_lines(did)
    for name, text in FILES.items():
        assert (cards.folder / name).read_text() == text


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", "x = 1\nprint(x)"),
        ("python", "import requests\nopen('a.txt', 'w').write(requests.get('http://127.0.0.1:9').text)"),
        ("python", "open('/tmp/outside.txt', 'w').write('x')"),
        ("shell", "make > log.txt"),
        ("python", "for n in range(2):\n    computer.files.replace('notes.txt', 'one', str(n))"),
        ("python", "open('a.txt', 'w').write(input('Name? '))"),
        ("python", "import time\nopen('a.txt', 'w').write('x')\ntime.sleep(1.2)"),
    ],
)
def test_there_is_no_diff_where_it_would_not_be_the_whole_truth(cards: Cards, language: str, code: str) -> None:
    cards.choice = "refuse"
    try:
        assert cards.run(language, code) == ""
    finally:
        cards.choice = "approve"
    assert not (cards.folder / "a.txt").exists()


def test_the_card_says_why_a_block_would_fail(cards: Cards) -> None:
    cards.choice = "refuse"
    try:
        cards.run("python", "open('a.txt', 'w').write(str(1 / 0))")
        assert cards.shown[-1].chunk["effects"][-1] == "In a dry run it failed: ZeroDivisionError: division by zero"
        cards.run("python", "computer.files.replace('notes.txt', 'nine', 'ten')")
        note = cards.shown[-1].chunk["effects"][-1]
    finally:
        cards.choice = "approve"
    assert note.startswith("The edit will be refused: `old` does not occur in notes.txt.")


def test_a_no_leaves_nothing(cards: Cards) -> None:
    cards.choice = "refuse"
    try:
        assert "+left" in cards.run("python", "y = 5\nopen('left.txt', 'w').write('left\\n')")
    finally:
        cards.choice = "approve"
    assert not (cards.folder / "left.txt").exists()
    (said,) = cards.interpreter.computer.run("python", "print('y' in globals())")
    assert said["content"] == "False\n"


def test_a_yes_applies_what_ran_while_the_user_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cards = Cards(tmp_path, card_diff="apply")
    try:
        code = "import os\nopen('runs.txt', 'a').write(f'{os.getpid()}\\n')\nvalue = 42\nprint('ran')"
        assert "+" in cards.run("python", code)
        assert len((tmp_path / "runs.txt").read_text().splitlines()) == 1
        (said,) = cards.interpreter.computer.run("python", "print(value)")
        assert said["content"] == "42\n"
        cards.run(
            "python", "open('late.txt', 'w').write('x')\nimport time\ntime.sleep(0.6)"
        )  # answered before it ended
        assert (tmp_path / "late.txt").read_text() == "x"
    finally:
        cards.interpreter.computer.terminate()


DIFF = "--- a/shop.py\n+++ b/shop.py\n@@ -1,3 +1,3 @@\n def price():\n-    return 1\n+    return 2\n # end\n"


def test_it_is_drawn_in_one_column_or_side_by_side() -> None:
    assert card_diff(DIFF, 80) == [
        "shop.py (+1 -1)", "@@ -1,3 +1,3 @@", " def price():", "-    return 1", "+    return 2", " # end",
    ]  # fmt: skip
    head, *rows = card_diff(DIFF, 120)
    assert head == "shop.py (+1 -1)"
    assert [[half.strip() for half in row.split(" | ")] for row in rows] == [
        ["1   def price():", "1   def price():"],
        ["2 -     return 1", "2 +     return 2"],
        ["3   # end", "3   # end"],
    ]
    long = DIFF + "".join(f"+line {n}\n" for n in range(60))
    assert card_diff(long, 80)[-1] == "42 more lines: d shows them" and len(card_diff(long, 80, None, None)) == 66
    table = "t.csv: 2 rows\n  1 cell changed\n"
    assert card_diff(table, 120) == ["t.csv: 2 rows", "  1 cell changed"]


PUSH = "git remote add origin git@git.example.org:pens/shop.git"


def test_the_card_says_where_a_push_goes_and_what_is_lost(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, *PUSH.split()[1:])

    def notes(code: str) -> list[str]:
        return list(git_notes(analyze("shell", code, str(tmp_path))))

    assert notes("git push") == ["Pushes to git.example.org"]
    assert notes("git push -f origin main") == ["Force-pushes to git.example.org"]
    assert notes("git push https://ada:key@example.com/x.git +main") == ["Force-pushes to example.com"]
    assert notes("git commit --no-verify -m x") == ["Skips the hooks of the repository"]
    assert notes("git reset --hard HEAD~1") == ["Discards changes that are not committed (git reset --hard)"]
    assert notes("git status; git commit -m push") == []


def test_a_push_asks_in_every_mode_unless_a_rule_allows_it(tmp_path: Path) -> None:
    policy = Policy.load(tmp_path)
    assert policy.judge("shell", "git add -A && git push").decision == "ask"
    assert policy.judge("shell", "git add -A && git push").by_rule
    assert policy.judge("shell", "git -C lib push").by_rule and not policy.judge("shell", "git pull").by_rule
    allowed = Policy(str(tmp_path), (*policy.rules, Rule("allow", command=("git push",))))
    assert allowed.judge("shell", "git push").decision == "allow"
