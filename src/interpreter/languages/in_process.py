"""Python in the caller's process, for programs whose objects code should be able to use."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from functools import partial
from typing import Any

from interpreter import questions
from interpreter.errors import BusyError, NotRestorableError, SandboxUnavailableError, UsageError
from interpreter.runtimes.base import BaseLanguage
from interpreter.runtimes.block import closing_chunk, console, event_chunks
from interpreter.runtimes.calls import ComputerCall, Interrupt
from interpreter.runtimes.launch import RuntimeContext
from interpreter.runtimes.live import HasContext
from interpreter.runtimes.protocol import Frame
from interpreter.runtimes.python.driver import inspection
from interpreter.runtimes.python.driver.bare import Bare
from interpreter.runtimes.python.driver.displays import Figures, TablePage
from interpreter.runtimes.python.driver.execution import ActiveLines, EventLoop, outcome, shell_program
from interpreter.runtimes.python.driver.sharing import Share
from interpreter.runtimes.python.driver.streams import Input, Output, make_input
from interpreter.runtimes.python.language import Python
from interpreter.runtimes.sharing import take
from interpreter.runtimes.state import (
    Completions,
    Restored,
    TableQuery,
    Value,
    Variable,
    Window,
    completions_from,
    value_from,
    variables_from,
)
from interpreter.sigint import call_user_code


class ByThread:
    """Replaces an attribute of a module: a thread that runs a block sees its own value, others the original."""

    def __init__(self, owner: Any, name: str) -> None:
        self._owner, self._name = owner, name
        self._lock = threading.Lock()
        self._own: dict[int, list[Any]] = {}
        self._original: Any = None

    @contextmanager
    def replaced(self, value: Any) -> Iterator[None]:
        """Give the attribute this value in the calling thread, inside the context."""
        thread = threading.get_ident()
        with self._lock:
            if not self._own:
                self._original = getattr(self._owner, self._name)
                setattr(self._owner, self._name, self)
            self._own.setdefault(thread, []).append(value)
        try:
            yield
        finally:
            with self._lock:
                self._own[thread].pop()
                if not self._own[thread]:
                    del self._own[thread]
                if not self._own and getattr(self._owner, self._name) is self:  # else the user's code has replaced it
                    setattr(self._owner, self._name, self._original)

    def _mine(self) -> Any:
        own = self._own.get(threading.get_ident())
        return own[-1] if own else self._original

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mine(), name)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._mine()(*arguments, **named)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._mine())


STDOUT, STDERR, STDIN = ByThread(sys, "stdout"), ByThread(sys, "stderr"), ByThread(sys, "stdin")
INPUT = ByThread(builtins, "input")


class InProcessPython(BaseLanguage):
    """Runs blocks in the caller's process and thread, so that they can use the caller's objects.

    There is no crash protection: code that ends or crashes the process ends the caller. Only the output of the
    calling thread is captured, statement by statement; child processes write to the caller's output, except for
    `!commands`. While no statement runs, the caller has its own streams and working directory.
    """

    name = "Python"
    aliases = Python.aliases
    file_extension = "py"
    handles_interrupts = True

    def __init__(self, computer: HasContext | None = None, namespace: dict[str, Any] | None = None) -> None:
        self.context = computer.context if computer is not None else RuntimeContext()
        self.namespace = sys.modules["__main__"].__dict__ if namespace is None else namespace
        self._host_cwd = current_folder()
        self._running = False
        self._variables: dict[str, str] = {}  # for programs that code starts
        self._interrupt = Interrupt()
        self._outlet = Outlet(self.context)
        self._figures = Figures(self._outlet.display)
        self._lines = ActiveLines(self._outlet.active_line)
        self._loop = EventLoop()
        self._engine = Bare(
            self.namespace, self._outlet, self._lines, self._loop, self._figures, nullcontext(), run_captured
        )
        self._share = Share(self.namespace, self._give)
        self._shared: dict[str, int] = {}  # the numbers of the shared values in the namespace
        self._hidden: dict[str, Any] = {"display": self._engine.display, "share": self._share}
        if self.context.stand_in is not None:
            for name in ("computer", "tools", *self.context.names):
                self._hidden[name] = self.context.stand_in(self._call, name)
        self._define_names()

    def run(self, code: str) -> Iterator[questions.Step]:
        if self.context.containment is not None:
            raise SandboxUnavailableError("In-process Python can't run in a sandbox. Set computer.python to None.")
        self._outlet.number += 1
        self._define_names()
        self._use_environment()
        self._share.most, shared = self.context.max_shared, self.context.shared
        self._share.take([[name, each.text] for name, each in shared.items() if self._shared.get(name) != each.number])
        self._shared = {name: each.number for name, each in shared.items()}
        self._interrupt.asked.clear()
        self._lines.enabled = self.context.active_lines
        TablePage.most_rows = self.context.table_rows
        self._figures.begin()
        host = current_folder()
        if host != self._host_cwd:  # the caller has changed it, so the session follows
            self._host_cwd = self.context.cwd = host
        steps = self._steps(code)

        def advance() -> object:
            if self._interrupt.asked.is_set():  # `stop` came before a signal could be raised here
                raise KeyboardInterrupt
            return next(steps, self)

        error: BaseException | None = None
        self._running = True
        try:
            while self._running:
                try:
                    with self._inside():
                        step = call_user_code(advance)
                    self._running = step is not self
                    error = step if isinstance(step, BaseException) else error
                except KeyboardInterrupt as interrupt:  # raised between the user's code and ours
                    error, self._running = interrupt, False
                yield from self._outlet.take()
        finally:
            self._running = False
        status, exit_code = outcome(error)
        yield closing_chunk(exit_code, "done" if status == "ok" else status)
        if isinstance(error, KeyboardInterrupt) and not self._interrupt.asked.is_set():
            raise KeyboardInterrupt

    def stop(self) -> None:
        self._interrupt.ask()

    def terminate(self) -> None:
        self._loop.close()

    def __del__(self) -> None:
        self.terminate()

    def restore(self, state: int) -> Restored:
        raise NotRestorableError("Python runs in-process, so its variables can't be restored.")

    def split(self, computer: Any) -> tuple[BaseLanguage, Restored]:
        raise NotRestorableError("Python runs in-process, so its variables can't be copied.")

    # -- queries between blocks --------------------------------------------------------------------------------

    def variables(self) -> list[Variable]:
        return variables_from(self._answer({"op": "inspect"}))

    def look(
        self,
        name: str,
        rows: Window = (0, 50),
        columns: Window = (0, 50),
        view: TableQuery | None = None,
        again: bool = False,
    ) -> Value:
        frame = {"op": "inspect", "name": name, "rows": rows, "columns": columns, "again": again}
        return value_from(self._answer({**frame, "view": asdict(view) if view else None}))

    def complete(self, code: str, cursor: int) -> Completions:
        if self._running:
            return Completions(cursor)
        return completions_from(self._answer({"op": "complete", "code": code, "cursor": cursor}), cursor)

    def _answer(self, frame: dict[str, Any]) -> dict[str, Any]:
        if self._running:
            raise BusyError("Python is busy.")
        try:
            answer = inspection.answer(frame, self.namespace, self._hidden, self._figures.png)
        except Exception as error:  # noqa: BLE001 -- a user's __repr__ may raise anything
            raise UsageError(f"{type(error).__name__}: {error}") from None
        if "failed" in answer:
            raise UsageError(answer["failed"])
        return answer

    def _call(self, path: str, how: str) -> ComputerCall:
        return ComputerCall({"path": path, "how": how, "call": 0}, self._outlet, self.name)

    def _give(self, name: str, text: str) -> None:
        take(self.context.shared, name, text, self.context.max_shared)
        self._shared[name] = self.context.shared[name].number

    def _define_names(self) -> None:
        """Add our names to the namespace, which another session may share, without replacing the user's names."""
        for name, value in self._hidden.items():
            present = self.namespace.get(name, value)
            same = getattr(present, "__func__", None) is getattr(value, "__func__", None)
            if type(present) is type(value) and same:  # unused, or added by another session
                self.namespace[name] = value

    def _steps(self, code: str) -> Iterator[BaseException | None]:
        older = self._figures.open()
        yield from self._engine.steps(code)
        try:
            self._figures.show_open(older)
        except Exception as error:  # noqa: BLE001 -- drawing runs the user's code
            self._engine.show_error(error)
            yield error

    def _use_environment(self) -> None:
        """Direct installs to the session environment, and import from it after the caller's own packages."""
        chosen = self.context.python_environment()
        if chosen.is_layer:
            chosen.prepare()
            self._engine.python = chosen.python
            names = ("VIRTUAL_ENV", "CONDA_PREFIX", "PATH")
            env = chosen.variables(os.environ)
            self._variables = {name: env[name] for name in names if name in env}
            sys.path += [folder for folder in chosen.places[:2] if folder not in sys.path]

    @contextmanager
    def _environment(self) -> Iterator[None]:
        """Let programs that a statement starts use the session environment."""
        changed = {name: value for name, value in self._variables.items() if os.environ.get(name) != value}
        before = {name: os.environ.get(name) for name in changed}
        os.environ.update(changed)
        try:
            yield
        finally:
            for name, value in before.items():
                if os.environ.get(name) == changed[name]:  # else code has changed it
                    os.environ.update({name: value} if value is not None else {})
                    if value is None:
                        del os.environ[name]

    @contextmanager
    def _inside(self) -> Iterator[None]:
        """Use the session's streams in this thread, and its working directory, while a statement runs."""
        host, outlet = current_folder(), self._outlet
        with (
            self._environment(),
            STDOUT.replaced(outlet.stdout),
            STDERR.replaced(outlet.stderr),
            STDIN.replaced(Input(outlet.ask)),
            INPUT.replaced(make_input(outlet.ask)),
        ):
            if self.context.cwd != host:
                os.chdir(self.context.cwd)
            try:
                with self._interrupt.may_strike():
                    yield
            finally:
                self.context.cwd = current_folder()
                if self.context.cwd != host:
                    os.chdir(host)


