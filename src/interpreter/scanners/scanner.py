"""Scans a block with external scanners: side by side, each with a time limit, and cancellable from any thread."""

from __future__ import annotations

import ast
import json
import os
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from interpreter.host import processes
from interpreter.host.installation import install_hint
from interpreter.host.processes import PIPE
from interpreter.policy.scan import SEVERITIES, Finding, Scan, Severity
from interpreter.runtimes import BUILT_IN, Registry, resolve

if TYPE_CHECKING:
    from subprocess import Popen


def failed(tool: str, why: str) -> Finding:
    # The rule of a finding that says that a scanner could not look at the block: that is not the same as clean.
    return Finding(tool, "not-scanned", 0, "high", f"The scan failed, so this code was not checked: {why}")


def in_order(findings: list[Finding]) -> list[Finding]:
    """Sort the findings by severity, then line, without duplicates."""
    return sorted(
        dict.fromkeys(findings), key=lambda finding: (SEVERITIES.index(finding.severity), finding.line, finding.tool)
    )


# Returns command lines for the program, the file and its kind; the next is tried if one prints nothing readable.
Commands = Callable[[str, Path, str], list[list[str]]]


class ScannerTool(NamedTuple):
    """How to start a scanner and read its report. A language names the scanners that understand it."""

    name: str
    commands: Commands
    # Parses its output; ValueError, KeyError or TypeError if that is not a report.
    read: Callable[[str], list[Finding]]
    # Its environment variables; the folder is deleted afterwards.
    environment: Callable[[Path], dict[str, str]] = lambda folder: {}
    prepared: Callable[[str], str] = lambda code: code  # the code to scan, with the same line numbers

    @property
    def program(self) -> str | None:
        """Find the scanner's program, beside the Python that runs us or on the PATH."""
        return processes.which(os.path.join(os.path.dirname(sys.executable), self.name)) or processes.which(self.name)


_CELL = re.compile(r"\s*%%(!|\w+)")
_COMMAND = re.compile(r"(?P<indent>[ \t]*)(?:[\w.,\[\] ]+=[ \t]*)?(?P<sign>!{1,2}|%sx[ ]|%)(?P<rest>.*)")
_HELP = re.compile(r"[ \t]*\?{1,2}[\w.*]+[ \t]*|[ \t]*[\w.*]+\?{1,2}[ \t]*")


class CodePart(NamedTuple):
    """Code of one kind: the name of a language, or "" if no scanner knows it."""

    kind: str
    code: str


def parts_of(language: str, code: str, registry: Registry = BUILT_IN) -> list[CodePart]:
    """Return the parts of a block that are to be scanned; none if it is empty."""
    split = registry.describe(language).scan_parts
    parts = resolve(split)(code, registry) if split else [CodePart(_kind(language, registry), code)]
    return [part for part in parts if part.code.strip()]


def _kind(language: str, registry: Registry) -> str:
    description = registry.describe(language)
    return description.name.lower() if description.scanners else ""


def python_parts(code: str, registry: Registry) -> list[CodePart]:
    """Separate Python from the shell commands in it, each with empty lines in place of the other."""
    cell = _CELL.match(code)
    # Cell magics whose body is Python.
    if cell is not None and cell[1] not in {"time", "timeit", "capture", "prun"}:
        first, _, body = code[cell.start(1) :].partition("\n")
        above = code.count("\n", 0, cell.start(1)) + 1
        kind = _kind("shell" if cell[1] == "!" else cell[1], registry)
        return [CodePart(kind, "\n" * above + body if kind else first + body)]
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        ast.parse(code)
        return [CodePart("python", code)]
    python, shell = [], []
    continued = ""  # the sign of a command that continues in this line
    for line in code.split("\n"):
        command = None if continued else _COMMAND.fullmatch(line)
        sign = continued or (command["sign"] if command else "")
        rest = command["rest"] if command else line
        is_command = sign.startswith("!") or sign == "%sx " or (sign == "%" and rest.startswith("sx "))
        shell.append(rest if is_command else "")
        if sign:
            python.append(f"{command['indent']}pass" if command else "")
        else:
            python.append("" if _HELP.fullmatch(line) else line)
        continued = sign if sign and line.endswith("\\") else ""
    if all(line.strip() in ("", "pass") for line in python):
        python = []
    return [CodePart("python", "\n".join(python)), CodePart("shell", "\n".join(shell))]


