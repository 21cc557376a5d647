"""The lines the approval shows about a block, and how much of it can be undone."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpreter.policy.analysis import analyze, reversibility
from policy.analyzed_effects import WORKSPACE


@pytest.mark.parametrize(
    ("language", "code", "kind", "reason"),
    [
        ("python", "x = 1", "reversible", ""),
        ("python", "open('a', 'w')", "reversible", ""),
        ("python", "import shutil\nshutil.rmtree('a')", "reversible", ""),
        ("shell", "rm -rf build", "reversible", ""),
        ("html", "<p>", "reversible", ""),
        ("html", "<a href='https://a.example'>", "reversible", ""),
        ("html", "<script src='https://a.example/x.js'></script>", "partly", "contacting a.example"),
        ("react", "fetch(address)", "not", "sending data to an unknown host"),
        ("javascript", "let x = 1", "partly", "JavaScript's variables"),
        ("shell", "git commit -m x", "partly", "git's own files"),
        ("python", "requests.get('https://a.example')", "partly", "contacting a.example"),
        ("shell", "pip uninstall a", "partly", "uninstalling a"),
        ("python", "import tempfile\ntempfile.mkdtemp()", "partly", "temporary files"),
        ("shell", "sqlite3 a.db 'delete from t'", "partly", "open connections to the database a.db"),
        ("python", "requests.post('https://a.example')", "not", "sending data to a.example"),
        ("python", "conn.execute('delete from t')", "not", "changing a database"),
        ("shell", "echo x > /etc/motd", "not", "writing outside this folder: /etc/motd"),
        ("shell", "rm /opt/x", "not", "deleting outside this folder: /opt/x"),
        ("shell", 'rm "$X"', "not", "can't tell which files it deletes"),
        ("shell", "kill 7", "not", "ending processes (kill 7)"),
        ("shell", "make", "not", "can't tell what make does"),
        ("python", "eval(x)", "not", "can't tell what this does (eval() of code built at run time)"),
        ("cobol", "DISPLAY 1", "not", "can't tell what cobol code does"),
    ],
)  # fmt: skip
def test_reversibility_and_its_reason(language: str, code: str, kind: str, reason: str) -> None:
    found = reversibility(analyze(language, code, WORKSPACE))
    assert (found.kind, found.reasons) == (kind, (reason,) if reason else ())


def test_the_worst_effect_decides_and_comes_first() -> None:
    found = reversibility(analyze("shell", "echo x > a; curl https://a.example; kill 7", WORKSPACE))
    assert found.kind == "not"
    assert found.reasons == ("ending processes (kill 7)", "contacting a.example")


def test_lines_for_several_effects() -> None:
    code = "import requests\nopen('a.txt', 'w')\n!pip install b\nrequests.post('https://c.example')\nimport os\nos.remove('/d')"
    assert analyze("python", code, WORKSPACE).lines() == [
        "Deletes /d (outside this folder)",
        "Creates a.txt",
        "Contacts pypi.org, c.example (sends data)",
        "Installs b",
        "Undoable, except sending data to c.example; deleting outside this folder: /d; installing b",
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.txt", "b.txt", "c.txt", "d.txt"):
        (tmp_path / name).write_text("x\n")
    (tmp_path / "sales.csv").write_text("region,units\n" + "N,1\n" * 2000)
    (tmp_path / "out").mkdir()
    return tmp_path


FOUR = "a.txt to 1.txt, b.txt to 2.txt, c.txt to 3.txt, d.txt to 4.txt"


@pytest.mark.parametrize(
    ("language", "code", "lines"),
    [
        ("python", "print(1)", ["Changes no files"]),
        ("shell", "ls | wc -l", ["Changes no files"]),
        ("python", "requests.get('https://a.example')", ["Contacts a.example"]),
        ("python", "df.to_csv('sales.csv')", ["Overwrites sales.csv (2,000 rows)", "Undoable"]),
        ("python", "df.to_csv('totals.csv')", ["Creates totals.csv", "Undoable"]),
        ("python", "open('a.txt', 'a').write('x')", ["Changes a.txt", "Undoable"]),
        ("python", "open('a.txt', 'a')\nopen('a.txt', 'w')", ["Overwrites a.txt", "Undoable"]),
        ("python", "import os\nos.makedirs('out', exist_ok=True)", ["Changes no files"]),
        ("python", "import os\nos.makedirs('new', exist_ok=True)", ["Creates new", "Undoable"]),
        ("python", "import sqlite3\nsqlite3.connect('a.txt').execute('select 1')", ["Changes no files"]),
        ("python", "import os\nos.rename('a.txt', '1.txt')\nos.rename('b.txt', '2.txt')\nos.rename('c.txt', '3.txt')\nos.rename('d.txt', '4.txt')", [f"Renames 4 files: {FOUR}", "Undoable"]),
        ("python", "import os\nfor old, new in {'a.txt': '1.txt', 'b.txt': '2.txt', 'c.txt': '3.txt', 'd.txt': '4.txt'}.items():\n    os.rename(old, new)", [f"Renames 4 files: {FOUR}", "Undoable"]),
        ("python", "import os\nnames = ['a.txt', 'b.txt', 'c.txt', 'd.txt']\nfor i, name in enumerate(names):\n    os.rename(name, f'{i}.txt')", ["Renames 4 files: a.txt to 0.txt, b.txt to 1.txt, c.txt to 2.txt, d.txt to 3.txt", "Undoable"]),
        ("python", "import os\nfor name in ['a.txt', 'b.txt']:\n    stem, end = os.path.splitext(name)\n    os.rename(name, stem + '.md')", ["Renames 2 files: a.txt to a.md, b.txt to b.md", "Undoable"]),
        ("python", "import os\nfor i, name in enumerate(sorted(os.listdir('.'))):\n    os.rename(name, f'{i:02}_{name.lower()}')", ["Renames files in this folder", "Undoable"]),
        ("python", "import os\nnames = [f for f in os.listdir() if f.endswith('.txt')]\nfor f in names:\n    os.rename(f, f[:-4] + '.md')", ["Renames files in this folder", "Undoable"]),
        ("python", "import os\nos.rename('a.txt', 'b.txt')", ["Overwrites b.txt", "Renames a.txt to b.txt", "Undoable"]),
        ("python", "import os\nos.rename('a.txt', '../z')", ["Renames a.txt to ../z (outside this folder)", "Undoable, except writing outside this folder: ../z"]),
        ("python", "import os\nos.rename(old, new)", ["Can't tell which files it renames, so undo isn't guaranteed."]),
        ("python", "import os\nfor name in names:\n    os.remove(name)", ["Can't tell which files it deletes, so undo isn't guaranteed."]),
        ("python", "import os\nnames = ['a.txt']\nnames.append(more)\nfor name in names:\n    os.remove(name)", ["Can't tell which files it deletes, so undo isn't guaranteed."]),
        ("python", "import os\nfor name in ['a.txt', 'b.txt']:\n    os.remove(name)", ["Deletes a.txt, b.txt", "Undoable"]),
        ("python", "import os\nfor name in os.listdir(path):\n    os.remove('/'.join([path, name]))", ["Can't tell which files it deletes, so undo isn't guaranteed."]),
        ("shell", "rm -rf out", ["Deletes out (whole folder)", "Undoable"]),
        ("shell", "mv a.txt b.txt out", ["Renames 2 files: a.txt to out, b.txt to out", "Undoable"]),
        ("shell", "cp a.txt b.txt", ["Overwrites b.txt", "Undoable"]),
        ("shell", "echo x >> a.txt; echo x > b.txt; echo > new", ["Overwrites b.txt", "Changes a.txt", "Creates new", "Undoable"]),
        ("shell", "gzip -l a.txt", ["Changes no files"]),
        ("shell", "pip install b", ["Contacts pypi.org", "Installs b", "Not undoable: installing b"]),
        ("shell", "make", ["Can't tell what make does, so undo isn't guaranteed."]),
        ("shell", "rm a.txt; make", ["Deletes a.txt", "Can't tell what make does, so undo isn't guaranteed."]),
        ("javascript", "require('fs').renameSync('a.txt', 'z')", ["Renames a.txt to z", "Undoable, except JavaScript's variables"]),
    ],
)  # fmt: skip
def test_lines_for_one_block(folder: Path, language: str, code: str, lines: list[str]) -> None:
    assert analyze(language, code, folder).lines() == lines


def test_a_link_out_of_the_folder_counts_as_outside(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other") / "secret.csv"
    other.write_text("a\n1\n")
    (folder / "link.csv").symlink_to(other)
    assert analyze("python", "df.to_csv('link.csv')", folder).lines()[0] == "Writes link.csv (outside this folder)"


def test_a_file_that_cannot_be_undone_is_listed_with_the_reason(folder: Path) -> None:
    def left_out(path: str) -> str | None:
        return "too large for undo" if path.endswith("sales.csv") else None

    found = analyze("python", "df.to_csv('sales.csv')\nopen('a.txt', 'w')", folder)
    assert found.lines(left_out)[-1] == "Undoable, except sales.csv (too large for undo)"
    assert found.lines(lambda path: "file undo is off")[-1] == "Not undoable: sales.csv, a.txt (file undo is off)"


def test_long_lists_are_cut(folder: Path) -> None:
    code = "\n".join(f"open('{name}', 'w')" for name in "abcdefgh")
    assert analyze("python", code, folder).lines()[0] == "Creates a, b, c, d and 4 more"


def test_rows_of_a_large_table_are_counted_up_to_a_limit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interpreter.policy.analysis.effects._COUNTED_BYTES", 1000)
    monkeypatch.setattr("interpreter.policy.analysis.effects._CHUNK", 1000)
    line = analyze("python", "df.to_csv('sales.csv')", folder).lines()[0]
    assert line == "Overwrites sales.csv (more than 246 rows)"
