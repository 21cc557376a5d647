"""Which lines of a block go to which scanner; every line keeps its number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpreter.policy.scanners.scanner import Part, parts_of


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        ("a = 5\nb = (a\n  % 3)", [Part("python", "a = 5\nb = (a\n  % 3)")]),
        ("s = '''\n!not a command\n'''", [Part("python", "s = '''\n!not a command\n'''")]),
        ("!ls -l", [Part("shell", "ls -l")]),
        ("import os\n!!ls\nos", [Part("python", "import os\npass\nos"), Part("shell", "\nls\n")]),
        ("for x in y:\n    !echo $x", [Part("python", "for x in y:\n    pass"), Part("shell", "\necho $x")]),
        ("a, b = !echo 1 \\\n  2\na", [Part("python", "pass\n\na"), Part("shell", "echo 1 \\\n  2\n")]),
        ("%cd x\ny", [Part("python", "pass\ny")]),
        ("df?\n?df\ny", [Part("python", "\n\ny")]),
        ("%sx ls\ny", [Part("python", "pass\ny"), Part("shell", "ls\n")]),
        ("\n%%bash\nls", [Part("shell", "\n\nls")]),
        ("%%time\nx = 1", [Part("python", "pass\nx = 1")]),
        ("%%html\n<b>", [Part("", "html<b>")]),
        (" \n", []),
    ],
)
def test_python_with_commands_in_it(code: str, parts: list[Part]) -> None:
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
def test_names_of_languages(language: str, kind: str) -> None:
    assert parts_of(language, "x") == [Part(kind, "x")]


@given(st.lists(st.sampled_from(["x = 1", "!ls", "  !ls \\", "%cd /", "def f(", "'''", "y = !w", "", "a?"])))
def test_no_line_is_lost_or_moved(lines: list[str]) -> None:
    code = "\n".join(lines)
    for part in parts_of("python", code):
        seen = part.code.split("\n")
        assert len(seen) == len(lines)
        for mine, theirs in zip(seen, lines, strict=True):
            assert mine.strip() in ("", "pass") or mine.strip() in theirs
