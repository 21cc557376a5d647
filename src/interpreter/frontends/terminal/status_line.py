"""The line under the prompt: model, safety, context, cost and folder, as far as they fit."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from interpreter.frontends.terminal.render.ansi import cells, clip

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter

SEPARATOR = " · "


def facts(interpreter: OpenInterpreter) -> list[str]:
    """What there is to say, the most important first; nobody is asked for it."""
    parts = [interpreter.llm.model, safety(interpreter)]
    if interpreter.messages:
        parts += [context(interpreter), cost(interpreter)]
    parts.append(folder(interpreter))
    return [part for part in parts if part]


def line_of(parts: list[str], width: int, separator: str = SEPARATOR) -> str:
    """The line; a folder that does not fit is told by its last name."""
    whole = fitted(parts, width, separator)
    if not parts or whole.endswith(parts[-1]) or parts[-1].count(os.sep) < 2:
        return whole
    return fitted([*parts[:-1], f"...{os.sep}{os.path.basename(parts[-1])}"], width, separator)


def fitted(parts: list[str], width: int, separator: str = SEPARATOR) -> str:
    """As many parts as fit, from the left; the first one is cut where even that does not."""
    line = clip(parts[0], max(1, width)) if parts else ""
    for part in parts[1:]:
        longer = line + separator + part
        if cells(longer) > width:
            break
        line = longer
    return line


def safety(interpreter: OpenInterpreter) -> str:
    mode = interpreter.mode or ("auto" if interpreter.auto_run else "ask")
    words = {"ask": "asks first", "auto": "auto run"}.get(mode, str(mode))
    if mode == "plan":
        words += ", read-only sandbox"  # whatever the setting is
    elif interpreter.sandbox != "off":
        words += f", sandbox {interpreter.sandbox}"
    if interpreter.safe_mode != "off":
        words += f", safe mode {interpreter.safe_mode}"
    return words + ", offline" if interpreter.offline else words


def context(interpreter: OpenInterpreter) -> str:
    used, window = interpreter.llm.context_used
    if not window:
        return f"{short(used)} tokens"
    return f"{short(used)} of {short(window)} ({used * 100 // window}%)"


def cost(interpreter: OpenInterpreter) -> str:
    from interpreter.llm.usage import in_dollars

    spent = interpreter.llm.cost
    return "" if spent is None else in_dollars(spent)


def folder(interpreter: OpenInterpreter) -> str:
    known = interpreter.__dict__.get("computer")
    path: str = known.surroundings.cwd if known is not None else interpreter.workspace
    home = os.path.expanduser("~")
    if path == home or path.startswith(home + os.sep):
        path = "~" + path[len(home) :]
    return path


def short(count: int) -> str:
    """A number of tokens as people write it."""
    if count < 1000:
        return str(count)
    if count < 1_000_000:
        return f"{count / 1000:.1f}k" if count < 10_000 else f"{count // 1000}k"
    return f"{count / 1_000_000:.1f}".removesuffix(".0") + "M"
