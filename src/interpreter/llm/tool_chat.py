"""A conversation for a model with tools: code as calls, output as their results."""

from __future__ import annotations

import json
from typing import Any

from interpreter.llm import tool

NOT_RUN = "This code was not run."
NO_OUTPUT = "No output"
SEE_IMAGE = "The output is the image that follows."


class ToolChat:
    """Puts a conversation together so that every call has exactly one result, right behind it."""

    def __init__(self) -> None:
        self._messages: list[dict[str, Any]] = []
        self._said: list[str] = []
        self._calls: list[_Call] = []
        self._pictures: list[dict[str, Any]] = []
        self._count = 0

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

    def code(self, language: str, code: str) -> None:
        self._end_answered_turn()
        self._calls.append(_Call(language, code))

    def output(self, text: str, failed: bool = False) -> None:
        """Output answers the oldest call that has no answer, else it goes on with the last one's."""
        if self._calls:
            waiting = (call for call in self._calls if call.results is None)
            next(waiting, self._calls[-1]).add(text)
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
            self._count += 1
            call_id = f"toolu_{self._count}"
            message.setdefault("tool_calls", []).append(call.as_call(call_id))
            results.append(call.as_result(call_id))
        self._messages += [message, *results, *self._pictures]
        self._said, self._calls, self._pictures = [], [], []


def on_this_computer(text: str) -> str:
    """Output that answers no call."""
    return f"Output on this computer:\n{text}"


class _Call:
    def __init__(self, language: str, code: str) -> None:
        self.language = language
        self.code = code
        self.results: list[str] | None = None

    def add(self, text: str) -> None:
        self.results = [*(self.results or []), *([text] if text else [])]

    def as_call(self, call_id: str) -> dict[str, Any]:
        arguments = json.dumps({"language": self.language, "code": self.code}, ensure_ascii=False)
        return {"id": call_id, "type": "function", "function": {"name": tool.NAME, "arguments": arguments}}

    def as_result(self, call_id: str) -> dict[str, Any]:
        content = NOT_RUN if self.results is None else "\n".join(self.results) or NO_OUTPUT
        return {"role": "tool", "tool_call_id": call_id, "name": tool.NAME, "content": content}
