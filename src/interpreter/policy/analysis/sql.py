"""Whether an SQL text changes anything."""

from __future__ import annotations

import re

_ASKING = re.compile(
    r"\s*\(?(select|show|explain|describe|desc|values|use|set|pragma\s+\w+(\(\w+\))?\s*$"
    r"|\\[dl]\w*|\.(tables|schema|headers?|mode))(?!\w)",
    re.IGNORECASE,
)
_CHANGING = re.compile(
    r"\b(insert|update|delete|drop|create|alter|truncate|replace|merge|grant|revoke|call|do|exec|execute|into|copy|attach"
    r"|vacuum|reindex|nextval|setval|lo_import|pg_terminate_backend|load_extension|dblink|lock|comment|rename)\b",
    re.IGNORECASE,
)
_TEXT = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)


def changes(sql: str) -> bool:
    """True unless every statement clearly only asks."""
    statements = [part for part in _TEXT.sub("''", sql).split(";") if part.strip()]
    return not all(_only_asks(part) for part in statements)


def _only_asks(statement: str) -> bool:
    if re.match(r"\s*with\b", statement, re.IGNORECASE):
        return not _CHANGING.search(statement)
    return bool(_ASKING.match(statement)) and not _CHANGING.search(statement)
