"""`computer.files.replace` and `patch`: an edit fits exactly, or is refused with the nearest lines and their numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from interpreter import OpenInterpreter
from interpreter.errors import SandboxUnavailableError
from interpreter.repo import edits
from interpreter.repo.files import Files

SHOP = b"""def price(pens):
    total = 0
    for pen in pens:
        total += pen.price
    return total


def tax(pens):
    rate = 0.19
    total = 0
    for pen in pens:
        total += pen.price * rate
    return total
"""
# (what the file holds, old, new, what it holds then); None: refused, with numbered lines
NEAR_MISSES: list[tuple[bytes, str, str, bytes | None]] = [
    (SHOP, "rate = 0.19", "rate = 0.2", SHOP.replace(b"0.19", b"0.2")),
    (SHOP, "    rate = 0.19\n", "    rate = 0.2\n", SHOP.replace(b"0.19", b"0.2")),
    (SHOP, "    rate = 0.19\n", "    rate = 0.2", SHOP.replace(b"0.19", b"0.2")),
    (SHOP, "    rate = 0.19\n    total = 0\n", "    rate, total = 0.19, 0\n",
     SHOP.replace(b"rate = 0.19\n    total = 0\n", b"rate, total = 0.19, 0\n")),
    (SHOP, "    rate = 0.19\n", "", SHOP.replace(b"    rate = 0.19\n", b"")),
    (SHOP, "total = 0", "total = 1", None),  # twice
    (SHOP, "    total = 0\n    for pen in pens:", "    pass", None),
    (SHOP, "    return total\n", "    return 1\n", None),
    (SHOP, "rate = 0.91", "rate = 0.2", None),
    (SHOP, "ate = 0.19\n    total = 0", "x", None),  # begins in the middle of a line
    (SHOP, "    rate = 0.19\n    tot", "x", None),  # ends there
    (SHOP, "rate", "tax", None),  # twice: once as part of a line
    (SHOP, "  rate = 0.19\n  total = 0", "  rate = 0.2\n  total = 1",
     SHOP.replace(b"rate = 0.19\n    total = 0", b"rate = 0.2\n    total = 1")),  # other indentation
    (SHOP, "rate = 0.19\ntotal = 0", "rate = 0.2\nif rate:\n    total = 0",
     SHOP.replace(b"    rate = 0.19\n    total = 0", b"    rate = 0.2\n    if rate:\n        total = 0")),
    (SHOP, "\trate = 0.19\n\ttotal = 0", "\trate = 0.2\n\ttotal = 0", SHOP.replace(b"0.19", b"0.2")),
    (SHOP, "    rate=0.19\n    total = 0", "    x", None),  # not only white space
    (SHOP, "rate  =  0.19", "rate = 0.2", SHOP.replace(b"0.19", b"0.2")),
    (SHOP, "def tax(pens) :\n    rate = 0.19", "x", None),
    (SHOP, "def  tax(pens):\n    rate = 0.19", "def tax(pens):\n    rate = 0.2", SHOP.replace(b"0.19", b"0.2")),
    (b"a = 1\r\nb = 2\r\n", "b = 2", "b = 3", b"a = 1\r\nb = 3\r\n"),
    (b"a = 1\r\nb = 2\r\nc = 3\r\n", "a = 1\nb = 2\n", "a = 2\nb = 3\nb2 = 4\n", b"a = 2\r\nb = 3\r\nb2 = 4\r\nc = 3\r\n"),
    (b"a = 1\r\nb = 2\nc = 3\r\n", "a = 1\nb = 2", "a = 5\nb = 6", b"a = 5\r\nb = 6\nc = 3\r\n"),  # mixed
    (b"a = 1\nb = 2\r\nc = 3\n", "c = 3", "c = 4\nd = 5", b"a = 1\nb = 2\r\nc = 4\nd = 5\n"),
    (b"a\rb\rc\r", "b\n", "x\ny\n", b"a\rx\ry\rc\r"),  # lone CR
    (b"a\rb\nc\n", "c", "d", b"a\rb\nd\n"),
    (b"\xef\xbb\xbfa = 1\nb = 2\n", "a = 1", "a = 2", b"\xef\xbb\xbfa = 2\nb = 2\n"),
    ("\ufeffa = ä\n".encode("utf-16-le"), "ä", "ö", "\ufeffa = ö\n".encode("utf-16-le")),
    ("x = 'ä'\ny = 1\n".encode("cp1252"), "y = 1", "y = 2", "x = 'ä'\ny = 2\n".encode("cp1252")),
    (b"a = 1\nb = 2", "b = 2", "b = 3", b"a = 1\nb = 3"),  # no line end at the end
    (b"a = 1\nb = 2", "a = 1\nb = 2", "c = 3\nd = 4\n", b"c = 3\nd = 4"),
    (b"a = 1\nb = 2", "a = 1\n", "a = 1\nx = 0\n", b"a = 1\nx = 0\nb = 2"),
    (b"if a:\n    x()\nif b:\n        x()\n", "    x()\n", "    y()\n", None),  # once as written, twice without indentation
    (b"x\n\n\ny\n", "x\n\n\ny\n", "z\n", b"z\n"),
    (b"x\n  \ny\n", "x\n\ny\n", "x\n", b"x\n"),
    (b"", "x", "y", None),
    (b"x\n", "x\nx\n", "y\n", None),
    (b"aXa aXa\n", "aXa", "b", None),
    (b"aaa\n", "aa", "b", None),  # twice, overlapping
    (b"f(1)\nf(1)  # twice\n", "f(1)\nf(1)  # twice\n", "f(2)\n", b"f(2)\n"),
    (b"a\x0cb\nc\n", "a\x0cb", "d", b"d\nc\n"),  # a form feed ends no line
    ("a\u2028b\nc\n".encode(), "c", "d", "a\u2028b\nd\n".encode()),
    (b"key: 1\nkey: 2\n", "key: 1\n", "key: 3\n", b"key: 3\nkey: 2\n"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(NEAR_MISSES)))
def test_a_near_miss_is_edited_exactly_or_refused_with_numbered_lines(case: int, tmp_path: Path) -> None:
    before, old, new, after = NEAR_MISSES[case]
    file = tmp_path / "a.py"
    file.write_bytes(before)
    file.chmod(0o754)
    if after is None:
        with pytest.raises(ValueError, match=r"Nothing was changed|is empty") as refusal:
            edits.replace(str(tmp_path), "a.py", old, new)
        assert not before or re.search(r"\n *\d+  ", str(refusal.value))
        assert file.read_bytes() == before
    else:
        edits.replace(str(tmp_path), "a.py", old, new)
        assert file.read_bytes() == after
    assert file.stat().st_mode & 0o777 == 0o754


def test_a_refusal_names_the_places_by_their_line_numbers() -> None:
    with pytest.raises(ValueError, match=r"occurs 2 times .*\(lines 2, 10\)") as refusal:
        edits.replaced(SHOP.decode(), "total = 0", "total = 1", "shop.py")
    assert "\n2      total = 0" in str(refusal.value) and "10      total = 0" in str(refusal.value)


def test_other_white_space_is_taken_only_if_unique_and_said() -> None:
    _, result = edits.replaced(SHOP.decode(), "rate   =   0.19", "rate = 0.2", "shop.py")
    assert result == {"line": 9, "note": "The white space was different; everything else was the same."}
    with pytest.raises(ValueError, match="2 times"):
        edits.replaced("a  = 1\na =  1\n", "a = 1", "a = 2", "f")


def test_anchors_name_lines_and_notice_that_they_changed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(SHOP)
    rows = edits.read_anchored(str(tmp_path), "a.py", 9, 10).splitlines()
    first, last = (row.split("  ")[0] for row in rows)
    assert rows[0] == f"{first}      rate = 0.19" and first.startswith("9:")
    edits.replace(str(tmp_path), "a.py", f"{first}..{last}", "    rate, total = 0.2, 0\n")
    assert (tmp_path / "a.py").read_bytes().splitlines()[7:10] == SHOP.replace(
        b"    rate = 0.19\n    total = 0\n", b"    rate, total = 0.2, 0\n"
    ).splitlines()[7:10]
    with pytest.raises(ValueError, match=r"a\.py has changed: line 9") as refusal:
        edits.replace(str(tmp_path), "a.py", first, "x")
    assert "    rate, total = 0.2, 0" in str(refusal.value)


PATCH = """*** Begin Patch
*** Update File: a.py
@@ def tax(pens):
-    rate = 0.19
+    rate = 0.2
     total = 0
