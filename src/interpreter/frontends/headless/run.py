"""One message, answered without a chat: as text or as JSON events, and an exit code that tells what came of it."""

from __future__ import annotations

import json
import re
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from interpreter.errors import InterpreterError, UsageError
from interpreter.frontends import exit_codes
from interpreter.messages import Message
from interpreter.session import REFUSE, Answer, Event

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.messages import Chunk


RETRIES = 2  # after an answer that does not fit the schema
NOBODY = "Not run: nobody was there to say yes. Use -y to run code without asking."
SAFE_MODE = "Not run: safe_mode wants somebody to say yes to this code, with -y too, and nobody was there."

Speak = Callable[[str, str], Iterator["Chunk"]]
"""Says words, with data that follow them, and yields the chunks of the answer."""


class Said(NamedTuple):
    """A message: the user's words, and what was piped in, which names no files of theirs."""

    words: str
    data: str = ""


class Run:
    """What one run of the program has come to so far."""

    def __init__(self, interpreter: OpenInterpreter) -> None:
        self.interpreter = interpreter
        self.error: BaseException | None = None
        self.interrupted = False
        self.not_approved = False
        self.limit_reached = False
        self._most_requests = interpreter.max_turns
        self.result: Any = None
        self.mismatch: Mismatch | None = None

    @property
    def code(self) -> int:
        """The exit code."""
        if self.interrupted:
            return exit_codes.INTERRUPTED
        if self.error is not None:
            return exit_codes.code_for(self.error)
        if self.limit_reached:
            return exit_codes.LIMIT
        if self.not_approved:
            return exit_codes.NOT_APPROVED
        return exit_codes.SCHEMA if self.mismatch else exit_codes.DONE

    def follow(self, chunk: Chunk) -> None:
        """Note what a chunk tells about the outcome."""
        if chunk["type"] != "decision":
            return
        if chunk.get("format") == "declined":
            self.not_approved = not chunk["content"]["reason"]  # with words, the model goes on another way
        elif chunk.get("format") == "denied":
            self.limit_reached = chunk["content"]["by"] == "limit"
            self.not_approved = self.not_approved or chunk["content"]["by"] == "scan"

    def go(self, speak: Speak, said: Said, schema: OutputSchema | None) -> int:
        """Say it, and where there is a schema, until the answer fits; the exit code."""
        if schema is not None:
            said = Said(said.words, "\n\n".join(filter(None, [said.data, schema.request])))
        for _ in range(1 + (RETRIES if schema else 0)):
            for chunk in speak(*said):
                self.follow(chunk)
            self.mismatch = None
            if self.code != exit_codes.DONE or schema is None:
                break
            try:
                self.result = schema.read(final_answer(self.interpreter.messages))
                break
            except Mismatch as mismatch:
                self.mismatch = mismatch
                said = Said(again(mismatch))
                if not self._may_ask_again():
                    break
        return self.code

    def _may_ask_again(self) -> bool:
        """The limit of requests is for the whole run."""
        if self._most_requests is None:
            return True
        left = self._most_requests - self.interpreter.llm.usage.requests
        self.limit_reached = left < 1
        self.interpreter.max_turns = max(1, left)
        return not self.limit_reached


# -- as text -------------------------------------------------------------------------------------------------------


def say(terminal: Terminal, interpreter: OpenInterpreter, said: Said, schema: OutputSchema | None = None) -> int:
    """Answer a message on the terminal; with a schema, standard output gets the JSON value alone."""
    from interpreter.frontends.terminal.chat import answer

    run = Run(interpreter)

    def speak(words: str, data: str) -> Iterator[Chunk]:
        yield from answer(terminal, interpreter, words, data)
        run.error, run.interrupted = terminal.problem, terminal.interrupted
        if terminal.failed and run.error is None:
            run.error = InterpreterError()

    code = run.go(speak, said, schema)
    if terminal.unanswered:
        run.not_approved = True
        print(SAFE_MODE if interpreter.auto_run else NOBODY, file=sys.stderr)
    if run.mismatch:
        print(f"The answer does not fit the schema: {run.mismatch}", file=sys.stderr)
    if schema is not None and code == exit_codes.DONE:
        print(json.dumps(run.result, ensure_ascii=False, indent=2))
    return run.code


# -- as events -----------------------------------------------------------------------------------------------------


