"""Bandit: dangers in Python code, from its syntax tree."""

from __future__ import annotations

import json
from pathlib import Path

from interpreter.policy.scanners.findings import (
    Finding,
    Severity,
    failed,
)
from interpreter.policy.scanners.tool import Tool

_SEVERITIES: dict[str, Severity] = {"LOW": "low", "MEDIUM": "medium", "HIGH": "high"}
# Weak cryptography is a fault of a program that is kept, no danger of running it: a checksum is no reason to ask.
_MILDER: dict[str, Severity] = {
    **dict.fromkeys(("B108", "B303", "B304", "B305", "B324", "B413", "B505"), "low"),
    **dict.fromkeys(("B501", "B502", "B503", "B504"), "medium"),
}
# About the style of a program, or about an import whose uses are found anyway: noise at an approval.
_SKIPPED = "B101,B110,B112,B113,B311,B403,B404,B405,B406,B407,B408,B409,B410,B411,B603,B606,B607"


def _commands(program: str, file: Path, kind: str) -> list[list[str]]:
    # Who wrote the block must not be able to tell the scanner to look away.
    return [[program, "--format", "json", "--quiet", "--ignore-nosec", "--skip", _SKIPPED, file.name]]


def _read(text: str) -> list[Finding]:
    report = json.loads(text)
    wrong = [failed("bandit", error["reason"]) for error in report["errors"]]
    return wrong + [
        Finding(
            "bandit",
            found["test_id"],
            found["line_number"],
            _MILDER.get(found["test_id"]) or _SEVERITIES.get(found["issue_severity"], "medium"),
            found["issue_text"].strip(),
        )
        for found in report["results"]
    ]


BANDIT = Tool("bandit", _commands, _read)
