"""`!commands` and a few `%magics` for Pythons without IPython."""

from __future__ import annotations

import os
import re
import sys
import time

from . import commands
from .imports import trusted_import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List

NAME = "__magic__"
# compiled when first needed, since most sessions never do
COMMAND = r"(?P<indent>\s*)(?P<target>[\w.,\[\]'\" ]+?\s*=\s*)?(?P<sign>!!?|%(?=\w))(?P<rest>.+)\Z"
CELL = r"\s*%%(\w+)[ \t]*([^\n]*)\n?(.*)\Z"


class MagicError(Exception):
    """A magic command that cannot be done."""

    __module__ = "builtins"  # so that its name stands alone in a traceback


def translated(code: str, parse: Callable[[str], Any]) -> str:
    """The block as Python: lines that are commands are rewritten, one by one, as the parser trips over them.

    What the parser accepts is never touched, so a `!` in a string or a `%` in an expression stays what it is.
    """
    cell = re.match(CELL, code, re.DOTALL)
    if cell:
        return "%s.cell(%r, %r, %r)" % (NAME, *cell.groups())
    lines = code.split("\n")
    while True:
        try:
            parse("\n".join(lines))
        except SyntaxError as error:
            if not rewrite(lines, (error.lineno or 0) - 1):
                raise
        else:
            return "\n".join(lines)


def rewrite(lines: List[str], at: int) -> bool:
    """Turn the command in a line into a call; False if there is none."""
    while 0 < at < len(lines) and lines[at - 1].endswith("\\"):  # the parser may stop in its last line
        at -= 1
    match = re.match(COMMAND, lines[at]) if 0 <= at < len(lines) else None
    if match is None:
        return False
    last, rest = at, match["rest"]
    while rest.endswith("\\") and last + 1 < len(lines):  # it goes on in the next line
        last += 1
        rest = rest[:-1] + lines[last]
        lines[last] = ""
    lines[at] = match["indent"] + (match["target"] or "") + call(match["sign"], bool(match["target"]), rest)
    return True


def call(sign: str, wanted: bool, rest: str) -> str:
    if sign == "%":
        name, _, arguments = rest.partition(" ")
        return "%s.line(%r, %r)" % (NAME, name, arguments.strip())
    return "%s.%s(%r)" % (NAME, "output" if wanted or sign == "!!" else "system", rest)


class Magics:
    """What the rewritten lines call."""

    def __init__(
        self,
        namespace: Dict[str, Any],
        run: Callable[[str], Any],
        flush: Callable[[], None],
        run_command: Callable[[str], int] = commands.run_command,
    ) -> None:
        self._namespace, self._run, self._flush, self._run_command = namespace, run, flush, run_command
        self._lines: Dict[str, Callable[[str], Any]] = {
            "cd": self._cd,
            "pwd": lambda _: os.getcwd(),
            "env": self._env,
            "time": self._time,
            "timeit": self._timeit,
            "pip": lambda rest: self.system("%s -m pip %s" % (quoted(sys.executable), rest)),
            "matplotlib": lambda _: None,  # figures are shown as they are
            "config": self._config,
        }
        self._cells: Dict[str, Callable[[str, str], Any]] = {
            "time": lambda _, body: self._time(body),
            "timeit": lambda rest, body: self._timeit(body),
            "bash": lambda _, body: self._script(body),
            "sh": lambda _, body: self._script(body),
            "writefile": self._writefile,
        }

    def system(self, command: str) -> None:
        self._flush()
        self._namespace["_exit_code"] = self._run_command(commands.expand(command, self._namespace))

    def output(self, command: str) -> List[str]:
        self._flush()
        return commands.command_output(commands.expand(command, self._namespace))

    def line(self, name: str, rest: str) -> Any:
        return self._find(self._lines, "%", name)(rest)

    def cell(self, name: str, rest: str, body: str) -> Any:
        return self._find(self._cells, "%%", name)(rest, body)

    def _find(self, table: Dict[str, Any], sign: str, name: str) -> Any:
        if name not in table:
            known = ", ".join(sign + each for each in sorted(table))
            raise MagicError(
                "%s%s needs IPython, which this Python does not have (pip install ipython). Without it: %s."
                % (sign, name, known)
            )
        return table[name]

    def _cd(self, rest: str) -> None:
        os.chdir(os.path.expanduser(commands.expand(rest.strip("'\""), self._namespace) or "~"))
        sys.stdout.write(os.getcwd() + "\n")

    def _env(self, rest: str) -> Any:
        name, sign, value = rest.partition("=")
        if sign:
            os.environ[name.strip()] = value.strip()
            return None
        return os.environ.get(name) if name else dict(os.environ)

    def _time(self, code: str) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            return self._run(code)
        finally:
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            sys.stdout.write("CPU time: %s\nWall time: %s\n" % (seconds(cpu), seconds(wall)))

    def _timeit(self, code: str) -> None:
        timer = trusted_import("timeit").Timer(code.strip() or "pass", globals=self._namespace)
        loops, _ = timer.autorange()
        best = min(timer.repeat(3, loops)) / loops
        sys.stdout.write("%s per loop (best of 3, %d loops each)\n" % (seconds(best), loops))

    def _config(self, rest: str) -> None:
        if not rest.startswith("InlineBackend"):
            raise MagicError("%config needs IPython, which this Python does not have (pip install ipython).")

    def _script(self, body: str) -> None:
        self._flush()
        code = self._run_command(body)
        if code:
            raise MagicError("the script ended with exit code %d" % code)

    def _writefile(self, rest: str, body: str) -> None:
        mode, path = ("a", rest[3:].strip()) if rest.startswith("-a ") else ("w", rest.strip())
        with open(os.path.expanduser(path), mode, encoding="utf-8") as file:
            file.write(body)
        sys.stdout.write("Wrote %s\n" % path)


def seconds(duration: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if duration >= size:
            return "%.3g %s" % (duration / size, unit)
    return "%.3g ns" % (duration / 1e-9)


def quoted(text: str) -> str:
    return str(trusted_import("shlex").quote(text))
