"""Answers to a session's questions about tool calls."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from interpreter import OpenInterpreter
from interpreter.session import APPROVE, REFUSE, Answer, Question


def allowing_calls(interpreter: OpenInterpreter, allow: Callable[[str], bool | None]) -> AbstractContextManager[None]:
    """A context in which `allow` gets the text of each question about a call, and returns yes, no, or no answer."""

    def handler(question: Question) -> Answer | None:
        said = allow(question.text)
        return None if said is None else Answer(APPROVE if said else REFUSE)

    return interpreter.session.questions.answerable(["call"], handler)
