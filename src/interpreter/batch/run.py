"""A batch: gives tasks to workers, grants their requests, and commits each result once.

This process owns everything: the tasks, the results, the budget and the pace. A worker that ends costs its attempts,
which are tried again elsewhere; the first result of a task counts.
"""

from __future__ import annotations

import hashlib
import json
import queue
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from interpreter.batch.store import Store
from interpreter.batch.tasks import Task
from interpreter.batch.worker import Worker
from interpreter.errors import BudgetExceededError, InterpreterError, LimitReachedError, RateLimitedError
from interpreter.host import processes
from interpreter.llm.limits import Budget, Cancelled, Pace, Rates
from interpreter.version import __version__

TRIES = 3  # of a task whose worker or connection is lost
PAUSES = 100  # of a task that a server refuses because of its limits
GRACE = 10.0  # seconds that a worker has for ending a task that took too long
END_GRACE = 5.0  # seconds for ending at all
RECENT = 50  # results that the time left is estimated from

Inbox = queue.SimpleQueue[tuple["Link | None", dict[str, Any]]]


class Link(Protocol):
    """A connection to a worker. Its messages go to the inbox, and `{"type": "gone"}` when the worker has ended."""

    def send(self, message: Mapping[str, Any]) -> None: ...

    def close(self, kill: bool = False) -> None:
        """End the worker: at once, or after its sessions have ended."""


class ProcessLink:
    """A worker that is a process on this machine."""

    def __init__(self, inbox: Inbox, command: Sequence[str] | None = None) -> None:
        command = command or processes.python("-m", "interpreter", "batch-worker", packages=True)
        self._process = processes.start(command, stdin=processes.PIPE, stdout=processes.PIPE, stderr=processes.PIPE)
        self._sending, self._inbox, self._errors = threading.Lock(), inbox, deque[str](maxlen=5)
        for read in (self._read, self._read_errors):
            threading.Thread(target=read, daemon=True).start()

    def send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            with self._sending:
                self._process.stdin.write(json.dumps(message, default=repr).encode() + b"\n")
                self._process.stdin.flush()
        except (OSError, ValueError):
            pass  # it has ended: the inbox says so

    def _read(self) -> None:
        assert self._process.stdout is not None and self._process.stdin is not None
        with self._process.stdout as lines:
            for line in lines:
                try:
                    message = json.loads(line)
                except ValueError:
                    break  # no line of ours: the worker can't be trusted any more
                self._inbox.put((self, message))
        with suppress(OSError):
            self._process.stdin.close()
        processes.end(self._process, 1.0)
        self._inbox.put((self, {"type": "gone", "why": " ".join(self._errors)}))

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for line in lines:
                self._errors.append(line.decode("utf-8", "replace").strip())

    def close(self, kill: bool = False) -> None:
        if kill:
            processes.kill(self._process)
            return
        assert self._process.stdin is not None
        with self._sending, suppress(OSError):
            self._process.stdin.close()


class ThreadLink:
    """A worker inside this process, for tasks that begin from a session that is here."""

    def __init__(self, inbox: Inbox, make_session: Callable[[str], Any]) -> None:
        self._worker = Worker(lambda message: inbox.put((self, message)), make_session)

    def send(self, message: Mapping[str, Any]) -> None:
        self._worker.handle(message)

    def close(self, kill: bool = False) -> None:
        self._worker.close()


@dataclass(frozen=True)
class Limits:
    """The limits of a batch."""

    at_once: int = 8  # tasks
    budget: float | None = None  # dollars, over all runs
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    deadline: float = 600.0  # seconds for one task
    max_failures: int | None = None


