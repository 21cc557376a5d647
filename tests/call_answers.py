"""Answers to a session's questions about tool calls."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from interpreter import OpenInterpreter
from interpreter.session import APPROVE, REFUSE, Answer, Question


def allowing_calls(interpreter: OpenInterpreter, allow: Callable[[str], bool | None]) -> AbstractContextManager[None]:
    """Answer questions about calls in this context: `allow` gets the text of each and returns yes, no, or None."""

    def handler(question: Question) -> Answer | None:
        allowed = allow(question.text)
        return None if allowed is None else Answer(APPROVE if allowed else REFUSE)

    return interpreter.session.questions.answerable(["call"], handler)
