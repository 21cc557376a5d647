"""The toolbox: tools that a model can call by name, and each call with its checks and its result."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, Literal, Protocol

from interpreter import packages
from interpreter.errors import UsageError
from interpreter.messages import Chunk
from interpreter.tools.tool import Parameters, Tool, kind_in

EXECUTE = "execute"
NameKind = Literal["part", "method"]  # of a name in code: more names are below it, or it is a tool
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")


class ToolSource(Protocol):
    """Tools that only code calls: the model's requests don't have them. There may be thousands, and they may change."""

    def names(self, below: str) -> Mapping[str, NameKind]:
        """List the names directly below a path such as `github.`; the empty path is the top."""

    def find(self, name: str) -> Tool | None:
        """Return the tool with this name, as code writes it."""


class Toolbox:
    """The tools of an interpreter, in the order in which the model gets them; `execute` comes first.

    Code can also call the tools of its `sources`.
    """

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        self.sources: list[ToolSource] = []
        for tool in tools:
            self.append(tool)

    def append(self, tool: Tool) -> None:
        """Let the model call this tool, starting with its next request."""
        if (same := next((each for each in self if each.wire_name == tool.wire_name), None)) is not None:
            raise UsageError(f"There is already a tool named {same.name!r}. Remove it first.")
        self._tools[tool.name] = tool

    def add(self, tool: Tool | ToolSource) -> None:
        """Let the model and code call this tool, or code those of a source."""
        if isinstance(tool, Tool):
            self.append(tool)
        else:
            self.sources.append(tool)

    def copy_from(self, other: Toolbox) -> None:
        """Have the same tools as another session, in the same order. Each session has its own built-in ones."""
        self._tools = {tool.name: self._tools.get(tool.name, tool) for tool in other}

    def remove(self, tool: Tool | str) -> None:
        """Remove a tool, so that the model can't call it any more."""
        name = tool if isinstance(tool, str) else tool.name
        if name == EXECUTE:
            raise UsageError("`execute` can't be removed. To let code only read, use mode='plan'.")
        if name not in self._tools:
            raise UsageError(f"There is no tool named {name!r}.")
        del self._tools[name]

    def get(self, name: str) -> Tool | None:
        """Find the tool with this name, in the form of providers or of code, too."""
        return self._tools.get(name) or next((each for each in self if name in (each.wire_name, each.code_name)), None)

    def closest(self, name: str) -> Tool | None:
        """Find the tool with the most similar name; None if no name is similar."""
        lower = {known.lower(): known for known in self._tools}
        found = get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
        return self._tools[lower[found[0]]] if found else None

    def names_in_code(self, below: str) -> dict[str, NameKind]:
        """List what code finds directly below a path; the tool that runs code is not there."""
        names: dict[str, NameKind] = {}
        for source in self.sources:
            names |= source.names(below)
        rest = [tool.code_name.removeprefix(below) for tool in self.others if tool.code_name.startswith(below)]
        return names | {name.partition(".")[0]: "part" if "." in name else "method" for name in rest}

    def find_in_code(self, name: str) -> Tool | None:
        """Return the tool that code calls by this name."""
        own = next((tool for tool in self.others if name in (tool.code_name, tool.name)), None)
        return own or next((tool for source in self.sources if (tool := source.find(name)) is not None), None)

    @property
    def names(self) -> list[str]:
        return list(self._tools)

    @property
    def others(self) -> list[Tool]:
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
        """Explain how a model that can't call tools uses those beside `execute`; empty if there are none."""
        if not self.others:
            return ""
        first, samples = self.others[0], {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}
        properties: Mapping[str, Any] = first.schema.get("properties") or {}
        required = first.schema.get("required") or list(properties)
        given = {name: samples.get(kind_in(properties.get(name) or {}), "...") for name in required}
        example = f"```{first.name}\n{json.dumps(given)}\n```"
        lines = [f"- {tool.signature()}: {tool.description}" for tool in self.others]
        words = "There are tools too. To call one, write a fenced block with its name and JSON arguments:"
        return "\n".join([words, example, *lines])


def execute_tool(languages: Callable[[], Sequence[str]], run: Callable[[str, str], Iterable[Chunk]]) -> Tool:
    """Return the tool that runs code, in the languages that are available at the time."""

    def parameters() -> Parameters:
        properties = {
            "language": {"type": "string", "enum": list(languages()), "description": "The language of the code"},
            "code": {"type": "string", "description": "The code to run"},
        }
        return {"type": "object", "properties": properties, "required": ["language", "code"]}

    description = "Runs code on the user's machine in the live session of that language; returns its output."
    return Tool(EXECUTE, description, parameters, lambda given: run(given["language"], given["code"]))


def package_tools() -> Iterator[Tool]:
    """Make the tools that other packages add, by the names of their entry points."""
    names = {EXECUTE}
    for entry_point, made in packages.loaded("tools"):
        name = entry_point.name
        try:
            tool = replace(made, name=name) if isinstance(made, Tool) else Tool.function(made, name=name)
            if tool.wire_name in names:
                raise UsageError(f"There is already a tool named {name!r}.")
            names.add(tool.wire_name)
            yield tool
        except Exception as error:  # noqa: BLE001 - a package must not keep an agent from starting
            packages.report(entry_point, error)


