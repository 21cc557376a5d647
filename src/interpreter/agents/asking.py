"""`ask` on the host: questions about data, asked outside the conversation, in parallel, within limits and once each."""

from __future__ import annotations

import hashlib
import json
import queue
import re
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.ai import SYSTEM, plan_split
from interpreter.computer_api.computer import CALL
from interpreter.config.homes import make_folder, our_folder
from interpreter.errors import (
    BudgetExceededError,
    ComputerError,
    MissingKeyError,
    ModelError,
    NoModelError,
    ProviderNotFoundError,
    QuotaExceededError,
    UnknownModelError,
    WrongKeyError,
)
from interpreter.llm import SideChat
from interpreter.llm.context import IMAGE_TOKENS, MESSAGE_TOKENS, estimate_text
from interpreter.llm.limits import Budget, Pace, Rates
from interpreter.llm.usage import in_dollars, look_up
from interpreter.session.actions import cut
from interpreter.tools import Tool, ToolContext
from interpreter.tools.toolbox import problem_with_arguments

if TYPE_CHECKING:
    from interpreter.agent.agent import Agent
    from interpreter.llm import Llm

Prompt = Sequence[str]  # a text, then images as base64

# What no other row would fare better with.
FATAL = (MissingKeyError, NoModelError, ProviderNotFoundError, QuotaExceededError, UnknownModelError, WrongKeyError)
MAX_REPLY = 2000  # tokens of an answer, unless `max_tokens` is given
USUAL_REPLY = 30  # tokens of an answer, for an estimate before there is one
MAX_KEPT_ANSWERS = 200_000
NEAR_AT_ONCE = 2  # a server on this machine gains nothing from more
PROGRESS_GAP = 0.5  # seconds between two lines
_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)
_AGAIN = "{prompt}\n\nAn earlier answer was wrong: {problem} It was:\n{answer}"
_ROW = {"type": "array", "items": {"type": "string"}}
_COMMON = {
    "question": {"type": "string"},
    "form": {},
    **{name: {"type": ["string", "null"]} for name in ("model", "system")},
    **{
        name: {"type": ["number", "null"]}
        for name in ("budget", "requests_per_minute", "tokens_per_minute", "deadline", "temperature")
    },
    **{name: {"type": ["integer", "null"]} for name in ("at_once", "tries", "max_tokens")},
    "cache": {"type": "boolean"},
}


def make_tools(agent: Agent) -> Iterator[Tool]:
    """Make the tools behind `ask` in code. They need no approval, since they reach only the model."""
    more: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "map": (ask_rows, {"prompts": {"type": "array", "items": _ROW}}),
        "estimate": (estimate, {"prompts": {"type": "array", "items": _ROW}}),
        "one": (ask_one, {"text": {"type": "string"}, "images": _ROW}),
    }
    for name, (function, properties) in more.items():
        schema = {"type": "object", "properties": {**properties, **_COMMON}, "required": [*properties, "question"]}

        def handler(arguments: dict[str, Any], context: ToolContext, function: Any = function) -> Any:
            return function(agent.llm, context, **arguments)

        yield Tool(f"ask.{name}", "", {**schema, "additionalProperties": False}, handler, "reads")


# -- what an answer has to be ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """The form that an answer must have: any text, one of some choices, or JSON that fits a schema."""

    schema: Mapping[str, Any] | None = None

    @property
    def choices(self) -> list[str] | None:
        choices = (self.schema or {}).get("enum")
        return choices if choices and all(isinstance(each, str) for each in choices) else None

    @property
    def instruction(self) -> str:
        if self.schema is None or self.schema == {"type": "string"}:
            return ""
        if self.choices is not None:
            return f"Answer with exactly one of these, and nothing else: {', '.join(self.choices)}"
        kinds = {"integer": "an integer", "number": "a number", "boolean": "true or false"}
        if (kind := kinds.get(str(self.schema.get("type")))) and set(self.schema) == {"type"}:
            return f"Answer with {kind}, and nothing else."
        return f"Answer with JSON that matches this JSON Schema, and nothing else:\n{json.dumps(self.schema)}"

    @property
    def usual_reply(self) -> int:
        """Estimate the tokens of an answer."""
        return max(map(estimate_text, self.choices)) if self.choices else USUAL_REPLY

    def read(self, answer: str) -> Any:
        """Return the value of an answer. Raises ValueError with the reason if the answer doesn't fit."""
        if not self.instruction:
            return answer
        if self.choices is not None:
            plain = answer.strip().strip("\"'`.*").casefold()
            for choice in self.choices:
                if choice.casefold() == plain:
                    return choice
            raise ValueError(f"it is not one of {', '.join(self.choices)}.")
        problem = "it is not JSON."
        for text in (answer.strip().rstrip("."), *reversed(_FENCED.findall(answer))):
            with suppress(ValueError):
                value = json.loads(text.lower() if text in ("True", "False") else text)
                checked = {"type": "object", "properties": {"answer": self.schema}}
                problem = problem_with_arguments(Tool("answer", "", checked, print), {"answer": value})
                if not problem:
                    return value
                problem = problem.partition(" Its form is")[0]
        raise ValueError(problem)


