"""The scanners: Bandit, Semgrep with the rules beside this file, and ShellCheck. Nothing is downloaded or sent."""

from __future__ import annotations

import json
import re
from pathlib import Path

from interpreter.policy.scanners.scanner import Finding, Severity, Tool, failed

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


RULES = Path(__file__).parent / "rules"
_SEMGREP_SEVERITIES: dict[str, Severity] = {"ERROR": "high", "WARNING": "medium", "INFO": "low"}


def _semgrep_commands(program: str, file: Path, kind: str) -> list[list[str]]:
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


def _read_semgrep(text: str) -> list[Finding]:
    report = json.loads(text)
    wrong = [failed("semgrep", str(error.get("message", "no reason given"))) for error in report["errors"]]
    return wrong[:1] + [
        Finding(
            "semgrep",
            found["check_id"].rpartition(".")[2],
            found["start"]["line"],
            _SEMGREP_SEVERITIES.get(found["extra"]["severity"], "medium"),
            " ".join(found["extra"]["message"].split()),
        )
        for found in report["results"]
    ]


SEMGREP = Tool("semgrep", _semgrep_commands, _read_semgrep, _environment)


_LEVELS: dict[str, Severity] = {"error": "medium", "warning": "low"}
# Most of what it knows is about correctness; these are about what is lost.
_GRAVE: dict[int, Severity] = {
    2114: "high",  # deletes a system folder
    2115: "high",  # deletes "/*" if a variable is empty
    2156: "medium",  # a file's name becomes part of a program
}
# Sense in a file, none in a session: variables and functions come from earlier blocks and are for later ones.
_SHELLCHECK_SKIPPED = "SC1090,SC1091,SC2034,SC2148,SC2154,SC2164,SC2317"
# The author of the block must not be able to tell ShellCheck to look away.
_DIRECTIVE = re.compile(r"^([ \t]*)#[ \t]*shellcheck\b.*$", re.MULTILINE)


def _prepared(code: str) -> str:
    return _DIRECTIVE.sub(r"\1#", code)


def _shellcheck_commands(program: str, file: Path, kind: str) -> list[list[str]]:
    how = ["--norc", "--format=json1", "--shell=bash", "--severity=warning", f"--exclude={_SHELLCHECK_SKIPPED}"]
    return [[program, *how, file.name]]


def _read_shellcheck(text: str) -> list[Finding]:
    return [
        Finding(
            "shellcheck",
            f"SC{found['code']}",
            found["line"],
            _GRAVE.get(found["code"], _LEVELS.get(found["level"], "low")),
            found["message"].strip(),
        )
        for found in json.loads(text)["comments"]
    ]


SHELLCHECK = Tool("shellcheck", _shellcheck_commands, _read_shellcheck, prepared=_prepared)
