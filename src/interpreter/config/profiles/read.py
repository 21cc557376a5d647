"""From the text of a profile to checked settings; a mistake names the file, the line and the key."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from interpreter.config.profiles.old_names import GONE, RENAMED
from interpreter.config.profiles.places import Place
from interpreter.config.profiles.profile import Profile
from interpreter.config.profiles.tree import (
    Entry,
    json_entries,
    yaml_entries,
)
from interpreter.config.profiles.variables import (
    UnsetVariable,
    expand,
    names_in,
)
from interpreter.config.settings import (
    SETTINGS,
    Setting,
    check_value,
    parse_value,
    unknown_setting,
)
from interpreter.errors import ProfileError, SettingError

_ROWS = {row.name: row for row in SETTINGS}
_GROUPS = ("llm", "computer", "computer.skills")
_SKIPPED = ("version", "wtf")
_LANGUAGES = "computer.languages"
_TEXTS = ("str", "path", "str or False")
# Words for the model may well speak of `$PATH`; elsewhere a variable that is not set is a mistake.
_PROSE = "What the model is told"


def read(place: Place, text: str, environ: Mapping[str, str] = os.environ) -> Profile:
    """The profile in this text."""
    if place.kind == ".py":
        return Profile(place, code=text, text=text)
    entries = (json_entries if place.kind == ".json" else yaml_entries)(text, place.address)
    reading = _Reading(place, environ)
    for entry in entries:
        reading.take(entry)
    return reading.profile(text)


class _Reading:
    """Entries as they are taken, and what was wrong with them."""

    def __init__(self, place: Place, environ: Mapping[str, str]) -> None:
        self._place, self._environ = place, environ
        self._settings: dict[str, Any] = {}
        self._lines: dict[str, int] = {}
        self._languages: tuple[str, ...] | None = None
        self._code, self._code_line = "", 1
        self._notices: list[str] = []
        self._mistakes: list[str] = []
        self._variables: dict[str, None] = {}

    def profile(self, text: str) -> Profile:
        if self._mistakes:
            raise ProfileError("\n".join(self._mistakes))
        return Profile(
            self._place,
            settings=self._settings,
            lines=self._lines,
            languages=self._languages,
            code=self._code,
            code_line=self._code_line,
            notices=tuple(self._notices),
            later=tuple(_not_there_yet(self._settings)),
            variables=tuple(self._variables),
            text=text,
        )

    def take(self, entry: Entry) -> None:
        """Take one entry; what is wrong with it is kept for the end, so that all mistakes are told at once."""
        key = RENAMED.get(entry.key, entry.key)
        try:
            if key in _ROWS:
                self._take_setting(_ROWS[key], entry)
            elif key == "start_script":
                self._take_script(entry)
            elif key == _LANGUAGES:
                self._take_languages(entry)
            elif key in GONE or key.rpartition(".")[0] in GONE:
                why = GONE.get(key) or GONE[key.rpartition(".")[0]]
                self._notices.append(f"{self._at(entry)}: {entry.key} does nothing: {why}.")
            elif not (key in _SKIPPED or (key in _GROUPS and not entry.value)):
                raise unknown_setting(key)
        except SettingError as error:
            self._mistakes.append(f"{self._at(entry)}: {error}")
        except UnsetVariable as error:
            words = f"the environment has no variable {error}. Set it, or write $$ for a dollar sign."
            self._mistakes.append(f"{self._at(entry)}: {entry.key}: {words}")

    def _take_setting(self, row: Setting, entry: Entry) -> None:
        if row.name in self._settings:
            before = self._lines.get(row.name)
            self._notices.append(f"{self._at(entry)}: {row.name} is said twice; line {before} is not heard.")
        value = self._filled(row, entry)
        if value is None and not row.optional:
            return  # an empty value, as in `custom_instructions:`, says nothing
        self._settings[row.name] = check_value(row, value)
        if entry.line is not None:
            self._lines[row.name] = entry.line

    def _filled(self, row: Setting, entry: Entry) -> Any:
        value = entry.value
        # Bare words that YAML takes for something else: `safe_mode: off`, `api_version: 2024-02-01`.
        if row.kind in _TEXTS and entry.word and value is not None and not isinstance(value, str):
            value = value if row.kind == "str or False" and value is False else entry.word
        if isinstance(value, list):
            return [self._expanded(row, item) if isinstance(item, str) else item for item in value]
        if isinstance(value, dict):
            return {name: self._expanded(row, item) if isinstance(item, str) else item for name, item in value.items()}
        if not isinstance(value, str):
            return value
        filled = self._expanded(row, value)
        return value if filled == value else parse_value(row, filled)

    def _expanded(self, row: Setting, text: str) -> str:
        self._variables |= dict.fromkeys(names_in(text))
        return expand(text, self._environ, lenient=row.section == _PROSE)

    def _take_script(self, entry: Entry) -> None:
        if not isinstance(entry.value, str):
            self._mistakes.append(f"{self._at(entry)}: start_script takes Python code.")
            return
        # The code of `start_script: |` begins on the line below.
        self._code, self._code_line = entry.value, (entry.line or 0) + 1

    def _take_languages(self, entry: Entry) -> None:
        names = entry.value
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            self._mistakes.append(f"{self._at(entry)}: {_LANGUAGES} takes a list of names, such as [python, shell].")
            return
        self._languages = tuple(names)
        if entry.line is not None:
            self._lines[_LANGUAGES] = entry.line

    def _at(self, entry: Entry) -> str:
        line = f", line {entry.line}" if entry.line is not None else ""
        return self._place.address + line


def _not_there_yet(settings: Mapping[str, Any]) -> Iterator[str]:
    rows = [row for row in SETTINGS if row.later and settings.get(row.name, row.default) != row.default]
    yield from dict.fromkeys(row.later for row in rows)
