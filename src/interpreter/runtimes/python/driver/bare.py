"""Runs blocks with only the standard library: last expression, await, commands, a few magics, display."""

from __future__ import annotations
import __future__

import ast
import linecache
import os
import re
import sys
import time
from types import CodeType, SimpleNamespace

from .displays import Figures, bundle_of
from .execution import ActiveLines, EventLoop, command_output, expand, first_line, formatted, run_command
from .hints import Any, Callable, ContextManager, Iterator, Protocol
from .imports import trusted_import


class Outlet(Protocol):
    def stream(self, name: str, text: str) -> None: ...
    def display(self, data: dict[str, Any]) -> None: ...
    def flush(self) -> None: ...


FUTURES = 0
for feature in __future__.all_feature_names:
    FUTURES |= getattr(__future__, feature).compiler_flag
AWAITS = 0x80  # CO_COROUTINE
BLOCK_NAMES = "<block "
NAME = "__magic__"
# Compiled on first use, since most runtimes never need them.
COMMAND = r"(?P<indent>\s*)(?P<target>[\w.,\[\]'\" ]+?\s*=\s*)?(?P<sign>!!?|%(?=\w))(?P<rest>.+)\Z"
CELL = r"\s*(%%\w+)[ \t]*([^\n]*)\n?(.*)\Z"


class Bare:
    """Runs code in a namespace, statement by statement."""

    name = "bare"

    def __init__(
        self,
        namespace: dict[str, Any],
        outlet: Outlet,
        lines: ActiveLines,
        loop: EventLoop,
        figures: Figures,
        user_code: ContextManager[None],
        run_command: Callable[[str], int] = run_command,
    ) -> None:
        self._namespace, self._outlet, self._lines, self._loop = namespace, outlet, lines, loop
        self._figures, self._user_code, self._run_command = figures, user_code, run_command
        self._flags = 0  # compiler flags set by `from __future__`
        self._count = 0
        self.python = sys.executable  # the Python that %pip installs for
        self.hidden: dict[str, Any] = {}  # names in the namespace that are not the user's
        namespace[NAME] = self
        # A magic gets the rest of the line, and a cell magic the lines below it, too.
        self._magics: dict[str, Callable[..., Any]] = {
            "%cd": self._cd,
            "%pwd": lambda _: os.getcwd(),
            "%env": self._env,
            "%time": self._time,
            "%timeit": self._timeit,
            "%pip": lambda rest: self.system("%s -m pip %s" % (trusted_import("shlex").quote(self.python), rest)),
            "%matplotlib": lambda _: None,  # figures are always shown as images
            "%config": self._config,
            "%%time": lambda _, body: self._time(body),
            "%%timeit": lambda _, body: self._timeit(body),
            "%%bash": lambda _, body: self._script(body),
            "%%sh": lambda _, body: self._script(body),
            "%%writefile": self._writefile,
        }

    def run(self, code: str, colors: bool = False) -> BaseException | None:
        """Run a block and return the error that ended it, if any."""
        *_, error = [None, *self.steps(code)]
        return error

    def warm(self) -> None:
        """Do nothing after a fork: there is nothing to prepare."""

    def forget(self) -> None:
        """Forget the blocks that have run, except for what they have left in the namespace."""
        self._count = 0

    def steps(self, code: str) -> Iterator[BaseException | None]:
        """Run a block; yields after each statement, and finally the error that ended it, if any."""
        try:
            self._count += 1
            name = "%s%d>" % (BLOCK_NAMES, self._count)
            # Register the text, for tracebacks and inspect.getsource().
            linecache.cache[name] = (len(code), None, [line + "\n" for line in code.splitlines()], name)
            self._lines.begin()
            tree = self._parsed(code, name)
            in_loop = bool(self._compile(tree, name, "exec").co_flags & AWAITS)
            for compiled, shown, line in self._compiled(tree, name, code):
                with self._user_code:
                    self._lines.enter(compiled, line)
                    value = self._value(compiled, in_loop)
                    if shown and value is not None:
                        self._namespace["_"] = value
                        self.display(value)
                yield None
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 -- the user's code may raise anything, even SystemExit
            self.show_error(error)
            yield error

    def show_error(self, error: BaseException) -> None:
        self._outlet.flush()
        if not isinstance(error, SystemExit):
            self._outlet.stream("stderr", formatted(error, block_names=BLOCK_NAMES))
        elif error.code is not None and not isinstance(error.code, int):
            self._outlet.stream("stderr", "%s\n" % (error.code,))

    def display(self, *values: Any, display_id: bool | str | None = None, **_: object) -> SimpleNamespace | None:
        """Show values in their richest form. With a display_id, returns a handle that shows them again."""
        for value in values:
            self._outlet.display(bundle_of(value, self._figures.png))
        shows = {"display_id": display_id, "display": self.display, "update": self.display}
        return SimpleNamespace(**shows) if display_id else None

    def _parsed(self, code: str, name: str) -> ast.Module:
        def parse(text: str) -> ast.Module:
            return self._compile(text, name, "exec", ast.PyCF_ONLY_AST)  # type: ignore[no-any-return]

        try:
            return parse(code)
        except SyntaxError as error:
            try:
                return parse(translated(code, parse))
            except SyntaxError:
                raise error from None  # the error in the text as the user wrote it

    def _compiled(self, tree: ast.Module, name: str, code: str) -> Iterator[tuple[CodeType, bool, int]]:
        """Yield the code object of each statement, whether its value is shown, and its first line.

        They are compiled one after the other, since one may change how the next is compiled.
        """
        quiet = code.rstrip().endswith(";")
        for node in tree.body:
            shown = node is tree.body[-1] and isinstance(node, ast.Expr) and not quiet
            if isinstance(node, ast.Expr) and shown:
                compiled = self._compile(ast.Expression(node.value), name, "eval")
            else:
                compiled = self._compile(ast.Module([node], []), name, "exec")
            self._flags |= compiled.co_flags & FUTURES
            yield compiled, shown, first_line(node)

    def _compile(self, source: Any, name: str, mode: str, flags: int = 0) -> Any:
        flags |= self._flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        return compile(source, name, mode, flags=flags, dont_inherit=True)

    def _value(self, compiled: CodeType, in_loop: bool) -> Any:
        """Run a statement; if any of the block awaits, all run in the loop, as create_task() needs it."""
        if not in_loop:
            return eval(compiled, self._namespace)

        async def statement() -> Any:
            value = eval(compiled, self._namespace)
            return await value if compiled.co_flags & AWAITS else value

        return self._loop.run(statement())

    # -- what rewritten lines call -------------------------------------------------------------------------------

    def system(self, command: str) -> None:
        self._outlet.flush()
        self._namespace["_exit_code"] = self._run_command(expand(command, self._namespace))

    def output(self, command: str) -> list[str]:
        self._outlet.flush()
        return command_output(expand(command, self._namespace))

    def magic(self, name: str, *arguments: str) -> Any:
        if name not in self._magics:
            known = ", ".join(sorted(each for each in self._magics if each.count("%") == name.count("%")))
            raise MagicError(
                "%s needs IPython, which this Python does not have (pip install ipython). Without it: %s."
                % (name, known)
            )
        return self._magics[name](*arguments)

    def _cd(self, rest: str) -> None:
        os.chdir(os.path.expanduser(expand(rest.strip("'\""), self._namespace) or "~"))
        sys.stdout.write(os.getcwd() + "\n")

    def _env(self, rest: str) -> Any:
        name, sign, value = rest.partition("=")
        if sign:
            os.environ[name.strip()] = value.strip()
            return None
        return os.environ.get(name) if name else dict(os.environ)

    def _time(self, code: str) -> Any:
        """Run code in the namespace and return the value of its last expression."""
        value = None
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            for compiled, shown, _ in self._compiled(self._parsed(code, "<magic>"), "<magic>", code):
                result = self._value(compiled, bool(compiled.co_flags & AWAITS))
                value = result if shown else None
            return value
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
        self._outlet.flush()
        code = self._run_command(body)
        if code:
            raise MagicError("the script ended with exit code %d" % code)

    def _writefile(self, rest: str, body: str) -> None:
        mode, path = ("a", rest[3:].strip()) if rest.startswith("-a ") else ("w", rest.strip())
        with open(os.path.expanduser(path), mode, encoding="utf-8") as file:
            file.write(body)
        sys.stdout.write("Wrote %s\n" % path)


