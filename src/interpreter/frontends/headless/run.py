"""One message, answered without a chat: the outcome as an exit code, `--output_schema`, and `--json` events."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from interpreter.api import OpenInterpreter
from interpreter.errors import InterpreterError, UsageError
from interpreter.frontends import exit_codes
from interpreter.frontends.interrupts import TurnInterrupts
from interpreter.host.installation import install_hint
from interpreter.leaves import leaves, load
from interpreter.messages import Chunk, Message
from interpreter.questions import REFUSE, Answer
from interpreter.session import Event
from interpreter.sigint import call_soon

RETRIES = 2  # after an answer that does not fit the schema
_MISTAKES = 5  # that are reported to the model at once
_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*?)```", re.DOTALL | re.IGNORECASE)
_ALONE = ("confirmation", "input_request", "decision", "status", "error")  # chunks that belong to no group


class UserMessage(NamedTuple):
    """A message: the user's words, and what was piped in, which names no files of theirs."""

    words: str
    data: str = ""


class HeadlessRun:
    """The outcome of one run of the program so far."""

    def __init__(self, interpreter: OpenInterpreter) -> None:
        self.interpreter = interpreter
        self.error: BaseException | None = None
        self.interrupted = False
        self.not_approved = False
        self.limit_reached = False
        self._max_requests = interpreter.max_turns
        self.result: Any = None
        self.mismatch: Mismatch | None = None
        self.problems: list[str] = []  # that leaves have at its end
        self.checks: dict[str, list[str]] = {"result": [], "answer": []}  # what is missing in the last turn

    @property
    def code(self) -> int:
        outcomes = (
            (self.interrupted, exit_codes.INTERRUPTED),
            (self.error is not None, exit_codes.code_for(self.error)),
            (self.limit_reached, exit_codes.LIMIT),
            (self.not_approved, exit_codes.NOT_APPROVED),
            (self.mismatch is not None, exit_codes.SCHEMA),
            (bool(self.problems), exit_codes.COMMIT),
        )
        return next((code for happened, code in outcomes if happened), exit_codes.DONE)

    def go(
        self, speak: Callable[[str, str], Iterator[Chunk]], message: UserMessage, schema: OutputSchema | None
    ) -> int:
        """Send the message, with a schema until the answer fits; return the exit code.

        `speak` sends a text, followed by data, and yields the chunks of the answer.
        """
        if schema is not None:
            message = UserMessage(message.words, "\n\n".join(filter(None, [message.data, schema.request])))
        for _ in range(1 + RETRIES):
            self.checks = {"result": [], "answer": []}
            for chunk in speak(*message):
                match chunk:
                    case {"type": "status", "format": "notice", "content": {"check": check, "items": items}}:
                        self.checks[check] = items
                    case {"type": "decision", "format": "declined", "content": content}:
                        self.not_approved = not content["reason"]  # with a reason, the model tries another way
                    case {"type": "decision", "format": "denied", "content": content}:
                        self.limit_reached = content["by"] == "limit"
                        self.not_approved = self.not_approved or content["by"] == "scan"
            self.mismatch = None
            if self.code != exit_codes.DONE or schema is None:
                break
            try:
                self.result = schema.read(final_answer(self.interpreter.messages))
                break
            except Mismatch as mismatch:
                self.mismatch = mismatch
                message = UserMessage(_prompt("output_schema_again").replace("{problem}", str(mismatch)))
            if self._max_requests is not None:  # the limit is for the whole run
                left = self._max_requests - self.interpreter.llm.usage.requests
                self.limit_reached = left < 1
                self.interpreter.max_turns = max(1, left)
                if self.limit_reached:
                    break
        parts = (part for leaf in leaves() for part in leaf.endings)
        self.problems = [problem for part in parts if (problem := load(part.make)(self.interpreter.agent))]
        return self.code


# -- answers that fit a schema -------------------------------------------------------------------------------------


class Mismatch(Exception):
    """The answer is not JSON, or does not fit; the message says why."""


