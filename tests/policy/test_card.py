"""The card for the approval, and how much of a block can be undone."""

from __future__ import annotations

import pytest

from interpreter.policy.analysis import analyze, reversibility
from policy.seeing import WORKSPACE


@pytest.mark.parametrize(
    ("language", "code", "kind", "reason"),
    [
        ("python", "x = 1", "reversible", ""),
        ("python", "open('a', 'w')", "reversible", ""),
        ("python", "import shutil\nshutil.rmtree('a')", "reversible", ""),
        ("shell", "rm -rf build", "reversible", ""),
        ("html", "<p>", "reversible", ""),
        ("javascript", "let x = 1", "partly", "JavaScript's variables cannot be rewound"),
        ("shell", "git commit -m x", "partly", "git's own files are left as they are"),
        ("python", "requests.get('https://a.example')", "partly", "asks a.example, which may take note of it"),
        ("shell", "pip uninstall a", "partly", "removes a; packages outside the workspace stay as they are then"),
        ("python", "import tempfile\ntempfile.mkdtemp()", "partly", "leaves temporary files"),
        ("shell", "sqlite3 a.db 'delete from t'", "partly", "changes the database a.db: the file comes back, open connections do not"),
        ("python", "requests.post('https://a.example')", "not", "sends something to a.example"),
        ("python", "conn.execute('delete from t')", "not", "changes a database"),
        ("shell", "echo x > /etc/motd", "not", "writes outside the workspace: /etc/motd"),
        ("shell", "rm /opt/x", "not", "deletes outside the workspace: /opt/x"),
        ("shell", 'rm "$X"', "not", "not known where it deletes *"),
        ("shell", "kill 7", "not", "ends processes (kill 7)"),
        ("shell", "make", "not", "not known what make does"),
        ("python", "eval(x)", "not", "not known: eval() of code that is made when it runs"),
        ("ruby", "puts 1", "not", "not known: ruby code is not looked into"),
    ],
)  # fmt: skip
def test_how_much_comes_back(language: str, code: str, kind: str, reason: str) -> None:
    found = reversibility(analyze(language, code, WORKSPACE))
    assert (found.kind, found.reasons) == (kind, (reason,) if reason else ())


def test_the_worst_counts_and_is_told_first() -> None:
    found = reversibility(analyze("shell", "echo x > a; curl https://a.example; kill 7", WORKSPACE))
    assert found.kind == "not"
    assert found.reasons == ("ends processes (kill 7)", "asks a.example, which may take note of it")


def test_the_card() -> None:
    code = "import requests\nopen('a.txt', 'w')\n!pip install b\nrequests.post('https://c.example')\nimport os\nos.remove('/d')"
    assert analyze("python", code, WORKSPACE).lines() == [
        "writes: a.txt",
        "deletes: /d (outside the workspace)",
        "starts: pip",
        "contacts: pypi.org, c.example; installs b",
        "undo: no: sends something to c.example; deletes outside the workspace: /d; asks pypi.org, which may take note of it and 1 more",
    ]


def test_a_harmless_block_has_a_short_card() -> None:
    assert analyze("python", "print(1)", WORKSPACE).lines() == ["undo: yes"]


def test_long_lists_are_cut() -> None:
    [line, _] = analyze("python", "\n".join(f"open('{name}', 'w')" for name in "abcdefgh"), WORKSPACE).lines()
    assert line == "writes: a, b, c, d and 4 more"
