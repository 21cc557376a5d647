"""`--debug-config`: every setting, its value, and who gave it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from interpreter.config.settings import (
    SETTINGS,
    Setting,
    origins,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from interpreter.api import OpenInterpreter
    from interpreter.config.profiles import Profile

_WIDEST = 60
# The name and password in an address, as in https://me:secret@host/v1.
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+(?=@)")


def lines(interpreter: OpenInterpreter, profile: Profile | None) -> Iterator[str]:
    """The table, and above it which profile was read."""
    from interpreter.config.profiles import folder

    yield f"profile: {profile.place.address if profile else f'none (there is no default in {folder()})'}"
    yield from (profile.notices if profile else ())
    yield ""
    rows = [(row.name, shown(row, _value(interpreter, row)), _origins(interpreter)[row.name]) for row in _told()]
    name, value = (max(len(row[column]) for row in rows) for column in (0, 1))
    for row in rows:
        yield f"{row[0]:<{name}}  {row[1]:<{value}}  {row[2]}"


def changed(interpreter: OpenInterpreter) -> Iterator[str]:
    """The settings that are not as they are by default."""
    given = _origins(interpreter)
    for row in _told():
        if given[row.name] not in ("default", "code"):
            yield f"{row.name} = {shown(row, _value(interpreter, row))} ({given[row.name]})"


def shown(row: Setting, value: Any) -> str:
    """A value on one line; secrets are not shown."""
    if row.secret and value is not None:
        return "(set, not shown)"
    text = _CREDENTIALS.sub("***", repr(value))
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."


def _told() -> list[Setting]:
    return [row for row in SETTINGS if not row.alias_of]


def _origins(interpreter: OpenInterpreter) -> dict[str, str]:
    return origins(interpreter) | origins(interpreter.llm) | origins(interpreter.computer)


def _value(interpreter: OpenInterpreter, row: Setting) -> Any:
    owner = getattr(interpreter, row.group) if row.group else interpreter
    value = getattr(owner, row.leaf)
    # The usual way to the model is a method, and no more to tell than None.
    return None if row.name == "llm.completions" and getattr(value, "__self__", None) is owner else value
