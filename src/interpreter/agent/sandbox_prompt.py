"""What the model is told of the sandbox that its code runs in, and of a change of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter

TEMPORARY = "/tmp" if sys.platform == "linux" else "$TMPDIR"
TOLD = "sandbox"  # the key of what was told last
INSIDE = (
    "Code runs in a sandbox: it can write only to {places}, the home folder is empty, and there is no network{but}."
)
ASK = (
    "If a block needs more, begin it with a comment: `needs: host pypi.org`, `needs: read PATH` or "
    "`needs: write PATH`; the user is asked."
)
OUTSIDE = "There is no sandbox any more: code can reach what the user can."
CHANGED = "From now on: "


def first_words(interpreter: OpenInterpreter) -> str:
    """A part of the system message, which stays as it is, so that prompt caches hold; empty without a sandbox."""
    rendered = interpreter._rendered
    key = f"{TOLD} at first"
    if key not in rendered:
        rendered[key] = rendered[TOLD] = words(interpreter)
    return rendered[key]


def news(interpreter: OpenInterpreter) -> str:
    """What has changed since the model was told; empty if nothing has."""
    rendered = interpreter._rendered
    now = words(interpreter)
    if rendered.get(TOLD, now) == now:
        return ""
    rendered[TOLD] = now
    return CHANGED + (now or OUTSIDE)


def words(interpreter: OpenInterpreter) -> str:
    sandbox = interpreter.sandbox_now()
    if sandbox is None:
        return ""
    places = [*([sandbox.workspace] if sandbox.writes_workspace else []), *map(str, sandbox.writable), TEMPORARY]
    but = f" but to {', '.join(sandbox.hosts)}" if sandbox.hosts else ""
    told = INSIDE.format(places=" and ".join(places), but=but)
    return told if sandbox.fixed else f"{told} {ASK}"