# -- answers that are kept ------------------------------------------------------------------------------------------


class Answers:
    """Stored answers by question, in a file of ours, so that the same question is not paid for twice.

    An interrupted job continues where it stopped. Without a conversation history, they are kept in memory.
    """

    _in_memory: dict[str, str] = {}  # noqa: RUF012 - for this process

    def __init__(self, is_kept: bool, path: Path | None = None) -> None:
        self._lock = threading.Lock()
        self._file: sqlite3.Connection | None = None
        path = path or our_folder() / "answers.sqlite3"
        if is_kept:
            with suppress(OSError, sqlite3.Error):
                make_folder(path.parent)
                path.touch(mode=0o600)
                self._file = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=30)
                self._file.execute("PRAGMA journal_mode=WAL")
                self._file.execute("PRAGMA synchronous=OFF")  # a crash of the system may cost the last answers
                self._file.execute("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT)")

    def get(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the answers that are known."""
        with self._lock:
            if self._file is None:
                return {key: self._in_memory[key] for key in keys if key in self._in_memory}
            rows: dict[str, str] = {}
            with suppress(sqlite3.Error):
                for key in keys:
                    rows.update(self._file.execute("SELECT key, answer FROM answers WHERE key = ?", (key,)).fetchall())
            return rows

    def keep(self, key: str, answer: str) -> None:
        with self._lock:
            if self._file is None:
                self._in_memory[key] = answer
                return
            with suppress(sqlite3.Error):
                self._file.execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", (key, answer))

    def close(self) -> None:
        """Close the file, without the oldest answers if there are too many."""
        with self._lock, suppress(sqlite3.Error):
            if self._file is not None:
                oldest = "SELECT rowid FROM answers ORDER BY rowid DESC LIMIT 1 OFFSET ?"
                self._file.execute(f"DELETE FROM answers WHERE rowid <= ({oldest})", (MAX_KEPT_ANSWERS,))
                self._file.close()
                self._file = None


# -- a job ------------------------------------------------------------------------------------------------------------


class Job:
    """A number of prompts for one model: each is asked once, those with a known answer not at all."""

    def __init__(
        self,
        llm: Llm,
        form: Mapping[str, Any] | None = None,
        model: str | None = None,
        system: str | None = None,
        budget: float | None = None,
        at_once: int | None = None,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        deadline: float | None = None,
        tries: int | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        cache: bool = True,
    ) -> None:
        self.form = Form(form)
        self.system = "\n\n".join(filter(None, [system or SYSTEM, self.form.instruction]))
        chosen = {"temperature": temperature} if temperature is not None else {}
        limit = llm.max_budget  # of the session: what is left of it may be spent here
        left = None if limit is None else max(0.0, limit - llm.usage.cost)
        self.budget = Budget(
            lambda: min((each for each in (budget, left) if each is not None), default=None), llm.budget
        )
        self.budget.owner = "ask"
        side = SideChat(llm, budget=self.budget).for_job(model, max_tokens=max_tokens or llm.max_tokens or MAX_REPLY)
        vars(side).update(chosen)
        self.chat, self._cached = side, cache
        rates = Rates(NEAR_AT_ONCE if side.is_near and llm.endpoint is not None else Rates.at_once)
        asked: dict[str, Any] = {"at_once": at_once, "tries": tries, "deadline": deadline}
        asked |= {"requests_per_minute": requests_per_minute, "tokens_per_minute": tokens_per_minute}
        self.pace = Pace(replace(rates, **{name: value for name, value in asked.items() if value is not None}))
        settings: Any = llm._settings
        self.answers = Answers(settings.conversation_history)

    def key(self, prompt: Prompt) -> str:
        """Return the digest of everything that an answer depends on."""
        chat = self.chat
        asked = [chat.model, chat.api_base, chat.temperature, self.system, *prompt]
        return hashlib.sha256(json.dumps(asked).encode("utf-8", "surrogatepass")).hexdigest()

    def ask(self, prompt: Prompt) -> tuple[str, Any]:
        """Return an answer and its value, asking once more if it is wrong; ValueError if that is wrong, too."""
        text, *images = prompt
        size = tokens_of(prompt) + estimate_text(self.system)
        for is_last in (False, True):
            answer = self.pace.run(lambda seconds, text=text: self._send(seconds, text, images), size)  # type: ignore[misc]
            try:
                return answer, self.form.read(answer)
            except ValueError as problem:
                if is_last:
                    raise
                text = _AGAIN.format(prompt=prompt[0], problem=str(problem).capitalize(), answer=answer[:2000])
        raise AssertionError

    def _send(self, seconds: float, text: str, images: Sequence[str]) -> str:
        chat = self.chat.for_item(seconds)
        return chat.answer(self.system, text, *images)

    def cancel(self) -> None:
        """End all requests, from any thread."""
        self.pace.cancel()
        self.chat.cancel()

    def known(self, prompts: Iterable[Prompt]) -> dict[str, str]:
        return self.answers.get(dict.fromkeys(map(self.key, prompts))) if self._cached else {}

    def keep(self, key: str, answer: str) -> None:
        self.answers.keep(key, answer)


def tokens_of(prompt: Prompt) -> int:
    text, *images = prompt
    return estimate_text(text) + IMAGE_TOKENS * len(images) + 2 * MESSAGE_TOKENS


# -- the tools --------------------------------------------------------------------------------------------------------


def ask_rows(
    llm: Llm, context: ToolContext, prompts: list[Prompt], question: str, **limits: Any
) -> list[dict[str, Any]]:
    """Ask about each row, several at once; an answer or an error for each, in their order."""
    job = Job(llm, **limits)
    progress = Progress(job, len(prompts))
    try:
        rows: dict[str, list[int]] = {}
        for number, prompt in enumerate(prompts):
            rows.setdefault(job.key(prompt), []).append(number)  # the same question is asked once
        results: list[dict[str, Any]] = [{}] * len(prompts)
        known = job.known(prompts)
        waiting = []
        for key, numbers in rows.items():
            try:
                value = job.form.read(known[key])
            except (KeyError, ValueError):
                waiting.append((key, prompts[numbers[0]]))
            else:
                progress.count(numbers, results, {"value": value}, is_new=False)
        progress.begin([prompt for _, prompt in waiting])
        for key, result in in_parallel(job, context, waiting):
            progress.count(rows[key], results, result)
        return results
    finally:
        job.answers.close()
        progress.end()


def in_parallel(
    job: Job, context: ToolContext, waiting: Sequence[tuple[str, Prompt]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Ask, and yield answers as they arrive. Closing the generator cancels the open requests."""
    done: queue.SimpleQueue[tuple[str, dict[str, Any]] | ModelError | None] = queue.SimpleQueue()

    def work(key: str, prompt: Prompt) -> None:
        try:
            answer, value = job.ask(prompt)
            job.keep(key, answer)
            done.put((key, {"value": value}))
        except FATAL as error:
            done.put(error)
        except Exception as error:  # noqa: BLE001 - the row must have a result
            done.put((key, {"error": str(error) or type(error).__name__}))

    def stop() -> None:
        job.cancel()
        done.put(None)

    at_once = min(job.pace.rates.at_once, len(waiting))
    if not at_once:
        return
    call = CALL.get()
    if call is not None:
        call.on_end = stop
    pool = ThreadPoolExecutor(at_once, "ask")
    try:
        for key, prompt in waiting:
            pool.submit(work, key, prompt)
        for _ in waiting:
            result = done.get()
            if result is None or context.cancelled():
                raise KeyboardInterrupt
            if isinstance(result, ModelError):
                raise result
            yield result
    finally:
        job.cancel()
        pool.shutdown(wait=False, cancel_futures=True)


def ask_one(llm: Llm, context: ToolContext, question: str, text: str, images: list[str], **limits: Any) -> Any:
    """Answer one question about data; a text that is too long for the model is read in parts."""
    job = Job(llm, **limits)
    plan = plan_split(text, question, job.chat.window(estimate_text(text) + estimate_text(question)))
    if plan.calls > 1:
        text = context.session and llm.interpreter.computer.ai.query(text, question)
    prompt = [f"{question}\n\n{text}" if text else question, *images]
    key = job.key(prompt)
    try:
        if key in (known := job.known([prompt])):
            with suppress(ValueError):
                return job.form.read(known[key])
        for _, result in in_parallel(job, context, [(key, prompt)]):
            if "error" in result:
                raise ComputerError(result["error"])
            return result["value"]
    finally:
        job.answers.close()


def estimate(llm: Llm, context: ToolContext, prompts: list[Prompt], question: str, **limits: Any) -> dict[str, Any]:
    """Return what a job would take. Nothing is sent."""
    job = Job(llm, **limits)
    known = job.known(prompts)
    job.answers.close()
    new = list({key: prompt for prompt in prompts if (key := job.key(prompt)) not in known}.values())
    read, written, dollars = cost_of(job, new)
    return {"rows": len(prompts), "requests": len(new), "tokens": read + written, "dollars": dollars}


def cost_of(job: Job, prompts: Sequence[Prompt]) -> tuple[int, int, float | None]:
    """Estimate the tokens that are read and written, and the dollars; None if the price is unknown."""
    read = sum(map(tokens_of, prompts)) + len(prompts) * estimate_text(job.system)
    price, written = look_up(job.chat.model, job.chat.api_base).price, job.form.usual_reply * len(prompts)
    return read, written, price.cost(read, written) if price is not None else None


class Progress:
    """The line that a job shows while it runs."""

    def __init__(self, job: Job, rows: int) -> None:
        self._job, self._rows = job, rows
        self._call = CALL.get()
        self._done = self._new = 0
        self._failures = Counter[str]()
        self._has_begun = False
        self._shown, self._began = 0.0, time.monotonic()
        self._spent = job.chat.usage.cost

    def begin(self, new: Sequence[Prompt]) -> None:
        """Show the job's estimated cost; BudgetExceededError if that is clearly above its budget."""
        self._new = len(new)
        read, written, dollars = cost_of(self._job, new)
        left = self._job.budget.left
        about = (
            f", about ${dollars:,.2f}"
            if dollars and dollars >= 0.005
            else f", about {in_dollars(dollars)}"
            if dollars
            else ""
        )
        if dollars and left is not None and dollars > left:
            raise BudgetExceededError(
                f"{self._new:,} requests with {read + written:,} tokens would cost about {in_dollars(dollars)}, and "
                f"{in_dollars(left)} is left. Nothing was sent. Raise the budget, or ask about fewer rows."
            )
        self._has_begun = True
        kept = f", {self._rows - self._new:,} known" if self._rows > self._new else ""
        self._show(f"ask: {self._rows:,} rows{kept}, about {read + written:,} tokens{about}")

    def count(
        self, numbers: Sequence[int], results: list[dict[str, Any]], result: dict[str, Any], is_new: bool = True
    ) -> None:
        """Note the result of some rows."""
        for number in numbers:
            results[number] = result
        self._done += len(numbers)
        if "error" in result:
            self._failures[result["error"]] += len(numbers)
        if is_new and time.monotonic() - self._shown > PROGRESS_GAP:
            self._show(self._line())

    def _line(self) -> str:
        spent = self._job.chat.usage.cost - self._spent
        failed = f", {self._failures.total():,} failed" if self._failures else ""
        cost = f", {in_dollars(spent)}" if spent else ""
        passed = time.monotonic() - self._began
        left = (self._rows - self._done) * passed / self._done if self._done else 0.0
        remaining = f", about {left:,.0f} s left" if self._done < self._rows and left >= 1 else ""
        return f"ask: {self._done:,} of {self._rows:,} rows{failed}{cost}{remaining}"

    def end(self) -> None:
        """Leave the last line, with the most common failures."""
        if self._has_begun:
            common = "".join(f"\n{count:,} rows: {cut(text, 300)}" for text, count in self._failures.most_common(3))
            self._show(self._line(), f"{common}\n")

    def _show(self, line: str, end: str = "") -> None:
        self._shown = time.monotonic()
        if self._call is not None:
            self._call.tell({"event": "stream", "name": "stdout", "text": f"\r{line.ljust(60)}{end}"})
