"""Notebooks in `computer.files`: read as cells, edited by cell id, with everything else kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from interpreter.repo import edits, notebooks


def book(cells: list[dict[str, object]], indent: int | None = 1) -> str:
    data = {
        "cells": cells,
        "metadata": {"kernelspec": {"name": "python3"}, "own": "ä"},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(data, indent=indent, ensure_ascii=False) + "\n"


def code(name: str, source: str, output: str = "") -> dict[str, object]:
    outputs = [{"output_type": "stream", "name": "stdout", "text": output.splitlines(keepends=True)}] if output else []
    return {"cell_type": "code", "execution_count": 3, "id": name, "metadata": {"tags": ["x"]}, "outputs": outputs,
            "source": source.splitlines(keepends=True)}  # fmt: skip


def test_a_large_notebook_is_read_in_at_most_1500_tokens(tmp_path: Path) -> None:
    picture = {
        "output_type": "display_data",
        "data": {"image/png": "iVBOR" * 8000, "text/plain": "<Figure>"},
        "metadata": {},
    }
    cells = [code(f"c{at}", f"x = {at}\nplot(x)  # step {at}\n", "row\n" * 200) for at in range(30)]
    for cell in cells[:5]:
        cell["outputs"] = [picture]
    text = book(cells)
    (tmp_path / "a.ipynb").write_text(text)
    shown = notebooks.read(str(tmp_path), "a.ipynb")
    assert len(text) > 200_000 and len(shown) / 3.5 < 1_500
    assert "[c0] code\nx = 0\nplot(x)  # step 0\n" in shown and "[c29] code\nx = 29" in shown
    (tmp_path / "b.ipynb").write_text(book(cells[3:7]))
    assert "-> <Figure> <image/png>\n" in notebooks.read(str(tmp_path), "b.ipynb")


@pytest.mark.parametrize("indent", [1, 2, None])
def test_an_edit_by_cell_id_keeps_all_else(tmp_path: Path, indent: int | None) -> None:
    file = tmp_path / "a.ipynb"
    file.write_text(before := book([code("aa", "x = 1\ny = 2\n"), code("bb", "x = 1\n", "1\n")], indent))
    result = edits.replace(str(tmp_path), "a.ipynb", "x = 1", "x = 5", cell="aa")
    assert result == {"path": "a.ipynb", "changed": True, "line": 1, "cell": "aa"}
    assert file.read_text() == before.replace("x = 1", "x = 5", 1)


def test_outputs_of_an_older_source_are_marked(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(book([code("bb", "x = 1\nprint(x)\n", "1\n")]))
    result = edits.replace(str(tmp_path), "a.ipynb", "x = 1", "x = 5", cell="bb")
    assert result["note"] == "The outputs of the cell are those of its old source."
    assert "[bb] code (its outputs are from an older source)\n" in notebooks.read(str(tmp_path), "a.ipynb")


def test_a_cell_that_does_not_exist_is_refused_with_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(book([code("aa", "x = 1\n")]))
    with pytest.raises(ValueError, match=r"no cell zz\. Its cells: aa"):
        edits.replace(str(tmp_path), "a.ipynb", "x", "y", cell="zz")
    (tmp_path / "b.ipynb").write_text("{}")
    with pytest.raises(ValueError, match="not a notebook"):
        notebooks.read(str(tmp_path), "b.ipynb")
