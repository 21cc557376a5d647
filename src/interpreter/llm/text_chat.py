"""A conversation for a model without tools: code in fences, output as what somebody says."""

from __future__ import annotations

from typing import Any

from interpreter.llm.convert import Forms, fenced

NOT_RUN = "The code above was not run."


class TextChat:
    """Puts a conversation together; neighbours of one role become one message, as chat templates want it."""

    def __init__(self, forms: Forms) -> None:
        self._forms = forms
        self._turns: list[tuple[str, list[dict[str, Any]]]] = []
        self._results: list[str] | None = None  # of the last block, as far as they have come
        self._failed = False
        self._is_unrun = False

    def system(self, text: str) -> None:
        self._add("system", text)

    def user(self, text: str) -> None:
        self._end_block()
        self._add("user", text)

    def say(self, text: str) -> None:
        if text:
            self._end_results()
            self._add("assistant", text)

    def code(self, language: str, code: str, call: str | None = None) -> None:
        self._end_results()
        self._add("assistant", fenced(language, code))
        self._is_unrun = True

    def call(self, name: str, arguments: str, call: str | None = None) -> None:
        self.code(name, arguments)

    def output(self, text: str, failed: bool = False, call: str | None = None) -> None:
        self._is_unrun = False
        self._failed = failed
        self._results = [*(self._results or []), *([text] if text else [])]

    def picture(self, parts: list[dict[str, Any]], shown_by_code: bool) -> None:
        if shown_by_code:
            self._is_unrun = False
        self._end_block()
        self._add("user", *parts)

    def finish(self) -> list[dict[str, Any]]:
        self._end_block()
        return [{"role": role, "content": _joined(parts)} for role, parts in self._turns]

    def _end_block(self) -> None:
        self._end_results()
        if self._is_unrun:
            self._is_unrun = False
            self._add("user", NOT_RUN)

    def _end_results(self) -> None:
        if self._results is None:
            return
        output, self._results = "\n".join(self._results), None
        if self._forms.output_sender == "assistant":
            self._add("assistant", fenced("output", output or "No output"))
        elif output:
            forms = self._forms
            template = forms.failed_output_template if self._failed else forms.output_template
            self._add("user", template.replace("{content}", output).strip())
        else:
            self._add("user", self._forms.empty_output_template.strip())

    def _add(self, role: str, *parts: str | dict[str, Any]) -> None:
        if not self._turns or self._turns[-1][0] != role:
            self._turns.append((role, []))
        self._turns[-1][1].extend({"type": "text", "text": p} if isinstance(p, str) else p for p in parts)


def _joined(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """One text if it is all text."""
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts
