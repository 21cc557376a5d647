"""ShellCheck: mistakes in shell code, some of which delete more than was meant."""

from __future__ import annotations

import json
import re
from pathlib import Path

from interpreter.policy.scanners.findings import Finding, Severity
from interpreter.policy.scanners.tool import Tool

_LEVELS: dict[str, Severity] = {"error": "medium", "warning": "low"}
# Most of what it knows is about correctness; these are about what is lost.
_GRAVE: dict[int, Severity] = {
    2114: "high",  # deletes a system folder
    2115: "high",  # deletes "/*" if a variable is empty
    2156: "medium",  # a file's name becomes part of a program
}
# Sense in a file, none in a session: variables and functions come from earlier blocks and are for later ones.
_SKIPPED = "SC1090,SC1091,SC2034,SC2148,SC2154,SC2164,SC2317"
# The author of the block must not be able to tell ShellCheck to look away.
_DIRECTIVE = re.compile(r"^([ \t]*)#[ \t]*shellcheck\b.*$", re.MULTILINE)


def _prepared(code: str) -> str:
    return _DIRECTIVE.sub(r"\1#", code)


def _commands(program: str, file: Path, kind: str) -> list[list[str]]:
    how = ["--norc", "--format=json1", "--shell=bash", "--severity=warning", f"--exclude={_SKIPPED}"]
    return [[program, *how, file.name]]


def _read(text: str) -> list[Finding]:
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


SHELLCHECK = Tool("shellcheck", _commands, _read, prepared=_prepared)
