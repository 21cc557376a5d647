"""`--output_schema`: the final answer as JSON that fits a schema."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from interpreter.errors import InterpreterError, UsageError
from interpreter.messages import Message

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
