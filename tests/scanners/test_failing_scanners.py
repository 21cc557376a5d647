"""Scanners that crash, hang, print nonsense or are cancelled: the block is never reported clean."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

import pytest

from interpreter.scanners import (
    Finding,
    Scan,
    Scanner,
)
from interpreter.scanners.scanner import ScannerTool

pytestmark = pytest.mark.usefixtures("no_strays")


def parse_findings(text: str) -> list[Finding]:
    return [Finding("working", "T1", line, "low", "found") for line in json.loads(text)["lines"]]


def tool(name: str, program: str, *more: str) -> ScannerTool:
    """A scanner that runs this Python program, and those in `more` if it fails."""

    def commands(_: str, file: Path, kind: str) -> list[list[str]]:
        return [[sys.executable, "-c", each, str(file)] for each in (program, *more)]

    return ScannerTool(name, commands, parse_findings)


@pytest.fixture(autouse=True)
def _scanners_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScannerTool, "program", property(lambda self: self.name))


WORKING = "import json, sys; print(json.dumps({'lines': [open(sys.argv[1]).read().count('x')]}))"


def scan_with(*tools: ScannerTool, limit: float = 60) -> Scan:
    return Scanner(limit, tools).scan("python", "x = 'xx'")


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("raise SystemError('out of ideas')", "out of ideas"),
        ("print('hello')", "exited with code 0"),
        ("print('{}')", "exited with code 0"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "exited with code -9"),
    ],
)
def test_a_broken_scanner_is_a_high_severity_finding(program: str, why: str) -> None:
    found = scan_with(tool("broken", program), tool("working", WORKING))
    failure, finding = found.findings
    assert (failure.tool, failure.rule, failure.severity) == (
        "broken",
        "not-scanned",
        "high",
    ) and why in failure.message
    assert finding.line == 3  # the other scanner still runs
    assert found.asks


def test_the_next_command_is_tried_if_one_fails() -> None:
    found = scan_with(tool("two commands", "print('no such option')", WORKING))
    assert [one.line for one in found.findings] == [3] and not found.asks


def test_a_hanging_scanner_is_killed_with_its_children() -> None:
    child = "import subprocess, sys, threading; subprocess.Popen([sys.executable, '-c', 'import threading; threading.Event().wait()']); threading.Event().wait()"
    found = scan_with(tool("slow", child), limit=0.5)
    assert "more than 0.5 seconds" in found.findings[0].message and found.asks


def test_a_scanner_that_cannot_start_is_a_finding() -> None:
    def commands(_: str, file: Path, kind: str) -> list[list[str]]:
        return [["/nowhere/scanner"]]

    found = scan_with(ScannerTool("gone", commands, parse_findings))
    assert "No such file" in found.findings[0].message and found.asks


def test_cancel_stops_all_scanners(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    hangs = f"open({str(begun)!r}, 'w').close(); import threading; threading.Event().wait()"
    scanner = Scanner(tools=[tool("one", hangs), tool("two", hangs)])
    results: list[Scan] = []
    thread = threading.Thread(target=lambda: results.append(scanner.scan("python", "x")))
    thread.start()
    with open(begun) as file:
        file.read()
    scanner.cancel()
    thread.join(60)
    assert results[0].cancelled and results[0].asks
    assert not scanner.scan("ruby", "x").cancelled  # cancelling ends only that scan


def test_a_missing_scanner_is_reported_once() -> None:
    class Missing(ScannerTool):
        program = None  # type: ignore[assignment]

    gone = Missing("gone", lambda *_: [], parse_findings)
    scanner = Scanner(tools=[gone, tool("working", WORKING)])
    first, second = scanner.scan("python", "x"), scanner.scan("python", "y")
    assert first.notice.startswith("gone is not installed") and second.notice == ""
    assert second.missing == ["gone"] and not second.asks
