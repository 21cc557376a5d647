"""Sandbox requests: a block asks for more access, and the user grants it for the block, the session, or always."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Any

import pytest

from conversation import Chatting, chatting
from interpreter import OpenInterpreter
from interpreter.errors import UsageError
from interpreter.policy.files import user_file
from interpreter.sandbox.requests import requested
from model_server import text, tool_call
from sampling import some

from .loopback_server import QuietHandler, serving

__all__ = ["chatting"]
pytestmark = pytest.mark.usefixtures("sandbox_available", "no_strays")


@pytest.fixture
def data(home: Path) -> Path:
    """A folder that a sandbox hides."""
    folder = home / "data"
    folder.mkdir()
    (folder / "numbers").write_text("1 2 3")
    return folder


def reading(data: Path, more: str = "") -> str:
    return f"# needs: read {data}\nprint('I read', open('{data}/numbers').read()){more}"


def converse(interpreter: OpenInterpreter, answers: list[str | None]) -> list[dict[str, Any]]:
    """Run a turn, and return its questions and decisions. An answer is a scope, or None to leave the question open."""
    seen: list[dict[str, Any]] = []
    for chunk in interpreter.chat("go", display=False, stream=True):
        if chunk["type"] in ("confirmation", "decision"):
            seen.append(dict(chunk))
        if chunk["type"] == "confirmation" and (answer := answers.pop(0)):
            assert interpreter.pending is not None
            interpreter.pending.grant(answer)  # type: ignore[arg-type]
    return seen


def said(interpreter: OpenInterpreter) -> str:
    return "\n".join(str(message["content"]) for message in interpreter.messages if message["role"] == "computer")


def output(interpreter: OpenInterpreter, code: str, language: str = "python") -> str:
    return "".join(str(message["content"]) for message in interpreter.computer.run(language, code))


ACCOUNT_HOME = os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)  # tests have another $HOME
AUTO: dict[str, Any] = {"sandbox": "workspace", "auto_run": True}


def test_access_granted_for_a_block_ends_with_the_block(chatting: Chatting, data: Path) -> None:
    replies = [tool_call("python", reading(data, "; kept += 1")), tool_call("python", reading(data)[20:]), text("So.")]
    interpreter, _ = chatting(*replies, **AUTO)
    output(interpreter, "kept = 6")
    containment = interpreter.computer.context.containment
    seen = converse(interpreter, ["block"])
    assert [chunk["type"] for chunk in seen] == ["confirmation", "decision"]
    assert seen[0]["widening"] == [f"to read {data}"]
    assert seen[1]["content"] == {"by": "user", "reason": f"granted for this block: read {data}"}
    assert said(interpreter).count("I read 1 2 3") == 1
    assert interpreter.computer.context.containment is containment
    assert "7" in output(interpreter, "print(kept)")
    assert "No such file" in output(interpreter, f"open('{data}/numbers')")


def test_the_denial_explains_how_to_request_access(chatting: Chatting, data: Path) -> None:
    replies = [tool_call("python", f"open('{data}/numbers')"), tool_call("python", reading(data)), text("So.")]
    interpreter, server = chatting(*replies, **AUTO)
    converse(interpreter, ["block"])
    assert f"start the next block with the comment `needs: read {data}/numbers`" in str(server.requests[1].messages)
    assert "I read 1 2 3" in said(interpreter)


@pytest.mark.full
def test_variables_can_be_undone_after_a_grant(chatting: Chatting, data: Path) -> None:
    interpreter, _ = chatting(tool_call("python", reading(data, "; kept = 2")), text("So."), **AUTO)
    output(interpreter, "kept = 0")
    output(interpreter, "kept = 1")
    converse(interpreter, ["block"])
    assert "2" in output(interpreter, "print(kept)")
    interpreter.undo(2, parts=["variables"], blocks=True)
    assert "1" in output(interpreter, "print(kept)")


def test_an_unanswered_request_is_denied(chatting: Chatting, data: Path) -> None:
    interpreter, server = chatting(tool_call("python", reading(data)), text("Then not."), **AUTO)
    seen = converse(interpreter, [None])
    assert seen[-1]["format"] == "denied" and seen[-1]["content"]["by"] == "sandbox"
    assert "there was no one to ask" in str(server.requests[1].messages) and "I read" not in said(interpreter)
    interpreter, server = chatting(tool_call("python", reading(data)), text("Then not."), **AUTO)
    interpreter.chat("go", display=False)
    assert "there was no one to ask" in str(server.requests[1].messages) and "I read" not in said(interpreter)


def test_access_granted_for_the_session_stays(chatting: Chatting, data: Path) -> None:
    replies = [tool_call("python", reading(data)), tool_call("shell", f"# needs: read {data}\ncat {data}/numbers")]
    interpreter, _ = chatting(*replies, text("So."), **AUTO)
    output(interpreter, "kept = 6")
    output(interpreter, "kept=7", "shell")
    assert len(converse(interpreter, ["session"])) == 2  # the shell was already running, and doesn't ask again
    assert "1 2 3\n" in said(interpreter)
    assert "6 1 2 3" in output(interpreter, f"print(kept, open('{data}/numbers').read())")
    assert "7" in output(interpreter, "echo $kept", "shell")
    interpreter.computer.terminate()
    assert "No such file" in output(interpreter, f"open('{data}/numbers')")


def test_access_granted_always_is_saved_for_this_workspace(chatting: Chatting, data: Path, tmp_path: Path) -> None:
    interpreter, _ = chatting(tool_call("python", reading(data)), text("So."), **AUTO)
    converse(interpreter, ["always"])
    assert f"sandbox:\n- read: {data}\n  folder: " in user_file().read_text()
    again, elsewhere = OpenInterpreter(sandbox="workspace"), OpenInterpreter(sandbox="workspace")
    (tmp_path / "other").mkdir()
    elsewhere.workspace = str(tmp_path / "other")
    assert "1 2 3" in output(again, f"print(open('{data}/numbers').read())")
    assert "No such file" in output(elsewhere, f"print(open('{data}/numbers').read())")
    again.reset()
    user_file().write_text(user_file().read_text() + f"rules:\n- decision: deny\n  path: {data}/**\n  reason: mine\n")
    assert "No such file" in output(again, f"print(open('{data}/numbers').read())")
    again.reset()
    elsewhere.reset()


@pytest.mark.full
@pytest.mark.needs("node")
def test_javascript_gets_its_variables_back_after_a_grant(chatting: Chatting, data: Path) -> None:
    code = f"// needs: read {data}\nconsole.log('I read', require('fs').readFileSync('{data}/numbers', 'utf8'))"
    interpreter, _ = chatting(tool_call("javascript", code), text("So."), **AUTO)
    output(interpreter, "let kept = 6", "javascript")
    converse(interpreter, ["block"])
    assert "I read 1 2 3" in said(interpreter) and "does not have the earlier variables" in said(interpreter)
    assert "6" in output(interpreter, "console.log(kept)", "javascript")


def test_a_shell_block_writes_to_a_granted_folder(chatting: Chatting, data: Path) -> None:
    code = f"# needs: write {data}\nkept=5; echo $kept >{data}/made"
    interpreter, _ = chatting(tool_call("shell", code), text("So."), **AUTO)
    converse(interpreter, ["block"])
    assert (data / "made").read_text() == "5\n"
    assert "5" in output(interpreter, "echo $kept", "shell")
    output(interpreter, f"echo x >{data}/made", "shell")
    assert (data / "made").read_text() == "5\n"


@pytest.mark.parametrize("already_running", some(1, [True, False]))
def test_an_environment_variable_can_be_granted(
    chatting: Chatting, monkeypatch: pytest.MonkeyPatch, already_running: bool
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "for the shop")
    code = "import os; print('It is', os.environ.get('SHOP_TOKEN'))"
    interpreter, _ = chatting(tool_call("python", f"# needs: env SHOP_TOKEN\n{code}"), text("So."), **AUTO)
    if already_running:
        output(interpreter, "kept = 1")
    converse(interpreter, ["block"])
    assert "It is for the shop" in said(interpreter)
    assert "It is None" in output(interpreter, code)


@pytest.mark.parametrize(
    ("need", "why"),
    some(
        4,
        [
            ("host 169.254.169.254", "which a sandbox can never reach"),
            ("host localhost:8000", "which a sandbox can never reach"),
            ("read ~", "is too broad"),
            ("read /", None),
            ("write /", "is too broad"),
            ("write .git/config", "git, editors and Open Interpreter trust"),
            ("read ~/.ssh", "It would read keys or passwords"),
            (f"read {ACCOUNT_HOME}/.ssh", "It would read keys or passwords"),
            (f"read {ACCOUNT_HOME}", "is too broad"),
            (f"read {ACCOUNT_HOME}/.config/open-interpreter", "is never available in a sandbox"),
            ("write ~/data/missing/.git", "git, editors and Open Interpreter trust"),
            ("write /none/such", "/none/such does not exist"),
            ("env NO_SUCH_VARIABLE", "is not set"),
            ("env SSH_AUTH_SOCK", "can't be reached"),
        ],
    ),
)
def test_impossible_requests_are_denied_without_asking(
    chatting: Chatting, need: str, why: str | None, data: Path
) -> None:
    Path(".git").mkdir()
    Path(".git/config").touch()
    interpreter, _ = chatting(tool_call("python", f"# needs: {need}\nprint('ran')"), text("So."), **AUTO)
    seen = converse(interpreter, [])
    if why is None:  # already available
        assert seen == [] and "ran" in said(interpreter)
    else:
        assert [chunk["format"] for chunk in seen] == ["denied"] and why in said(interpreter)
        assert "ran" not in said(interpreter).replace("granted", "")


@pytest.mark.parametrize(
    "asked",
    [
        "read {data}, host pypi.org",
        "host pypi.org and read {data}",
        "read {data}; host pypi.org",
        "read {data}\n# needs: host pypi.org",
    ],
)
def test_one_block_can_request_several_kinds_of_access(asked: str, data: Path) -> None:
    found = requested(f"# needs: {asked.format(data=data)}\nprint()", "/workspace")
    assert sorted(map(str, found)) == ["host pypi.org", f"read {data}"]


def test_paths_may_contain_separator_words() -> None:
    assert list(map(str, requested("# needs: read /data/you and me/read this, please", "/workspace"))) == [
        "read /data/you and me/read this, please"
    ]


def test_deny_rules_cannot_be_overridden_by_a_grant(chatting: Chatting, data: Path) -> None:
    user_file().parent.mkdir(parents=True, exist_ok=True)
    rules = f"rules:\n- decision: deny\n  host: shop.example\n  reason: not there\n- decision: deny\n  path: {data}/numbers\n"
    user_file().write_text(rules)
    for need in ("host shop.example", "host api.shop.example", f"read {data}"):
        interpreter, _ = chatting(tool_call("shell", f"# needs: {need}\ntrue"), text("So."), **AUTO)
        assert [chunk["format"] for chunk in converse(interpreter, [])] == ["denied"]


def test_requests_are_denied_in_plan_mode(chatting: Chatting, data: Path) -> None:
    interpreter, _ = chatting(tool_call("python", reading(data)), text("So."), mode="plan")
    assert [chunk["format"] for chunk in converse(interpreter, [])] == ["denied"]
    assert "in plan mode, code can only read" in said(interpreter)


def test_requests_are_ignored_without_a_sandbox(chatting: Chatting, data: Path) -> None:
    interpreter, _ = chatting(tool_call("python", reading(data)), text("So."), auto_run=True)
    assert converse(interpreter, []) == []
    assert "I read 1 2 3" in said(interpreter)


def test_edited_requests_are_asked_about_again(chatting: Chatting, data: Path) -> None:
    interpreter, _ = chatting(tool_call("python", reading(data)), text("So."), **AUTO)
    asked = []
    for chunk in interpreter.chat("go", display=False, stream=True):
        if chunk["type"] == "confirmation":
            asked.append(chunk["widening"])
            if len(asked) == 1:
                assert interpreter.pending is not None
                interpreter.pending.grant("block")
                interpreter.pending.edit(f"# needs: write {data}\nopen('{data}/made', 'w')")
    assert asked == [[f"to read {data}"], [f"to write to {data}"]]
    assert not (data / "made").exists() and "there was no one to ask" in said(interpreter)


def test_granting_without_a_request_is_an_error(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("python", "print(6 * 7)"), text("So."), sandbox="workspace")
    with pytest.raises(UsageError, match="Nothing that the block asks for"):
        converse(interpreter, ["block"])


def test_a_granted_host_is_reachable_during_the_block(chatting: Chatting) -> None:
    class Shop(QuietHandler):
        def do_GET(self) -> None:
            self.answer(b"open")

    with serving(Shop) as port:
        asking = f"import urllib.request as u; print('It is', u.urlopen('http://shop.example:{port}').read())"
        code = f"# needs: host shop.example:{port}\n{asking}"
        interpreter, _ = chatting(tool_call("python", code), text("So."), **AUTO)
        interpreter.computer.runtimes.apply_sandbox()
        proxy: Any = interpreter.computer.context.containment.proxy  # type: ignore[union-attr]
        proxy._resolve, proxy._allow_private = lambda *_: ["127.0.0.1"], True
        converse(interpreter, ["block"])
        assert "It is b'open'" in said(interpreter)
        assert f"connecting to shop.example:{port}" in output(interpreter, asking)
