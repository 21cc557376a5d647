"""Notices that a turn does not get on: the same failure again and again, or a reply that repeats itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from interpreter.errors import RepeatingReplyError, StuckError
from interpreter.messages import Message, has_failed

_SAME_ERROR = "You have tried this, and it failed with the same error again:\n{error}\n\nDo it in a different way."
_REPEATED = "Your last reply repeated itself and was cut off. Say it in a different and shorter way."


class Patience:
    """First the model is asked to try another way, without its failures before its eyes; then the user is."""

    def __init__(self, same_failures: int | None) -> None:
        self._most = same_failures
        self._last: str | None = None
        self._same = 0
        self.advice: str | None = None
        """What the model is told in the next requests, until something works."""

    @property
    def is_about_failure(self) -> bool:
        """Whether the advice is about code that failed."""
        return self.advice is not None and self.advice != _REPEATED

    def ran(self, failure: str | None) -> None:
        """A block ran; `failure` is what its error said, None if it went well."""
        if failure is None or self._most is None:
            self._last, self._same, self.advice = None, 0, None
            return
        self._same = self._same + 1 if failure == self._last else 1
        self._last = failure
        if self._same < self._most:
            return
        if self.advice is not None:
            raise StuckError(
                f"The same error has come again and again: {failure} "
                "Say it in other words or in smaller steps, or use a larger model."
            )
        self._same, self.advice = 0, _SAME_ERROR.replace("{error}", failure)

    def refused(self) -> bool:
        """The block that has just failed came again; whether another way is asked for now."""
        if self._last is None or self._most is None:
            return False
        self._same = self._most
        self.ran(self._last)
        return True

    def repeated(self, error: RepeatingReplyError) -> None:
        """A reply repeated itself and was cut off."""
        if self.advice == _REPEATED:
            raise error
        self.advice = _REPEATED


def failure_of(outputs: Sequence[Message]) -> str | None:
    """The last words of an error in what a block said; None if it went well."""
    for message in reversed(outputs):
        if message.get("type") == "console" and has_failed(message):
            lines = str(message.get("content", "")).strip().splitlines()
            return lines[-1].strip() if lines else "It failed without a word."
    return None


def without_failures(attempts: Sequence[Message]) -> Iterator[Message]:
    """What was done in a turn and went well; its words are left out too, since they led astray."""
    block: list[Message] = []
    for message in [*attempts, None]:
        is_action = message is not None and message.get("type") in ("code", "tool_call")
        begins = message is None or (is_action and message.get("role") == "assistant")
        if begins:
            if len(block) > 1 and not any(map(has_failed, block)):
                yield from block
            block = []
        if message is not None and (begins or (block and message.get("role") == "computer")):
            block.append(message)
