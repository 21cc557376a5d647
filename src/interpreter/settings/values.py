"""Checking a value against its setting, and reading one from text."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from interpreter.errors import SettingTypeError, SettingValueError
from interpreter.settings.row import Setting

TRUE_WORDS = ("true", "yes", "on", "1")
FALSE_WORDS = ("false", "no", "off", "0")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list_of_str(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)


# kind -> is the value of this kind, and how it is stored
_KINDS: dict[str, tuple[Callable[[Any], bool], Callable[[Any], Any] | None]] = {
    "bool": (lambda value: isinstance(value, bool), None),
    "int": (lambda value: isinstance(value, int) and not isinstance(value, bool), None),
    "float": (_is_number, None),
    "str": (lambda value: isinstance(value, str), None),
    "path": (lambda value: isinstance(value, str | os.PathLike), os.fspath),
    "list": (lambda value: isinstance(value, list), None),
    "list of str": (_is_list_of_str, lambda value: value if isinstance(value, list) else list(value)),
    "dict": (lambda value: isinstance(value, Mapping), dict),
    "callable": (callable, None),
    "str or False": (lambda value: isinstance(value, str) or value is False, None),
}


def expected(row: Setting) -> str:
    """What the setting takes, in words."""
    words = " or ".join(map(repr, row.choices)) if row.choices else row.kind
    return f"{words} or None" if row.optional else words


def _is_choice(row: Setting, value: str) -> bool:
    """One of the words; of `word:NAME`, the word with a name of the user's."""
    begun = f"{value.partition(':')[0]}:"
    own = value != begun and any(choice.startswith(begun) for choice in row.choices)
    return value in row.choices or (own and ":" in value)


def check_value(row: Setting, value: Any) -> Any:
    """The value as it is stored, or an error that names the setting, what it takes and what it got."""
    if value is None and row.optional:
        return None
    fits, store = _KINDS[row.kind]
    if not fits(value):
        got = f"{value!r:.60} ({type(value).__name__})"
        raise SettingTypeError(f"{row.name} takes {expected(row)}, not {got}.")
    if row.choices and not _is_choice(row, value):
        raise SettingValueError(f"{row.name} takes {expected(row)}, not {value!r:.60}.")
    if row.minimum is not None and value < row.minimum:
        raise SettingValueError(f"{row.name} must be at least {row.minimum:g}, not {value!r}.")
    return store(value) if store else value


def _parse_bool(text: str) -> bool:
    word = text.strip().lower()
    if word not in TRUE_WORDS + FALSE_WORDS:
        raise ValueError(text)
    return word in TRUE_WORDS


def _parse_list(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


_PARSERS: dict[str, Callable[[str], Any]] = {
    "bool": _parse_bool,
    "int": int,
    "float": float,
    "list of str": _parse_list,
    "str or False": lambda text: False if text.strip().lower() == "false" else text,
}


def parse_value(row: Setting, text: str, given_as: str = "") -> Any:
    """The value that a text from the command line or the environment stands for."""
    if row.optional and row.kind not in ("str", "path") and text.strip().lower() in ("none", ""):
        return None
    try:
        value = _PARSERS.get(row.kind, str)(text)
    except ValueError:
        name = given_as or row.name
        raise SettingTypeError(f"{name} takes {expected(row)}, not {text!r:.60}.") from None
    return check_value(row._replace(name=given_as or row.name), value)
