"""Runs the scanners over a block: side by side, each with a time limit, and all of them cancelled at a word."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from interpreter.policy.scanners.findings import (
    Finding,
    Scan,
    failed,
    in_order,
)
from interpreter.policy.scanners.parts import Part, parts_of
from interpreter.policy.scanners.tool import Tool
from interpreter.runtimes import (
    BUILT_IN,
    Registry,
    resolve,
)

TIME_LIMIT = 30.0
INSTALL = 'pip install "open-interpreter[scan]"'


def scan(language: str, code: str, time_limit: float = TIME_LIMIT) -> Scan:
    """What the installed scanners find in a block."""
    return Scanner(time_limit).scan(language, code)


class Scanner:
    """The scanners of one interpreter: those that its languages name, or `tools` for all of them.

    `cancel` may be called from any thread.
    """

    def __init__(
        self, time_limit: float = TIME_LIMIT, tools: Iterable[Tool] | None = None, registry: Registry = BUILT_IN
    ) -> None:
        self._time_limit, self._registry = time_limit, registry
        self._tools = None if tools is None else tuple(tools)
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._scanning = self._cancelled = False
        self._told: set[str] = set()

    def scan(self, language: str, code: str) -> Scan:
        """What they find in a block."""
        parts = parts_of(language, code, self._registry)
        wanted = [(tool, part) for part in parts for tool in self._tools_for(part)]
        programs = {tool.name: tool.program for tool, _ in wanted}
        missing = [name for name, program in programs.items() if program is None]
        begun = [(tool, part, program) for tool, part in wanted if (program := programs[tool.name])]
        # A part that nobody looked at is not clean because another one is.
        unseen = any(all(part is not seen for _, seen, _ in begun) for part in parts)
        self._begin()
        try:
            found = self._findings(begun)
        finally:
            cancelled = self._end()
        tools = list(dict.fromkeys(tool.name for tool, _, _ in begun))
        return Scan(in_order(found), missing, tools, unseen, self._news(missing), cancelled)

    def _tools_for(self, part: Part) -> Iterable[Tool]:
        named = self._registry.describe(part.kind).scanners if part.kind else ()
        return self._tools if self._tools is not None and named else map(resolve, named)

    def cancel(self) -> None:
        """End what is being scanned; the findings then say that it failed."""
        with self._lock:
            self._cancelled = self._scanning
            for process in self._running:
                _kill(process)

    def _news(self, missing: Iterable[str]) -> str:
        """One line about scanners that are missing, each of them named once."""
        new = [name for name in missing if name not in self._told]
        self._told.update(new)
        if not new:
            return ""
        verb = "are" if len(new) > 1 else "is"
        return f"{' and '.join(new)} {verb} not installed, so the scan does without: {INSTALL}"

    # -- running them ----------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        with self._lock:
            self._scanning, self._cancelled = True, False

    def _end(self) -> bool:
        with self._lock:
            for process in self._running:
                _kill(process)
            self._scanning = False
            return self._cancelled

    def _findings(self, begun: list[tuple[Tool, Part, str]]) -> list[Finding]:
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

    def _looked(self, tool: Tool, part: Part, program: str, folder: Path) -> list[Finding]:
        """One scanner's findings; whatever goes wrong with it is one as well."""
        try:
            folder.mkdir()
            file = folder / f"block.{self._registry.describe(part.kind).file_extension or 'txt'}"
            file.write_text(tool.prepared(part.code), encoding="utf-8", errors="replace")
            environment = {**os.environ, **tool.environment(folder)}
            why = ""
            for command in tool.commands(program, file, part.kind):
                answer, why = self._answer(command, folder, environment)
                try:
                    return tool.read(answer)
                except (ValueError, KeyError, TypeError, AttributeError):
                    why = why or "its report could not be read"
                if self._cancelled:
                    break
            return [failed(tool.name, f"{why}.")]
        except subprocess.TimeoutExpired:
            return [failed(tool.name, f"it took more than {self._time_limit:g} seconds.")]
        except OSError as error:
            return [failed(tool.name, f"{error.strerror or error}.")]

    def _answer(self, command: list[str], folder: Path, environment: dict[str, str]) -> tuple[str, str]:
        """What it printed, and what seems to be wrong; TimeoutExpired if it takes too long."""
        process = self._started(command, folder, environment)
        if process is None:
            return "", "it was cancelled"
        with process:
            try:
                answer, complaint = process.communicate(timeout=self._time_limit)
            finally:
                with self._lock:
                    self._running.discard(process)
                    _kill(process)
        if self._cancelled:
            return "", "it was cancelled"
        last = (complaint.strip().splitlines() or [f"it ended with exit code {process.returncode}"])[-1]
        return answer, last.strip().rstrip(".")[:200]

    def _started(self, command: list[str], folder: Path, environment: dict[str, str]) -> subprocess.Popen[str] | None:
        with self._lock:  # so that a cancel finds either nothing begun or a process to end
            if self._cancelled:
                return None
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,  # the terminal's Ctrl-C is for us, and its children end with it
            )
            self._running.add(process)
            return process


def _kill(process: subprocess.Popen[str]) -> None:
    """End it with its children; nothing if it is gone."""
    if process.returncode is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
