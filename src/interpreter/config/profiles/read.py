"""Read a profile in YAML or JSON: settings with their lines, checked, with the environment's variables filled in."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from interpreter.config.profiles.profile import Place, Profile
from interpreter.config.setting import Setting, check_value, parse_value, unknown_setting
from interpreter.config.settings import SETTINGS
from interpreter.errors import ProfileError, SettingError

# Names in profiles of older versions, and on old pages.
RENAMED = MappingProxyType(
    {name: f"llm.{name}" for name in ("model", "temperature", "context_window", "max_tokens", "max_budget")}
    | {name: f"llm.{name}" for name in ("api_base", "api_key", "api_version")}
    | {name: f"llm.{name}" for name in ("supports_vision", "supports_functions", "execution_instructions")}
    | {
        "llm_supports_vision": "llm.supports_vision",
        "llm_supports_functions": "llm.supports_functions",
        "function_calling_llm": "llm.supports_functions",
        "vision": "llm.supports_vision",
        "local": "offline",
        "debug_mode": "verbose",
        "force_task_completion": "loop",
        "force_task_completion_message": "loop_message",
        "force_task_completion_breakers": "loop_breakers",
        "plain": "plain_text_display",
        "llm.max_output": "max_output",
        "llm.custom_instructions": "custom_instructions",
        "llm.system_message": "system_message",
        "computer.skills.path": "computer.skills_path",
        "computer.terminal.languages": "computer.languages",
        "languages": "computer.languages",
    }
)

GONE = MappingProxyType(
    {
        "fast": "use --fast, or --profile fast",
        "use_containers": "there are no containers here",
        "disable_procedures": "nothing is fetched from anywhere",
        "download_open_procedures": "nothing is fetched from anywhere",
        "embed_function": "nothing is embedded",
        "use_trusted_hosts": "it never did anything",
        "tts": "messages are not spoken yet",
        "computer.vision": "images are not described yet",
    }
)
"""Names that had a meaning once, and why they have none here."""

LANGUAGES = "computer.languages"
MAX_VALUES = 20_000  # in one profile, aliases written out: more is no profile but an attack
_ROWS = {row.name: row for row in SETTINGS}
_GROUPS = ("llm", "computer", "computer.skills")
_SKIPPED = ("version", "wtf")
_WHOLE = frozenset({"wtf", *(row.name for row in SETTINGS if row.kind == "dict")})
"""A mapping under one of these is one value."""
_TEXTS = ("str", "path", "str or False")
# Words for the model may mention `$PATH`; elsewhere a variable that is not set is a mistake.
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
            elif key == LANGUAGES:
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
            self._mistakes.append(f"{self._at(entry)}: {LANGUAGES} takes a list of names, such as [python, shell].")
            return
        self._languages = tuple(names)
        if entry.line is not None:
            self._lines[LANGUAGES] = entry.line

    def _at(self, entry: Entry) -> str:
        line = f", line {entry.line}" if entry.line is not None else ""
        return self._place.address + line


def _not_there_yet(settings: Mapping[str, Any]) -> Iterator[str]:
    rows = [row for row in SETTINGS if row.later and settings.get(row.name, row.default) != row.default]
    yield from dict.fromkeys(row.later for row in rows)


# -- variables: `$NAME`, `${NAME}`, `${NAME:-otherwise}`, `$$` for a dollar sign ---------------------------------------

_VARIABLE = re.compile(
    r"\$(?:(?P<dollar>\$)|(?P<bare>[A-Za-z_]\w*)|\{(?P<braced>[A-Za-z_]\w*)(?::-(?P<otherwise>[^}]*))?\})", re.ASCII
)


class UnsetVariable(Exception):
    """A variable that the environment does not have."""


def names_in(text: str) -> Iterator[str]:
    """The variables that a text asks for."""
    for found in _VARIABLE.finditer(text):
        if name := found["bare"] or found["braced"]:
            yield name


def expand(text: str, environ: Mapping[str, str], lenient: bool = False) -> str:
    """The text with its variables filled in; lenient leaves those that are not set as they stand."""

    def fill(found: re.Match[str]) -> str:
        if found["dollar"]:
            return "$"
        name = found["bare"] or found["braced"]
        value = environ.get(name) or found["otherwise"]
        if value is None and not lenient:
            raise UnsetVariable(name)
        return found[0] if value is None else value

    return _VARIABLE.sub(fill, text)


# -- YAML and JSON as flat entries -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """One value under its dotted key; `word` is a bare YAML word as written, which `off` and `2024-02-01` need."""

    key: str
    value: Any
    line: int | None
    word: str | None = None


def yaml_entries(text: str, name: str) -> list[Entry]:
    """Every value of a YAML text, in order."""
    import yaml

    def walk(node: Any, prefix: str) -> Iterator[Entry]:
        loader.flatten_mapping(node)
        for key_node, value_node in node.value:
            key = prefix + str(key_node.value)
            if isinstance(value_node, yaml.MappingNode) and value_node.value and key not in _WHOLE:
                yield from walk(value_node, f"{key}.")
                continue
            bare = isinstance(value_node, yaml.ScalarNode) and not value_node.style
            value = loader.construct_object(value_node, deep=True)
            yield Entry(key, value, key_node.start_mark.line + 1, value_node.value if bare else None)

    # libyaml, where it is installed, is ten times as fast.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return []
        if not isinstance(node, yaml.MappingNode):
            raise ProfileError(f"{name}, line 1: a profile is a list of names with values, such as `auto_run: true`.")
        _check_size(node, name)
        return list(walk(node, ""))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{name}, line {mark.line + 1}" if mark else name
        raise ProfileError(f"{place}: this is not YAML: {error.problem or error.context}.") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise ProfileError(f"{name}: this is not YAML: {error}.") from None
    finally:
        loader.dispose()


def _check_size(node: Any, name: str) -> None:
    left, waiting = MAX_VALUES, [node]
    while waiting:
        each = waiting.pop()
        left -= 1
        if left < 0:
            raise ProfileError(f"{name} has more than {MAX_VALUES:,} values: that is no profile.")
        if isinstance(each.value, list):
            waiting += [part for item in each.value for part in (item if isinstance(item, tuple) else (item,))]


def json_entries(text: str, name: str) -> list[Entry]:
    """Every value of a JSON text, in order."""
    try:
        data = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        raise ProfileError(f"{name}, line {line}: this is not JSON: {getattr(error, 'msg', error)}.") from None
    if not isinstance(data, dict):
        raise ProfileError(f'{name}, line 1: a profile is an object, such as {{"auto_run": true}}.')
    try:  # JSON is YAML as far as lines are concerned; where it is not, errors have no line
        lines = {entry.key: entry.line for entry in yaml_entries(text.replace("\t", " "), name)}
    except ProfileError:
        lines = {}
    return [Entry(key, value, lines.get(key)) for key, value in _flat(data, "")]


def _flat(data: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        if isinstance(value, dict) and value and prefix + key not in _WHOLE:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
