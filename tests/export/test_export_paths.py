"""Names and folders of exported files."""

from __future__ import annotations

from pathlib import Path

import pytest

from export.conversations import model, user
from interpreter.errors import ExportError
from interpreter.export import choose_path, file_name, title_of, write


def test_the_name_comes_from_the_first_user_message() -> None:
    assert title_of([model("Hello.")]) == "Conversation"
    title = title_of([model("Hello."), user("\nPlot the sales: by month/quarter!\nAnd so on.")])
    assert title == "Plot the sales: by month/quarter!"
    assert file_name(title) == "plot-the-sales-by-month-quarter"
    assert title_of([model("Hello.")]) == "Conversation"


@pytest.mark.parametrize("title", ["", "../../etc/passwd", "CON:?*", "x" * 500, "größe 数据"])
def test_any_title_becomes_a_plain_file_name(title: str) -> None:
    name = file_name(title)
    assert name and len(name) <= 40 and not set(name) & set('/\\:*?"<>|. ')


def test_a_taken_name_gets_a_number(tmp_path: Path) -> None:
    for expected in ("a-b.md", "a-b-2.md", "a-b-3.md"):
        path = choose_path("", str(tmp_path), "a b", ".md")
        assert path == tmp_path / expected
        write(path, "x")


def test_a_given_name_that_is_taken_is_refused_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("precious")
    with pytest.raises(ExportError, match="--force"):
        choose_path("mine.md", str(tmp_path), "t", ".md")
    write(choose_path("mine.md", str(tmp_path), "t", ".md", force=True), "new", force=True)
    assert (tmp_path / "mine.md").read_text() == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.md"]


def test_a_file_that_appears_in_between_is_not_overwritten(tmp_path: Path) -> None:
    path = choose_path("", str(tmp_path), "t", ".md")
    path.write_text("precious")
    with pytest.raises(ExportError):
        write(path, "new")
    assert path.read_text() == "precious"


def test_paths_can_be_folders_bare_names_or_in_the_home_folder(tmp_path: Path, home: Path) -> None:
    (tmp_path / "sub").mkdir()
    assert choose_path("sub", str(tmp_path), "t", ".md") == tmp_path / "sub" / "t.md"
    assert choose_path("new/", str(tmp_path), "t", ".md") == tmp_path / "new" / "t.md"
    assert choose_path("name", str(tmp_path), "t", ".md") == tmp_path / "name.md"
    assert choose_path("~/x.md", str(tmp_path), "t", ".md") == home / "x.md"


def test_the_error_names_an_unwritable_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match="Could not write"):
        write(tmp_path / "file" / "x.md", "text")
