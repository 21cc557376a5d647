"""A server's tool listing, made safe: names, descriptions and schemas in forms that the core knows."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from interpreter.console_text import visible
from interpreter.mcp.config import Server

MAX_DESCRIPTION_LENGTH = 4000
MAX_DEPTH = 8
MAX_PROPERTIES = 200
_MAX_NAME_LENGTH = 64  # of server and tool, as providers accept them


READ, LIST, PROMPT = "@resources/read", "@resources/list", "@prompts/get"  # what is no tool of the server
_URI = {"description": "an address, or a link that a tool returned", "type": ["string", "object"]}


class Spec(NamedTuple):
    """A tool as its server describes it."""

    name: str  # on the server
    code_name: str  # in code, below the server's name
    description: str
    schema: dict[str, Any]

    @property
    def digest(self) -> str:
        """Return a digest of everything that people and models read about the tool."""
        return hashlib.sha256(json.dumps(self[2:], sort_keys=True).encode()).hexdigest()

    @property
    def first_sentence(self) -> str:
        line = " ".join(self.description.split())
        end = re.search(r"(?<=[.!?])\s", line)
        line = line[: end.start()] if end else line
        return line if len(line) <= 120 else f"{line[:119]}…"


def specs_of(server: Server, listed: Iterable[Mapping[str, Any]]) -> dict[str, Spec]:
    """Return the tools of a listing by their names in code. Malformed entries are left out."""
    specs: dict[str, Spec] = {}
    for row in listed:
        name = row.get("name")
        if not isinstance(name, str) or not name:
            continue
        code_name = re.sub(r"\W", "_", name, flags=re.ASCII)
        room = _MAX_NAME_LENGTH - len(server.name) - len("__")
        if len(code_name) > room or code_name in specs:
            code_name = f"{code_name[: room - 7]}_{hashlib.sha256(name.encode()).hexdigest()[:6]}"
        schema = row.get("inputSchema")
        defined = schema.get("$defs") or schema.get("definitions") if isinstance(schema, dict) else None
        made = clean_schema(schema, defined if isinstance(defined, dict) else {})
        # Some servers require what has a default: it is filled in.
        made["required"] = [each for each in made.get("required", ()) if "default" not in made["properties"][each]]
        description = row.get("description") or row.get("title") or ""
        text = visible(str(description))[:MAX_DESCRIPTION_LENGTH].strip()
        made = {**({} if "properties" in made else {"additionalProperties": True}), **made, "type": "object"}
        specs[code_name] = Spec(name, code_name, text, made)
    return specs


def resource_specs(taken: Iterable[str]) -> dict[str, Spec]:
    """Return the functions for a server's resources, under names that its tools don't use."""
    rows = (
        Spec(LIST, "resources", "List its resources, and the templates of their addresses.", _object()),
        Spec(READ, "read", "Read a resource: its text, JSON as a value, a picture, or bytes.", _object(uri=_URI)),
    )
    specs = (row._replace(code_name=f"{row.code_name}_") if row.code_name in taken else row for row in rows)
    return {spec.code_name: spec for spec in specs}


def prompt_spec(taken: Iterable[str]) -> dict[str, Spec]:
    """Return the function for a server's prompts, under a name that its tools don't use."""
    text = {"description": "its name; without one, list them", "type": "string"}
    schema = {**_object(name=text, arguments={"type": "object", "additionalProperties": {"type": "string"}})}
    name = "prompt_" if "prompt" in taken else "prompt"
    return {name: Spec(PROMPT, name, "Get the text of a prompt.", {**schema, "required": []})}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def clean_schema(schema: Any, defined: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """Keep what the check of arguments and a signature use, where it has the right form; the server checks the rest."""
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return {}
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return clean_schema(defined.get(reference.rpartition("/")[2]), defined, depth + 1)
    made: dict[str, Any] = {}
    kinds = schema.get("type")
    choices = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(choices, list) and kinds is None:
        parts = [clean_schema(each, defined, depth + 1) for each in choices]
        kinds = [kind for part in parts for kind in _listed(part.get("type") or "any")]
        real = [part for part in parts if part.get("type") != "null"]
        made |= real[0] if len(real) == 1 else {}
        kinds = None if "any" in kinds else kinds
    if kinds and all(isinstance(kind, str) for kind in _listed(kinds)):
        made["type"] = kinds if isinstance(kinds, str) else list(dict.fromkeys(kinds))
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        made["enum"] = schema["enum"]
    if "default" in schema and depth == 1:
        made["default"] = schema["default"]
    if isinstance(schema.get("description"), str):
        made["description"] = " ".join(visible(schema["description"]).split())[:300]
    if isinstance(schema.get("items"), dict):
        made["items"] = clean_schema(schema["items"], defined, depth + 1)
    properties = schema.get("properties")
    if isinstance(properties, dict):
        rows = list(properties.items())[:MAX_PROPERTIES]
        made["properties"] = {str(name): clean_schema(each, defined, depth + 1) for name, each in rows}
        required = schema.get("required")
        made["required"] = [name for name in properties if name in required] if isinstance(required, list) else []
    more = schema.get("additionalProperties")
    if isinstance(more, bool):
        made["additionalProperties"] = more
    elif isinstance(more, dict):
        made["additionalProperties"] = clean_schema(more, defined, depth + 1)
    elif depth and "properties" in made:
        made["additionalProperties"] = True
    return made


def _listed(kinds: Any) -> list[Any]:
    return kinds if isinstance(kinds, list) else [kinds]
