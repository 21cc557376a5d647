"""The one tool that a model gets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

NAME = "execute"


def execute_tool(languages: Sequence[str]) -> dict[str, Any]:
    """The tool's description as Chat Completions wants it."""
    properties = {
        "language": {"type": "string", "enum": list(languages), "description": "The language of the code"},
        "code": {"type": "string", "description": "The code to run"},
    }
    parameters = {"type": "object", "properties": properties, "required": ["language", "code"]}
    description = "Runs code on the user's machine in the live session of that language; returns its output."
    return {
        "type": "function",
        "function": {"name": NAME, "description": description, "parameters": parameters},
    }
