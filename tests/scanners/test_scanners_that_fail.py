"""Scanners that crash, hang, print nonsense or are cancelled: the block is never called clean."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import pytest

from interpreter.policy.scanners import (
    Finding,
    Scan,
    Scanner,
)
from interpreter.policy.scanners.scanner import ScannerTool

pytestmark = pytest.mark.usefixtures("no_strays")


def read(text: str) -> list[Finding]:
    return [Finding("told", "T1", line, "low", "told") for line in json.loads(text)["lines"]]


def tool(name: str, program: str, *more: str) -> ScannerTool:
    """A scanner that is this Python program; `more` are tried after it."""

    def commands(_: str, file: Path, kind: str) -> list[list[str]]:
        return [[sys.executable, "-c", each, str(file)] for each in (program, *more)]

    return ScannerTool(name, commands, read)


@pytest.fixture(autouse=True)
def _found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScannerTool, "program", property(lambda self: self.name))


WELL = "import json, sys; print(json.dumps({'lines': [open(sys.argv[1]).read().count('x')]}))"


def scanned(*tools: ScannerTool, limit: float = 60) -> Scan:
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
def test_a_scanner_that_breaks_is_a_grave_finding(program: str, why: str) -> None:
    found = scanned(tool("broken", program), tool("well", WELL))
    grave, told = found.findings
    assert (grave.tool, grave.rule, grave.severity) == ("broken", "not-scanned", "high") and why in grave.message
    assert told.line == 3  # the others go on
    assert found.asks


def test_the_next_way_is_tried() -> None:
    found = scanned(tool("two ways", "print('no such option')", WELL))
    assert [one.line for one in found.findings] == [3] and not found.asks


def test_a_scanner_that_hangs_is_ended_with_its_children() -> None:
    child = "import subprocess, sys, threading; subprocess.Popen([sys.executable, '-c', 'import threading; threading.Event().wait()']); threading.Event().wait()"
    found = scanned(tool("slow", child), limit=0.5)
    assert "more than 0.5 seconds" in found.findings[0].message and found.asks


def test_a_program_that_cannot_be_started_is_a_finding() -> None:
    def commands(_: str, file: Path, kind: str) -> list[list[str]]:
        return [["/nowhere/scanner"]]

    found = scanned(ScannerTool("gone", commands, read))
    assert "No such file" in found.findings[0].message and found.asks


def test_cancelling_ends_all_of_them(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    import os

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
    assert not scanner.scan("ruby", "x").cancelled  # it is over with that scan


def test_a_missing_scanner_is_told_once() -> None:
    class Missing(ScannerTool):
        program = None  # type: ignore[assignment]

    gone = Missing("gone", frozenset({"python"}), lambda *_: [], read)
    scanner = Scanner(tools=[gone, tool("well", WELL)])
    first, second = scanner.scan("python", "x"), scanner.scan("python", "y")
    assert first.notice.startswith("gone is not installed") and second.notice == ""
    assert second.missing == ["gone"] and not second.asks
