"""Limits of a turn: allowed applications, a maximum number of actions, and never the user's terminal."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from os_mode.scripted_task import run, run_all, set_up, task
from screen.desktop import Desktop

pytestmark = [pytest.mark.needs("mousepad"), pytest.mark.timeout(600)]


@pytest.mark.full
def test_only_listed_applications_can_be_used(desktop: Desktop, tmp_path: Path) -> None:
    codes = [
        "computer.keyboard.write('x')",
        "try:\n    computer.mouse.drag(start=(1260, 780), end=(1275, 795))\n"
        "except PermissionError:\n    computer.mouse.click(x=1275, y=795)",
        "computer.os.launch('xterm')",
        "computer.os.focus('letter.txt')\ncomputer.keyboard.write('y')\ncomputer.mouse.click('File')\nprint('all well')",
    ]
    with set_up(task(*codes, settings={"os_apps": ["mouse*"]}), desktop, tmp_path) as world:
        terminal = desktop.terminal("cat")
        world.interpreter.computer.os.move_window(terminal.window, x=700, y=100)  # leaves the lower right corner free
        run_all(world)
        refused = [(call["call"], call["outcome"]) for call in world.calls()]
    assert [outcome for _, outcome in refused] == ["refused"] * 4 + ["ok"] * 3
    assert "XTerm is not one of the applications that you may use: mouse*" in world.outputs
    assert "PermissionError: the desktop is not one of" in world.outputs
    assert "PermissionError: xterm is not one of" in world.outputs
    assert "all well" in world.outputs


@pytest.mark.full
def test_a_workspace_program_with_an_allowed_name_is_refused(desktop: Desktop, tmp_path: Path) -> None:
    fake = tmp_path / "mousepad"
    fake.write_text("#!/bin/sh\nexec xterm\n")
    fake.chmod(0o755)
    (tmp_path / "link").symlink_to(fake)
    codes = [f"computer.os.launch({str(fake)!r})", f"computer.os.launch({str(tmp_path / 'link')!r})"]
    limits = {"os_apps": ["mouse*", "*pad", str(tmp_path / "other" / "*")]}
    with set_up(task(*codes, settings=limits), desktop, tmp_path) as world:
        run_all(world)
        assert [call["outcome"] for call in world.calls()] == ["refused", "refused"]
    assert world.outputs.count(f"PermissionError: {fake} is not one of the applications") == 2


def test_names_of_an_application_depend_on_its_location(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from interpreter.computer_api.screen.desktop import DesktopApplication, names_of

    there, work = tmp_path / "bin", tmp_path / "work"
    for folder in (there, work):
        folder.mkdir()
        (folder / "paint").write_text("#!/bin/sh\n")
        (folder / "paint").chmod(0o755)
    monkeypatch.setenv("PATH", f"{there}:{os.environ['PATH']}")
    program = str(there / "paint")
    assert names_of(DesktopApplication("Paint", ("paint",)), "paint", str(work)) == ("paint", "Paint", "paint", program)
    assert "paint" in names_of(DesktopApplication(program, (program,)), program, str(work))
    copy = str(work / "paint")
    assert names_of(DesktopApplication(copy, (copy,)), copy, str(tmp_path / "other")) == (copy,)
    monkeypatch.setenv("PATH", f"{work}:{os.environ['PATH']}")
    assert names_of(DesktopApplication("Paint", ("paint",)), "paint", str(work)) == (copy,)


def conversation_terminal(desktop: Desktop, monkeypatch: pytest.MonkeyPatch) -> int:
    """A terminal that counts as the one of this conversation."""
    window = desktop.terminal("cat").window
    monkeypatch.setenv("WINDOWID", str(window))
    return window


def test_approving_in_the_terminal_does_not_take_the_focus_from_the_application(
    desktop: Desktop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = ["computer.os.focus('letter.txt')", "computer.keyboard.write('x')", "computer.keyboard.press('ctrl+s')"]
    with set_up(task(*codes), desktop, tmp_path) as world:
        world.interpreter.auto_run = False
        terminal = conversation_terminal(desktop, monkeypatch)
        for chunk in run(world):
            if chunk["type"] == "confirmation":
                world.interpreter.computer.os.focus(terminal)
        assert [call["outcome"] for call in world.calls()] == ["ok"] * 3
        world.has("letter.txt", "x")


def test_nothing_is_typed_into_the_conversations_terminal(
    desktop: Desktop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = ["computer.keyboard.write('y\\n')", "computer.clipboard.paste()", "computer.clipboard.copy('a text')"]
    with set_up(task(*codes), desktop, tmp_path) as world:
        conversation_terminal(desktop, monkeypatch)
        run_all(world)
        assert [call["outcome"] for call in world.calls()] == ["refused", "refused", "ok"]
    assert world.outputs.count("The window in front is the terminal that this conversation is held in") == 2


def test_the_number_of_actions_per_turn_is_limited(desktop: Desktop, tmp_path: Path) -> None:
    code = "for letter in 'abcd':\n    computer.keyboard.write(letter)"
    with set_up(task(code, settings={"os_max_steps": 2}), desktop, tmp_path) as world:
        run_all(world)
        assert "The limit of 2 actions per turn (`os_max_steps`) is reached" in world.outputs
        assert "= 'ab'" in world.requests[1].all