class Outlet:
    """Turns the output of blocks into chunks, and asks at once: code that runs in this thread cannot be suspended."""

    attached = True

    def __init__(self, context: RuntimeContext) -> None:
        self.number = 0  # of the newest block
        self._context = context
        self._steps: list[questions.Step] = []
        self.stdout = Output("stdout", 1, partial(self.stream, "stdout"))
        self.stderr = Output("stderr", 2, partial(self.stream, "stderr"))

    def take(self) -> list[questions.Step]:
        self.flush()
        steps, self._steps = self._steps, []
        return steps

    def flush(self) -> None:
        self.stdout.flush_everything()
        self.stderr.flush_everything()

    def stream(self, name: str, text: str) -> None:
        self._steps.append(console(text, name))

    def active_line(self, line: int) -> None:
        self._steps += event_chunks({"event": "active_line", "line": line})

    def display(self, data: dict[str, Any]) -> None:
        self.nudge({"event": "display", "data": data})

    def nudge(self, frame: Frame) -> None:
        """Handle an event of the block, or of a call that it makes."""
        self.flush()
        if frame["event"] == "question":
            self._ask(frame["question"])
        else:
            self._steps += event_chunks(frame, self._context.emit_images)

    def ask(self, prompt: str, password: bool = False) -> str | None:
        question = questions.Question(questions.Input(prompt, password))
        self._ask(question)
        if question.answer is None and self._context.on_input is not None:
            return self._context.on_input(prompt, password)
        return question.typed

    def _ask(self, question: questions.Question) -> None:
        """Get the answer now. The consumer sees the question when it reads on."""
        self.flush()
        if self._context.ask is not None:
            self._context.ask(question)
        self._steps.append(question)
        question.withdraw()


def run_captured(command: str) -> int:
    with subprocess.Popen(
        command,
        shell=True,
        executable=shell_program(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        for line in process.stdout or ():
            sys.stdout.write(line)
    return int(process.returncode)


def current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return os.sep  # the directory was deleted