def folder_of(out: Path, task: str, attempt: int) -> Path:
    """Return the folder of an attempt; the id may have any characters."""
    name = re.sub(r"[^\w.-]", "_", task).strip(".")[:80]
    if name != task:
        name += "-" + hashlib.sha256(task.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return Path(f"{out.absolute()}.files", name, str(attempt))


@dataclass
class _Attempt:
    task: Task
    number: int
    link: Link
    ends: float  # when its worker should have ended it


@dataclass
class Progress:
    """The progress of a batch."""

    tasks: int
    done: int = 0
    failed: int = 0
    running: int = 0
    cost: float = 0.0
    tokens: int = 0
    seconds_left: float | None = None
    notice: str = ""  # why nothing goes on, or something that happened


@dataclass
class _Counters:
    tokens: int = 0
    tries: Counter[str] = field(default_factory=Counter)
    pauses: Counter[str] = field(default_factory=Counter)


class Batch:
    """Runs tasks; iterate over `run()` for the results as they are committed."""

    def __init__(
        self,
        tasks: Sequence[Task],
        store: Store,
        limits: Limits,
        hello: Mapping[str, Any],
        start_link: Callable[[Inbox], Link],
        links: int,
        show: Callable[[Progress], None] = lambda progress: None,
    ) -> None:
        self.tasks, self.store, self.limits = tasks, store, limits
        self._hello = {"type": "hello", **hello}
        self._start_link, self._link_count, self._show = start_link, links, show
        self._inbox: Inbox = queue.SimpleQueue()
        self._links: dict[Link, bool] = {}  # and whether each has answered
        self._waiting = deque(task for task in tasks if task.id not in store.results)
        self._attempts: dict[str, _Attempt] = {}
        self._requests: dict[tuple[Link, int], _Request] = {}
        self._count, self._finished = _Counters(), deque[float](maxlen=RECENT)
        self._stopping = ""  # why no further task begins
        self._failure: InterpreterError | None = None
        self.was_stopped = False
        self.budget = Budget(lambda: limits.budget, owner="The batch")
        self.budget.spent = store.spent
        # A request waits for its turn here, so that all workers together keep the limits.
        self.pace = Pace(Rates(limits.at_once, limits.requests_per_minute, limits.tokens_per_minute))

    # -- from other threads and signal handlers --------------------------------------------------------------------

    def drain(self) -> None:
        """Begin no further task; those that run are finished."""
        self._inbox.put((None, {"type": "drain"}))

    def stop(self) -> None:
        """End everything now. What is not finished runs again when the batch is started again."""
        self._inbox.put((None, {"type": "stop"}))

    def fail(self, error: InterpreterError) -> None:
        """End the batch with an error."""
        self._inbox.put((None, {"type": "fail", "error": error}))

    # -- running ---------------------------------------------------------------------------------------------------

    def run(self) -> Generator[dict[str, Any]]:
        """Run the tasks without a result; an error that ended the batch is raised after the last result."""
        began = time.monotonic()
        try:
            for _ in range(min(self._link_count, len(self._waiting))):
                self._open()
            while self._attempts or (self._waiting and not self._stopping):
                self._dispatch()
                for result in self._next():
                    self._finished.append(time.monotonic() - began)
                    yield result
                self._show(self.progress())
        finally:
            self.pace.cancel()
            self._close()
        if self._failure is not None:
            raise self._failure

    def progress(self, notice: str = "") -> Progress:
        results = [self.store.results.get(task.id) for task in self.tasks]
        statuses = Counter(result["status"] for result in results if result is not None)
        left = None
        if len(self._finished) > 1:
            pace = (self._finished[-1] - self._finished[0]) / (len(self._finished) - 1)
            left = pace * (len(self._waiting) + len(self._attempts))
        return Progress(
            len(self.tasks), statuses["done"], statuses["failed"], len(self._attempts), self.budget.spent,
            self._count.tokens, left, notice or self._stopping,
        )  # fmt: skip

    def _open(self) -> None:
        link = self._start_link(self._inbox)
        self._links[link] = False
        link.send(self._hello)

    def _close(self) -> None:
        """End the workers, and wait for them."""
        for link in self._links:
            link.close()
        ends = time.monotonic() + END_GRACE
        while any(isinstance(link, ProcessLink) for link in self._links):
            try:
                sender, message = self._inbox.get(timeout=max(0.0, ends - time.monotonic()))
            except queue.Empty:
                for link in self._links:
                    link.close(kill=True)
                ends = time.monotonic() + 60.0
                continue
            if sender is not None and message["type"] == "gone":
                self._links.pop(sender, None)
            elif sender is not None and message["type"] == "settle":
                self._settle(sender, message)
        for request in list(self._requests.values()):
            request.lose()

    def _dispatch(self) -> None:
        """Give waiting tasks to the workers that have the fewest."""
        loads = Counter(attempt.link for attempt in self._attempts.values())
        ready = [link for link, has_answered in self._links.items() if has_answered]
        while ready and self._waiting and not self._stopping and len(self._attempts) < self.limits.at_once:
            task = self._waiting.popleft()
            if task.id in self.store.results:
                continue
            link = min(ready, key=loads.__getitem__)
            loads[link] += 1
            number = self.store.begin_attempt(task.id)
            ends = time.monotonic() + self.limits.deadline + GRACE
            self._attempts[task.id] = _Attempt(task, number, link, ends)
            link.send(
                {
                    "type": "task",
                    "id": task.id,
                    "attempt": number,
                    "message": task.message,
                    "files": list(task.files),
                    "model": task.model,
                    "schema": task.schema or self._hello.get("schema"),
                    "budget": task.budget,
                    "deadline": self.limits.deadline,
                    "folder": str(folder_of(self.store.out, task.id, number)),
                    "budget_of_all": self.limits.budget,
                }
            )

    def _next(self) -> Generator[dict[str, Any]]:
        """Handle what comes next; yield a result if it is one."""
        soonest = min((attempt.ends for attempt in self._attempts.values()), default=None)
        try:
            timeout = None if soonest is None else max(0.0, soonest - time.monotonic())
            link, message = self._inbox.get(timeout=timeout)
        except queue.Empty:
            for attempt in [each for each in self._attempts.values() if each.ends <= time.monotonic()]:
                attempt.link.close(kill=True)  # it doesn't even end its tasks in time
            return
        if link is None:
            if message["type"] == "fail":
                self._end(str(message["error"]), message["error"])
            else:
                self._interrupt(message["type"])
            return
        match message["type"]:
            case "hello" if message["version"] == __version__:
                self._links[link] = True
            case "hello":
                self._end(f"A worker has version {message['version']}, and this is {__version__}.")
            case "reserve":
                request = self._requests[link, message["request"]] = _Request(self, link, message)
                threading.Thread(target=request.grant, daemon=True).start()
            case "settle":
                self._settle(link, message)
            case "result":
                yield from self._result(link, message)
            case "gone":
                self._lose(link, message.get("why", ""))

    def _interrupt(self, kind: str) -> None:
        self.was_stopped = True
        if kind == "drain":
            self._stopping = "finishing what runs; press Ctrl-C again to stop"
        else:
            self._stopping = "stopping"
            for task, attempt in list(self._attempts.items()):
                attempt.link.send({"type": "cancel", "id": task})
            self._attempts.clear()
        self._show(self.progress())

    def _end(self, why: str, error: InterpreterError | None = None) -> None:
        """Begin no further task, and raise an error at the end."""
        self._stopping = self._stopping or why
        self._failure = self._failure or error or InterpreterError(why)

    def _settle(self, link: Link, message: Mapping[str, Any]) -> None:
        request = self._requests.pop((link, message["request"]), None)
        if request is not None:
            self._count.tokens += message["tokens"]
            request.settle(message["cost"], message["tokens"], message["limited"], message["retry_after"])

    def _result(self, link: Link, message: dict[str, Any]) -> Generator[dict[str, Any]]:
        key = message["id"]
        attempt = self._attempts.get(key)
        if attempt is None or attempt.link is not link or attempt.number != message["attempt"]:
            return  # of an attempt that was given up
        del self._attempts[key]
        reason = message.get("reason")
        if message["status"] != "done":
            if reason == "cancelled":
                return
            if reason == "budget" and self.budget.limit is not None and attempt.task.budget is None:
                self._end("the budget is spent", BudgetExceededError(message["error"]))
                return
            if self._may_try_again(attempt.task, reason):
                return
        del message["type"]
        row = {"id": key, "status": message["status"], "value": message.get("value"), **message}
        if self.store.commit(row):
            yield row
        failed = sum(row["status"] == "failed" for row in self.store.results.values())
        if self.limits.max_failures is not None and failed > self.limits.max_failures:
            self._end(
                f"more than {self.limits.max_failures:,} tasks failed",
                LimitReachedError(f"Stopped: {failed:,} tasks failed. --max_failures is {self.limits.max_failures:,}."),
            )

    def _may_try_again(self, task: Task, reason: str | None) -> bool:
        """Queue a task again if something else caused its failure; False if it was tried often enough."""
        kind, most = {"lost": (self._count.tries, TRIES - 1), "limited": (self._count.pauses, PAUSES)}.get(
            reason or "", (None, 0)
        )
        if kind is None or kind[task.id] >= most:
            return False
        kind[task.id] += 1
        self._waiting.append(task)
        return True

    def _lose(self, link: Link, why: str) -> None:
        """Try the tasks of a worker that has ended elsewhere."""
        had_answered = self._links.pop(link, False)
        for request in [request for request in self._requests if request[0] is link]:
            self._requests.pop(request).lose()
        for key, attempt in list(self._attempts.items()):
            if attempt.link is not link:
                continue
            del self._attempts[key]
            if not self._may_try_again(attempt.task, "lost"):
                error = f"Its worker ended {TRIES} times while it ran. {why}".strip()
                self.store.commit({"id": key, "status": "failed", "value": None, "error": error, "reason": "lost"})
        if not had_answered:
            self._end(f"A worker could not start. {why}".strip())
        elif self._waiting and not self._stopping:
            self._open()


class _Request:
    """A request of a worker that wants to be sent."""

    def __init__(self, batch: Batch, link: Link, message: Mapping[str, Any]) -> None:
        self._batch, self._link, self._message = batch, link, message
        self._changing = threading.Lock()
        self._is_over = False
        self._began: float | None = None  # when it was granted
        self._number = 0  # in the journal

    def grant(self) -> None:
        """Wait for the budget and for its turn, then have it sent."""
        batch, dollars = self._batch, self._message["cost"]
        try:
            batch.budget.reserve(dollars, lambda: self._is_over)
        except InterpreterError as error:
            self._refuse(error)
            return
        try:
            began = batch.pace.enter()
        except Cancelled:
            batch.budget.settle(dollars, 0.0)
            return
        with self._changing:
            if not self._is_over:
                try:
                    self._number = batch.store.reserve(self._message["task"], dollars)
                except InterpreterError as error:
                    batch.fail(error)
                    self._refuse(error)
                else:
                    self._began = began
                    self._link.send({"type": "go", "request": self._message["request"]})
                    return
        batch.pace.leave(began, None)
        batch.budget.settle(dollars, 0.0)

    def _refuse(self, error: InterpreterError) -> None:
        self._link.send({"type": "refuse", "request": self._message["request"], "text": str(error)})

    def settle(self, cost: float, tokens: int = 0, limited: bool = False, retry_after: float | None = None) -> None:
        """Note the end of the request, with its cost."""
        with self._changing:
            self._is_over = True
            if self._began is None:
                Budget.wake()
                return
            error = RateLimitedError("", retry_after=retry_after) if limited else None
            self._batch.pace.leave(self._began, error, tokens)
            self._batch.budget.settle(self._message["cost"], cost)
            self._batch.store.settle(self._number, cost, tokens)

    def lose(self) -> None:
        """Settle the request of a lost worker at its highest cost, since the server may have answered."""
        self.settle(self._message["cost"])
