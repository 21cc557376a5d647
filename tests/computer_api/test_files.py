"""computer.files: searching, reading and editing files with the permissions of the session's code."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interpreter import OpenInterpreter
from interpreter.computer_api.files import Files, get_close_matches_in_text
from interpreter.errors import SandboxUnavailableError


@pytest.fixture
def interpreter() -> Iterator[OpenInterpreter]:
    made = OpenInterpreter()
    yield made
    made.computer.terminate()


@pytest.fixture
def files(interpreter: OpenInterpreter) -> Files:
    found: Files = interpreter.computer.files
    return found


def write(path: str, data: str | bytes) -> Path:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data if isinstance(data, bytes) else data.encode())
    return file


# -- edit ----------------------------------------------------------------------------------------------------------


def test_an_edit_replaces_and_counts_all_occurrences(files: Files) -> None:
    file = write("a.py", "x = 1\ny = x\n")
    assert files.edit("a.py", "x", "width") == {"path": "a.py", "replaced": 2}
    assert file.read_text() == "width = 1\ny = width\n"


def test_text_that_is_not_found_suggests_close_matches(files: Files) -> None:
    file = write("a.py", "def area(width, height):\n    return width * height\n\nprint(area(2, 3))\n")
    before = file.stat()
    with pytest.raises(ValueError, match=r"^Original text not found. Did you mean one of these\? ") as caught:
        files.edit("a.py", "retrun width * heigth", "pass")
    assert "return width * height" in str(caught.value)
    assert file.stat().st_mtime_ns == before.st_mtime_ns


def test_text_without_close_matches_is_an_error_too(files: Files) -> None:
    write("a.txt", "one two three\n")
    with pytest.raises(ValueError, match=r"Original text not found. Nothing in a.txt is similar"):
        files.edit("a.txt", "QQQQ ZZZZ", "")
    assert Path("a.txt").read_text() == "one two three\n"


def test_replacing_empty_text_is_an_error(files: Files) -> None:
    write("a.txt", "one")
    with pytest.raises(ValueError, match="empty"):
        files.edit("a.txt", "", "x")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_an_edit_keeps_encoding_line_endings_and_mode(files: Files, encoding: str) -> None:
    file = write("a.txt", "Zoë\r\nwas\r\nhere\r\n".encode(encoding))
    file.chmod(0o754)
    files.edit("a.txt", "Zoë\nwas", "Chloé\nis")
    assert file.read_bytes() == "Chloé\r\nis\r\nhere\r\n".encode(encoding)
    assert file.stat().st_mode & 0o777 == 0o754


def test_a_character_missing_from_the_encoding_leaves_the_file_unchanged(files: Files) -> None:
    file = write("a.txt", "Zoë".encode("cp1252"))
    with pytest.raises(ValueError, match="Windows-1252"):
        files.edit("a.txt", "Zoë", "漢")
    assert file.read_bytes() == "Zoë".encode("cp1252")


def test_an_edit_keeps_symlinks_and_hard_links(files: Files) -> None:
    target, other = write("target.txt", "old"), Path("other.txt")
    Path("link.txt").symlink_to("target.txt")
    files.edit("link.txt", "old", "new")
    assert Path("link.txt").is_symlink() and target.read_text() == "new"
    other.hardlink_to(target)
    files.edit("other.txt", "new", "newest of all")
    assert target.read_text() == "newest of all"


def test_binary_files_are_not_edited(files: Files) -> None:
    write("a.png", b"\x89PNG\0\0old")
    with pytest.raises(ValueError, match="a PNG picture"):
        files.edit("a.png", "old", "new")


def test_paths_are_relative_to_the_sessions_folder(interpreter: OpenInterpreter, files: Files) -> None:
    write("below/a.txt", "old")
    interpreter.computer.run("shell", "cd below")
    files.edit("a.txt", "old", "new")
    assert Path("below/a.txt").read_text() == "new"


def test_undo_reverts_an_edit(interpreter: OpenInterpreter) -> None:
    write("a.txt", "old")
    interpreter.computer.run("python", "computer.files.edit('a.txt', 'old', 'new')")
    assert Path("a.txt").read_text() == "new"
    interpreter.undo(blocks=True)
    assert Path("a.txt").read_text() == "old"
    interpreter.reset()
    interpreter.journal.close()


# -- close matches ---------------------------------------------------------------------------------------------------


def test_close_matches_come_verbatim_and_best_first() -> None:
    text = "alpha  bta\tgama\nsomething else entirely\nalpha beta gamma\nalpha bet gamma"
    found = ["alpha beta gamma", "alpha bet gamma", "alpha  bta\tgama"]
    assert get_close_matches_in_text("alpha beta gamma", text) == found
    assert get_close_matches_in_text("alpha beta gamma", text, n=1) == found[:1]
    assert get_close_matches_in_text("nothing", "", n=3) == []


def test_close_matches_are_found_in_a_large_file() -> None:
    lines = [f"def function_{number}(argument): return argument + {number}" for number in range(20_000)]
    lines[13_415] = "def calculate_total(prices, taxes): return sum(prices) + taxes"
    found = get_close_matches_in_text("def calculate_totals(price, taxes): return sum(price) + tax", "\n".join(lines))
    assert found[0] == lines[13_415]


# -- read --------------------------------------------------------------------------------------------------------------


def test_read_returns_lines_by_number(files: Files) -> None:
    write("a.txt", "one\r\ntwo\r\nthree\r\nfour")
    assert files.read("a.txt") == "one\ntwo\nthree\nfour"
    assert files.read("a.txt", 2, 3) == "two\nthree\n"
    assert files.read("a.txt", -2) == "three\nfour\n"
    assert files.read("a.txt", 3, 99, numbers=True) == "3  three\n4  four\n"
    with pytest.raises(ValueError, match="lines 1 to 4"):
        files.read("a.txt", 7)


def test_a_truncated_file_says_how_to_continue(files: Files) -> None:
    write("long.txt", "x" * 99 + "\n" + "".join(f"{number:09}\n" for number in range(20_000)))
    text = files.read("long.txt")
    assert len(text) < 101_000
    assert text.endswith("to 20001 of 20001 are left out. Continue with read('long.txt', start=9992).]\n")
    assert files.read("long.txt", start=9992).startswith("000009990\n")


def test_the_error_says_why_a_file_cannot_be_read(files: Files) -> None:
    write("notes.txt", "x")
    write("a.bin", b"\0\1\2")
    Path("folder").mkdir()
    with pytest.raises(FileNotFoundError, match=r"Did you mean one of these\? notes.txt"):
        files.read("note.txt")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        files.read("folder")
    with pytest.raises(ValueError, match=r"a.bin is not text \(binary data, 3 bytes\)"):
        files.read("a.bin")


# -- search --------------------------------------------------------------------------------------------------------------


def write_tree() -> None:
    write("needle.txt", "hay\nHay needle hay\nno\n")
    write("src/main.py", "print('needle')\n# Needle\n" + "x" * 500 + "needle" + "y" * 500 + "\n")
    write("src/a/deep.py", "nothing\n")
    write("src/build/out.py", "needle\n")
    write("src/.gitignore", "build/\n*.log\n!keep.log\n/only-here.txt\n")
    write("src/a/x.log", "needle\n")
    write("src/a/keep.log", "needle\n")
    write("src/only-here.txt", "needle\n")
    write("src/a/only-here.txt", "needle\n")
    write(".hidden", "needle\n")
    write(".git/config", "needle\n")
    write("wide.txt", "a needle\r\nZoë needle\r\n".encode("utf-16"))
    write("latin.txt", "é needle\n".encode("latin-1"))
    write("data.bin", b"needle\n\0\n")
    write("late.bin", b"needle\n" * 12_000 + b"\0")
    write("no-end.txt", "needle")
    Path("link.txt").symlink_to("needle.txt")


ALL_MATCHES = (
    "latin.txt:1 needle.txt:2 no-end.txt:1 src/a/keep.log:1 src/a/only-here.txt:1 "
    "src/main.py:1 src/main.py:2 src/main.py:3 wide.txt:1 wide.txt:2"
)


@pytest.mark.parametrize(
    ("query", "how", "expected"),
    [
        ("needle", {}, f"needle.txt:None {ALL_MATCHES}"),
        ("Needle", {}, "src/main.py:2"),
        ("NEEDLE", {"ignore_case": True}, f"needle.txt:None {ALL_MATCHES}"),
        ("needle", {"hidden": True}, f"needle.txt:None .hidden:1 {ALL_MATCHES}"),
        ("needle", {"glob": "*.{py,txt}"}, f"needle.txt:None {ALL_MATCHES.replace('src/a/keep.log:1 ', '')}"),
        ("needle", {"path": "src"}, ALL_MATCHES[ALL_MATCHES.index("src") : ALL_MATCHES.index(" wide")]),
        ("needle", {"path": "needle.txt"}, "needle.txt:2"),
        ("needle", {"path": "data.bin"}, ""),
        ("needle", {"max_results": 3}, "needle.txt:None latin.txt:1 needle.txt:2"),
        ("*.py", {}, "src/a/deep.py:None src/main.py:None"),
        ("src/a", {}, "src/a/deep.py:None src/a/keep.log:None src/a/only-here.txt:None"),
        (r"n..dle\b", {"regex": True}, f"needle.txt:None {ALL_MATCHES.replace('src/main.py:3 ', '')}"),
        ("ë n", {}, "wide.txt:2"),
        ("é n", {}, "latin.txt:1"),
        ("needle", {"max_results": 1}, "needle.txt:None"),
        (r"^needle$|^$", {"regex": True, "path": "no-end.txt"}, "no-end.txt:1"),
        ("absent", {}, ""),
    ],
    ids=lambda value: (
        ",".join(f"{name}={option}" for name, option in value.items()) if isinstance(value, dict) else None
    ),
)
def test_search_finds_names_and_lines(files: Files, query: str, how: dict[str, Any], expected: str) -> None:
    write_tree()
    assert [f"{row['path']}:{row['line']}" for row in files.search(query, **how)] == expected.split()


def test_names_come_before_lines_and_ignored_files_are_skipped(files: Files) -> None:
    write_tree()
    rows = files.search("needle")
    assert rows[0] == {"path": "needle.txt", "line": None, "text": "needle.txt"}
    assert {"path": "needle.txt", "line": 2, "text": "Hay needle hay"} in rows
    assert {row["path"] for row in rows} == {
        *("needle.txt", "src/main.py", "src/a/keep.log", "src/a/only-here.txt"),
        *("wide.txt", "latin.txt", "no-end.txt"),
    }
    long = next(row["text"] for row in rows if row["path"] == "src/main.py" and row["line"] == 3)
    assert "xneedley" in long and len(long) < 310


def test_a_search_says_when_results_were_cut(files: Files) -> None:
    write("many.txt", "match\n" * 500)
    rows = files.search("match", max_results=10, names=False)
    assert len(rows) == 10
    assert "More lines match than are shown" in rows[-1]["cut"]
    assert all("cut" not in row for row in files.search("match", max_results=500, names=False))


def test_results_are_spread_over_the_files(files: Files) -> None:
    for name in ("a.txt", "b.txt", "c.txt"):
        write(name, "x\n" + "match\n" * 50_000)
    found = [(row["path"], row["line"]) for row in files.search("match", max_results=5)]
    assert found == [("a.txt", 2), ("a.txt", 3), ("a.txt", 4), ("b.txt", 2), ("c.txt", 2)]
    for number in range(10):
        write(f"d{number}.txt", "match\n")
    assert len({row["path"] for row in files.search("match", max_results=5)}) == 5


def test_a_search_opens_no_more_files_than_it_needs() -> None:
    for number in range(200):
        write(f"{number:03}.txt", "match\nmatch\n")
    code = """
