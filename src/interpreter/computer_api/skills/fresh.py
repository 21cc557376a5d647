"""Tries code out in a session of its own, which knows nothing of the one that goes on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from interpreter.computer_api.at_session import surroundings
from interpreter.runtimes.python import Python

if TYPE_CHECKING:
    from interpreter.computer_api.computer import Computer
    from interpreter.runtimes.surroundings import Surroundings

SECONDS = 60.0
LONGEST = 1_500  # characters of what went wrong


@dataclass
class Beside:
    """What the new session is told of its surroundings: those of the others, as they are now."""

    surroundings: Surroundings


def failure(computer: Computer, *blocks: str) -> str | None:
    """What went wrong when the blocks ran, one after the other; None if nothing did."""
    shared = surroundings(computer)
    python = None if shared.python == "in-process" else shared.python
    alone = replace(shared, python=python, on_input=None, keyboard=False, snapshots=0, timeout=SECONDS)
    session = Python(Beside(alone))
    try:
        for block in blocks:
            if (wrong := _wrong(session, block)) is not None:
                return wrong
        return None
    finally:
        session.terminate()


def _wrong(session: Python, code: str) -> str | None:
    said, ended = "", ""
    for chunk in session.run(code):
        if chunk.get("format") == "output":
            said += str(chunk["content"])
        ended = str(chunk.get("ended", ended))
    if ended == "done":
        return None
    if ended == "timed_out":
        return f"It took more than {SECONDS:.0f} seconds."
    return said.strip()[-LONGEST:] or f"It ended: {ended}."
