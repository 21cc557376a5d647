"""What is piped into the program."""

from __future__ import annotations

import os
import select
import stat
import sys

from interpreter.errors import UsageError

LARGEST = 10_000_000  # characters: more is no message
_SILENCE = 2.0  # seconds before we say that we wait
_WAITING = "Reading standard input until its end. (If nothing is to come, start with </dev/null.)"


def piped_text() -> str:
    """All of standard input, where it is a file or a pipe."""
    if sys.stdin is None or not _has_something_to_say(sys.stdin.fileno()):
        return ""
    # Text and nothing but text reaches the model: what is not UTF-8 becomes a mark.
    sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]
    if not select.select([sys.stdin], [], [], _SILENCE)[0]:
        print(_WAITING, file=sys.stderr, flush=True)
    text = sys.stdin.read(LARGEST + 1)
    if len(text) > LARGEST:
        words = f"Standard input is longer than {LARGEST:,} characters: name the file in your message instead."
        raise UsageError(words)
    return text.strip()


def _has_something_to_say(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)
