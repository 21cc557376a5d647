"""A worker: runs tasks, each in a session of its own, for whoever writes to its standard input.

    interpreter batch-worker

It reads and writes lines of JSON. `hello` brings the settings, `task` a task, `go` and `refuse` answer a request that
wants to be sent, `cancel` ends a task. It answers with `hello`, `reserve` before each request to a model, `settle`
after it, and `result`. It ends when its input ends.
"""

from __future__ import annotations

import copy
import itertools
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

from interpreter.api import OpenInterpreter
from interpreter.config.setting import give_settings, given_settings
from interpreter.errors import (
    BudgetExceededError,
    InterpreterError,
    QuotaExceededError,
    RateLimitedError,
)
from interpreter.frontends import exit_codes
from interpreter.frontends.headless.run import HeadlessRun, OutputSchema, UserMessage, final_answer
from interpreter.llm.limits import TRANSIENT, Budget, Cancelled
from interpreter.messages import Chunk
from interpreter.version import __version__

Send = Callable[[dict[str, Any]], None]
PRELOAD = ("json",)  # any module makes sessions copies of a warm parent
MODES = ("auto", "auto-in-sandbox")  # in which no one has to approve anything


class Grants:
    """Asks the coordinating process before each request, from any thread."""

    def __init__(self, send: Send) -> None:
        self._send, self._numbers = send, itertools.count(1)
        self._changed = threading.Condition()
        self._answers: dict[int, str] = {}  # an empty one is a yes

    def answer(self, number: int, refusal: str = "") -> None:
        with self._changed:
            self._answers[number] = refusal
            self._changed.notify_all()

    def wake(self) -> None:
        """Wake waiting requests, so that they check whether they were cancelled."""
        with self._changed:
            self._changed.notify_all()

    def ask(self, task: str, dollars: float, is_cancelled: Callable[[], bool]) -> int:
        """Wait until a request may be sent; BudgetExceededError if the budget doesn't allow the request."""
        number = next(self._numbers)
        self._send({"type": "reserve", "request": number, "task": task, "cost": dollars})
        with self._changed:
            self._changed.wait_for(lambda: number in self._answers or is_cancelled())
            refusal = self._answers.pop(number, None)
        if refusal:
            raise BudgetExceededError(refusal)
        if refusal is None:
            self.settle(number, 0.0, 0)
            raise Cancelled("The task was cancelled.")
        return number

    def settle(self, number: int, dollars: float, tokens: int, error: BaseException | None = None) -> None:
        limited, pause = isinstance(error, RateLimitedError), getattr(error, "retry_after", None)
        report = {"type": "settle", "request": number, "cost": dollars, "tokens": tokens}
        self._send({**report, "limited": limited, "retry_after": pause})


class TaskGate:
    """Has each request of a task granted, those of its code included."""

    def __init__(self, grants: Grants, task: str, interpreter: OpenInterpreter) -> None:
        self._grants, self._task, self._llm = grants, task, interpreter.llm
        self._counted = self._llm.usage.tokens

    def enter(self, dollars: float, cancelled: Callable[[], bool]) -> int:
        return self._grants.ask(self._task, dollars, cancelled)

    def leave(self, number: int, cost: float, error: BaseException | None) -> None:
        total = self._llm.usage.tokens
        new, self._counted = total - self._counted, total
        self._grants.settle(number, cost, new, error)


