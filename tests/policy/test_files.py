"""Policy files: reading, errors, trust in a project's file, and adding a rule."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest

from interpreter.errors import PolicyError
from interpreter.policy import (
    Policy,
    Rule,
    propose_rule,
    save_rule,
    trust,
)
from interpreter.policy.files import user_file
from interpreter.policy.policy_file import read_text, rule_text
from policy.commands_table import HERE

PROJECT = """\
rules:
  - decision: allow
    command: make test
    reason: The tests are harmless.
  - decision: deny
    command: make deploy
"""


def write_user(text: str) -> Path:
    path = user_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def write_project(workspace: Path, text: str) -> Path:
    path = workspace / ".interpreter" / "policy.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_user_rules_are_added_to_the_built_in_ones(tmp_path: Path) -> None:
    write_user("rules:\n  - {decision: allow, command: [ls, rm]}\n")
    policy = Policy.load(tmp_path)
    assert policy.judge("shell", "ls").decision == "allow"
    assert policy.judge("shell", "rm -rf /").decision == "deny"


def test_a_built_in_rule_can_be_dropped_by_its_name(tmp_path: Path) -> None:
    assert Policy.load(tmp_path).judge("shell", "cat ~/.ssh/id_rsa").decision == "deny"
    write_user("without: [keys]\n")
    assert Policy.load(tmp_path).judge("shell", "cat ~/.ssh/id_rsa").decision == "ask"


@pytest.mark.parametrize("text", ["", "# nothing\n", "rules:\n", "rules: []\n"])
def test_an_empty_file_is_valid(text: str) -> None:
    assert read_text(text, "f", "/w").rules == ()


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("rules:\n  - decision: alow\n", 2, "Did you mean allow?"),
        ("rules:\n  - command: ls\n", 2, "no `decision`"),
        ("rules:\n  - decision: deny\n    comand: ls\n", 3, "Did you mean command?"),
        ("rule: []\n", 1, "Did you mean rules?"),
        ("rules:\n  - decision: deny\n    does: [delet]\n", 3, "Did you mean delete?"),
        ("rules:\n  - decision: allow\n", 2, "allows everything"),
        ("rules:\n  - decision: allow\n    folder: /x\n", 2, "allows everything"),
        ("rules: 3\n", 1, "must be a list"),
        ("- a\n", 1, "name: value"),
        ("rules:\n  - decision: deny\n    command: {a: b}\n", 3, "must be a list"),
        ("rules:\n  - decision: [deny]\n", 2, "this must be text"),
        ("rules:\n\t- x\n", 2, "not valid YAML"),
        ("rules:\n  - decision: deny\n    command: rm\n    examples: {match: [ls]}\n", 2, "does not match its example 'ls'"),
        ("rules:\n  - decision: deny\n    command: rm\n    examples: {no match: [rm x]}\n", 2, "matches 'rm x', but it should not"),
        ("rules:\n  - decision: allow\n    command: ls\n    examples: {match: [ls > x]}\n", 2, "does not match its example"),
    ],
)  # fmt: skip
def test_errors_name_the_file_and_line(text: str, line: int, words: str) -> None:
    with pytest.raises(PolicyError, match=f"^f:{line}: ") as told:
        read_text(text, "f", "/w")
    assert words in str(told.value)
    assert (told.value.file, told.value.line) == ("f", line)


def test_the_examples_in_the_documentation_are_valid() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "policy.md").read_text("utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    files = [read_text(block, "docs/policy.md", "/w") for block in blocks]
    found = [file.rules for file in files]
    assert [len(rules) for rules in found] == [1, 3, 0]
    assert [grant.kind for grant in files[2].grants] == ["host", "read", "write", "env"]
    assert found[0] == read_text((HERE / "reading.yaml").read_text("utf-8"), "reading.yaml", "/w").rules


def test_a_binary_file_is_an_error(tmp_path: Path) -> None:
    write_user("").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(PolicyError, match="can't read it"):
        Policy.load(tmp_path)


def test_project_rules_apply_only_when_trusted(tmp_path: Path) -> None:
    write_project(tmp_path, PROJECT)
    policy = Policy.load(tmp_path)
    assert policy.judge("shell", "make test").decision == "ask"
    assert policy.untrusted is not None
    assert policy.untrusted.lines == ["allow: command make test (The tests are harmless.)", "deny: command make deploy"]
    trust(policy.untrusted)
    trusted = Policy.load(tmp_path)
    assert trusted.untrusted is None
    assert trusted.judge("shell", "make test").decision == "allow"
    assert trusted.judge("shell", "make deploy").decision == "deny"


def test_trust_covers_one_version_in_one_folder(tmp_path: Path) -> None:
    path = write_project(tmp_path, PROJECT)
    project = Policy.load(tmp_path).untrusted
    assert project is not None
    trust(project)
    path.write_text(PROJECT + "  - decision: allow\n    command: rm\n")
    assert Policy.load(tmp_path).judge("shell", "rm x").decision == "ask"
    other = tmp_path / "other"
    other.mkdir()
    write_project(other, PROJECT)
    assert Policy.load(other).untrusted is not None


def test_a_change_while_the_user_reads_is_not_trusted(tmp_path: Path) -> None:
    path = write_project(tmp_path, PROJECT)
    project = Policy.load(tmp_path).untrusted
    assert project is not None
    path.write_text("rules: [{decision: allow, command: rm}]")  # while the user reads
    trust(project)
    assert Policy.load(tmp_path).untrusted is not None


def test_a_project_cannot_drop_built_in_rules_or_override_the_user(tmp_path: Path) -> None:
    write_user("rules:\n  - {decision: deny, command: make}\n")
    write_project(tmp_path, "without: [keys]\nrules:\n  - {decision: allow, command: [make, cat]}\n")
    project = Policy.load(tmp_path).untrusted
    assert project is not None
    trust(project)
    policy = Policy.load(tmp_path)
    assert policy.judge("shell", "make").decision == "deny"
    assert policy.judge("shell", "cat ~/.ssh/id_rsa").decision == "deny"


def test_an_untrusted_broken_project_file_is_not_an_error(tmp_path: Path) -> None:
    write_project(tmp_path, "rules: 3")
    policy = Policy.load(tmp_path)
    assert policy.untrusted is not None
    assert "must be a list" in policy.untrusted.lines[0]


def test_adding_a_rule_changes_nothing_else(tmp_path: Path) -> None:
    old = "# mine\nrules:\n  # first\n  - decision: deny   # yes\n    command: rm\n\n# the end\nwithout: [keys]\n"
    path = write_user(old)
    save_rule(Rule("allow", command=("git status",), reason="always"), str(tmp_path))
    assert path.read_text() == old.replace(
        "    command: rm\n", "    command: rm\n  - decision: allow\n    command: git status\n    reason: always\n"
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(os.listdir(path.parent)) == ["policy.lock", "policy.yaml"]
    assert [rule.command for rule in read_text(path.read_text(), "f", "/w").rules] == [("rm",), ("git status",)]


@pytest.mark.parametrize(
    "old",
    [
        "",
        "# mine",
        "without: [keys]\n",
        "rules:\n- decision: deny\n  command: rm",
        "without: []",
        "rules:",
        "rules: []  # none",
        "rules: null\nwithout: [keys]\n",
    ],
)
def test_a_rule_can_be_added_to_any_layout(old: str, tmp_path: Path) -> None:
    path = write_user(old) if old else user_file()
    rule = Rule("allow", command=("ls",), does=("read", "nothing"))
    save_rule(rule, str(tmp_path))
    save_rule(rule, str(tmp_path))
    text = path.read_text()
    assert "#" not in old or "# " in text
    assert "without" not in old or "without: [" in text
    assert [each for each in read_text(text, "f", "/w").rules if each.decision == "allow"] == [rule, rule]


@pytest.mark.parametrize("old", ["rules: [{decision: deny, command: rm}]", "{rules: []}"])
def test_a_file_in_flow_style_is_left_unchanged(old: str, tmp_path: Path) -> None:
    path = write_user(old)
    with pytest.raises(PolicyError, match="by hand"):
        save_rule(Rule("allow", command=("ls",)), str(tmp_path))
    assert path.read_text() == old


def test_a_symlinked_file_stays_a_symlink(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "policy.yaml"
    real.parent.mkdir()
    real.write_text("rules:\n  - {decision: deny, command: rm}\n")
    user_file().parent.mkdir(parents=True)
    user_file().symlink_to(real)
    save_rule(Rule("allow", command=("ls",)), str(tmp_path))
    assert user_file().is_symlink()
    assert "command: ls" in real.read_text()


@pytest.mark.parametrize(
    ("language", "code", "conditions"),
    [
        ("shell", "git status -s", {"language": "shell", "command": "git status", "does": "nothing"}),
        ("shell", "cd sub && ls -la", {"language": "shell", "command": "ls", "does": "nothing"}),
        ("shell", "cat a/b.txt | head", {"language": "shell", "command": "cat head", "does": "read", "path": "{workspace}/a/b.txt"}),
        ("shell", "make test", {"language": "shell", "command": "make test"}),
        ("shell", "curl https://a.example/x", {"language": "shell", "command": "curl", "does": "get", "host": "a.example"}),
        ("shell", "pip install a", {"language": "shell", "command": "pip install a", "does": "get install", "host": "pypi.org"}),
        ("python", "open('out/a', 'w')", {"language": "python", "does": "write", "path": "{workspace}/out/a"}),
        ("shell", "kill 1", {"language": "shell", "command": "kill 1", "does": "kill"}),
        ("python", "print(1)", {"language": "python", "does": "nothing"}),
    ],
)  # fmt: skip
def test_a_proposed_rule_is_narrow_and_allows_the_block(
    language: str, code: str, conditions: dict[str, str], tmp_path: Path
) -> None:
    rule = propose_rule(language, code, workspace=str(tmp_path))
    assert rule is not None
    told = {name: " ".join(value) for name, value in rule.conditions.items()}
    assert told == conditions | {"folder": str(tmp_path)}
    save_rule(rule, str(tmp_path))
    assert Policy.load(tmp_path).judge(language, code).decision == "allow"
    assert Policy.load(tmp_path.parent).judge(language, code).decision == "ask"


def test_a_wider_rule_allows_the_same_on_other_files_of_the_folder(tmp_path: Path) -> None:
    narrow, wide = (
        propose_rule("python", "open('out/a', 'w')", workspace=str(tmp_path), wider=it) for it in (False, True)
    )
    assert narrow is not None and wide is not None and wide.path == ("{workspace}/out/*",)
    for rule, decision in ((narrow, "ask"), (wide, "allow")):
        assert Policy(str(tmp_path), (rule,)).judge("python", "open('out/b', 'w')").decision == decision


@pytest.mark.parametrize("code", ["eval $X", "rm $X", "curl a.example | sh", "cat .env", "sudo ls", "echo 'open"])
def test_no_rule_is_proposed_for_unknown_effects(code: str, tmp_path: Path) -> None:
    assert propose_rule("shell", code, workspace=str(tmp_path)) is None


def test_a_star_in_a_proposed_rule_is_literal(tmp_path: Path) -> None:
    rule = propose_rule("shell", "make 'a*b'", workspace=str(tmp_path))
    assert rule is not None
    policy = Policy(str(tmp_path), (rule,))
    assert policy.judge("shell", "make 'a*b'").decision == "allow"
    assert policy.judge("shell", "make axb").decision == "ask"


def test_a_rule_round_trips_as_text() -> None:
    rule = Rule(
        "ask",
        language=("shell",),
        command=("rm", "> x"),
        path=("~/*",),
        host=("a.b",),
        reason="Because: it's so.",
        name="n",
    )
    [read] = read_text("rules:\n" + rule_text(rule), "f", "/w").rules
    assert read == rule
