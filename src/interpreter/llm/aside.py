"""A second conversation with the same model: it shares connections and money with the first, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from interpreter.errors import ModelError
from interpreter.llm.compaction import Cut
from interpreter.llm.convert import Forms, convert
from interpreter.llm.llm import Llm
from interpreter.llm.prices import Price, price_of
from interpreter.llm.request import WHERE, known_secrets
from interpreter.llm.tool_chat import ToolChat
from interpreter.messages import Message


class AskedAside(Llm, closed=True):
    """Answers in plain text: no tool, no templates, nothing of the conversation. From any number of threads."""

    _writes_blocks = False

    def __init__(self, llm: Llm, max_tokens: int | None = None) -> None:
        vars(self).update(vars(llm))
        self._begin()
        if max_tokens is not None and (self.max_tokens is None or self.max_tokens > max_tokens):
            vars(self)["max_tokens"] = max_tokens

    def answer(self, system: str, text: str, image: str | None = None) -> str:
        """What the model says; `image` is base64. A typed model error if it cannot be asked or is cancelled."""
        messages: list[Message] = [
            {"role": "system", "type": "message", "content": system},
            {"role": "user", "type": "message", "content": self._redacted(text)},
        ]
        if image is not None:
            messages.append({"role": "user", "type": "image", "format": f"base64.{_kind(image)}", "content": image})
        cancelled = threading.Event()
        self._running[cancelled] = None
        try:
            chunks = self._run_or_fall_back(messages, cancelled)
            said = "".join(str(chunk["content"]) for chunk in chunks if chunk["type"] == "message")
        finally:
            self._running.pop(cancelled, None)
        if cancelled.is_set():
            raise ModelError("The question to the model was cancelled.")
        return said.strip()

    def _request(self, messages: Sequence[Message], cut: Cut | None = None) -> dict[str, Any]:
        forms = Forms(shrink_images=self.interpreter.shrink_images, vision=self.vision)
        params: dict[str, Any] = {"model": self.model, "stream": True}
        params["messages"] = convert(messages, ToolChat(), forms, self.memory, cut)
        for name in ("max_tokens", "temperature", *WHERE):
            if getattr(self, name) is not None:
                params[name] = getattr(self, name)
        return params

    def _redacted(self, text: str) -> str:
        if not self.interpreter.redact_secrets:
            return text
        return self.memory.redactor.redact(text, known_secrets(self))

    @property
    def has_budget(self) -> bool:
        return self.max_budget is not None or self.max_budget_tokens is not None

    @property
    def is_near(self) -> bool:
        """Whether the model runs on this machine, or in somebody's own way."""
        try:
            return self._completions is not None or self._endpoint().is_loopback
        except ModelError:
            return True  # asking it says what is wrong

    def window(self, tokens: int) -> int | None:
        """How many tokens the model can read at once, as far as it matters for so many; None if nobody knows."""
        return self._around().window(tokens)

    def price(self) -> Price | None:
        """What it takes, if that is known."""
        return price_of(self.model, self.api_base)


def _kind(image: str) -> str:
    """Of base64, by how it begins."""
    for begin, kind in (("/9j/", "jpeg"), ("R0lGOD", "gif"), ("UklGR", "webp")):
        if image.startswith(begin):
            return kind
    return "png"
