"""The data packages at the prompt: the offer at the first start, progress on the status line, %env."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interpreter.runtimes.data_stack import agree
from model_server import ModelServer
from package_index import PackageIndex, package_index
from sampling import some
from terminal.person import CTRL_C, ENTER, TIMEOUT, Person, someone
from tiny_package import write_wheel

pytestmark = pytest.mark.usefixtures("no_strays")
DOWN, ESCAPE = "\x1b[B", "\x1b"
QUESTION = "Install the data packages?"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PackageIndex]:
    with package_index(tmp_path / "index", monkeypatch) as index:
        write_wheel(index.folder)
        monkeypatch.setenv("INTERPRETER_DATA_STACK", "tiny_thing")
        yield index


@pytest.fixture(autouse=True)
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A provider that a key in the environment selects."""
    monkeypatch.setenv("INTERPRETER_SANDBOX", "off")  # or the first start also asks when code may run: test_trust.py
    with ModelServer() as server:
        monkeypatch.setenv("GROQ_API_BASE", server.base_url)
        monkeypatch.setenv("GROQ_API_KEY", "gsk_made-up")
        yield server


def status_line(person: Person) -> str:
    return next((row for row in reversed(person.emulator.visible) if row.strip()), "")


def test_the_first_start_offers_them_and_the_status_line_shows_how_far_they_are(index: PackageIndex) -> None:
    index.hold()
    with someone() as person:
        person.sees(QUESTION)
        words = " ".join(person.screen.split())
        assert "Code for data needs packages: tiny_thing. I can install them once for all folders" in words
        person.types(ENTER)
        person.at_prompt()
        person.wait_until(lambda: "data packages: downloading tiny_thing" in status_line(person), "the progress")
        assert status_line(person).split(" · ")[1] == "asks first"
        person.says("%env")
        person.sees("The data packages are being installed: downloading tiny_thing")
        person.says(">>> import tiny_thing; print('it is', tiny_thing.answer)")
        person.sees("Waiting for tiny_thing: the data packages are being installed")
        person.wait_until(lambda: "downloading tiny_thing" in status_line(person), "the progress")
        assert "waiting for tiny_thing" in status_line(person)
        index.release()
        person.sees("it is 42")
        person.says("%env")
        person.sees("Data packages for all session environments: 1 package, 0 MB, installed")
        assert person.leaves() == 0
    with someone() as person:
        person.says(">>> import tiny_thing; print('still', tiny_thing.answer)")
        person.sees("still 42")
        assert QUESTION not in person.screen
        person.says("%env stack remove")
        person.answers("Remove the data packages for all folders?", "y")
        person.sees("Removed.")
        person.says("%env")
        person.sees("The data packages (tiny_thing) are not installed. To install them: %env stack update")
        person.says("%env stack update")
        person.wait_until(lambda: status_line(person).startswith("groq/"), "the end of it")
        assert person.leaves() == 0


def test_a_message_that_was_typed_before_the_prompt_waits_too(index: PackageIndex) -> None:
    agree(True)
    with someone() as person:
        person.types(">>> import tiny_thing; print('it is', tiny_thing.answer)" + ENTER)
        person.sees("it is 42")
        person.at_prompt()


@pytest.mark.full
def test_ctrl_c_ends_the_wait_and_not_the_installation(index: PackageIndex) -> None:
    index.hold()
    with someone() as person:
        person.sees(QUESTION)
        person.types(ENTER)
        person.says(">>> import tiny_thing")
        person.sees("Waiting for tiny_thing")
        person.types(CTRL_C)
        person.sees("Interrupted after")
        index.release()
        person.says(">>> import tiny_thing; print('it is', tiny_thing.answer)")
        person.sees("it is 42")
        assert person.leaves() == 0


def test_an_interrupted_installation_continues_at_the_next_start(index: PackageIndex) -> None:
    index.hold()
    with someone() as person:
        person.sees(QUESTION)
        person.types(ENTER)
        person.at_prompt()
        assert index.asked.wait(TIMEOUT)
        assert person.leaves() == 0
    index.release()
    with someone() as person:
        person.wait_until(lambda: status_line(person).startswith("groq/"), "the end of it")
        assert QUESTION not in person.screen
        assert person.leaves() == 0


def test_a_no_is_remembered_and_setup_offers_them_again(index: PackageIndex) -> None:
    with someone() as person:
        person.sees(QUESTION)
        person.types(DOWN + ENTER)
        assert person.leaves() == 0
    with someone() as person:
        assert person.leaves() == 0
        assert QUESTION not in person.screen
    with someone("--setup") as person:
        person.sees("Paste a provider's API key")
        person.types(ENTER)
        person.sees("API key, hidden")
        person.types("gsk_made-up" + ENTER)
        person.sees("Save the key")
        person.types(ENTER)
        person.sees(QUESTION)
        person.types(ESCAPE)
        assert person.leaves() == 0
    assert not index.asked.is_set()


@pytest.mark.parametrize("arguments", some(1, [["-y"], ["--offline"], ["--model", "groq/mine"]]))
def test_they_are_not_offered(index: PackageIndex, arguments: list[str]) -> None:
    with someone(*arguments, env={"GROQ_API_KEY": ""} if "--offline" in arguments else None) as person:
        person.sees("Pick a model" if "--offline" in arguments else "Ctrl-D exits.")
        assert QUESTION not in person.screen
    assert not index.asked.is_set()


def test_offline_says_what_to_do(index: PackageIndex) -> None:
    with someone("--offline", "--model", "ollama/none") as person:
        person.says("%env stack update")
        person.sees("Offline mode is on. Start without --offline to install the data packages.")
        assert person.leaves() == 0


@pytest.mark.full
def test_plain_text_offers_them_by_number(index: PackageIndex) -> None:
    with someone("--plain") as person:
        person.sees(QUESTION)
        person.types("1" + ENTER)
        person.sees("Ctrl-D exits.")
        assert index.asked.wait(TIMEOUT)
        person.types("%env stack" + ENTER)
        person.sees("Unknown option: stack.")