class Events:
    """Writes one JSON object per line: a chunk, with the ids that tell what belongs together."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._turn = ""
        self._group: int | None = None
        self._groups = self._count = 0

    def begin_turn(self) -> None:
        """What follows answers one message."""
        self._turn, self._group = uuid.uuid4().hex[:12], None

    def write(self, chunk: Chunk) -> None:
        """One event."""
        if chunk.get("start"):
            self._groups += 1
            self._group = self._groups
        alone = self._group is None or chunk["type"] in ("confirmation", "input_request", "decision", "status", "error")
        ids = {"seq": self._count, "turn": self._turn or None, "group": None if alone else self._group}
        self._count += 1
        self._write(json.dumps({**ids, **chunk}, default=repr) + "\n")
        if chunk.get("end"):
            self._group = None

    def status(self, name: str, content: dict[str, Any]) -> None:
        self.write({"role": "computer", "type": "status", "format": name, "content": content})

    def error(self, error: BaseException) -> None:
        """What went wrong."""
        name, words = type(error).__name__, str(error) or type(error).__name__
        self.write({"role": "computer", "type": "error", "format": name, "content": words})


def say_as_events(
    terminal: Terminal, interpreter: OpenInterpreter, said: Said, schema: OutputSchema | None, events: Events
) -> int:
    """Answer a message as JSON events; the terminal is for what is said about them."""
    run = Run(interpreter)
    events.status("begin", {"model": interpreter.llm.model, "workspace": interpreter.workspace})

    def speak(words: str, data: str) -> Iterator[Chunk]:
        from interpreter.frontends.terminal.chat import send

        return _turn(run, events, send(terminal, interpreter, words, data))

    code = run.go(speak, said, schema)
    if run.mismatch:
        events.error(run.mismatch)
    events.status("end", _ending(run, code))
    return code


def standard_events() -> Events:
    """Events for standard output, each there at once."""

    def write(line: str) -> None:
        sys.stdout.write(line)
        sys.stdout.flush()

    return Events(write)


def _turn(run: Run, events: Events, turn: Iterator[Event]) -> Iterator[Chunk]:
    from interpreter.frontends.interrupts import Interrupts
    from interpreter.sigint import call_soon

    interpreter = run.interpreter
    # Not in the handler itself: the signal may interrupt code that holds a lock `cancel` needs.
    interrupts = Interrupts(lambda: call_soon(interpreter.cancel), lambda: None)
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
        raise  # nobody reads the events
    except Exception as error:  # noqa: BLE001 - whatever it is, whoever reads the events should know
        run.error = error
        events.error(error)
    run.interrupted = run.interrupted or interrupts.count > 0


def _ending(run: Run, code: int) -> dict[str, Any]:
    llm = run.interpreter.llm
    usage = llm.usage
    return {
        "exit_code": code,
        "reason": exit_codes.MEANINGS[code],
        "answer": final_answer(run.interpreter.messages),
        "result": run.result,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost": llm.cost,
    }


_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*?)```", re.DOTALL | re.IGNORECASE)
_MOST = 5  # mistakes that the model is told at once
_PROMPTS = Path(__file__).parent


class Mismatch(Exception):
    """The answer is not JSON, or does not fit; the words say why."""


class OutputSchema:
    """A JSON Schema from a file, and answers held against it."""

    def __init__(self, file: str) -> None:
        if find_spec("jsonschema") is None:
            words = '--output_schema needs one more package: pip install "open-interpreter[schema]"'
            raise InterpreterError(words)
        import jsonschema
        from referencing import Registry

        try:
            self._schema = json.loads(Path(file).read_text(encoding="utf-8"))
            kind = jsonschema.validators.validator_for(self._schema, default=jsonschema.Draft202012Validator)
            kind.check_schema(self._schema)
        except OSError as error:
            raise UsageError(f"--output_schema: {file} cannot be read: {error.strerror}.") from error
        except ValueError as error:
            raise UsageError(f"--output_schema: {file} is not JSON: {error}.") from error
        except jsonschema.SchemaError as error:
            raise UsageError(f"--output_schema: {file} is no JSON Schema: {error.message}.") from error
        # A registry of its own, so that a `$ref` to an address is an error and never a download.
        self._validator = kind(self._schema, registry=Registry())

    @property
    def request(self) -> str:
        """What the model is told about its final answer."""
        words = (_PROMPTS / "output_schema.md").read_text(encoding="utf-8").strip()
        return f"{words}\n\n{json.dumps(self._schema, ensure_ascii=False)}"

    def read(self, answer: str) -> Any:
        """The value in an answer; Mismatch if there is none that fits."""
        value = _parsed(answer)
        from referencing.exceptions import Unresolvable

        try:
            errors = sorted(self._validator.iter_errors(value), key=lambda error: error.json_path)
        except Unresolvable as error:
            raise UsageError(f"--output_schema refers to {error.ref}, which is not in the file.") from error
        if errors:
            raise Mismatch("; ".join(f"{error.json_path}: {error.message:.200}" for error in errors[:_MOST]))
        return value


def again(mismatch: Mismatch) -> str:
    """What the model is told after an answer that does not fit."""
    words = (_PROMPTS / "output_schema_again.md").read_text(encoding="utf-8").strip()
    return words.replace("{problem}", str(mismatch))


def final_answer(messages: list[Message]) -> str:
    """What the model said last, after all code had run."""
    said: list[str] = []
    for message in reversed(messages):
        if message.get("role") != "assistant" or message.get("type") != "message":
            break
        said.insert(0, str(message.get("content", "")))
    return "\n".join(said).strip()


def _parsed(answer: str) -> Any:
    """The answer as JSON: all of it, or the last fenced block, since models like to add a sentence."""
    tries = [answer.strip(), *reversed(_FENCED.findall(answer))]
    problem: json.JSONDecodeError | None = None
    for text in tries:
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            problem = problem or error
    raise Mismatch(f"the answer is not JSON: {problem}")