import sys
from interpreter.computer_api.files.work.search import search
opened = []
sys.addaudithook(lambda event, given: event == "open" and opened.append(str(given[0])))
search(".", "match", None, 5, False, True, False, None, None, False)
print(sum(name.endswith(".txt") for name in opened))
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert int(told.stdout) == 6


def test_a_catastrophic_regex_times_out(interpreter: OpenInterpreter) -> None:
    write("a.txt", "a" * 60 + "!\n")
    interpreter.block_timeout = 1
    told = interpreter.computer.run("python", "computer.files.search('(a+)+b', regex=True)")
    assert told[-1]["ended"] == "timed_out"
    interpreter.block_timeout = None
    (told,) = interpreter.computer.run("python", "print(computer.files.search('a!$', regex=True)[0]['line'])")
    assert told["content"] == "1\n"


def test_only_options_of_the_original_are_accepted(files: Files) -> None:
    write("a.txt", "word")
    assert files.search("word", path=".", max_results=5, verbose=True)[0]["path"] == "a.txt"
    with pytest.raises(TypeError, match="doesn't take deep"):
        files.search("word", deep=True)


def test_an_invalid_pattern_or_path_is_an_error(files: Files) -> None:
    with pytest.raises(ValueError, match="not a valid regular expression"):
        files.search("(", regex=True)
    with pytest.raises(FileNotFoundError, match="There is no 'nowhere'"):
        files.search("x", path="nowhere")


