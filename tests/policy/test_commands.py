"""A table of real commands: the verdict for each, and whether it can be undone."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpreter.policy import Policy
from interpreter.policy.analysis import analyze, reversibility
from interpreter.policy.files import user_file
from interpreter.policy.policy import builtin
from interpreter.policy.policy_file import check_examples
from policy.commands_table import HERE, Row, rows, sections

WORDS = {"reversible": "yes", "partly": "partly", "not": "no"}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace, with the reading rule of the documentation in the user's policy file."""
    user_file().parent.mkdir(parents=True)
    user_file().write_text((HERE / "reading.yaml").read_text("utf-8"))
    return tmp_path


@pytest.mark.parametrize("section", sections().values(), ids=sections())
def test_each_command_gets_the_expected_verdict(section: list[Row], workspace: Path) -> None:
    policy = Policy.load(workspace)
    assert [judged_row(policy, row.code) for row in section] == section


def judged_row(policy: Policy, code: str) -> Row:
    effects = analyze("shell", code, policy.workspace)
    verdict = policy.judge("shell", code, effects)
    return Row(verdict.decision, WORDS[reversibility(effects).kind], code)


def test_the_table_is_large_and_has_no_duplicates() -> None:
    codes = [row.code for row in rows()]
    assert len(codes) >= 200
    assert len(set(codes)) == len(codes)


def test_without_user_rules_nothing_is_allowed(tmp_path: Path) -> None:
    policy = Policy.load(tmp_path)
    assert {policy.judge("shell", row.code).decision for row in rows()} == {"ask", "deny"}


def test_the_built_in_rules_match_their_examples(tmp_path: Path) -> None:
    rules = builtin().rules
    for rule in rules:
        check_examples(rule, str(tmp_path))
    assert len({rule.name for rule in rules}) == len(rules)
    assert all(rule.reason for rule in rules)
