"""Signing in to a server with OAuth, and secrets in the keyring or in our file of keys."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

from interpreter import OpenInterpreter
from interpreter.frontends import cli
from interpreter.llm.providers import keys_file
from interpreter.mcp import commands, elicitation
from interpreter.mcp.accounts import read_secret, save_secret
from interpreter.mcp.config import own_servers, save_server
from interpreter.questions import APPROVE
from mcp_servers.support import listens, ran
from mcp_servers.test_trust import Answers
from ports import free_ports
from waiting import until

Make = Callable[..., OpenInterpreter]
SERVER = Path(__file__).parent / "oauth_server.py"


@pytest.fixture
def guarded() -> Iterator[str]:
    """A server that wants OAuth, configured as `vault`."""
    (port,) = free_ports(1)
    process = subprocess.Popen([sys.executable, str(SERVER), str(port)], stderr=subprocess.DEVNULL)
    try:
        until(lambda: listens(port), "the server")
        save_server("vault", {"url": f"http://127.0.0.1:{port}/mcp"})
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def browse(url: str) -> None:
    """What the user's browser does: follow the redirects, at last to us."""
    assert "code_challenge_method=S256" in url
    assert "You are signed in" in httpx.get(url, follow_redirects=True, trust_env=False).text


def test_a_person_signs_in_through_the_browser_once(
    session: Make, guarded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elicitation, "open_browser", browse)
    interpreter, answers = session(), Answers(APPROVE)
    with interpreter.session.questions.answerable(["call"], answers):
        assert "Available: sign_in." in ran(interpreter, "tools.vault.secret()")
        output = ran(interpreter, "tools.vault.sign_in()\nprint(tools.vault.secret())")
    assert "open sesame" in output, output
    assert (
        len(answers.asked) == 1
        and f"The MCP server vault asks you to sign in at {guarded}/authorize" in answers.asked[0]
    )
    assert "open sesame" in ran(session(), "print(tools.vault.secret())")  # the token is kept
    assert "secret-" in keys_file().read_text() and keys_file().stat().st_mode & 0o077 == 0
    assert "secret-" not in str([event.data for event in interpreter.session.log.read()])
    assert cli.main(["mcp", "remove", "vault"]) == 0
    assert "secret-" not in keys_file().read_text()


def test_where_no_one_can_sign_in_it_says_how(session: Make, guarded: str) -> None:
    interpreter = session()
    ran(interpreter, "dir(tools.vault)")
    assert "`interpreter mcp test vault` does that" in ran(interpreter, "tools.vault.sign_in()")


def test_the_command_signs_in(
    guarded: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(commands, "open_browser", browse)
    assert cli.main(["mcp", "test", "vault"]) == 0
    assert "vault asks you to sign in" in capsys.readouterr().out


def test_a_secret_is_in_our_file_without_a_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    save_server("web", {"url": "http://127.0.0.1:1/mcp", "headers": {"X": "Bearer ${A_TOKEN}"}})
    assert save_secret("A_TOKEN", "first") == str(keys_file())
    assert own_servers()["web"].expanded().headers == {"X": "Bearer first"}
    monkeypatch.setenv("A_TOKEN", "second")
    assert own_servers()["web"].expanded().headers == {"X": "Bearer second"}


def test_a_secret_is_in_the_keyring_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[tuple[str, str], str] = {}
    keyring: Any = ModuleType("keyring")
    keyring.set_password = lambda service, name, value: kept.__setitem__((service, name), value)
    keyring.get_password = lambda service, name: kept.get((service, name))
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    assert save_secret("A_TOKEN", "value") == "the keyring"
    assert read_secret("A_TOKEN") == "value" and kept == {("open-interpreter", "A_TOKEN"): "value"}
    assert not keys_file().exists()


def test_adding_a_server_asks_for_its_secret(
    hostile: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("getpass.getpass", lambda prompt: "typed")
    command = [hostile.row["command"], *hostile.row["args"]]
    assert cli.main(["mcp", "add", "two", "--env", "A=${NEEDED}", "--", *command]) == 0
    assert f"Saved NEEDED in {keys_file()}" in capsys.readouterr().out and read_secret("NEEDED") == "typed"
