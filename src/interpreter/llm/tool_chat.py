"""A conversation for a model with tools: code and calls as tool calls, output as their results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from interpreter.tools import EXECUTE
from interpreter.tools.calls import read_arguments
from interpreter.tools.toolbox import wire_name

NOT_RUN = "This code was not run."
NOT_MADE = "This call was not made."
NO_OUTPUT = "No output"
SEE_IMAGE = "The output is the image that follows."
_LONGEST_ID = 40  # characters, at OpenAI


class ToolChat:
    """Puts a conversation together so that every call has exactly one result, right behind it.

    A call goes out under the id that it came with, if that is still free and no provider refuses it for its length.
    """

    def __init__(self) -> None:
        self._messages: list[dict[str, Any]] = []
        self._said: list[str] = []
        self._calls: list[_Call] = []
        self._pictures: list[dict[str, Any]] = []
        self._count = 0
        self._ids: set[str] = set()

    def system(self, text: str) -> None:
        self._add("system", text)

    def user(self, text: str) -> None:
        self._end_turn()
        self._add("user", text)

    def say(self, text: str) -> None:
        if not text:
            return
        self._end_answered_turn()
        self._said.append(text)

    def code(self, language: str, code: str, call: str | None = None) -> None:
        arguments = json.dumps({"language": language, "code": code}, ensure_ascii=False)
        self._call(_Call(EXECUTE, arguments, call, NOT_RUN))

    def call(self, name: str, arguments: str, call: str | None = None) -> None:
        self._call(_Call(wire_name(name), _as_object(arguments), call, NOT_MADE))

    def output(self, text: str, failed: bool = False, call: str | None = None) -> None:
        """Output answers the call with its id, or else the oldest one without an answer, or goes on with the last."""
        if self._calls:
            next(self._answered_by(call)).add(text)
        elif text:
            self.user(on_this_computer(text))

    def picture(self, parts: list[dict[str, Any]], shown_by_code: bool) -> None:
        if not shown_by_code or not self._calls:
            self._end_turn()
            self._add("user", parts)
            return
        if self._calls[0].results is None:
            self._calls[0].add(SEE_IMAGE)
        self._pictures.append({"role": "user", "content": parts})

    def finish(self) -> list[dict[str, Any]]:
        self._end_turn()
        return self._messages

    def _call(self, call: _Call) -> None:
        self._end_answered_turn()
        self._calls.append(call)

    def _answered_by(self, call: str | None) -> Iterator[_Call]:
        named = [each for each in self._calls if call is not None and each.call == call] or self._calls
        yield from (each for each in named if each.results is None)
        yield named[-1]

    def _id(self, call: str | None) -> str:
        self._count += 1
        free = call if call and len(call) <= _LONGEST_ID else f"toolu_{self._count}"
        while free in self._ids:
            self._count += 1
            free = f"toolu_{self._count}"
        self._ids.add(free)
        return free

    def _add(self, role: str, content: Any) -> None:
        self._messages.append({"role": role, "content": content})

    def _end_answered_turn(self) -> None:
        if any(call.results is not None for call in self._calls):
            self._end_turn()

    def _end_turn(self) -> None:
        """The model's words and calls, then the results, then the images that belong to them."""
        if not self._said and not self._calls:
            return
        message: dict[str, Any] = {"role": "assistant", "content": "\n".join(self._said)}
        results = []
        for call in self._calls:
            call_id = self._id(call.call)
            message.setdefault("tool_calls", []).append(call.as_call(call_id))
            results.append(call.as_result(call_id))
        self._messages += [message, *results, *self._pictures]
        self._said, self._calls, self._pictures = [], [], []


def _as_object(arguments: str) -> str:
    """Arguments as they came, if they are a JSON object: some servers refuse a conversation with anything else."""
    try:
        if isinstance(json.loads(arguments), dict):
            return arguments
    except ValueError:
        pass
    given = read_arguments(arguments)
    return json.dumps({"arguments": arguments} if given is None else given, ensure_ascii=False)


def on_this_computer(text: str) -> str:
    """Output that answers no call."""
    return f"Output on this computer:\n{text}"


class _Call:
    def __init__(self, name: str, arguments: str, call: str | None, unmade: str) -> None:
        self.name, self.arguments = name, arguments
        self.call = call  # the id that it came with
        self.results: list[str] | None = None
        self._unmade = unmade

    def add(self, text: str) -> None:
        self.results = [*(self.results or []), *([text] if text else [])]

    def as_call(self, call_id: str) -> dict[str, Any]:
        return {"id": call_id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}

    def as_result(self, call_id: str) -> dict[str, Any]:
        content = self._unmade if self.results is None else "\n".join(self.results) or NO_OUTPUT
        return {"role": "tool", "tool_call_id": call_id, "name": self.name, "content": content}
