"""Sandbox configuration: settings, granted access, and which variables and paths are visible."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from interpreter import OpenInterpreter
from interpreter.errors import SandboxUnavailableError, SettingValueError
from interpreter.sandbox.containment import containment_for
from interpreter.sandbox.places import places
from interpreter.sandbox.sandbox import Access, ResourceLimits, Sandbox, let_through


def test_a_sandbox_is_built_from_settings(tmp_path: Path) -> None:
    interpreter = OpenInterpreter(sandbox="workspace", sandbox_hosts=["pypi.org"], sandbox_env=["MY_KEY"])
    interpreter.workspace, interpreter.sandbox_memory, interpreter.sandbox_cpu = str(tmp_path), 100, None
    sandbox = Sandbox.from_settings(interpreter)
    assert sandbox == Sandbox(
        "workspace", str(tmp_path), ("pypi.org",), ("MY_KEY",), limits=ResourceLimits(memory=100, cpu=None)
    )
    assert Sandbox.from_settings(interpreter, kind="read-only").kind == "read-only"


def test_the_default_is_off() -> None:
    assert Sandbox.from_settings(OpenInterpreter()).kind == "off"
    assert containment_for(Sandbox("off")) is None


@pytest.mark.parametrize("kind", ["on", "container:", "Workspace", ""])
def test_unknown_kinds_are_rejected(kind: str) -> None:
    with pytest.raises(SettingValueError, match="container:IMAGE"):
        Sandbox(kind)


def test_granted_access_is_added(tmp_path: Path) -> None:
    sandbox = Sandbox("workspace", str(tmp_path))
    granted = [Access("write", "/data"), Access("read", "~/x"), Access("env", "K")]
    wider = sandbox.with_access(granted)
    assert wider.writable == (Path("/data"),) and wider.readable == (Path.home() / "x",) and wider.env == ("K",)
    assert wider.with_access([Access("env", "K")]) == wider and sandbox.paths == ()
    assert [kind for kind in ("read", "write", "host", "env") if Access(kind, "x").at_once] == ["host", "env"]  # type: ignore[arg-type]


SECRETS = {
    "OPENAI_API_KEY": "x",
    "AWS_SECRET_ACCESS_KEY": "x",
    "GITHUB_TOKEN": "x",
    "DB_PASSWORD": "x",
    "PGPASSWORD": "x",
    "SSHPASS": "x",
    "MYSQL_PWD": "x",
    "MYAPIKEY": "x",
    "HARMLESS": "sk-ant-REDACTED-1234567890abcdefghij",
    "DATABASE_URL": "postgres://me:hunter2secret@db.example.com/x",
    "SSH_AUTH_SOCK": "/tmp/agent",
    "https_proxy": "http://proxy.example.com",
    "DISPLAY": ":0",
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/0/bus",
    "NPM_AUTH": "x",
}


def test_secret_variables_are_dropped_unless_listed() -> None:
    plain = {"PATH": "/usr/bin", "LANG": "C", "KEYBOARD": "us", "MONKEY": "1", "PWD": "/", "COMPASS_X": "1"}
    plain |= {"TOKENIZERS_PARALLELISM": "false", "OLDPWD": "/", "XDG_CONFIG_HOME": "/x", "AUTHOR": "me"}
    assert let_through({**plain, **SECRETS}, []) == plain
    assert let_through({**plain, **SECRETS}, ["GITHUB_TOKEN"])["GITHUB_TOKEN"] == "x"


def test_the_home_folder_is_hidden_except_for_the_workspace(home: Path) -> None:
    work = home / "project"
    (work / ".git").mkdir(parents=True)
    (home / ".ssh").mkdir()
    seen = places(Sandbox("workspace", str(work)), [], [])
    assert seen.is_hidden(home / ".ssh" / "id_rsa") and seen.is_hidden(home / "other")
    assert not seen.is_hidden(work / "file") and seen.is_writable(work / "file")
    assert not seen.is_writable(work / ".git" / "config") and not seen.is_hidden(work / ".git" / "config")
    assert not seen.is_hidden("/usr/bin/env") and not seen.is_writable("/usr/bin/env")


def test_only_the_environment_of_a_program_in_home_is_visible(home: Path, tmp_path: Path) -> None:
    venv, real = home / "venvs" / "one", home / ".pythons" / "3.12"
    for folder in (venv, real):
        (folder / "bin").mkdir(parents=True)
        (folder / "lib").mkdir()
    (real / "bin" / "python3.12").touch(mode=0o755)
    (venv / "bin" / "python").symlink_to(real / "bin" / "python3.12")
    seen = places(Sandbox("workspace", str(tmp_path)), [str(venv / "bin" / "python")], [])
    assert not seen.is_hidden(venv / "lib") and not seen.is_hidden(real / "lib") and not seen.is_writable(venv / "lib")
    assert seen.is_hidden(home / "venvs" / "two") and seen.is_hidden(home / ".pythons")


def test_a_program_in_home_bin_does_not_expose_the_home_folder(home: Path, tmp_path: Path) -> None:
    (home / "bin").mkdir()
    (home / "lib").mkdir()
    (home / "bin" / "python").touch(mode=0o755)
    seen = places(Sandbox("workspace", str(tmp_path)), [str(home / "bin" / "python")], [])
    assert (
        not seen.is_hidden(home / "bin" / "python") and seen.is_hidden(home / "lib") and seen.is_hidden(home / ".ssh")
    )


def test_keys_stay_hidden_even_if_the_home_folder_is_listed(home: Path, tmp_path: Path) -> None:
    (home / ".ssh").mkdir()
    (home / "notes").mkdir()
    seen = places(Sandbox("workspace", str(tmp_path), paths=(str(home),)), [], [])
    assert not seen.is_hidden(home / "notes") and seen.is_hidden(home / ".ssh" / "id_rsa")
    seen = places(Sandbox("workspace", str(tmp_path), paths=(str(home / ".ssh"),)), [], [])
    assert not seen.is_hidden(home / ".ssh" / "id_rsa")


def test_our_state_is_hidden_even_inside_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    seen = places(Sandbox("workspace", str(tmp_path)), [], [tmp_path / "state"])
    assert seen.is_hidden(tmp_path / "state" / "keys.env") and not seen.is_writable(tmp_path / "state")


def test_repositories_below_the_workspace_are_protected(tmp_path: Path) -> None:
    seen = places(Sandbox("workspace", str(tmp_path)), [], [])
    for folder in (tmp_path, tmp_path / "a" / "b" / "c" / "d", tmp_path / "node_modules" / "x"):
        for name in (".git/config", ".vscode", ".envrc"):
            assert not seen.is_writable(folder / name) and seen.is_writable(folder / "git")


@pytest.mark.parametrize("workspace", ["~", "/"])
def test_a_workspace_that_contains_the_home_folder_is_refused(workspace: str) -> None:
    with pytest.raises(SandboxUnavailableError, match="--workspace FOLDER"):
        places(Sandbox("workspace", os.path.expanduser(workspace)), [], [])
