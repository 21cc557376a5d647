"""What a tool is: a name, a schema and a handler that the model or code can call, and what the handler gets."""

from __future__ import annotations

import inspect
import json
import re
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from interpreter.errors import UsageError
from interpreter.host.files import Folder
from interpreter.questions import Answer, Subject

Policy = Literal["reads", "acts", "sends"]
Parameters = Mapping[str, Any]
Handler = Callable[..., Any]

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}(\.[A-Za-z0-9_-]{1,64}){0,3}")


@dataclass(frozen=True)
class FileEdit:
    """An effect of a call: a file gets another text. It is shown as a diff."""

    path: str
    before: str
    after: str

    def __str__(self) -> str:
        names = f"a/{self.path}", f"b/{self.path}"
        lines = unified_diff(self.before.splitlines(True), self.after.splitlines(True), *names)
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines).rstrip("\n")


@dataclass(frozen=True)
class ToolContext:
    """The context of a handler's call: the session and actor, and ways to ask and report."""

    session: Any  # the `session.Session`
    actor: Any  # whose permissions count
    action: Any
    workspace: str
    cancelled: Callable[[], bool]
    progress: Callable[[str], None]  # show a line while it runs
    ask: Callable[[Subject], Answer | None]  # ask the user, and wait; None if the call was cancelled meanwhile
    on_cancel: Callable[[Callable[[], object]], None]  # what ends its waiting, called from another thread

    @property
    def files(self) -> Folder:
        """Return the workspace. What is read and written through it stays inside."""
        return Folder(self.workspace)


@dataclass(frozen=True)
class Tool:
    """Something that a model, or code, can call by name. A name may have dots: `github.create_issue`.

    `parameters` is the JSON schema of the arguments, an object; or a function that returns it, if it changes.
    `handler` gets the arguments, checked against the schema, and a `ToolContext` if it has a second parameter. It
    returns a value: code gets it as it is, a model as text. It may also yield chunks as in docs/messages.md. An
    exception becomes an error that the model, or the code, can read.
    `policy` says what a call does: it only `reads`, it `acts` on this computer, or it `sends` something to others.
    `effects` returns what a call with these arguments would do, for the question and the record: sentences, or
    `FileEdit`s, which are shown as diffs.
    """

    name: str
    description: str
    parameters: Parameters | Callable[[], Parameters]
    handler: Handler
    policy: Policy = "acts"
    effects: Callable[[dict[str, Any]], Iterable[FileEdit | str]] | None = None
    question: str = ""  # asked instead of whether to allow a call
    note: str = ""  # what else a question about a call says, such as that it can't be undone
    is_parallel: bool = False  # whether code may call it several times at once

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or len(self.wire_name) > 64:
            raise UsageError(
                f"{self.name!r} can't be the name of a tool: use up to 64 letters, digits, `_` and `-`, starting with "
                f"a letter. A dot may separate up to four such names."
            )
        if self.policy not in ("reads", "acts", "sends"):
            raise UsageError(f"The policy of a tool must be reads, acts or sends, not {self.policy!r}.")

    @classmethod
    def function(cls, function: Callable[..., Any], policy: Policy = "acts", name: str = "") -> Tool:
        """Make a tool of a function: its type hints are the schema, its docstring the description.

        A parameter named `context` gets the `ToolContext`; the model doesn't see it.
        """
        hints = get_type_hints(function, include_extras=True)
        takes_context, properties, required = False, dict[str, Any](), list[str]()
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise UsageError(f"A tool's parameters need names; {function.__name__} has {parameter}.")
            if parameter.name == "context":
                takes_context = True
                continue
            properties[parameter.name] = schema_of(hints.get(parameter.name, Any), function.__name__)
            if parameter.default is parameter.empty:
                required.append(parameter.name)
        schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

        def handler(arguments: dict[str, Any], context: ToolContext) -> Any:
            return function(**arguments, **({"context": context} if takes_context else {}))

        return cls(name or function.__name__, inspect.getdoc(function) or "", schema, handler, policy)

    @property
    def schema(self) -> Parameters:
        """Return the JSON schema of the arguments, as it is now."""
        return self.parameters() if callable(self.parameters) else self.parameters

    @property
    def wire_name(self) -> str:
        """Return the name as providers accept it."""
        return self.name.replace(".", "__")

    @property
    def code_name(self) -> str:
        """Return the name to use after `tools.` in code. Characters that identifiers can't contain become `_`."""
        return ".".join(re.sub(r"\W", "_", part) for part in self.name.split("."))

    @property
    def takes_context(self) -> bool:
        """Return whether the handler has a second parameter."""
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        try:
            given = list(inspect.signature(self.handler).parameters.values())
        except (TypeError, ValueError):  # some builtins have no signature
            return False
        return len([each for each in given if each.kind in kinds and each.default is each.empty]) > 1

    def call(self, arguments: dict[str, Any], context: ToolContext) -> Any:
        """Call the handler."""
        return self.handler(arguments, context) if self.takes_context else self.handler(arguments)

    def as_function(self) -> dict[str, Any]:
        """Describe the tool as Chat Completions does."""
        return {
            "type": "function",
            "function": {"name": self.wire_name, "description": self.description, "parameters": self.schema},
        }

    def signature(self) -> str:
        """Write the tool and its parameters in one line: `note(text: string)`."""
        properties: Mapping[str, Any] = self.schema.get("properties") or {}
        required = self.schema.get("required") or ()
        shown = [f"{name}: {kind_in(rule)}{'' if name in required else ' = ...'}" for name, rule in properties.items()]
        return f"{self.name}({', '.join(shown)})"


def kind_in(rule: Any) -> str:
    """Return a short name for the values that a parameter takes: its type or its choices."""
    kind = rule.get("type") if isinstance(rule, Mapping) else None
    if isinstance(rule, Mapping) and rule.get("enum"):
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in rule["enum"])
    return " | ".join(kind) if isinstance(kind, list) else str(kind or "any")


_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def schema_of(hint: Any, function: str) -> dict[str, Any]:
    """Return the JSON schema of a type hint; UsageError for one that JSON has no form for."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        described = [each for each in args[1:] if isinstance(each, str)]
        return {**schema_of(args[0], function), **({"description": described[0]} if described else {})}
    if hint is Any:
        return {}
    if hint in _JSON_TYPES:
        return {"type": _JSON_TYPES[hint]}
    if origin is Literal:
        return {"enum": list(args)}
    if hint in (list, tuple, set) or origin in (list, tuple, set):
        items = schema_of(args[0], function) if args else {}
        return {"type": "array", **({"items": items} if items else {})}
    if hint is dict or origin in (dict, Mapping):
        values = schema_of(args[1], function) if args else {}
        return {"type": "object", "additionalProperties": values or True}
    if origin in (Union, types.UnionType):
        parts = [schema_of(each, function) for each in args]
        if all(set(each) == {"type"} for each in parts):
            return {"type": [each["type"] for each in parts]}
        return {"anyOf": parts}
    raise UsageError(
        f"{function} has a parameter of type {hint}, which has no form in JSON. Write the schema yourself."
    )