def wire_name(name: str) -> str:
    """Convert a name that a model made up to a form that every provider accepts."""
    return _NOT_IN_A_NAME.sub("_", name)[:64] or EXECUTE


_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def problem_with(tools: Toolbox, name: str, arguments: str) -> str:
    """Describe the mistake in a model's call, so that the model can correct it; empty if there is none."""
    tool, given = tools.get(name), read_arguments(arguments)
    if tool is None:
        hint = f" Did you mean {close.signature()}?" if (close := tools.closest(name)) is not None else ""
        return f"There is no tool named {name!r}, so nothing was run.{hint} The tools are: {', '.join(tools.names)}."
    return f"{name} was not called: {problem}" if (problem := problem_with_arguments(tool, given)) else ""


def problem_with_arguments(tool: Tool, arguments: dict[str, Any] | None) -> str:
    """Say what is wrong with the arguments of a call; empty if nothing is."""
    problems = ["the arguments must be a JSON object"] if arguments is None else problems_of(arguments, tool.schema)
    return f"{'; '.join(problems)}. Its form is {tool.signature()}." if problems else ""


def result_chunks(value: Any) -> Iterator[Chunk]:
    """Convert a handler's value for the model: text as it is, chunks, or any other value as JSON."""
    if value is None:
        return
    if hasattr(value, "base64") and hasattr(value, "png"):  # a picture
        yield {"type": "image", "format": "base64.png", "content": value.base64}
    elif isinstance(value, Iterator) or (_is_list(value) and value and all(map(_is_chunk, value))):
        for each in value:
            if not _is_chunk(each):
                raise TypeError(f"a handler yields chunks, not {type(each).__name__}")
            yield each
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        yield {"type": "console", "format": "output", "content": text}


def value_of(value: Any) -> Any:
    """Convert a handler's value for code: chunks become their text, anything else stays unchanged."""
    if isinstance(value, Iterator) or (_is_list(value) and value and all(map(_is_chunk, value))):
        return "".join(str(each["content"]) for each in value if each.get("format") == "output")
    return value


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _is_chunk(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type"), str) and "content" in value


def read_arguments(text: str) -> dict[str, Any] | None:
    """Parse the arguments of a call; some models put the JSON into a string. None if they are not a JSON object."""
    value: Any = text.strip() or "{}"
    for _ in range(2):
        if isinstance(value, str):
            try:
                value = json.loads(value, strict=False)
            except (ValueError, RecursionError):
                return None
    return value if isinstance(value, dict) else None


def shown_call(name: str, arguments: str | dict[str, Any]) -> str:
    """Write a call in one line for people: `note(text="Buy milk")`."""
    given = read_arguments(arguments) if isinstance(arguments, str) else arguments
    if given is None:
        return f"{name}({str(arguments).strip()})"
    shown = [f"{key}={json.dumps(value, ensure_ascii=False, default=repr)}" for key, value in given.items()]
    return f"{name}({', '.join(shown)})"


# -- the check of arguments ------------------------------------------------------------------------------------


def problems_of(value: Any, schema: Any, where: str = "") -> list[str]:
    """Find wrong types, choices, limits, and names that are missing or unknown. Other rules are the handler's."""
    return list(_problems(value, schema, where))


def _problems(value: Any, schema: Any, where: str) -> Iterator[str]:
    if not isinstance(schema, Mapping):
        return
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(value, kind) for kind in kinds):
        actual = next(kind for kind in _KINDS if _is(value, kind))
        yield f"{where or 'the arguments'} must be {' or '.join(map(_a, kinds))}, not {_a(actual)}"
        return
    choices = schema.get("enum")
    if choices and value not in choices:
        yield f"{where} must be one of {', '.join(json.dumps(choice, ensure_ascii=False) for choice in choices)}"
    if isinstance(value, int | float) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield f"{where} must be from {schema.get('minimum', 'any number')} to {schema.get('maximum', 'any number')}"
    if isinstance(value, str) and len(value) < schema.get("minLength", 0):
        yield f"{where} is too short"
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"{where} must match {schema['pattern']}"
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _problems(item, schema.get("items"), f"{where}[{number}]")
    if not isinstance(value, dict):
        return
    path = f"{where}." if where else ""
    properties: Mapping[str, Any] = schema.get("properties") or {}
    for name in schema.get("required") or ():
        if name not in value:
            yield f"{path}{name} is missing"
    takes_more = schema.get("additionalProperties", not properties and bool(path))
    for name, given in value.items():
        if name in properties:
            yield from _problems(given, properties[name], f"{path}{name}")
        elif takes_more is False:
            close = get_close_matches(name, properties, n=1)
            yield f"{path}{name} is unknown" + (f" (did you mean {path}{close[0]}?)" if close else "")
        else:
            yield from _problems(given, takes_more, f"{path}{name}")


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return kind not in _KINDS or isinstance(value, _KINDS[kind])


def _a(kind: str) -> str:
    return kind if kind == "null" else f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
