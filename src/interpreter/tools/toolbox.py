"""Tools that a model can call by name: what one is, the toolbox, and one call with its checks and its result."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
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

    `parameters` is the JSON schema of the arguments, an object; or a function that returns it, if it changes.
    `handler` gets the arguments, checked against the schema, and returns the result for the model: text, None, or
    chunks as in docs/messages.md. An exception becomes an error that the model can read.
    `policy` says what a call does: it only `reads`, it `acts` on this computer, or it `sends` something to others.
    """

    name: str
    description: str
    parameters: Parameters | Callable[[], Parameters]
    handler: Handler
    policy: Policy = "acts"

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise UsageError(
                f"{self.name!r} can't be the name of a tool: use up to 64 letters, digits, `_` and `-`, starting with "
                f"a letter."
            )
        if self.policy not in ("reads", "acts", "sends"):
            raise UsageError(f"The policy of a tool must be reads, acts or sends, not {self.policy!r}.")

    @property
    def schema(self) -> Parameters:
        """The JSON schema of the arguments, as it is now."""
        return self.parameters() if callable(self.parameters) else self.parameters

    def as_function(self) -> dict[str, Any]:
        """The tool as Chat Completions describes one."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": self.schema},
        }

    def signature(self) -> str:
        """The tool and its parameters in one line: `note(text: string)`."""
        properties: Mapping[str, Any] = self.schema.get("properties") or {}
        required = self.schema.get("required") or ()
        told = [f"{name}: {_kind(rule)}{'' if name in required else ' = ...'}" for name, rule in properties.items()]
        return f"{self.name}({', '.join(told)})"


class Toolbox:
    """The tools of an interpreter, in the order in which the model gets them; `execute` comes first."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self.append(tool)

    def append(self, tool: Tool) -> None:
        """Let the model call this tool, starting with its next request."""
        if tool.name in self._tools:
            raise UsageError(f"There is already a tool named {tool.name!r}. Remove it first.")
        self._tools[tool.name] = tool

    def extend(self, tools: Iterable[Tool]) -> None:
        """Add tools of another interpreter. The built-in ones stay: each interpreter has its own."""
        for tool in tools:
            self._tools.setdefault(tool.name, tool)

    def remove(self, tool: Tool | str) -> None:
        """Take a tool away from the model."""
        name = tool if isinstance(tool, str) else tool.name
        if name == EXECUTE:
            raise UsageError("`execute` can't be removed. To let code only read, use mode='plan'.")
        if name not in self._tools:
            raise UsageError(f"There is no tool named {name!r}.")
        del self._tools[name]

    def get(self, name: str) -> Tool | None:
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
        first, samples = self.others[0], {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}
        properties: Mapping[str, Any] = first.schema.get("properties") or {}
        required = first.schema.get("required") or list(properties)
        given = {name: samples.get(_kind(properties.get(name) or {}), "...") for name in required}
        example = f"```{first.name}\n{json.dumps(given)}\n```"
        lines = [f"- {tool.signature()}: {tool.description}" for tool in self.others]
        words = "There are tools too. To call one, write a fenced block with its name and JSON arguments:"
        return "\n".join([words, example, *lines])


def execute_tool(languages: Callable[[], Sequence[str]], run: Callable[[str, str], Iterable[Chunk]]) -> Tool:
    """The tool that runs code, in the languages that are available at the time."""

    def parameters() -> Parameters:
        properties = {
            "language": {"type": "string", "enum": list(languages()), "description": "The language of the code"},
            "code": {"type": "string", "description": "The code to run"},
        }
        return {"type": "object", "properties": properties, "required": ["language", "code"]}

    description = "Runs code on the user's machine in the live session of that language; returns its output."
    return Tool(EXECUTE, description, parameters, lambda given: run(given["language"], given["code"]))


def wire_name(name: str) -> str:
    """A name that a model made up, in a form that every provider accepts."""
    return _NOT_IN_A_NAME.sub("_", name)[:64] or EXECUTE


def _kind(rule: Any) -> str:
    """What kind of value a parameter takes, in a word."""
    kind = rule.get("type") if isinstance(rule, Mapping) else None
    if isinstance(rule, Mapping) and rule.get("enum"):
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in rule["enum"])
    return " | ".join(kind) if isinstance(kind, list) else str(kind or "any")


_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def call_tool(tools: Toolbox, name: str, arguments: str, refusal: str) -> Generator[Chunk]:
    """Call a tool; the result as chunks without a role, the last of which says how it ended.

    `arguments` is the JSON text as the model wrote it. What is wrong with the call becomes its result, so that the
    model can correct it. `refusal` says why the tool must not be called; empty if it may be.
    """
    tool, given = tools.get(name), read_arguments(arguments)
    if tool is None:
        hint = f" Did you mean {close.signature()}?" if (close := tools.closest(name)) is not None else ""
        refusal = f"There is no tool named {name!r}, so nothing was run.{hint} The tools are: {', '.join(tools.names)}."
    else:
        found = ["the arguments must be a JSON object"] if given is None else list(_problems(given, tool.schema, ""))
        if found:
            refusal = f"{name} was not called: {'; '.join(found)}. Its form is {tool.signature()}."
    if tool is None or given is None or refusal:
        yield {"type": "console", "format": "output", "content": f"{refusal}\n", "ours": True}
        yield _over("error")
        return
    ended = "done"
    try:
        result: Any = tool.handler(given)
        if isinstance(result, str):
            result = [{"type": "console", "format": "output", "content": result}]
        elif isinstance(result, Mapping) or not isinstance(result, Iterable | None):
            raise TypeError(f"the handler of {name} must return text, None or chunks, not {type(result).__name__}")
        for chunk in result or ():
            if chunk.get("format") == "active_line" and chunk.get("content") is None:
                ended = chunk.get("ended", "done")
            else:
                yield chunk
    except Exception as error:  # noqa: BLE001 - a handler is the user's code, and its error is the call's result
        words = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        yield {"type": "console", "format": "output", "content": f"{words}\n", "stream": "stderr"}
        ended = "error"
    except KeyboardInterrupt:
        yield _over("interrupted")
        raise
    yield _over(ended)


def read_arguments(text: str) -> dict[str, Any] | None:
    """The arguments of a call; some models put the JSON into a string. None if they are not a JSON object."""
    value: Any = text.strip() or "{}"
    for _ in range(2):
        if isinstance(value, str):
            try:
                value = json.loads(value, strict=False)
            except (ValueError, RecursionError):
                return None
    return value if isinstance(value, dict) else None


def shown_call(name: str, arguments: str) -> str:
    """A call in one line for people: `note(text="Buy milk")`."""
    given = read_arguments(arguments)
    if given is None:
        return f"{name}({arguments.strip()})"
    return f"{name}({', '.join(f'{key}={json.dumps(value, ensure_ascii=False)}' for key, value in given.items())})"


def _over(ended: str) -> Chunk:
    last: Chunk = {"type": "console", "format": "active_line", "content": None}
    return last if ended == "done" else {**last, "ended": ended}


# -- the check of arguments ------------------------------------------------------------------------------------


def _problems(value: Any, schema: Any, where: str) -> Iterator[str]:
    """What is wrong with a value: types, choices, names that are missing or unknown. Other rules are the handler's."""
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
