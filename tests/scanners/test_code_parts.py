"""Splitting a block into parts for the scanners; every line keeps its number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpreter.scanners.scanner import CodePart, parts_of


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        ("a = 5\nb = (a\n  % 3)", [CodePart("python", "a = 5\nb = (a\n  % 3)")]),
        ("s = '''\n!not a command\n'''", [CodePart("python", "s = '''\n!not a command\n'''")]),
        ("!ls -l", [CodePart("shell", "ls -l")]),
        ("import os\n!!ls\nos", [CodePart("python", "import os\npass\nos"), CodePart("shell", "\nls\n")]),
        ("for x in y:\n    !echo $x", [CodePart("python", "for x in y:\n    pass"), CodePart("shell", "\necho $x")]),
        ("a, b = !echo 1 \\\n  2\na", [CodePart("python", "pass\n\na"), CodePart("shell", "echo 1 \\\n  2\n")]),
        ("%cd x\ny", [CodePart("python", "pass\ny")]),
        ("df?\n?df\ny", [CodePart("python", "\n\ny")]),
        ("%sx ls\ny", [CodePart("python", "pass\ny"), CodePart("shell", "ls\n")]),
        ("\n%%bash\nls", [CodePart("shell", "\n\nls")]),
        ("%%time\nx = 1", [CodePart("python", "pass\nx = 1")]),
        ("%%html\n<b>", [CodePart("", "html<b>")]),
        (" \n", []),
    ],
)
def test_shell_commands_are_split_from_python(code: str, parts: list[CodePart]) -> None:
    assert parts_of("python", code) == parts


@pytest.mark.parametrize(
    ("language", "kind"),
    [
        ("Python", "python"),
        ("py", "python"),
        ("bash", "shell"),
        ("sh", "shell"),
        ("JavaScript", "javascript"),
        ("r", ""),
    ],
)
def test_language_names_select_the_kind_of_part(language: str, kind: str) -> None:
    assert parts_of(language, "x") == [CodePart(kind, "x")]


@given(st.lists(st.sampled_from(["x = 1", "!ls", "  !ls \\", "%cd /", "def f(", "'''", "y = !w", "", "a?"])))
def test_every_line_keeps_its_number(lines: list[str]) -> None:
    code = "\n".join(lines)
    for part in parts_of("python", code):
        seen = part.code.split("\n")
        assert len(seen) == len(lines)
        for mine, theirs in zip(seen, lines, strict=True):
            assert mine.strip() in ("", "pass") or mine.strip() in theirs