TIMEOUT = 30.0


def scan(language: str, code: str, time_limit: float = TIMEOUT) -> Scan:
    """Run the installed scanners on a block."""
    return Scanner(time_limit).scan(language, code)


class Scanner:
    """The scanners of one interpreter: those that its languages name, or `tools` for all of them.

    `cancel` may be called from any thread.
    """

    def __init__(
        self, time_limit: float = TIMEOUT, tools: Iterable[ScannerTool] | None = None, registry: Registry = BUILT_IN
    ) -> None:
        self._time_limit, self._registry = time_limit, registry
        self._tools = None if tools is None else tuple(tools)
        self._lock = threading.Lock()
        self._running: set[Popen[bytes]] = set()
        self._scanning, self._cancelled = False, threading.Event()
        self._told: set[str] = set()

    def can_scan(self, language: str, code: str) -> bool:
        """Return whether a scanner for any part of this code is installed."""
        parts = parts_of(language, code, self._registry)
        return any(tool.program for part in parts for tool in self._tools_for(part))

    def scan(self, language: str, code: str) -> Scan:
        parts = parts_of(language, code, self._registry)
        wanted = [(tool, part) for part in parts for tool in self._tools_for(part)]
        programs = {tool.name: tool.program for tool, _ in wanted}
        missing = [name for name, program in programs.items() if program is None]
        begun = [(tool, part, program) for tool, part in wanted if (program := programs[tool.name])]
        # A part that was not scanned is not clean because another one is.
        unseen = any(all(part is not seen for _, seen, _ in begun) for part in parts)
        with self._lock:
            self._scanning = True
            self._cancelled.clear()
        try:
            findings = self._findings(begun)
        finally:
            with self._lock:
                for process in self._running:
                    processes.kill(process)
                self._scanning = False
        notice = ""  # a scanner that is missing is named once
        if new := [name for name in missing if name not in self._told]:
            self._told.update(new)
            are = "are" if len(new) > 1 else "is"
            notice = (
                f"{' and '.join(new)} {are} not installed, so the scan runs without. To install: {install_hint('scan')}"
            )
        tools = list(dict.fromkeys(tool.name for tool, _, _ in begun))
        return Scan(in_order(findings), missing, tools, unseen, notice, self._cancelled.is_set())

    def _tools_for(self, part: CodePart) -> Iterable[ScannerTool]:
        named = self._registry.describe(part.kind).scanners if part.kind else ()
        return self._tools if self._tools is not None and named else map(resolve, named)

    def cancel(self) -> None:
        """Stop the running scan; its findings then say that it failed."""
        with self._lock:
            if self._scanning:
                self._cancelled.set()
            for process in self._running:
                processes.kill(process)

    # -- running them ----------------------------------------------------------------------------------------------

    def _findings(self, begun: list[tuple[ScannerTool, CodePart, str]]) -> list[Finding]:
        if not begun:
            return []
        with tempfile.TemporaryDirectory(prefix="scan-") as folder, ThreadPoolExecutor(len(begun)) as pool:
            try:
                results = [
                    pool.submit(self._looked, tool, part, program, Path(folder) / f"{tool.name}-{number}")
                    for number, (tool, part, program) in enumerate(begun)
                ]
                return [finding for result in results for finding in result.result()]
            except BaseException:
                self.cancel()  # the pool waits for what runs in it
                raise

    def _looked(self, tool: ScannerTool, part: CodePart, program: str, folder: Path) -> list[Finding]:
        """Return one scanner's findings; a failure of the scanner is one, too."""
        try:
            folder.mkdir()
            file = folder / f"block.{self._registry.describe(part.kind).file_extension or 'txt'}"
            file.write_text(tool.prepared(part.code), encoding="utf-8", errors="replace")
            why = ""
            for command in tool.commands(program, file, part.kind):
                answer, why = self._answer(command, folder, tool.environment(folder))
                try:
                    return tool.read(answer)
                except (ValueError, KeyError, TypeError, AttributeError):
                    why = why or "its report could not be read"
                if self._cancelled.is_set():
                    break
            return [failed(tool.name, f"{why}.")]
        except OSError as error:
            return [failed(tool.name, f"{error.strerror or error}.")]

    def _answer(self, command: list[str], folder: Path, environment: dict[str, str]) -> tuple[str, str]:
        """Run a command and return its output and an error message; TimeoutError if it takes too long."""
        with self._lock:  # so that a cancel finds either nothing begun or a process to end
            if self._cancelled.is_set():
                return "", "it was cancelled"
            process = processes.start(command, env=environment, cwd=folder, stdout=PIPE, stderr=PIPE)
            self._running.add(process)
        try:
            done = processes.collect(process, self._time_limit)
        finally:
            with self._lock:
                self._running.discard(process)
        if self._cancelled.is_set():
            return "", "it was cancelled"
        return done.text, done.complaint.rstrip(".")[:200]


