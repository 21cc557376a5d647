"""A block that defines a function of a file anew: saved there after a yes, at once with -y, and never by mistake."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interpreter import OpenInterpreter
from interpreter.questions import Answer, Question
from interpreter.repo.definitions import savings
from model_server import ModelServer, text, tool_call

FILE = '''"""Count bits."""

LIMIT = 64


def bitcount(n):
    count = 0
    while n:
        n ^= n - 1
        count += 1
    return count


class Counter:
    total = 0
'''
FIXED = "def bitcount(n):\n    count = 0\n    while n:\n        n &= n - 1\n        count += 1\n    return count\n"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[OpenInterpreter]:
    (tmp_path / "bitcount.py").write_text(FILE)
    made = OpenInterpreter(workspace=str(tmp_path))
    yield made
    made.computer.terminate()


def chat(session: OpenInterpreter, code: str, said: str = "Fix bitcount.py", **more: Any) -> list[dict[str, Any]]:
    with ModelServer([tool_call("python", code), text("Fixed.")]) as server:
        session.llm.model, session.llm.api_base, session.llm.api_key = "gpt-4o", server.base_url, "key"
        session.chat(said, display=False)
        return list(server.requests)


def test_it_is_saved_at_once_with_auto_run_and_the_model_reads_it(session: OpenInterpreter) -> None:
    session.auto_run = True
    requests = chat(session, f"{FIXED}\nprint(bitcount(127))")
    file = Path(session.workspace) / "bitcount.py"
    assert file.read_text() == FILE.replace("n ^= n - 1", "n &= n - 1")
    assert "Saved `bitcount` in bitcount.py." in str(requests[-1])
    session.undo()
    assert file.read_text() == FILE


@pytest.mark.parametrize("choice", ["approve", "refuse"])
def test_it_is_a_question_of_its_own_with_the_diff(session: OpenInterpreter, choice: str) -> None:
    asked: list[Question] = []

    def answer(question: Question) -> Answer:
        asked.append(question)
        return Answer("approve" if question.kind == "block" else choice)

    with session.session.questions.answerable({"block", "call"}, answer):
        chat(session, FIXED)
    assert [question.kind for question in asked] == ["block", "call"]
    assert asked[1].text.endswith("`bitcount` is in bitcount.py. Save it there?")
    assert "-        n ^= n - 1\n+        n &= n - 1\n" in asked[1].text
    assert ("&=" in (Path(session.workspace) / "bitcount.py").read_text()) == (choice == "approve")


def test_line_ends_and_everything_else_stay_and_missing_imports_come_along(session: OpenInterpreter) -> None:
    file = Path(session.workspace) / "bitcount.py"
    file.write_bytes(FILE.replace("\n", "\r\n").encode())
    session.messages = [{"role": "user", "type": "message", "content": "bitcount is wrong"}]
    code = (
        "import math\nimport sys\nfrom functools import cache\n\n@cache\ndef bitcount(n):\n    return math.trunc(n)\n"
    )
    (saving,) = savings(session.agent, code)
    expected = FILE.replace("\n\nLIMIT", "\nimport math\nfrom functools import cache\n\nLIMIT")
    start, end = expected.index("def bitcount"), expected.index("\n\nclass")
    expected = f"{expected[:start]}@cache\ndef bitcount(n):\n    return math.trunc(n)\n{expected[end:]}"
    assert saving.after == expected.replace("\n", "\r\n").encode() and saving.names == ("bitcount",)


@pytest.mark.parametrize(
    ("code", "said", "files"),
    [
        (FIXED.replace("bitcount", "other"), "Fix bitcount.py", {}),  # in no file
        (FIXED, "Write something", {}),  # nothing shows that it is about that file
        (FILE[FILE.index("def") : FILE.index("\n\nclass")], "Fix bitcount.py", {}),  # the same
        (FIXED, "Fix bitcount", {"copy.py": FILE}),  # in two files
        (FIXED, "Fix bitcount", {"bitcount.py": "class A:\n    def bitcount(self): pass\n"}),  # not at the top
        (f"if True:\n{FIXED.replace(chr(10), chr(10) + '    ')}", "Fix bitcount", {}),
        ("bitcount = len", "Fix bitcount", {}),
        ("def bitcount(:", "Fix bitcount", {}),
    ],
)
def test_nothing_is_offered_by_mistake(session: OpenInterpreter, code: str, said: str, files: dict[str, str]) -> None:
    for name, content in files.items():
        (Path(session.workspace) / name).write_text(content)
    session.messages = [{"role": "user", "type": "message", "content": said}]
    assert list(savings(session.agent, code)) == []


def test_a_block_that_writes_the_file_itself_is_not_followed_by_an_offer(session: OpenInterpreter) -> None:
    session.auto_run = True
    requests = chat(session, f"{FIXED}\nopen('bitcount.py', 'w').write('mine\\n')")
    assert (Path(session.workspace) / "bitcount.py").read_text() == "mine\n" and "Saved" not in str(requests[-1])
