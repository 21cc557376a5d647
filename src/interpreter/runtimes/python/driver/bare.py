"""Runs blocks with the standard library alone: last expression, await, commands, a few magics, display."""

from __future__ import annotations
import __future__

import ast
import linecache
import os
import re
import sys
import time
from functools import partial

from . import displays
from . import execution as commands
from .execution import exit_code, first_line, formatted
from .imports import trusted_import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List


if TYPE_CHECKING:
    from types import CodeType
    from typing import Any, Callable, ContextManager, Dict, Iterator, List, Optional, Protocol, Tuple, Union

    from .displays import Figures
    from .execution import ActiveLines, EventLoop

    class Outlet(Protocol):
        """What a block says goes here."""

        def stream(self, name: str, text: str) -> None: ...
        def display(self, data: Dict[str, Any], display_id: Optional[str] = None, update: bool = False) -> None: ...
        def flush(self) -> None: ...


FUTURES = 0
for feature in __future__.all_feature_names:
    FUTURES |= getattr(__future__, feature).compiler_flag
AWAITS = 0x80  # CO_COROUTINE
BLOCK_NAMES = "<block "


class Bare:
    """Code runs in a namespace, statement by statement."""

    name = "bare"

    def __init__(
        self,
        namespace: Dict[str, Any],
        outlet: Outlet,
        lines: ActiveLines,
        loop: EventLoop,
        figures: Figures,
        user_code: ContextManager[None],
        run_command: Callable[[str], int] = commands.run_command,
    ) -> None:
        self._namespace, self._outlet, self._lines, self._loop = namespace, outlet, lines, loop
        self._figures, self._user_code = figures, user_code
        self._flags = 0  # what `from __future__` has switched on
        self._count = 0
        namespace[NAME] = Magics(namespace, self._evaluate, outlet.flush, run_command)
        self.hidden: Dict[str, Any] = {}  # names that are in the namespace and not the user's

    def run(self, code: str, colors: bool = False) -> Optional[BaseException]:
        """Run a block, telling what it says; the error that ended it, if one did."""
        *_, error = [None, *self.steps(code)]
        return error

    def warm(self) -> None:
        """After a fork: there is little that could be done ahead."""

    def steps(self, code: str) -> Iterator[Optional[BaseException]]:
        """Run a block; yields after each statement, and last of all the error that ended it, if one did."""
        try:
            for run in self._statements(code):
                run()
                yield None
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 -- whatever the user's code raises, SystemExit too
            self.tell(error)
            yield error

    def _statements(self, code: str) -> Iterator[Callable[[], None]]:
        """What runs each statement of a block; compiled one after the other, since one may change how."""
        self._count += 1
        name = "%s%d>" % (BLOCK_NAMES, self._count)
        remember_source(name, code)
        self._lines.begin()
        tree = self._parsed(code, name)
        in_loop = bool(self._compile(tree, name, "exec").co_flags & AWAITS)
        for compiled, shown, line in self._compiled(tree, name, code):
            yield partial(self._execute, compiled, in_loop, shown, line)

    def _execute(self, compiled: CodeType, in_loop: bool, shown: bool, line: int) -> None:
        with self._user_code:
            self._lines.enter(compiled, line)
            value = self._value(compiled, in_loop)
            if shown and value is not None:
                self._namespace["_"] = value
                self.display(value)

    def _value(self, compiled: CodeType, in_loop: bool) -> Any:
        """Run a statement; where one of a block awaits, the loop runs for all, as create_task() wants it."""
        if not in_loop:
            return eval(compiled, self._namespace)

        async def statement() -> Any:
            value = eval(compiled, self._namespace)
            return await value if compiled.co_flags & AWAITS else value

        return self._loop.run(statement())

    def tell(self, error: BaseException) -> None:
        """Say what went wrong."""
        self._outlet.flush()
        if not isinstance(error, SystemExit):
            self._outlet.stream("stderr", formatted(error, block_names=BLOCK_NAMES))
        elif exit_code(error) == 1 and not isinstance(error.code, int):
            self._outlet.stream("stderr", "%s\n" % (error.code,))

    def display(
        self, *values: Any, display_id: Union[bool, str, None] = None, update: bool = False, **_: object
    ) -> Optional[Display]:
        """Show values in their richest form; with a display_id the handle that comes back can change them."""
        if display_id is True:
            display_id = os.urandom(16).hex()
        for value in values:
            self._outlet.display(displays.bundle_of(value, self._figures.png), display_id or None, update)
        return Display(self, display_id) if display_id else None

    # -- from text to code objects ---------------------------------------------------------------------------

    def _compiled(self, tree: ast.Module, name: str, code: str) -> Iterator[Tuple[CodeType, bool, int]]:
        """The code object of each statement, whether its value is to be shown, and where it begins."""
        for node, shown in statements(tree, code):
            if shown:
                compiled = self._compile(ast.Expression(node.value), name, "eval")
            else:
                compiled = self._compile(ast.Module([node], []), name, "exec")
            self._flags |= compiled.co_flags & FUTURES
            yield compiled, shown, first_line(node)

    def _parsed(self, code: str, name: str) -> ast.Module:
        def parse(text: str) -> Any:
            return self._compile(text, name, "exec", ast.PyCF_ONLY_AST)

        tree: ast.Module
        try:
            tree = parse(code)
        except SyntaxError as error:
            try:
                tree = parse(translated(code, parse))
            except SyntaxError:
                raise error from None  # that of the text as the user wrote it
        return tree

    def _compile(self, source: Any, name: str, mode: str, flags: int = 0) -> Any:
        flags |= self._flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        return compile(source, name, mode, flags=flags, dont_inherit=True)

    def _evaluate(self, code: str) -> Any:
        """For magics: run code in the namespace and give the value of its last expression."""
        value = None
        for compiled, shown, _ in self._compiled(self._parsed(code, "<magic>"), "<magic>", code):
            result = self._value(compiled, bool(compiled.co_flags & AWAITS))
            value = result if shown else None
        return value


class Display:
    """Something shown that can be changed."""

    def __init__(self, engine: Bare, display_id: str) -> None:
        self._engine, self.display_id = engine, display_id

    def update(self, value: Any) -> None:
        self._engine.display(value, display_id=self.display_id, update=True)

    def display(self, value: Any) -> None:
        self._engine.display(value, display_id=self.display_id)


def statements(tree: ast.Module, code: str) -> List[Tuple[Any, bool]]:
    quiet = code.rstrip().endswith(";")
    last = len(tree.body) - 1
    return [(node, index == last and isinstance(node, ast.Expr) and not quiet) for index, node in enumerate(tree.body)]


def remember_source(name: str, code: str) -> None:
    """Let tracebacks and inspect.getsource() find the block's text."""
    linecache.cache[name] = (len(code), None, [line + "\n" for line in code.splitlines()], name)


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
