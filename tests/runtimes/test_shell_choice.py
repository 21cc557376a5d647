"""Which shell runs, and the error if there is none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from interpreter.errors import RuntimeStartError
from interpreter.runtimes.shell.language import Shell, which_shell
from shell_runtimes import ShellRuntime


def test_bash_is_used_if_the_users_shell_is_unsupported_or_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/sh")
    assert Path(which_shell(None) or "").name == "bash"
    monkeypatch.setenv("SHELL", "/no/such/bash")
    assert which_shell(None) == shutil.which("bash")
    monkeypatch.delenv("SHELL")
    assert which_shell(None) == shutil.which("bash")


@pytest.mark.needs("zsh")
def test_zsh_is_used_if_it_is_the_users_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", shutil.which("zsh") or "")
    assert Path(which_shell(None) or "").name == "zsh"
    assert Path(which_shell(shutil.which("bash")) or "").name == "bash"
    session = Shell()
    assert [chunk["content"] for chunk in session.run("echo $ZSH_NAME")][1] == "zsh\n"
    assert (session.version() or "").startswith("zsh 5")
    session.terminate()


def test_a_missing_shell_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SHELL", raising=False)
    session = Shell()
    assert session.version() is None
    with pytest.raises(RuntimeStartError, match="bash"):
        list(session.run("true"))


def test_an_unsupported_shell_is_an_error(tmp_path: Path) -> None:
    for wanted in ("/bin/sh", str(tmp_path / "bash")):
        session = ShellRuntime("bash")
        session.context.shell = wanted
        with pytest.raises(RuntimeStartError, match=wanted):
            session.do("true")


def test_the_shell_has_its_names_and_aliases() -> None:
    assert (Shell.name, Shell.file_extension) == ("Shell", "sh")
    assert {"bash", "sh", "zsh", "batch", "bat"} <= set(Shell.aliases)


def test_bash_env_and_env_files_are_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "env").write_text("echo noise; word=set\n")
    for name in ("BASH_ENV", "ENV"):
        monkeypatch.setenv(name, str(tmp_path / "env"))
    session = ShellRuntime("bash")
    assert session.do("echo ${word-unset}").text == "unset\n"
    session.terminate()


def test_terminate_leaves_no_files(tmp_path: Path) -> None:
    session = ShellRuntime("bash")
    session.do("true")
    assert session.runtime is not None
    folder = session.runtime.folder
    assert folder.stat().st_mode & 0o077 == 0 and folder.is_dir()
    session.terminate()
    assert not folder.exists()
    assert session.do("echo again").text == "again\n"
    session.terminate()
