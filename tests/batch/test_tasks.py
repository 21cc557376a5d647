"""The tasks of a batch: forms of files, templates, ids, and what is wrong with them, said before any request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpreter import leaves
from interpreter.batch.run import folder_of
from interpreter.batch.tasks import read_tasks, tasks_of, write_csv, write_parquet
from interpreter.errors import UsageError


def test_rows_of_every_form_make_the_same_tasks(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": "one"}, {"id": "b", "text": "two, with a comma"}]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_csv(rows, tmp_path / "t.csv")
    write_parquet(rows, tmp_path / "t.parquet")
    made = [read_tasks(tmp_path / f"t.{form}", "Say {text}") for form in ("jsonl", "csv", "parquet")]
    assert made[0] == made[1] == made[2]
    assert [(task.id, task.message) for task in made[0]] == [("a", "Say one"), ("b", "Say two, with a comma")]


def test_each_file_of_a_folder_is_a_task(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", ".hidden"):
        (tmp_path / name).write_text(name)
    tasks = read_tasks(tmp_path, "Summarise {file}")
    assert [(task.id, task.message) for task in tasks] == [("a.txt", "Summarise a.txt"), ("b.txt", "Summarise b.txt")]
    assert tasks[0].files == (str(tmp_path / "a.txt"),)


def test_a_row_can_have_its_own_model_schema_budget_and_files(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a\n1\n")
    [task] = tasks_of(
        [{"prompt": "Sum", "model": "gpt-4o", "schema": '{"type": "integer"}', "budget": "0.5", "files": "x.csv"}],
        None,
        tmp_path,
    )
    assert (task.model, task.schema, task.budget) == ("gpt-4o", {"type": "integer"}, 0.5)
    assert task.files == (str(tmp_path / "x.csv"),)


def test_ids_are_hashes_that_depend_on_the_task_alone(tmp_path: Path) -> None:
    one, two = tasks_of(["first", "second"], None, tmp_path)
    assert [task.id for task in tasks_of(["second", "first"], None, tmp_path)] == [two.id, one.id]


@pytest.mark.parametrize(
    ("rows", "template", "problem"),
    [
        ([{"text": "x"}], None, "row 1: no prompt. Add a column `prompt`"),
        ([{"text": "x"}], "Say {name}", "row 1: no column 'name'; it has 'text'."),
        ([{"id": 1, "prompt": "x"}, {"id": "1", "prompt": "y"}], None, "row 2: the same task as row 1 (1)."),
        (["same", "same"], None, "Remove one, or give each an id."),
        ([{"prompt": "x", "files": ["none.csv"]}], None, "none.csv does not exist."),
        ([{"prompt": "x", "schema": "{"}], None, "its schema is not JSON"),
        ([{"prompt": "x", "budget": "much"}], None, "its budget is not a number of dollars: 'much'."),
        ([7], None, "not an object with named values."),
        ([], None, "has no tasks."),
    ],
)
def test_what_is_wrong_is_said_with_its_row(tmp_path: Path, rows: list[object], template: str, problem: str) -> None:
    with pytest.raises(UsageError, match=r"row|tasks") as raised:
        tasks_of(rows, template, tmp_path)
    assert problem in str(raised.value)


def test_all_problems_are_listed_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        tasks_of([{"prompt": ""}] * 30, None, tmp_path)
    assert str(raised.value).endswith("... and 20 more")


@given(st.text(min_size=1, max_size=100), st.text(min_size=1, max_size=100))
def test_tasks_have_folders_of_their_own_inside_that_of_the_batch(first: str, second: str) -> None:
    folders = {each: folder_of(Path("/data/out.jsonl"), each, 1) for each in (first, second)}
    assert all(folder.parent.parent == Path("/data/out.jsonl.files") for folder in folders.values())
    assert all(folder.parent.name not in ("", ".", "..") for folder in folders.values())
    assert len(set(folders.values())) == len(folders)


@pytest.mark.parametrize(
    ("line", "is_command"),
    [
        ("batch tasks.jsonl --out results.jsonl -y", True),
        ("batch --help", True),
        ("batch status results.jsonl", True),
        ("batch-worker", True),
        ("batch", False),
        ("batch rename these files", False),
        ("batch status report for today", False),
        ("batch these --out of order", True),  # the exact form
        ("batch tasks.jsonl", False),
    ],
)
def test_only_exact_forms_are_commands(line: str, is_command: bool) -> None:
    row = leaves.subcommand(line.split())
    assert (row is not None and row.run.startswith("interpreter.batch")) is is_command
