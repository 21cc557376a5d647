"""The chat starts where the data is, and the workspace can move there: `interpreter FOLDER`, %cd and F6."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from interpreter.frontends.terminal.approval import QUESTION
from model_server import ModelServer, text, tool_call
from terminal.person import PROGRAM, Person, someone

F6 = "\x1b[17~"
READ = tool_call("python", "print(open('sales.csv').read())")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "my data"
    folder.mkdir()
    (folder / "sales.csv").write_text("region,units\nN,3\n")
    return folder


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer([]) as started:
        yield started


def test_a_folder_on_the_command_line_is_the_workspace(server: ModelServer, data: Path) -> None:
    server.replies[:] = [READ, text("Three."), tool_call("python", "open('made.txt', 'w').write('x')"), text("Made.")]
    with someone("-y", str(data), server=server) as person:
        person.sees("Try: total units per region in sales.csv")
        person.says("Go.")
        person.sees("N,3")
        person.says("Write.")
        person.sees("created made.txt")
        person.says("%undo")
        person.answers("Change these files?", "y")
        person.at_prompt()
        assert not (data / "made.txt").exists()
        assert person.leaves() == 0


def test_after_two_dashes_or_in_a_sentence_a_folder_is_a_message(server: ModelServer) -> None:
    Path("data").mkdir()
    server.replies[:] = [text("A message.")] * 2
    for words in (["--", "data"], ["data", "please"]):
        with someone(*words, server=server) as person:
            person.sees("A message.")
            assert person.ends() == 0
    assert server.requests[0].messages[-1]["content"] == "data"
    sentence = "import sys; sys.argv[0] = 'i'\n" + PROGRAM
    where = ["--api_base", server.base_url, "--api_key", "key"]
    server.replies.append(text("A sentence."))
    person = Person([sys.executable, "-c", sentence, *where, "data"])
    try:
        person.sees("A sentence.")
        assert person.ends() == 0
    finally:
        person.close()
    assert server.requests[-1].messages[-1]["content"] == "I data"


def test_the_card_does_not_call_the_current_folder_outside(server: ModelServer, data: Path) -> None:
    (data / "sub").mkdir()
    server.replies[:] = [
        READ,
        tool_call("python", "open('made.txt', 'w').write(open('/etc/hostname').read())"),
        text("Done."),
    ]
    with someone(server=server, columns=120) as person:
        person.says(f"%cd {data}")
        person.sees("To move the workspace here, press F6 or type %cd --move.")
        person.says("Go.")
        person.sees("Changes no files")
        person.answers(QUESTION, "y")
        person.sees("Writes made.txt (outside the workspace)")
        person.sees("Reads outside the workspace: /etc/hostname")
        person.sees("Not undoable: writing outside the workspace: made.txt")
        assert "this folder" not in person.screen
        person.answers(QUESTION, "n", times=2)
        person.says("%cd sub")
        person.says("%cd ..")
        assert person.leaves() == 0


def test_one_key_moves_the_workspace_and_undo_covers_it(server: ModelServer, data: Path) -> None:
    before = Path.cwd()
    server.replies[:] = [
        tool_call("python", "open('old.txt', 'w').write('x')"),
        text("Old."),
        tool_call("python", "open('new.txt', 'w').write('x')"),
        text("New."),
    ]
    with someone("-y", server=server, columns=160) as person:
        person.says("Go.")
        person.sees("created old.txt")
        person.sees("Old.")
        person.says(f"%cd {data}")
        person.sees(f"Undo covers only {before}.")
        person.at_prompt()
        person.types(F6)
        person.sees(f"The workspace is now {data}: undo covers its files. For those in {before}, move back.")
        person.says("Go on.")
        person.sees("created new.txt")
        person.sees("New.")
        person.says("%undo 2")
        person.sees(f"stay as they are: the workspace was {before} at the time")
        person.answers("Change these files?", "y")
        person.at_prompt()
        assert not (data / "new.txt").exists()
        assert (before / "old.txt").exists()
        person.says("%redo 2")
        person.answers("Change these files?", "y", times=2)
        person.says(f"%cd  {before}")
        person.says("%cd  --move")
        person.sees(f"The workspace is now {before}")
        person.says("%undo  2")
        person.answers("Change these files?", "y", times=3)
        person.at_prompt()
        assert not (before / "old.txt").exists()
        assert (data / "new.txt").exists()
        assert person.leaves() == 0


def test_inside_the_workspace_nothing_is_offered(server: ModelServer) -> None:
    Path("inner").mkdir()
    with someone(server=server) as person:
        person.says("%cd inner")
        person.sees("All sessions now work in")
        person.says("%cd ..")
        person.sees("All sessions now work in", times=2)
        person.at_prompt()
        assert "F6" not in person.screen
        assert person.leaves() == 0
