"""From the data of events to the objects in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from interpreter.errors import BrokenStreamError

DONE = b"[DONE]"


def objects(events: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    """The objects of a stream of events; the end mark of Chat Completions may stand among them."""
    from jiter import from_json

    for data in events:
        try:
            found = from_json(data, cache_mode="keys")
        except ValueError:
            yield from odd_objects(data)
            continue
        if isinstance(found, dict):
            yield found


def odd_objects(data: bytes) -> Iterator[dict[str, Any]]:
    """Events that a strict parser refuses: half characters, or objects without an empty line between."""
    for line in data.splitlines():
        if line == DONE or not line.strip():
            continue
        try:
            found = json.loads(line)
        except ValueError as error:
            raise BrokenStreamError("The server sent something in the middle of its reply that is no JSON.") from error
        if isinstance(found, dict):
            yield found