# -- in a sandbox -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def sandboxed(tmp_path: Path, home: Path) -> Iterator[Any]:
    """`sandboxed(kind)` returns the files tool of an interpreter with that sandbox."""
    made: list[OpenInterpreter] = []
    (tmp_path / "work").mkdir()
    (home / ".ssh").mkdir()
    (home / ".ssh" / "key").write_text("private")

    def start(kind: str, **settings: Any) -> Files:
        made.append(OpenInterpreter(sandbox=kind, workspace=str(tmp_path / "work"), **settings))
        try:
            made[-1].computer.runtimes.apply_sandbox()
        except SandboxUnavailableError as error:
            pytest.skip(str(error))
        found: Files = made[-1].computer.files
        return found

    yield start
    for interpreter in made:
        interpreter.computer.terminate()


def test_a_sandbox_limits_which_files_can_be_read_and_edited(sandboxed: Any, tmp_path: Path, home: Path) -> None:
    files = sandboxed("workspace")
    file = write(str(tmp_path / "work" / "a.txt"), "old text\n")
    assert files.edit("a.txt", "old", "new")["replaced"] == 1
    assert file.read_text() == files.read("a.txt") == "new text\n"
    assert [row["path"] for row in files.search("text")] == ["a.txt"]
    (told,) = files.computer.run("python", "print(computer.files.read('a.txt', 1, 1))")
    assert told["content"] == "new text\n\n"
    (tmp_path / "work" / "way-out").symlink_to(home / ".ssh" / "key")
    for hidden in ("way-out", str(home / ".ssh" / "key"), "~/.ssh/key"):
        with pytest.raises((OSError, ValueError)) as caught:
            files.read(hidden)
        assert "private" not in str(caught.value)
    outside = write(str(home / "outside.txt"), "old")
    with pytest.raises(FileNotFoundError):
        files.edit(str(outside), "old", "new")
    assert outside.read_text() == "old"


@pytest.mark.parametrize("how", [{"kind": "read-only"}, {"kind": "off", "mode": "plan"}], ids=["read-only", "plan"])
def test_read_only_and_plan_mode_refuse_edits(sandboxed: Any, tmp_path: Path, how: dict[str, str]) -> None:
    files = sandboxed(**how)
    file = write(str(tmp_path / "work" / "a.txt"), "old")
    assert files.read("a.txt") == "old"
    with pytest.raises(PermissionError, match="Can't change"):
        files.edit("a.txt", "old", "new")
    assert file.read_text() == "old"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_search_skips_named_pipes(interpreter: OpenInterpreter, files: Files, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    assert files.search("word", str(tmp_path / "pipe.py")) == []
    assert interpreter.computer.docs.search("word", paths=[str(tmp_path / "pipe.py")]) is not None
