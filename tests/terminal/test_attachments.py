"""Files and images attached to a message."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from interpreter.app.attachments import attachments, missing
from model_server import ModelServer, text
from terminal.person import someone

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def folder(tmp_path: Path, home: Path) -> Path:
    for name in ("a.png", "my photo.jpg", "data.csv", "it's.png"):
        (tmp_path / name).write_bytes(PIXEL)
    (home / "home.png").write_bytes(PIXEL)
    (tmp_path / "sub").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ("what is in @a.png?", ["a.png"]),
        ("compare @a.png and @data.csv.", ["a.png", "data.csv"]),
        ("twice @a.png @a.png", ["a.png"]),
        ('see @"my photo.jpg" please', ["my photo.jpg"]),
        (r"see @my\ photo.jpg please", ["my photo.jpg"]),
        ("'{folder}/my photo.jpg' ", ["my photo.jpg"]),
        (r"{folder}/my\ photo.jpg ", ["my photo.jpg"]),
        ("{folder}/my photo.jpg", ["my photo.jpg"]),
        ("file://{folder}/my%20photo.jpg", ["my photo.jpg"]),
        ('"{folder}/it\'s.png"', ["it's.png"]),
        ("./a.png", ["a.png"]),
        ("~/home.png", ["home.png"]),
        ("look into @sub", ["sub"]),
        ("{folder}/data.csv is a table", []),
        ("a.png", []),
        ("me@a.png", []),
        ("the @property decorator", []),
        ("@nothing.csv", []),
        ("/nowhere/x.png", []),
    ],
)
def test_attachments_are_found_in_a_message(folder: Path, said: str, names: list[str]) -> None:
    found = attachments(said.replace("{folder}", str(folder)), str(folder))
    assert [Path(each.path).name for each in found] == names
    assert all(each.is_image == (Path(each.path).suffix in (".png", ".jpg")) for each in found)


def test_missing_files_are_found_in_a_message(folder: Path) -> None:
    assert missing("@nothing.csv and @sub/x, @a.png, @property, @a.png.", str(folder)) == ["nothing.csv", "sub/x,"]


@pytest.mark.usefixtures("no_strays")
def test_models_with_vision_get_the_image_and_the_path_of_other_files(folder: Path) -> None:
    with ModelServer([text("A dot.")]) as server, someone(server=server) as person:
        person.says(f"%cd {folder}")
        person.says("see @a.png and @data.csv and @nothing.csv")
        person.sees("A dot.")
        person.sees("There is no file nothing.csv.")
        person.sees("Attached: a.png, data.csv.")
        said, image, file = server.requests[0].messages[1:]
        assert said["content"] == "see @a.png and @data.csv and @nothing.csv"
        assert image["content"][1]["image_url"]["url"].startswith("data:image/png;base64,iVBO")
        assert file["content"] == str(folder / "data.csv")
        assert person.leaves() == 0


@pytest.mark.usefixtures("no_strays")
def test_models_without_vision_get_the_path_of_an_image(folder: Path) -> None:
    with ModelServer([text("Fine.")]) as server, someone("--no-llm_supports_vision", server=server) as person:
        person.says(f"%cd {folder}")
        person.says("see @a.png")
        person.sees("Fine.")
        person.sees("doesn't accept images")
        assert server.requests[0].messages[-1]["content"] == str(folder / "a.png")
        assert person.leaves() == 0
