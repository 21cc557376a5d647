"""One call of a tool: found by name, checked, permitted, made, and its result as chunks."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from interpreter.messages import Chunk
from interpreter.tools.toolbox import Tool, Toolbox

Permit = Callable[[Tool, dict[str, Any]], None]
"""Asked before a call is made; it raises PermissionError, with the reason, if the call must not be."""

_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def call_tool(tools: Toolbox, name: str, arguments: str, permit: Permit) -> Generator[Chunk]:
    """What comes of a call, as chunks without a role; the last one says how it ended.

    `arguments` is the JSON text as the model wrote it. What is wrong with the call becomes its result, so that the
    model can mend it.
    """
    tool = tools.get(name)
    if tool is None:
        yield from _refused(unknown_tool(name, tools))
        return
    given = read_arguments(arguments)
    found = ["the arguments must be a JSON object"] if given is None else list(_problems(given, tool.schema, ""))
    if given is None or found:
        yield from _refused(f"{name} was not called: {'; '.join(found)}. Its form is {tool.signature()}.")
        return
    try:
        permit(tool, given)
    except PermissionError as error:
        yield from _refused(str(error))
        return
    yield from _made(tool, given)


def unknown_tool(name: str, tools: Toolbox) -> str:
    """What a model is told that called a tool that isn't there."""
    close = tools.closest(name)
    hint = f" Did you mean {close.signature()}?" if close is not None else ""
    return f"There is no tool named {name!r}, so nothing was run.{hint} The tools are: {', '.join(tools.names)}."


def read_arguments(text: str) -> dict[str, Any] | None:
    """The arguments of a call; some models put the JSON into a string. None if they are no JSON object."""
    value: Any = text.strip() or "{}"
    for _ in range(2):
        if isinstance(value, str):
            try:
                value = json.loads(value, strict=False)
            except ValueError:
                return None
    return value if isinstance(value, dict) else None


def shown_call(name: str, arguments: str) -> str:
    """A call in one line for people: `note(text="Buy milk")`."""
    given = read_arguments(arguments)
    if given is None:
        return f"{name}({arguments.strip()})"
    return f"{name}({', '.join(f'{key}={json.dumps(value, ensure_ascii=False)}' for key, value in given.items())})"


def _made(tool: Tool, given: dict[str, Any]) -> Iterator[Chunk]:
    """Call the handler; whatever it raises is told, and ends nothing but this call."""
    ended = "done"
    try:
        for chunk in _chunks(tool, tool.handler(given)):
            if chunk.get("format") == "active_line" and chunk.get("content") is None:
                ended = chunk.get("ended", "done")
            else:
                yield chunk
    except Exception as error:  # noqa: BLE001 - a handler is anybody's code, and its error is the call's result
        yield {"type": "console", "format": "output", "content": f"{_told(error)}\n", "stream": "stderr"}
        ended = "error"
    except KeyboardInterrupt:
        yield _over("interrupted")
        raise
    yield _over(ended)


def _chunks(tool: Tool, result: str | Iterable[Chunk] | None) -> Iterator[Chunk]:
    if isinstance(result, str):
        yield {"type": "console", "format": "output", "content": result}
    elif isinstance(result, Iterable) and not isinstance(result, Mapping):
        yield from result
    elif result is not None:
        raise TypeError(f"the handler of {tool.name} must return text, None or chunks, not {type(result).__name__}")


def _refused(words: str) -> Iterator[Chunk]:
    yield {"type": "console", "format": "output", "content": f"{words}\n", "ours": True}
    yield _over("error")


def _over(ended: str) -> Chunk:
    last: Chunk = {"type": "console", "format": "active_line", "content": None}
    return last if ended == "done" else {**last, "ended": ended}


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


# -- the check of arguments ------------------------------------------------------------------------------------


def _problems(value: Any, schema: Any, where: str) -> Iterator[str]:
    """What is wrong with a value: types, choices, names that are missing or unknown. Other rules are the handler's."""
    if not isinstance(schema, Mapping):
        return
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(value, kind) for kind in kinds):
        yield f"{where or 'the arguments'} must be {' or '.join(map(_a, kinds))}, not {_a(_kind_of(value))}"
        return
    choices = schema.get("enum")
    if choices and value not in choices:
        yield f"{where} must be one of {', '.join(json.dumps(choice, ensure_ascii=False) for choice in choices)}"
    if isinstance(value, dict):
        yield from _field_problems(value, schema, f"{where}." if where else "")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _problems(item, schema.get("items"), f"{where}[{number}]")


def _field_problems(value: dict[str, Any], schema: Mapping[str, Any], path: str) -> Iterator[str]:
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


def _kind_of(value: Any) -> str:
    return next(kind for kind in _KINDS if _is(value, kind))


def _a(kind: str) -> str:
    return kind if kind == "null" else f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
