"""Use cases for any front end: what a person can do with a session besides chatting.

Nothing here prints or reads input. A function that changes a session is a generator: it yields the session's events,
asks through its questions, and returns its result, None if the answer was no. Functions that only read return data.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.session import Action, Actor, Event

Result = TypeVar("Result")


def perform(interpreter: OpenInterpreter, action: Action, by: Actor | None = None) -> Generator[Event, None, Any]:
    """Perform an action of the user, or of `by`; yield its events and return its result."""
    yield from interpreter.session.perform(action, by or interpreter.user)
    return action.result


def result_of(events: Generator[Event, None, Result]) -> Result:
    """Run a use case to its end and return its result. Other front ends answer its questions."""
    while True:
        try:
            next(events)
        except StopIteration as ended:
            return ended.value  # type: ignore[no-any-return]
