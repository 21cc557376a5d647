"""YAML and JSON as flat entries: dotted key, value, and the line that it stands on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from interpreter.config.settings import SETTINGS
from interpreter.errors import ProfileError

WHOLE = frozenset({"wtf", *(row.name for row in SETTINGS if row.kind == "dict")})
"""What is under these is one value."""
MOST = 20_000  # values in one profile, aliases written out: more is no profile but an attack


@dataclass(frozen=True)
class Entry:
    """One value; `word` is a bare YAML word as it was written, which `off` and `2024-02-01` need."""

    key: str
    value: Any
    line: int | None
    word: str | None = None


def yaml_entries(text: str, name: str) -> list[Entry]:
    """Every value of a YAML text, in order."""
    import yaml

    loader = _loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return []
        if not isinstance(node, yaml.MappingNode):
            raise ProfileError(f"{name}, line 1: a profile is a list of names with values, such as `auto_run: true`.")
        _check_size(node, name)
        return list(_walk(loader, node, ""))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{name}, line {mark.line + 1}" if mark else name
        raise ProfileError(f"{place}: this is not YAML: {error.problem or error.context}.") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise ProfileError(f"{name}: this is not YAML: {error}.") from None
    finally:
        loader.dispose()


def json_entries(text: str, name: str) -> list[Entry]:
    """Every value of a JSON text, in order."""
    try:
        data = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        raise ProfileError(f"{name}, line {line}: this is not JSON: {getattr(error, 'msg', error)}.") from None
    if not isinstance(data, dict):
        raise ProfileError(f'{name}, line 1: a profile is an object, such as {{"auto_run": true}}.')
    lines = _json_lines(text, name)
    return [Entry(key, value, lines.get(key)) for key, value in _flat(data, "")]


def _loader(text: str) -> Any:
    import yaml

    # Read by libyaml where it is there: ten times as fast.
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)


def _walk(loader: Any, node: Any, prefix: str) -> Iterator[Entry]:
    import yaml

    loader.flatten_mapping(node)
    for key_node, value_node in node.value:
        key = prefix + str(key_node.value)
        if isinstance(value_node, yaml.MappingNode) and value_node.value and key not in WHOLE:
            yield from _walk(loader, value_node, f"{key}.")
            continue
        bare = isinstance(value_node, yaml.ScalarNode) and not value_node.style
        value = loader.construct_object(value_node, deep=True)
        yield Entry(key, value, key_node.start_mark.line + 1, value_node.value if bare else None)


def _check_size(node: Any, name: str) -> None:
    left, waiting = MOST, [node]
    while waiting:
        each = waiting.pop()
        left -= 1
        if left < 0:
            raise ProfileError(f"{name} has more than {MOST:,} values: that is no profile.")
        if isinstance(each.value, list):
            waiting += [part for item in each.value for part in (item if isinstance(item, tuple) else (item,))]


def _flat(data: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        if isinstance(value, dict) and value and prefix + key not in WHOLE:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _json_lines(text: str, name: str) -> dict[str, int]:
    """JSON is YAML as far as places go; where it is not, an error goes without its line."""
    try:
        entries = yaml_entries(text.replace("\t", " "), name)
    except ProfileError:
        return {}
    return {entry.key: entry.line for entry in entries if entry.line is not None}