# -- the scanners -----------------------------------------------------------------------------------------------------

_BANDIT_SEVERITIES: dict[str, Severity] = {"LOW": "low", "MEDIUM": "medium", "HIGH": "high"}
# Weak cryptography is a fault in a program that is kept, but not dangerous to run: a checksum is no reason to ask.
_BANDIT_MILDER: dict[str, Severity] = {
    **dict.fromkeys(("B108", "B303", "B304", "B305", "B324", "B413", "B505"), "low"),
    **dict.fromkeys(("B501", "B502", "B503", "B504"), "medium"),
}
# About the style of a program, or about an import whose uses are found anyway: noise at an approval.
_BANDIT_SKIPPED = "B101,B110,B112,B113,B311,B403,B404,B405,B406,B407,B408,B409,B410,B411,B603,B606,B607"


def _bandit_commands(program: str, file: Path, kind: str) -> list[list[str]]:
    # Who wrote the block must not be able to tell the scanner to look away.
    return [[program, "--format", "json", "--quiet", "--ignore-nosec", "--skip", _BANDIT_SKIPPED, file.name]]


def _read_bandit(text: str) -> list[Finding]:
    report = json.loads(text)
    wrong = [failed("bandit", error["reason"]) for error in report["errors"]]
    return wrong + [
        Finding(
            "bandit",
            result["test_id"],
            result["line_number"],
            _BANDIT_MILDER.get(result["test_id"]) or _BANDIT_SEVERITIES.get(result["issue_severity"], "medium"),
            result["issue_text"].strip(),
        )
        for result in report["results"]
    ]


BANDIT = ScannerTool("bandit", _bandit_commands, _read_bandit)


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
            result["check_id"].rpartition(".")[2],
            result["start"]["line"],
            _SEMGREP_SEVERITIES.get(result["extra"]["severity"], "medium"),
            " ".join(result["extra"]["message"].split()),
        )
        for result in report["results"]
    ]


SEMGREP = ScannerTool("semgrep", _semgrep_commands, _read_semgrep, _environment)


_LEVELS: dict[str, Severity] = {"error": "medium", "warning": "low"}
# Most of its checks are about correctness; these are about lost data.
_GRAVE: dict[int, Severity] = {
    2114: "high",  # deletes a system folder
    2115: "high",  # deletes "/*" if a variable is empty
    2156: "medium",  # a file's name becomes part of a program
}
# The author of the block must not be able to tell ShellCheck to look away.
_DIRECTIVE = re.compile(r"^([ \t]*)#[ \t]*shellcheck\b.*$", re.MULTILINE)


def _shellcheck_commands(program: str, file: Path, kind: str) -> list[list[str]]:
    # Checks for whole programs are excluded: a block uses variables of earlier blocks and sets them for later ones.
    options = [
        "--norc",
        "--format=json1",
        "--shell=bash",
        "--severity=warning",
        "--exclude=SC1090,SC1091,SC2034,SC2148,SC2154,SC2164,SC2317",
    ]
    return [[program, *options, file.name]]


def _read_shellcheck(text: str) -> list[Finding]:
    return [
        Finding(
            "shellcheck",
            f"SC{comment['code']}",
            comment["line"],
            _GRAVE.get(comment["code"], _LEVELS.get(comment["level"], "low")),
            comment["message"].strip(),
        )
        for comment in json.loads(text)["comments"]
    ]


SHELLCHECK = ScannerTool("shellcheck", _shellcheck_commands, _read_shellcheck, prepared=partial(_DIRECTIVE.sub, r"\1#"))