class OutputSchema:
    """A JSON Schema that answers have to fit. UsageError if it is invalid; `source` is its name in messages."""

    def __init__(self, schema: Any, source: str = "schema") -> None:
        if find_spec("jsonschema") is None:
            raise InterpreterError(f"{source.partition(':')[0]} needs an extra package: {install_hint('schema')}")
        import jsonschema
        from referencing import Registry

        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        try:
            kind.check_schema(schema)
        except jsonschema.SchemaError as error:
            raise UsageError(f"{source} is not a JSON Schema: {error.message}.") from error
        self.schema = schema
        # An empty registry, so that a `$ref` to an address is an error and never a download.
        self._validator = kind(schema, registry=Registry())

    @classmethod
    def read_file(cls, file: str) -> OutputSchema:
        """Read the file that `--output_schema` names."""
        try:
            schema = json.loads(Path(file).read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageError(f"--output_schema: {file} cannot be read: {error.strerror}.") from error
        except ValueError as error:
            raise UsageError(f"--output_schema: {file} is not JSON: {error}.") from error
        return cls(schema, f"--output_schema: {file}")

    @property
    def request(self) -> str:
        """Return what the model is asked about its final answer."""
        return f"{_prompt('output_schema')}\n\n{json.dumps(self.schema, ensure_ascii=False)}"

    def read(self, answer: str) -> Any:
        """Parse the value in an answer: all of it, or its last fenced block, since models like to add a sentence.

        Raises Mismatch if there is none, or it does not fit.
        """
        from referencing.exceptions import Unresolvable

        problem: json.JSONDecodeError | None = None
        for text in [answer.strip(), *reversed(_FENCED.findall(answer))]:
            try:
                value = json.loads(text)
                break
            except json.JSONDecodeError as error:
                problem = problem or error
        else:
            raise Mismatch(f"the answer is not JSON: {problem}")
        try:
            errors = sorted(self._validator.iter_errors(value), key=lambda error: error.json_path)
        except Unresolvable as error:
            raise UsageError(f"--output_schema refers to {error.ref}, which is not in the file.") from error
        if errors:
            raise Mismatch("; ".join(f"{error.json_path}: {error.message:.200}" for error in errors[:_MISTAKES]))
        return value


def _prompt(name: str) -> str:
    return (Path(__file__).parent / f"{name}.md").read_text(encoding="utf-8").strip()


def final_answer(messages: list[Message]) -> str:
    """Return the model's last message, after all code had run."""
    texts: list[str] = []
    for message in reversed(messages):
        if message.get("role") != "assistant" or message.get("type") != "message":
            break
        texts.insert(0, str(message.get("content", "")))
    return "\n".join(texts).strip()


# -- events --------------------------------------------------------------------------------------------------------


class Events:
    """Writes one JSON object per line: a chunk, with the ids that show what belongs together."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._turn = ""
        self._group: int | None = None
        self._groups = self._count = 0

    def begin_turn(self) -> None:
        self._turn, self._group = os.urandom(6).hex(), None

    def write(self, chunk: Chunk) -> None:
        if chunk.get("start"):
            self._groups += 1
            self._group = self._groups
        group = None if chunk["type"] in _ALONE else self._group
        ids = {"seq": self._count, "turn": self._turn or None, "group": group}
        self._count += 1
        self._write(json.dumps({**ids, **chunk}, default=repr) + "\n")
        if chunk.get("end"):
            self._group = None

    def status(self, name: str, content: dict[str, Any]) -> None:
        self.write({"role": "computer", "type": "status", "format": name, "content": content})

    def error(self, error: BaseException) -> None:
        name, message = type(error).__name__, str(error) or type(error).__name__
        self.write({"role": "computer", "type": "error", "format": name, "content": message})


def say_as_events(
    interpreter: OpenInterpreter,
    message: UserMessage,
    schema: OutputSchema | None,
    events: Events,
    send: Callable[[str, str], Iterator[Event]],
) -> int:
    """Answer a message as JSON events and return the exit code. `send` yields the events of the turn."""
    run = HeadlessRun(interpreter)
    events.status("begin", {"model": interpreter.llm.model, "workspace": interpreter.workspace})
    code = run.go(lambda words, data: _turn(run, events, send(words, data)), message, schema)
    if run.mismatch:
        events.error(run.mismatch)
    llm = interpreter.llm
    ending = {
        "exit_code": code,
        "reason": "unfinished" if run.checks["result"] and code == exit_codes.DONE else exit_codes.MEANINGS[code],
        "answer": final_answer(interpreter.messages),
        "result": run.result,
        "unmet": run.checks["result"],
        "ungrounded": run.checks["answer"],
        "input_tokens": llm.usage.input_tokens,
        "output_tokens": llm.usage.output_tokens,
        "cost": llm.cost,
    }
    events.status("end", ending)
    return code


def _turn(run: HeadlessRun, events: Events, turn: Iterator[Event]) -> Iterator[Chunk]:
    interpreter = run.interpreter
    # Not in the signal handler: it may interrupt code that holds a lock that `cancel` needs.
    interrupts = TurnInterrupts(lambda: call_soon(interpreter.cancel), lambda: None)
    events.begin_turn()
    try:
        with interrupts.taken(), closing(turn):  # type: ignore[type-var]
            for event in interrupts.passing(turn):
                if (chunk := event.chunk) is None:
                    continue
                events.write(chunk)
                if chunk["type"] == "confirmation" and "question" in chunk:
                    interpreter.session.answer(chunk["question"], Answer(REFUSE, by="nobody"))
                yield chunk
    except KeyboardInterrupt:
        interpreter.cancel()
        run.interrupted = True
    except BrokenPipeError:
        raise  # the reader of the events is gone
    except Exception as error:  # noqa: BLE001 - the reader of the events should know about any error
        run.error = error
        events.error(error)
    run.interrupted = run.interrupted or interrupts.count > 0
