"""computer.docs: keyword search in the docstrings of the session's Python modules."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from interpreter import OpenInterpreter
from interpreter.computer_api.files import Docs

OLD_PYTHON = Path(os.path.expanduser("~/.pyenv/versions/3.8.18/bin/python"))
SHAPES = '''"""Shapes and their sizes."""
raise SystemExit("this was imported")

def circle_area(radius: float, *, digits: int = 2) -> float:
    """How large a circle is."""

class Square(object):
    """A shape with four equal sides."""
    def __init__(self, side=1): ...
    def area(self) -> float:
        """The surface of the square."""
    def _secret(self):
        """A private surface."""
'''


@pytest.fixture
def docs() -> Iterator[Docs]:
    interpreter = OpenInterpreter()
    Path("shapes.py").write_text(SHAPES)
    Path("json.py").write_text("raise SystemExit('this was imported')\n")
    yield interpreter.computer.docs
    interpreter.computer.terminate()


def test_a_module_is_searched_without_being_imported(docs: Docs) -> None:
    best, *_ = docs.search("area of a circle", module="shapes")
    assert best == {
        "name": "shapes.circle_area",
        "signature": "def circle_area(radius: float, *, digits: int=2) -> float",
        "doc": "How large a circle is.",
        "file": "shapes.py",
        "line": 4,
    }


def test_the_best_matches_come_first_up_to_max_results(docs: Docs) -> None:
    found = docs.search("surfaces of squares", paths=["shapes.py"], max_results=2)
    assert [each["name"] for each in found] == ["shapes.Square.area", "shapes.Square"]
    assert found[1]["signature"] == "class Square(self, side=1)"
    assert not any("secret" in each["name"] for each in docs.search("surface secret", paths="."))


def test_the_working_folder_is_searched_by_default(docs: Docs) -> None:
    assert docs.search("four equal sides")[0]["name"] == "shapes.Square"


def test_modules_of_the_sessions_python_are_searched(docs: Docs) -> None:
    found = docs.search("copy a directory tree", module="shutil")
    assert "shutil.copytree" in [each["name"] for each in found]
    assert docs.search("decode a base64 string", module="email.base64mime")[0]["file"].endswith("base64mime.py")


def test_modules_without_source_are_searched_too(docs: Docs) -> None:
    assert docs.search("square root", module="math")[0]["name"] == "math.sqrt"


@pytest.mark.parametrize(
    ("module", "query", "name"),
    [
        ("os.path", "join paths", "os.path.join"),
        ("os.path.join", "anything at all", "os.path.join"),
        ("shutil.copytree", "recursively", "shutil.copytree"),
        ("concurrent.futures.ThreadPoolExecutor", "submit", "concurrent.futures.thread.ThreadPoolExecutor.submit"),
        ("math.sqrt", "square root", "math.sqrt"),
        ("time.sleep", "delay execution", "time.sleep"),
        ("shapes.Square", "surface", "shapes.Square.area"),
        ("shapes.Square.area", "surface", "shapes.Square.area"),
    ],
)
def test_a_dotted_name_is_a_module_or_a_definition_in_one(docs: Docs, module: str, query: str, name: str) -> None:
    assert docs.search(query, module=module)[0]["name"] == name


def test_errors_say_what_was_not_found(docs: Docs) -> None:
    with pytest.raises(
        ValueError, match=r"has no module 'shapes.round'. The source of shapes defines no public 'round'"
    ):
        docs.search("x", module="shapes.round")
    with pytest.raises(ValueError, match=r"has no module 'no_such.thing'. Is it installed?"):
        docs.search("x", module="no_such.thing")
    with pytest.raises(FileNotFoundError, match="There is no 'nowhere'"):
        docs.search("x", paths=["nowhere"])
    with pytest.raises(ValueError, match="no words"):
        docs.search("?!", module="shapes")
    assert docs.search("zebra", module="shapes") == []


def test_the_search_uses_the_python_of_the_session(docs: Docs) -> None:
    if not OLD_PYTHON.exists():
        pytest.skip("Python 3.8 is not installed")
    docs.computer.python = str(OLD_PYTHON)
    found = docs.search("copy a directory tree", module="shutil")
    assert "python3.8" in found[0]["file"]


def test_in_a_sandbox_only_visible_files_are_searched(tmp_path: Path, home: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "shapes.py").write_text(SHAPES)
    (home / "private.py").write_text('def word():\n    """The password is a circle."""\n')
    interpreter = OpenInterpreter(sandbox="workspace", workspace=str(tmp_path / "work"))
    try:
        docs = interpreter.computer.docs
        assert docs.search("circle", module="shapes")[0]["name"] == "shapes.circle_area"
        with pytest.raises(FileNotFoundError):
            docs.search("circle", paths=[str(home / "private.py")])
    finally:
        interpreter.computer.terminate()
