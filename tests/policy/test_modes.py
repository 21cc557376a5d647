"""The outcome for every permission mode, verdict and sandbox."""

from __future__ import annotations

import pytest

from interpreter.policy import (
    MODES,
    Rule,
    Sandboxing,
    Verdict,
    decide,
)

OPEN = Sandboxing()
WORKSPACE = Sandboxing("workspace", network=False)
READ_ONLY = Sandboxing("nowhere", network=False)
READ_ONLY_ONLINE = Sandboxing("nowhere", network=True)

VERDICTS = {
    "allow": Verdict("allow", (Rule("allow", command=("x",)),), "yes", ()),
    "none": Verdict("ask", (), "no rule covers it", ()),
    "ask": Verdict("ask", (Rule("ask", command=("x",)),), "look first", ()),
    "deny": Verdict("deny", (Rule("deny", command=("x",)),), "never", ()),
}

# Mode, sandbox, then the outcome for a verdict of allow, none, ask, deny.
TABLE = [
    ("ask", OPEN, "run ask ask deny"),
    ("ask", WORKSPACE, "run ask ask deny"),
    ("ask", READ_ONLY, "run ask ask deny"),
    ("auto-in-sandbox", OPEN, "run ask ask deny"),
    ("auto-in-sandbox", WORKSPACE, "run run ask deny"),
    ("auto-in-sandbox", READ_ONLY, "run run ask deny"),
    ("auto", OPEN, "run run ask deny"),
    ("auto", WORKSPACE, "run run ask deny"),
    ("auto", READ_ONLY, "run run ask deny"),
    ("plan", OPEN, "deny deny deny deny"),
    ("plan", WORKSPACE, "deny deny deny deny"),
    ("plan", READ_ONLY_ONLINE, "deny deny deny deny"),
    ("plan", READ_ONLY, "run run ask deny"),
]
SANDBOXES = {OPEN: "open", WORKSPACE: "workspace", READ_ONLY: "read-only", READ_ONLY_ONLINE: "read-only online"}
IDS = [f"{mode}, {SANDBOXES[sandbox]}" for mode, sandbox, _ in TABLE]


@pytest.mark.parametrize(("mode", "sandbox", "actions"), TABLE, ids=IDS)
def test_each_mode_verdict_and_sandbox_has_its_outcome(mode: str, sandbox: Sandboxing, actions: str) -> None:
    found = [decide(mode, verdict, sandbox) for verdict in VERDICTS.values()]  # type: ignore[arg-type]
    assert [outcome.action for outcome in found] == actions.split()
    assert all(outcome.reason for outcome in found)


def test_every_mode_is_in_the_table() -> None:
    assert {mode for mode, _, _ in TABLE} == set(MODES)


@pytest.mark.parametrize(("mode", "sandbox", "actions"), TABLE, ids=IDS)
def test_an_alarm_asks_instead_of_running(mode: str, sandbox: Sandboxing, actions: str) -> None:
    found = [decide(mode, verdict, sandbox, alarm="high: line 3").action for verdict in VERDICTS.values()]  # type: ignore[arg-type]
    assert found == actions.replace("run", "ask").split()


def test_no_sandbox_is_the_default() -> None:
    assert decide("auto-in-sandbox", VERDICTS["none"]).action == "ask"
