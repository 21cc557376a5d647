"""What a running block wants of a person: input, a password, or a yes to a tool call."""

from __future__ import annotations

import queue
from typing import Literal, Protocol

RequestKind = Literal["text", "password", "call"]


class Answered(Protocol):
    """An answer, as the session's questions have it."""

    choice: str
    text: str | None


class Request:
    """A chunk with this under `request` waits for an answer: it is given before the next chunk is asked for."""

    def __init__(self, kind: RequestKind, prompt: str) -> None:
        self.kind, self.prompt = kind, prompt
        self.text: str | None = None
        """The answer to a question for text."""
        self.is_answered = False

    def answered(self, answer: Answered | None) -> None:
        """Take an answer; None, and a refusal by nobody, leave it open for whoever else can be asked."""
        if answer is not None and answer.choice == "answer":
            self.text, self.is_answered = answer.text, True


class CallRequest(Request):
    """A tool call of a block's code that a person has to allow."""

    def __init__(self, name: str, words: str) -> None:
        super().__init__("call", words)
        self.name = name
        self._answers: queue.SimpleQueue[bool | None] = queue.SimpleQueue()

    def answered(self, answer: Answered | None) -> None:
        if answer is None or (answer.choice == "refuse" and getattr(answer, "by", "") == "nobody"):
            self._answers.put(None)
        else:
            self._answers.put(answer.choice == "approve")

    def give_up(self) -> None:
        """Nobody will answer; from any thread."""
        self._answers.put(None)

    def wait(self) -> bool | None:
        """Whether it is allowed; None if nobody could be asked."""
        return self._answers.get()
