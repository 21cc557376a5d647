"""The exit codes of the program, and which one an error ends with."""

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
INTERRUPTED = 130

MEANINGS = {
    DONE: "done",
    ERROR: "an error that is none of the others, such as a mistake in a profile",
    USAGE: "a command line that it does not understand, or nothing to say",
    MODEL: "the model could not be asked, or did not answer as it should",
    NOT_APPROVED: "code was not run because nobody said yes to it",
    LIMIT: "a limit was reached: --max_turns, --max_blocks, --max_budget",
    SCHEMA: "the answer does not fit --output_schema",
    INTERRUPTED: "interrupted (143: terminated)",
}
_ERRORS = (
    ((BudgetExceededError, LimitReachedError), LIMIT),
    (UsageError, USAGE),
    (ModelError, MODEL),
    (KeyboardInterrupt, INTERRUPTED),
)


def code_for(error: BaseException) -> int:
    """What the program ends with after this error."""
    return next((code for kinds, code in _ERRORS if isinstance(error, kinds)), ERROR)