class MagicError(Exception):
    __module__ = "builtins"  # so that a traceback shows only the name


def translated(code: str, parse: Callable[[str], Any]) -> str:
    """Translate a block to Python, rewriting lines with commands one by one, as the parser rejects them.

    Text that the parser accepts never changes, so a `!` in a string or a `%` in an expression is safe.
    """
    cell = re.match(CELL, code, re.DOTALL)
    if cell:
        return "%s.magic(%r, %r, %r)" % (NAME, *cell.groups())
    lines = code.split("\n")
    while True:
        try:
            parse("\n".join(lines))
        except SyntaxError as error:
            if not rewrite(lines, (error.lineno or 0) - 1):
                raise
        else:
            return "\n".join(lines)


def rewrite(lines: list[str], at: int) -> bool:
    while 0 < at < len(lines) and lines[at - 1].endswith("\\"):  # the parser may only reject the last line of a command
        at -= 1
    match = re.match(COMMAND, lines[at]) if 0 <= at < len(lines) else None
    if match is None:
        return False
    last, rest = at, match["rest"]
    while rest.endswith("\\") and last + 1 < len(lines):  # continued in the next line
        last += 1
        rest = rest[:-1] + lines[last]
        lines[last] = ""
    if match["sign"] == "%":
        name, _, arguments = rest.partition(" ")
        call = "magic(%r, %r)" % ("%" + name, arguments.strip())
    else:
        call = "%s(%r)" % ("output" if match["target"] or match["sign"] == "!!" else "system", rest)
    lines[at] = "%s%s%s.%s" % (match["indent"], match["target"] or "", NAME, call)
    return True


def seconds(duration: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if duration >= size:
            return "%.3g %s" % (duration / size, unit)
    return "%.3g ns" % (duration / 1e-9)