*** Add File: new/b.py
+x = 1
+y = 2
*** Delete File: c.py
*** End Patch"""


def test_a_patch_changes_several_files_or_none(tmp_path: Path) -> None:
    crlf = SHOP.replace(b"\n", b"\r\n")
    (tmp_path / "a.py").write_bytes(crlf)
    (tmp_path / "c.py").write_bytes(b"gone\n")
    rows = edits.patch(str(tmp_path), PATCH)
    assert [row["path"] for row in rows] == ["a.py", "new/b.py", "c.py"]
    assert (tmp_path / "a.py").read_bytes() == crlf.replace(b"0.19", b"0.2")
    assert (tmp_path / "new/b.py").read_bytes() == b"x = 1\ny = 2\n" and not (tmp_path / "c.py").exists()
    with pytest.raises(ValueError, match=r"new/b\.py exists already"):
        edits.patch(str(tmp_path), PATCH.replace("0.19", "0.2").replace("*** Delete File: c.py\n", ""))
    assert (tmp_path / "a.py").read_bytes() == crlf.replace(b"0.19", b"0.2")


def test_a_patch_that_cannot_be_written_leaves_every_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.py").write_bytes(SHOP)
    (tmp_path / "c.py").write_bytes(b"gone\n")
    (tmp_path / "new").write_bytes(b"a file where the patch needs a folder\n")
    with pytest.raises(OSError, match="new"):
        edits.patch(str(tmp_path), PATCH)
    assert (tmp_path / "a.py").read_bytes() == SHOP and (tmp_path / "c.py").exists()


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ("*** Update File: a.py", "begins with"),
        ("*** Begin Patch\n x\n*** End Patch", "belongs to no file"),
        ("*** Begin Patch\n*** End Patch", "names no file"),
        ("*** Begin Patch\n*** Update File: a.py\n@@\n-total = 9\n+x\n*** End Patch", "The nearest lines:\n"),
        ("*** Begin Patch\n*** Update File: a.py\n@@\n-    return total\n+x\n*** End Patch", "occurs 2 times"),
    ],
)
def test_a_patch_that_does_not_fit_says_why(tmp_path: Path, patch: str, message: str) -> None:
    (tmp_path / "a.py").write_bytes(SHOP)
    with pytest.raises(ValueError, match=message):
        edits.patch(str(tmp_path), patch)
    assert (tmp_path / "a.py").read_bytes() == SHOP


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Files]:
    made = OpenInterpreter(workspace=str(tmp_path_factory.mktemp("work")))
    yield made.computer.files
    made.computer.terminate()


def test_code_in_the_session_edits_with_it(files: Files) -> None:
    folder = Path(files.computer.context.cwd)
    (folder / "a.py").write_bytes(SHOP)
    code = (
        "r = computer.files.replace('a.py', 'rate = 0.19', 'rate = 0.2')\nprint(r, computer.files.read('a.py', 9, 9))"
    )
    (shown,) = files.computer.run("python", code)
    assert shown["content"] == "{'path': 'a.py', 'changed': True, 'line': 9}     rate = 0.2\n\n"
    assert "replace(path, old, new, cell=None)" in files.computer.help("files")


def test_code_in_a_sandbox_edits_inside_it(tmp_path: Path) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside.py"
    work.mkdir()
    (work / "a.py").write_bytes(SHOP)
    outside.write_bytes(SHOP)
    made = OpenInterpreter(workspace=str(work), sandbox="workspace")
    try:
        code = "for path in ('a.py', '../outside.py'):\n    try: computer.files.replace(path, '0.19', '0.2')\n"
        shown = made.computer.run("python", f"{code}    except OSError as error: print(type(error).__name__)")
    except SandboxUnavailableError as error:
        pytest.skip(str(error))
    finally:
        made.computer.terminate()
    assert "Error" in shown[0]["content"] and outside.read_bytes() == SHOP
    assert (work / "a.py").read_bytes() == SHOP.replace(b"0.19", b"0.2")
