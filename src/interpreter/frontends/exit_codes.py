"""Exit codes, and which error ends with which."""

from __future__ import annotations

from interpreter.errors import (
    BudgetExceededError,
    LimitReachedError,
    ModelError,
    UsageError,
)

DONE = 0
ERROR = 1
USAGE = 2
MODEL = 3
NOT_APPROVED = 4
LIMIT = 5
SCHEMA = 6
COMMIT = 7
INTERRUPTED = 130

MEANINGS = {
    DONE: "done",
    ERROR: "any other error, such as an invalid profile",
    USAGE: "an invalid command line, or no message",
    MODEL: "the model couldn't be reached, or gave an invalid reply",
    NOT_APPROVED: "code didn't run because no one approved it",
    LIMIT: "a limit was reached: --max_turns, --max_blocks, --max_budget",
    SCHEMA: "the answer doesn't match --output_schema",
    COMMIT: "a commit was refused",
    INTERRUPTED: "interrupted (143: terminated)",
}
_ERRORS = (
    ((BudgetExceededError, LimitReachedError), LIMIT),
    (UsageError, USAGE),
    (ModelError, MODEL),
    (KeyboardInterrupt, INTERRUPTED),
)


def code_for(error: BaseException | None) -> int:
    return next((code for kinds, code in _ERRORS if isinstance(error, kinds)), ERROR)
