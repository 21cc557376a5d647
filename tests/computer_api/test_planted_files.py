"""Programs, menu entries and links planted by sandboxed code don't trick the host."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interpreter import OpenInterpreter
from interpreter.computer_api.accounts import AccountError
from interpreter.computer_api.screen.desktop import NoApplication, find_application
from interpreter.errors import ComputerError, SandboxUnavailableError

SECRET = "BEGIN:VCALENDAR\nprivate words\nEND:VCALENDAR\n"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder outside the workspace that the sandbox may write to."""
    (tmp_path / "shared").mkdir()
    return tmp_path / "shared"


@pytest.fixture
def computer(work: Path, shared: Path, no_strays: None) -> Iterator[Any]:
    made = OpenInterpreter(sandbox="workspace", workspace=str(work), sandbox_paths=[f"{shared}:rw"])
    try:
        made.computer.runtimes.apply_sandbox()
    except SandboxUnavailableError as error:
        pytest.skip(str(error))
    yield made.computer
    made.computer.terminate()


def printed(computer: Any, code: str) -> str:
    return "".join(str(each["content"]) for each in computer.run("python", code))


def plant(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)


def test_programs_in_the_workspace_are_not_run(
    computer: Any, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{work / 'bin'}:{os.environ['PATH']}")
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    for name in ("notify-send", "show-password"):
        plant(work / "bin" / name, f"#!/bin/sh\necho run > {tmp_path}/escaped\necho secret\n")
    computer.os.notify("Hello")
    computer.mail_account = {"imap": "localhost", "user": "me", "password_command": "show-password"}
    with pytest.raises(AccountError, match="can't be run"):
        computer.mail.get()
    assert not (tmp_path / "escaped").exists()


def test_menu_entries_that_code_can_write_are_ignored(
    computer: Any, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(work / "share"))
    monkeypatch.setenv("XDG_DATA_DIRS", str(tmp_path / "system"))
    entry = "[Desktop Entry]\nType=Application\nName={0}\nExec=sh -c 'echo {0}'\n"
    plant(work / "share" / "applications" / "planted.desktop", entry.format("Planted Notes"))
    plant(tmp_path / "system" / "applications" / "real.desktop", entry.format("Real Notes"))
    (tmp_path / "system" / "applications" / "linked.desktop").symlink_to(work / "share/applications/planted.desktop")
    assert find_application("real notes").command == ("sh", "-c", "echo Real Notes")
    with pytest.raises(NoApplication):
        find_application("Planted Notes")


def test_skills_are_not_saved_through_a_symlink(computer: Any, work: Path, home: Path) -> None:
    (home / "startup").mkdir()
    computer.skills.path = "own"
    printed(computer, f"import os; os.symlink({str(home / 'startup')!r}, 'own')")
    computer.skills.new_skill.name = "Tidy up"
    computer.skills.new_skill.add_step("Look around", "print(1)")
    with pytest.raises(OSError, match="own"):
        computer.skills.new_skill.save()
    assert not list((home / "startup").iterdir())
    printed(computer, "os.unlink('own')")
    assert computer.skills.new_skill.save()["path"] == str(work / "own" / "tidy_up.py")
    assert (work / "own" / "tidy_up.py").exists()


def test_skills_are_not_read_through_links_in_writable_folders(computer: Any, shared: Path, home: Path) -> None:
    (home / "secret.py").write_text("def secret(): 'private words'")
    computer.skills.path = str(shared)
    printed(computer, f"import os; os.symlink({str(home / 'secret.py')!r}, {str(shared / 'secret.py')!r})")
    assert "private" not in printed(computer, "print(computer.skills.read('secret'))")


@pytest.mark.parametrize("place", ["work", "shared"])
def test_calendars_are_not_read_through_links(computer: Any, place: str, home: Path, request: Any) -> None:
    folder = request.getfixturevalue(place) / "calendars"
    (folder / "Work").mkdir(parents=True)
    (home / "hidden").mkdir()
    for file in (home / "secret", home / "hidden" / "secret.ics"):
        file.write_text(SECRET)
    computer.calendar_account = {"path": str(folder)}
    (folder / "Work" / "own.ics").write_text(SECRET)
    with pytest.raises(ComputerError, match="private words"):  # errors show what they are about
        computer.calendar.get_events("2026-11-16")
    (folder / "Work" / "own.ics").unlink()
    (folder / "Work" / "a.ics").symlink_to(home / "secret")
    with pytest.raises(ComputerError) as caught:
        computer.calendar.get_events("2026-11-16")
    assert "private" not in str(caught.value) and "cannot be read" in str(caught.value)
    (folder / "Work" / "a.ics").unlink()
    (folder / "Home").symlink_to(home / "hidden")
    with pytest.raises(ComputerError) as caught:
        computer.calendar.get_events("2026-11-16")
    assert "private" not in str(caught.value)


def test_without_a_sandbox_links_are_followed(tmp_path: Path) -> None:
    made = OpenInterpreter(workspace=str(tmp_path))
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "kept.py").write_text("def kept():\n    return 'mine'\n")
    (tmp_path / "own").symlink_to(tmp_path / "real")
    (tmp_path / "note.txt").symlink_to(tmp_path / "real" / "kept.py")
    made.computer.skills.path = "own"
    assert "mine" in made.computer.skills.read("kept") and "mine" in made.computer.files.read("note.txt")
    made.computer.skills.new_skill.name = "Tidy up"
    made.computer.skills.new_skill.add_step("Look around", "print(1)")
    made.computer.skills.new_skill.save()
    assert (tmp_path / "real" / "tidy_up.py").exists()
    made.computer.terminate()


@pytest.mark.full
def test_swapping_folders_and_links_in_a_race_gains_nothing(computer: Any, work: Path, home: Path) -> None:
    """A process in the sandbox swaps folders with links to another place, as fast as it can."""
    (home / "outside").mkdir()
    (home / "outside" / "event.ics").write_text(SECRET)
    printed(
        computer,
        "import os, subprocess, sys\n"
        "loop = '''\nimport os\nos.makedirs('real', exist_ok=True)\nos.symlink({!r}, 'link')\n"
        "while True:\n"
        "    for name in ('own', 'calendars'):\n"
        "        for source in ('real', 'link'):\n"
        "            try: os.rename(source, name); os.rename(name, source)\n"
        "            except OSError: pass\n'''\n".format(str(home / "outside"))
        + "swapper = subprocess.Popen([sys.executable, '-c', loop])",
    )
    computer.skills.path = "own"
    computer.calendar_account = {"path": str(work / "calendars")}
    seen = []
    for number in range(2000):
        computer.skills.new_skill.name = f"Step {number}"
        computer.skills.new_skill.add_step("Look around", "print(1)")
        for act in (computer.skills.new_skill.save, lambda: computer.calendar.get_events("2026-11-16")):
            try:
                act()
            except (OSError, ComputerError) as error:
                seen.append(str(error))
    printed(computer, "swapper.kill(); swapper.wait()")
    assert [file.name for file in (home / "outside").iterdir()] == ["event.ics"]
    assert seen and not any("private" in words for words in seen)
