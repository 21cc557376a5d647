"""Which shell runs, and what is said when there is none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from interpreter.errors import SessionStartError
from interpreter.runtimes.shell.language import Shell, which_shell
from shell_runtimes import ShellRuntime


def test_the_users_shell_if_we_speak_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/sh")
    assert Path(which_shell(None) or "").name == "bash"
    monkeypatch.setenv("SHELL", "/no/such/bash")
    assert which_shell(None) == shutil.which("bash")
    monkeypatch.delenv("SHELL")
    assert which_shell(None) == shutil.which("bash")


@pytest.mark.needs("zsh")
def test_zsh_if_it_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", shutil.which("zsh") or "")
    assert Path(which_shell(None) or "").name == "zsh"
    assert Path(which_shell(shutil.which("bash")) or "").name == "bash"
    session = Shell()
    assert [chunk["content"] for chunk in session.run("echo $ZSH_NAME")][1] == "zsh\n"
    assert (session.version() or "").startswith("zsh 5")
    session.terminate()


def test_no_shell_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SHELL", raising=False)
    session = Shell()
    assert session.version() is None
    with pytest.raises(SessionStartError, match="bash"):
        list(session.run("true"))


def test_a_shell_that_we_do_not_speak(tmp_path: Path) -> None:
    for wanted in ("/bin/sh", str(tmp_path / "bash")):
        session = ShellRuntime("bash")
        session.context.shell = wanted
        with pytest.raises(SessionStartError, match=wanted):
            session.do("true")


def test_names() -> None:
    assert (Shell.name, Shell.file_extension) == ("Shell", "sh")
    assert {"bash", "sh", "zsh", "batch", "bat"} <= set(Shell.aliases)


def test_a_file_that_the_environment_names_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "env").write_text("echo noise; word=set\n")
    for name in ("BASH_ENV", "ENV"):
        monkeypatch.setenv(name, str(tmp_path / "env"))
    session = ShellRuntime("bash")
    assert session.do("echo ${word-unset}").text == "unset\n"
    session.terminate()


def test_after_the_end_of_the_session_nothing_is_left_on_disk(tmp_path: Path) -> None:
    session = ShellRuntime("bash")
    session.do("true")
    assert session.runtime is not None
    folder = session.runtime.folder
    assert folder.stat().st_mode & 0o077 == 0 and folder.is_dir()
    session.terminate()
    assert not folder.exists()
    assert session.do("echo again").text == "again\n"
    session.terminate()
