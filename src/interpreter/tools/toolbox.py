"""A tool, and the list of those that a model can call by name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

from interpreter.errors import UsageError
from interpreter.messages import Chunk

EXECUTE = "execute"

Policy = Literal["reads", "acts", "sends"]
Parameters = Mapping[str, Any]
Handler = Callable[[dict[str, Any]], "str | Iterable[Chunk] | None"]

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True)
class Tool:
    """Something that a model can call by name.

    `parameters` is the JSON schema of the arguments, an object; or a function that gives it, if it changes.
    `handler` gets the arguments, checked against the schema, and returns what the model is told: text, None, or
    chunks as in docs/messages.md. An exception becomes an error that the model can read.
    `policy` says what a call means: it only `reads`, it `acts` on this computer, or it `sends` something to others.
    """

    name: str
    description: str
    parameters: Parameters | Callable[[], Parameters]
    handler: Handler
    policy: Policy = "acts"

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise UsageError(
                f"{self.name!r} can't be the name of a tool: use up to 64 letters, digits, `_` and `-`, "
                "beginning with a letter."
            )
        if self.policy not in ("reads", "acts", "sends"):
            raise UsageError(f"The policy of a tool is reads, acts or sends, not {self.policy!r}.")

    @property
    def schema(self) -> Parameters:
        """The JSON schema of the arguments, as it is now."""
        return self.parameters() if callable(self.parameters) else self.parameters

    def as_function(self) -> dict[str, Any]:
        """The tool as Chat Completions describes one."""
        function = {"name": self.name, "description": self.description, "parameters": self.schema}
        return {"type": "function", "function": function}

    def signature(self) -> str:
        """The tool and its parameters in one line: `note(text: string)`."""
        properties: Mapping[str, Any] = self.schema.get("properties") or {}
        required = self.schema.get("required") or ()
        told = [f"{name}: {_kind(rule)}{'' if name in required else ' = ...'}" for name, rule in properties.items()]
        return f"{self.name}({', '.join(told)})"


class Toolbox:
    """The tools of an interpreter, in the order in which the model is told of them; `execute` comes first."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self.append(tool)

    def append(self, tool: Tool) -> None:
        """Let the model call this tool from its next request on."""
        if tool.name in self._tools:
            raise UsageError(f"There is already a tool named {tool.name!r}: remove it first.")
        self._tools[tool.name] = tool

    def remove(self, tool: Tool | str) -> None:
        """Take a tool away from the model."""
        name = tool if isinstance(tool, str) else tool.name
        if name == EXECUTE:
            raise UsageError("`execute` can't be removed. To let code only read, use mode='plan'.")
        if name not in self._tools:
            raise UsageError(f"There is no tool named {name!r}.")
        del self._tools[name]

    def get(self, name: str) -> Tool | None:
        """The tool with this name."""
        return self._tools.get(name)

    def closest(self, name: str) -> Tool | None:
        """The tool whose name is most like this one; None if none is."""
        lower = {known.lower(): known for known in self._tools}
        found = get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
        return self._tools[lower[found[0]]] if found else None

    @property
    def names(self) -> list[str]:
        return list(self._tools)

    @property
    def others(self) -> list[Tool]:
        """All but `execute`."""
        return [tool for tool in self if tool.name != EXECUTE]

    def __iter__(self) -> Iterator[Tool]:
        return iter(list(self._tools.values()))

    def __len__(self) -> int:
        return len(self._tools)

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __contains__(self, tool: object) -> bool:
        return tool in self._tools if isinstance(tool, str) else tool in self._tools.values()

    def as_text(self) -> str:
        """How a model that can't call tools uses those beside `execute`; empty if there are none."""
        if not self.others:
            return ""
        example = "```" + self.others[0].name + "\n" + json.dumps(_example(self.others[0].schema)) + "\n```"
        lines = [f"- {tool.signature()}: {tool.description}" for tool in self.others]
        words = "There are tools too. To call one, write a fenced block with its name and JSON arguments:"
        return "\n".join([words, example, *lines])


def execute_tool(languages: Callable[[], Sequence[str]], run: Callable[[str, str], Iterable[Chunk]]) -> Tool:
    """The tool that runs code, in the languages there are at the time."""

    def parameters() -> Parameters:
        properties = {
            "language": {"type": "string", "enum": list(languages()), "description": "The language of the code"},
            "code": {"type": "string", "description": "The code to run"},
        }
        return {"type": "object", "properties": properties, "required": ["language", "code"]}

    description = "Runs code on the user's machine in the live session of that language; returns its output."
    return Tool(EXECUTE, description, parameters, lambda given: run(given["language"], given["code"]))


def wire_name(name: str) -> str:
    """A name that a model made up, in a form that every provider takes back."""
    return _NOT_IN_A_NAME.sub("_", name)[:64] or EXECUTE


def _kind(rule: Any) -> str:
    """What kind of value a parameter takes, in a word."""
    kind = rule.get("type") if isinstance(rule, Mapping) else None
    if isinstance(rule, Mapping) and rule.get("enum"):
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in rule["enum"])
    return " | ".join(kind) if isinstance(kind, list) else str(kind or "any")


def _example(schema: Parameters) -> dict[str, Any]:
    """Arguments that show the form."""
    properties: Mapping[str, Any] = schema.get("properties") or {}
    required = schema.get("required") or list(properties)
    samples = {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}
    return {name: samples.get(_kind(properties.get(name) or {}), "...") for name in required}
