"""Blocks request more access than their sandbox gives, with and without a user to ask."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpreter.errors import SandboxUnavailableError
from interpreter.frontends.terminal.approval import GRANT_QUESTION, SAVE_GRANT
from interpreter.policy.files import user_file
from interpreter.sandbox import bubblewrap
from model_server import ModelServer, text, tool_call
from profiles.programs import interpreter
from sampling import some
from terminal.person import someone

pytestmark = pytest.mark.usefixtures("no_strays", "bubblewrap_works")


@pytest.fixture
def bubblewrap_works() -> None:
    try:
        bubblewrap.available()
    except SandboxUnavailableError as error:
        pytest.skip(str(error))


def reading(data: Path) -> str:
    return f"# needs: read {data}\necho I read $(cat {data}/numbers)"


@pytest.fixture
def data(home: Path) -> Path:
    folder = home / "data"
    folder.mkdir()
    (folder / "numbers").write_text("1 2 3")
    return folder


def test_access_is_granted_once_or_always(data: Path) -> None:
    replies = [tool_call("shell", reading(data)), text("One."), tool_call("shell", reading(data)), text("Two.")]
    with ModelServer(replies) as server, someone("-y", "--sandbox", "workspace", server=server) as person:
        person.says("run")
        person.sees(f"wants: to read {data}")
        person.answers(GRANT_QUESTION, "what")
        person.sees("Type one of the letters in brackets")
        person.answers(GRANT_QUESTION, "y", times=2)
        person.sees("One.")
        assert "I read 1 2 3" in person.rows
        person.says("again")
        person.answers(GRANT_QUESTION, "a", times=3)
        person.sees(f"- read: {data}")
        person.answers(SAVE_GRANT, "n")
        assert not user_file().exists()
        person.answers(GRANT_QUESTION, "a", times=4)
        person.answers(SAVE_GRANT, "y", times=2)
        person.sees("Two.")
        assert person.leaves() == 0
    assert f"- read: {data}" in user_file().read_text()


@pytest.mark.parametrize("plain", some(1, [[], ["--plain"]]), ids=["screen", "plain"])
def test_declining_covers_the_target_of_a_link(data: Path, plain: list[str]) -> None:
    Path("link").symlink_to(data)
    replies = [tool_call("shell", reading(Path("link"))), text("Then not.")]
    with ModelServer(replies) as server, someone("-y", "--sandbox", "workspace", *plain, server=server) as person:
        person.says("run")
        person.sees(f"wants: to read {data}")
        person.answers(GRANT_QUESTION, "n look elsewhere")
        person.sees("Then not.")
        assert server.requests[-1].messages[-1]["content"].endswith("look elsewhere")
        assert "I read 1 2 3" not in person.rows


def test_without_a_user_the_request_is_refused_and_the_model_continues(data: Path) -> None:
    with ModelServer([tool_call("shell", reading(data)), text("Then not.")]) as server:
        done = interpreter("-y", "--plain", "--sandbox", "workspace", "go", server=server)
        assert "there was no one to ask" in server.requests[-1].messages[-1]["content"]
    assert done.returncode == 0 and "Then not." in done.stdout and "I read 1" not in done.stdout