class Worker:
    """Runs tasks in threads; `send` takes its messages, from any of them."""

    def __init__(self, send: Send, make_session: Callable[[str], OpenInterpreter] | None = None) -> None:
        self._send, self._make_session = send, make_session
        self.grants = Grants(send)
        self._template: OpenInterpreter | None = None
        self._running: dict[str, OpenInterpreter | None] = {}  # by task; None before its session is there
        self._threads: set[threading.Thread] = set()
        self._ended = threading.Condition()
        self._late: set[str] = set()  # tasks that took too long

    def handle(self, message: Mapping[str, Any]) -> None:
        """Handle a message without waiting for its effect."""
        match message["type"]:
            case "hello":
                os.environ.update(message.get("env", {}))
                if self._make_session is None:
                    self._template = template_from(message["settings"])
                self._send({"type": "hello", "version": __version__, "pid": os.getpid()})
            case "task":
                self._running[message["id"]] = None
                thread = threading.Thread(target=self._run, args=[message], daemon=True)
                self._threads.add(thread)
                thread.start()
            case "go":
                self.grants.answer(message["request"])
            case "refuse":
                self.grants.answer(message["request"], message["text"])
            case "cancel":
                self.cancel(message["id"])

    def cancel(self, task: str) -> None:
        interpreter = self._running.pop(task, None)
        if interpreter is not None:
            interpreter.cancel()
        self.grants.wake()

    def close(self) -> None:
        """End all tasks, and wait for their sessions for a moment."""
        for task in list(self._running):
            self.cancel(task)
        with self._ended:
            self._ended.wait_for(lambda: not self._threads, 5.0)

    # -- one task --------------------------------------------------------------------------------------------------

    def _run(self, message: Mapping[str, Any]) -> None:
        task = message["id"]
        result: dict[str, Any] = {"type": "result", "id": task, "attempt": message["attempt"]}
        timer = threading.Timer(message["deadline"], self._end_late, [task]) if message.get("deadline") else None
        try:
            if timer is not None:
                timer.daemon = True
                timer.start()
            result |= self._answer(message)
        except Exception as error:  # noqa: BLE001 - the task must have a result
            result |= failure(error)
        finally:
            if timer is not None:
                timer.cancel()
        if task in self._late:
            result |= {"status": "failed", "reason": "deadline"}
            result["error"] = f"It took longer than {message['deadline']:g} seconds."
        self._running.pop(task, None)
        self._send(result)
        with self._ended:
            self._threads.discard(threading.current_thread())
            self._ended.notify_all()

    def _end_late(self, task: str) -> None:
        self._late.add(task)
        self.cancel(task)

    def _answer(self, message: Mapping[str, Any]) -> dict[str, Any]:
        folder, began = Path(message["folder"]), time.monotonic()
        folder.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as ending:
            interpreter = self._session(message, folder)
            for file in message["files"]:
                shutil.copy2(file, folder)
            before = _files_in(folder)
            ending.callback(interpreter.session.close)
            ending.callback(interpreter.journal.close)
            ending.callback(interpreter.computer.terminate)
            self._running[message["id"]] = interpreter
            run, before_usage = HeadlessRun(interpreter), interpreter.llm.usage

            def speak(text: str, data: str) -> Iterator[Chunk]:
                try:
                    with closing(interpreter.respond(f"{text}\n\n{data}" if data else text)) as events:
                        for event in events:
                            if (chunk := event.chunk) is not None:
                                yield chunk
                except InterpreterError as error:
                    run.error = error

            schema = OutputSchema(message["schema"]) if message.get("schema") else None
            code = run.go(speak, UserMessage(message["message"]), schema)
            usage = interpreter.llm.usage
            result = {
                "value": run.result if schema else final_answer(interpreter.messages),
                "cost": usage.cost - before_usage.cost,
                "tokens": usage.tokens - before_usage.tokens,
                "session": interpreter.journal.id,
            }
            if run.mismatch is not None:
                run.error = InterpreterError(f"The answer does not match the schema: {run.mismatch}")
            if code != exit_codes.DONE:
                error = run.error or InterpreterError(exit_codes.MEANINGS[code])
                result |= {**failure(error), "value": None}
            else:
                result["status"] = "done"
        has_changed = _files_in(folder) != before
        if not has_changed:
            shutil.rmtree(folder, ignore_errors=True)
        result["seconds"] = round(time.monotonic() - began, 3)
        return {**result, "folder": str(folder) if has_changed else None}

    def _session(self, message: Mapping[str, Any], folder: Path) -> OpenInterpreter:
        """Create the session for a task. The coordinating process grants its model requests."""
        if self._make_session is not None:
            interpreter = self._make_session(str(folder))
        else:
            assert self._template is not None
            interpreter = OpenInterpreter()
            give_settings(interpreter, copy.deepcopy(given_settings(self._template)))
            folder.mkdir()
            interpreter.workspace = str(folder)
            interpreter.computer.preload = interpreter.computer.preload or list(PRELOAD)
        if message.get("model"):
            interpreter.llm.model = message["model"]
        limits = [each for each in (message.get("budget"), message.get("budget_of_all")) if each is not None]
        gate = TaskGate(self.grants, message["id"], interpreter)
        interpreter.user.budget.parent = Budget(lambda: min(limits, default=None), owner="The task", gate=gate)
        return interpreter


def template_from(settings: Mapping[str, Any]) -> OpenInterpreter:
    """Make an interpreter with the settings that a batch sends."""
    template = OpenInterpreter()
    give_settings(template, {name: tuple(given) for name, given in settings.items()})
    template.in_terminal_interface = False
    return template


def _files_in(folder: Path) -> set[tuple[str, int, int]]:
    """Return the files with their sizes and times; links are not followed."""
    facts = set()
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                state = os.lstat(path := os.path.join(root, name))
                facts.add((path, state.st_size, state.st_mtime_ns))
    return facts


def failure(error: BaseException) -> dict[str, Any]:
    """Describe why a task has no value; `reason` says whether trying again may help."""
    reason = (
        "limited"
        if isinstance(error, RateLimitedError | QuotaExceededError)
        else "lost"
        if isinstance(error, TRANSIENT)
        else "budget"
        if isinstance(error, BudgetExceededError)
        else "cancelled"
        if isinstance(error, Cancelled)
        else type(error).__name__
    )
    return {"status": "failed", "reason": reason, "error": str(error) or type(error).__name__}


def main(arguments: list[str]) -> int:
    """Work until standard input ends."""
    if hasattr(signal, "pthread_sigmask"):  # some starters block it, and what we start would inherit that
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGINT, signal.default_int_handler)
    output, writing = os.dup(1), threading.Lock()
    os.dup2(2, 1)  # what code of ours prints is no message

    def send(message: dict[str, Any]) -> None:
        data = json.dumps(message, default=repr).encode() + b"\n"
        with writing, suppress(OSError):  # nobody reads any more: the input ends next
            view = memoryview(data)
            while view:
                view = view[os.write(output, view) :]

    with tempfile.TemporaryDirectory(prefix="batch-") as folder:
        os.chdir(folder)
        worker = Worker(send)
        with suppress(KeyboardInterrupt):
            for line in sys.stdin.buffer:
                worker.handle(json.loads(line))
        worker.close()
    return 0
