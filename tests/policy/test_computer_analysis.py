"""Calls of `computer` tools: found by static analysis and judged by rules."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from example_computer_tool import install
from interpreter.policy import (
    Policy,
    Rule,
    propose_rule,
)
from interpreter.policy.analysis import analyze, reversibility


@pytest.fixture(autouse=True)
def example(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)


def called(code: str, language: str = "python") -> list[tuple[str, str]]:
    return [(effect.what, effect.how) for effect in analyze(language, code, os.getcwd()).calls]


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("computer.example.press('x')", [("computer.example.press", "acts")]),
        ("computer.example.mail('a', 'b')", [("computer.example.mail", "sends")]),
        ("print(computer.example.echo(1))", [("computer.example.echo", "looks")]),
        ("from computer import example\nexample.press()", [("computer.example.press", "acts")]),
        ("import computer.example as g\ng.press()", [("computer.example.press", "acts")]),
        ("import computer\ncomputer.example.press()", [("computer.example.press", "acts")]),
        ("press = computer.example.press", [("computer.example.press", "acts")]),
        ("computer.example.part.twice(2)", [("computer.example.part.twice", "unknown")]),
        ("computer.example.nonsense()", [("computer.example.nonsense", "unknown")]),
        ("computer.help('example')", [("computer.help", "looks")]),
        ("rows = ask.map('Which?', ['a'])", [("ask.map", "looks")]),
        ("print(ask('What is it?'))", [("ask", "looks")]),
        ("computer = Box()\ncomputer.example.press()", []),
    ],
)
def test_calls_are_found_in_python_code(code: str, found: list[tuple[str, str]]) -> None:
    assert called(code) == found


def test_saving_attachments_writes_to_their_folder() -> None:
    save = "computer.mail.save_attachments(1, {!r})"
    inside, outside = (analyze("python", save.format(path), os.getcwd()) for path in ("letters", "/elsewhere"))
    assert reversibility(inside).kind == "reversible" and reversibility(outside).kind == "not"
    assert "Writes /elsewhere (outside this folder)" in outside.lines()


def test_calls_are_found_in_javascript_code() -> None:
    code = (
        "await computer.example.press('x'); // computer.example.mail()\nconst width = await computer.example . width;"
    )
    assert called(code, "javascript") == [("computer.example.press", "acts")]


def test_a_local_module_named_computer_takes_precedence() -> None:
    Path("computer.py").write_text("")
    effects = analyze("python", "import computer\ncomputer.example.press()", os.getcwd())
    assert effects.calls == ()
    assert effects.unknown


def test_calls_that_act_or_send_cannot_be_undone() -> None:
    kinds = {
        name: reversibility(analyze("python", f"computer.example.{name}()", os.getcwd())).kind
        for name in ("press", "mail", "echo")
    }
    assert kinds == {"press": "not", "mail": "not", "echo": "reversible"}
    assert "Uses computer.example.press" in analyze("python", "computer.example.press()", os.getcwd()).lines()


def verdict(code: str, *rules: Rule) -> str:
    return Policy(os.getcwd(), rules).judge("python", code).decision


def test_rules_can_match_calls() -> None:
    deny, allow = Rule("deny", call=("computer.example.p*",)), Rule("allow", call=("computer.example.*",))
    assert verdict("computer.example.press()", deny) == "deny"
    assert verdict("computer.example.echo(1)", deny) == "ask"
    assert verdict("computer.example.echo(1)", allow) == "allow"
    assert verdict("computer.example.press()", allow, deny) == "deny"
    assert verdict("open('x', 'w')", deny) == "ask"


def test_a_rule_for_calls_allows_nothing_else() -> None:
    allow = Rule("allow", call=("computer.example.*",))
    for code in ("open('/etc/x', 'w')", "import os; os.remove('x')", "import subprocess; subprocess.run(['ls'])"):
        assert verdict(f"computer.example.echo(1)\n{code}", allow) == "ask", code
    both = Rule("allow", call=("computer.example.*",), does=("write",), path=("{workspace}/*",))
    assert verdict("computer.example.echo(1)\nopen('x', 'w')", both) == "allow"


def test_a_proposed_rule_names_calls_but_never_ones_that_send() -> None:
    rule = propose_rule("python", "computer.example.press()", workspace=os.getcwd())
    assert rule is not None and rule.call == ("computer.example.press",)
    assert verdict("computer.example.press()", rule) == "allow"
    assert verdict("computer.example.mail('a', 'b')", rule) == "ask"
    assert propose_rule("python", "computer.example.mail('a', 'b')", workspace=os.getcwd()) is None
