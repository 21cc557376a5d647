"""Semgrep with the rules beside this file: nothing is fetched, nothing is sent."""

from __future__ import annotations

import json
from pathlib import Path

from interpreter.policy.scanners.findings import (
    Finding,
    Severity,
    failed,
)
from interpreter.policy.scanners.tool import Tool

RULES = Path(__file__).parent / "rules"
_SEVERITIES: dict[str, Severity] = {"ERROR": "high", "WARNING": "medium", "INFO": "low"}


def _commands(program: str, file: Path, kind: str) -> list[list[str]]:
    quietly = ["--json", "--quiet", "--metrics=off", "--disable-version-check", "--no-git-ignore", "--jobs=1"]
    looking = ["--disable-nosem", f"--config={RULES / kind}.yaml", file.name]
    # The same engine without the Python around it: a tenth of the time. It may go in another version.
    return [[program, "scan", *fast, *quietly, *looking] for fast in (["--experimental"], [])]


def _environment(folder: Path) -> dict[str, str]:
    return {
        "SEMGREP_SEND_METRICS": "off",
        "SEMGREP_ENABLE_VERSION_CHECK": "0",
        "SEMGREP_SETTINGS_FILE": str(folder / "settings.yml"),
        "SEMGREP_LOG_FILE": str(folder / "semgrep.log"),
    }


def _read(text: str) -> list[Finding]:
    report = json.loads(text)
    wrong = [failed("semgrep", str(error.get("message", "no reason given"))) for error in report["errors"]]
    return wrong[:1] + [
        Finding(
            "semgrep",
            found["check_id"].rpartition(".")[2],
            found["start"]["line"],
            _SEVERITIES.get(found["extra"]["severity"], "medium"),
            " ".join(found["extra"]["message"].split()),
        )
        for found in report["results"]
    ]


SEMGREP = Tool("semgrep", _commands, _read, _environment)
