"""Guards against loops: blocks that repeat, failures that repeat, replies that repeat, and the limit on blocks."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from interpreter.errors import RepeatingReplyError, StuckError
from interpreter.messages import Message, has_failed

_SAME_ERROR = "This failed again with the same error:\n{error}\n\n{advice}"
_STUCK = (
    "The same error keeps happening: {error}\n{cause}Change the request, choose a larger model with %model, or take "
    "back what was done with %undo."
)
_REPEATED: Message = {
    "role": "computer",
    "type": "message",
    "content": "Your last reply repeated itself and was cut off. Say it in a different and shorter way.",
}


@dataclass(frozen=True)
class Refusal:
    """The reason that a block does not run, and whether that ends the turn."""

    words: str
    final: bool
    failed: bool = False  # whether the same block has just failed


class BlockGuard:
    """Limits the blocks of a turn, and stops the model from repeating one."""

    def __init__(self, max_blocks: int | None, same_results: int = 2) -> None:
        self.blocks = 0  # steps: those that ran, and declined ones
        self._max = max_blocks
        self._same_results = same_results
        self._last: tuple[str, str, list[Any]] | None = None
        self._same = 0
        self._refused = self._failed = False
        self._prose = 0

    @property
    def exhausted(self) -> bool:
        return self._max is not None and self.blocks >= self._max

    def refusal(self, language: str, code: str) -> Refusal | None:
        """Return the reason that this block must not run; None if it may."""
        if self.exhausted:
            words = f"Not run: the limit of {self._max} blocks in one turn (`max_blocks`) is reached."
            return Refusal(words, final=True)
        if not self.repeats(language, code) or self._same < self._same_results:
            return None
        self.blocks += 1
        words = "Not run: you just ran this exact block and got the same result. Answer, or try a different approach."
        if self._failed:
            words = "Not run: this exact block just failed. Write a different one."
        refusal = Refusal(words, final=self._refused, failed=self._failed)
        self._refused = True
        return refusal

    def repeats(self, language: str, code: str) -> bool:
        """Check whether this block is the one that ran last."""
        return self._last is not None and self._last[:2] == (language, code)

    def on_block_ended(self, language: str, code: str, result: list[Any], failed: bool = False) -> None:
        self._failed = failed
        self.blocks += 1
        this = (language, code, result)
        self._same = self._same + 1 if this == self._last else 1
        self._last, self._refused = this, False

    def count_prose_block(self) -> bool:
        """Count a block that is not code. Return whether to ask the model to continue: at most once in a row."""
        self._prose += 1
        self.blocks += 1
        return self._prose == 1


class StuckDetector:
    """Notices a turn that makes no progress.

    First it advises the model to try something different, with the failed attempts left out of the request. If that
    does not help, it ends the turn and the user decides.
    """

    def __init__(
        self, same_failures: int | None, explain: Callable[[str], tuple[str, str]] = lambda failure: ("", "")
    ) -> None:
        self._most = same_failures
        self._explain = explain  # gives the cause of a failure and the way out
        self._last: str | None = None
        self._same = 0
        self._advised: set[str] = set()  # the failures that there was advice about, since something worked
        self.advice: Message | None = None  # sent with the next requests, until something works

    def on_block_ended(self, failure: str | None) -> None:
        """Note the end of a block; `failure` is its error message, None if it succeeded."""
        if failure is None or self._most is None:
            self._last, self._same, self._advised, self.advice = None, 0, set(), None
            return
        self._same = self._same + 1 if failure == self._last else 1
        self._last = failure
        if self._same < self._most:
            return
        cause, way_out = self._explain(failure)
        if failure in self._advised:
            raise StuckError(_STUCK.format(error=failure, cause=f"{cause}\n" if cause else ""))
        content = _SAME_ERROR.format(error=failure, advice=f"{cause} {way_out or 'Try a different approach.'}".strip())
        self._advised.add(failure)
        self._same, self.advice = 0, {"role": "computer", "type": "message", "content": content, "ended": "error"}

    def on_block_refused(self) -> bool:
        """Note that the model repeated a block that just failed. Return whether there is advice for it now."""
        if self._last is None or self._most is None:
            return False
        self._same = self._most
        self.on_block_ended(self._last)
        return True

    def on_reply_repeated(self, error: RepeatingReplyError) -> None:
        """Note that a reply repeated itself and was cut off."""
        if self.advice == _REPEATED:
            raise error
        self.advice = _REPEATED


_CAUSES = {
    "package": r"[Nn]o module (?:named )?'([\w.]+)'|no package called .([\w.]+)|Cannot find module '([^']+)'",
    "file": r"No such file or directory: '([^']+)'|([^\s:]+): No such file|ENOENT.*'([^']+)'",
    "column": r"KeyError: [\"']\[?'?([^'\]\"]+)|no such column: \"?([\w.]+)|ColumnNotFoundError: .*?(\w+)\"?$",
    "argument": r"(?:unexpected keyword|multiple values for) argument '(\w+)'|'(\w+)' is an invalid keyword",
    "type": r"(unsupported operand|could not convert|can only concatenate|dtype|not supported between)",
}


def explain(failure: str, folder: str, tables: Callable[[], str]) -> tuple[str, str]:
    """Return the cause of a failure and the way out, in sentences; empty if there is nothing to say.

    `tables` describes the live tables. Code could have made the error up, so only names in the folder are told.
    """
    cause, name = next(
        (
            (cause, found[found.lastindex or 0])
            for cause, form in _CAUSES.items()
            if (found := re.search(form, failure))
        ),
        ("", ""),
    )
    match cause:
        case "package":
            return f"The package {name} is not installed.", f"Do it without {name}."
        case "file":
            names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
            near = ", ".join(get_close_matches(os.path.basename(name), names, cutoff=0.5) or names[:20])
            return (
                f"There is no {name}. The nearest names: {near or 'none'}.",
                "Use one of these names." if near else "",
            )
        case "argument":
            return f"This function does not take {name} there.", f"Leave {name} out, or call another function."
        case "column" if known := tables():
            return f"There is no column {name}.\n{known}", "Use these names."
        case "type" if known := tables():
            return f"A column has another type than the code expects.\n{known}", "Convert the column first."
    return "", ""


def failure_of(outputs: Sequence[Message]) -> str | None:
    """Return the last line of the error that a block printed; None if it succeeded."""
    printed = [message for message in outputs if message.get("type") == "console"]
    if not any(map(has_failed, printed)):
        return None
    lines = "\n".join(str(message.get("content", "")) for message in printed).strip().splitlines()
    return lines[-1].strip() if lines else "It failed without an error message."


def without_failures(attempts: Sequence[Message]) -> Iterator[Message]:
    """Yield the steps of a turn that succeeded, without the text around them, which led nowhere."""
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
