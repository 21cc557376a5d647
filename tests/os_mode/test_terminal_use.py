"""OS mode in the terminal: flags, profile, notices, and %replay."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpreter import OpenInterpreter
from model_server import ModelServer, text, tool_call
from screen.desktop import Desktop
from terminal.person import someone

IN_CONTROL = "The model is using this screen. Ctrl+Alt+. or the mouse in a corner stops it."
ALLOWED = "Run? [y]es  [n]o"


@pytest.fixture
def model() -> list[str]:
    """Flags for a scripted model instead of the hosted model of the OS mode profile."""
    return ["--model", "openai/scripted-70b", "--llm_supports_vision"]


@pytest.mark.needs("mousepad")
@pytest.mark.parametrize("flag", ["--os", pytest.param("-os", marks=pytest.mark.full)])
def test_a_turn_is_announced_and_can_be_replayed(desktop: Desktop, tmp_path: Path, model: list[str], flag: str) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("")
    desktop.editor(file)
    code = 'computer.keyboard.write("hello")\ncomputer.keyboard.hotkey("ctrl", "s")\ncomputer.mouse.click("Nowhere")'
    replies = [tool_call("python", code), text("Done! The file is saved.")]
    with ModelServer(replies) as server, someone(flag, *model, server=server, lines=60, columns=100) as person:
        person.says("Write hello")
        person.sees(IN_CONTROL)
        person.answers(ALLOWED, "y")
        person.sees("keyboard.write('hello')")
        person.sees("Done! The file is saved.")
        assert "what programs say" not in person.screen  # only the model sees it
        person.says("%replay")
        person.sees("Turn 1: Write hello")
        person.sees("computer.keyboard.hotkey('ctrl', 's')  (")
        person.sees("s, failed: Nothing on the screen is 'Nowhere'.")
        person.says("%replay 7")
        person.sees("Give the number of a turn, for example %replay 1. Turns 1 to 1 are available.")
        assert person.leaves() == 0
    desktop.until(lambda: file.read_text() == "hello", "the text to be saved")
    assert "computer" in server.requests[0].messages[0]["content"]
    assert len(server.requests) == 2, "an answer without an action ends the turn"


def test_without_a_display_the_reason_is_shown_and_the_model_answers(
    model: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with ModelServer([text("Hello.")]) as server, someone("--os", *model, server=server, columns=200) as person:
        person.says("Look")
        person.sees("There is no display here: neither DISPLAY nor WAYLAND_DISPLAY is set.")
        person.sees("Hello.")
        assert person.leaves() == 0


def test_replay_says_when_there_is_nothing_to_replay(model: list[str]) -> None:
    with ModelServer([text("Hello.")]) as server, someone(*model, server=server) as person:
        person.says("%replay")
        person.sees("Nothing of this conversation is saved yet.")
        person.says("Hi")
        person.sees("Hello.")
        person.says("%replay")
        person.sees("The model didn't use the screen in this turn.")
        person.says("%help replay")
        person.sees("%replay [N]")
        person.leaves()


def test_profile_and_attribute_enable_the_same_mode() -> None:
    by_profile, by_attribute = OpenInterpreter(), OpenInterpreter()
    by_profile.load_profile("os")
    by_attribute.os = True
    assert by_profile.os and by_attribute.os
    assert not by_profile.loop and not by_attribute.loop, "an answer ends the turn in both"
