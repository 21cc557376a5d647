"""The command that failed last, and what is known of its output: gathered, never by running anything again."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace

from interpreter.console_text import ConsoleText
from interpreter.frontends.terminal.shell_hook.recorder import VARIABLE
from interpreter.frontends.terminal.shell_hook.ring import read_ring

MOST_OUTPUT = 9000
_MARK = re.compile(r"\x1b\]133;(?P<kind>[CD])(?:;(?P<status>\d+))?(?:\x07|\x1b\\)")
_TMUX_LINES = 300


@dataclass(frozen=True)
class Failure:
    """What `wtf` is about."""

    command: str = ""
    status: int | None = None
    folder: str = ""
    shell: str = ""
    sure: bool = True
    """Whether the command is known, and not only the last one in the shell's history."""
    output: str = ""
    where_from: str = ""
    """Where the output was found; empty if it was not."""

    @property
    def known(self) -> bool:
        return bool(self.command or self.output)


def last_failure(environ: Mapping[str, str], piped: str = "") -> Failure:
    """What the shell's hook remembers, with the output that the recorder, tmux or a pipe has."""
    status = environ.get("WTF_STATUS", "")
    failure = Failure(
        environ.get("WTF_COMMAND", "") if status else "",
        int(status) if status.isdigit() else None,
        environ.get("WTF_FOLDER", ""),
        environ.get("WTF_SHELL", ""),
        sure=bool(environ.get("WTF_SURE")),
    )
    output, where = _output(failure, environ, piped)
    return replace(failure, output=output[-MOST_OUTPUT:], where_from=where if output else "")


def _output(failure: Failure, environ: Mapping[str, str], piped: str) -> tuple[str, str]:
    if piped.strip():
        return piped.strip("\n"), "a pipe"
    if path := environ.get(VARIABLE):
        return recorded_output(read_ring(path).decode("utf-8", "replace"), failure.status), "the recorder"
    if environ.get("TMUX") and environ.get("TMUX_PANE"):
        return _since(failure.command, _pane(environ["TMUX_PANE"])), "tmux"
    return "", ""


def recorded_output(text: str, status: int | None) -> str:
    """What the last command with that status has written, between the marks that the hook puts around it."""
    begun, found = 0, ""
    for mark in _MARK.finditer(text):
        if mark["kind"] == "C":
            begun = mark.end()
        elif int(mark["status"] or 0) == status and status:
            found = text[begun : mark.start()]
    settled = ConsoleText(MOST_OUTPUT)
    settled.write(found)
    return settled.text().strip("\n")


def _pane(pane: str) -> str:
    """What the tmux pane shows, and some of what has left it."""
    program = shutil.which("tmux")
    if program is None:
        return ""
    try:
        done = subprocess.run(
            [program, "capture-pane", "-p", "-J", "-S", f"-{_TMUX_LINES}", "-t", pane],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _since(command: str, screen: str) -> str:
    """The screen from the line on where the command was typed, without the line that called us."""
    lines = screen.rstrip().splitlines()
    if lines and re.search(r"(?:^|\s)wtf\b", lines[-1]):
        lines.pop()
    first = command.splitlines()[0].strip() if command else ""
    typed = [number for number, line in enumerate(lines) if first and line.rstrip().endswith(first)]
    return "\n".join(line.rstrip() for line in lines[typed[-1] :] if line.strip()) if typed else "\n".join(lines[-60:])


def source_lines(output: str, folder: str, around: int = 4) -> str:
    """The lines around the last place that a Python traceback names, if it is in the folder."""
    places = re.findall(r'File "([^"]+)", line (\d+)', output)
    for name, number in reversed(places):
        path = os.path.realpath(os.path.join(folder or os.getcwd(), name))
        inside = os.path.realpath(folder or os.getcwd())
        if os.path.commonpath([path, inside]) != inside or not os.path.isfile(path):
            continue
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read(1_000_000).splitlines()
        at = int(number) - 1
        shown = [
            f"{at_line + 1}: {lines[at_line]}"
            for at_line in range(max(0, at - around), min(len(lines), at + around + 1))
        ]
        return f"{name}, around line {number}:\n" + "\n".join(shown)
    return ""
