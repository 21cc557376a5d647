"""`ask` and `agent` in the user's code, on Python 3.8 and later: data becomes prompts, and answers become values.

It runs where the code runs. `host` calls a tool of the host, which has the model and its key.
"""

from __future__ import annotations

import base64
import dataclasses
import io
import json
import math
import os
import pickle
import re
import sys
import typing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

_given: dict[str, Any] = globals()  # what the session gives this file
host, awaitable, ComputerError = _given["host"], _given["awaitable"], _given["ComputerError"]

PLACEHOLDER = re.compile(r"\{([^\W\d]\w*|)\}")
IMAGE_BYTES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF")
IMAGE_FILES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
MAX_CALL = 24_000_000  # characters of prompts in one call to the host
SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


class Ask:
    """Ask the model about data, outside the conversation.

    `ask("question", data)` returns one answer; `ask.map("question", rows)` one for each row.
    """

    def __call__(
        self, question: str, data: Any = None, schema: Any = None, model: str | None = None, **limits: Any
    ) -> Any:
        """Return the answer to a question about data: a text, table, list, dict or image."""
        form, build = form_of(schema)
        images: list[str] = []
        text = as_text(data, images)

        def work() -> Any:
            answer = host("one", question=question, text=text, images=images, form=form, model=model, **limits)
            return build(answer)

        return awaitable(work)

    def map(self, template: str, data: Any, schema: Any = None, model: str | None = None, **limits: Any) -> Any:
        """Ask about each row; a list for a list, a Series with the same index for a Series or a DataFrame.

        `{column}` in the template stands for that column, `{}` for the value itself. A row that fails gets a
        ComputerError as its value; a missing value stays missing, without a request.
        """
        return awaitable(self._map, template, data, schema, model, limits)

    def estimate(self, template: str, data: Any, schema: Any = None, model: str | None = None, **limits: Any) -> Any:
        """Return what `map` would take: rows, new requests, tokens, dollars. Nothing is sent."""
        form, _ = form_of(schema)
        prompts = [prompt for prompt in prompts_of(template, data) if prompt is not None]
        totals: dict[str, Any] = {}
        for part in parts_of(prompts):
            counts = host("estimate", question=template, prompts=part, form=form, model=model, **limits)
            for name, count in counts.items():
                before = totals.get(name, 0)
                totals[name] = None if count is None or before is None else before + count
        return totals

    def failed(self, value: Any) -> bool:
        """Check whether a value that `map` returned is the error of its row."""
        return isinstance(value, Exception)

    def _map(self, template: str, data: Any, schema: Any, model: str | None, limits: Any) -> Any:
        form, build = form_of(schema)
        prompts = prompts_of(template, data)
        sent = [prompt for prompt in prompts if prompt is not None]
        answers: list[Any] = []
        for part in parts_of(sent):
            try:
                answers += host("map", question=template, prompts=part, form=form, model=model, **limits)
            except KeyboardInterrupt:
                print("\nask: interrupted. Run it again to continue: the answers so far are kept.")  # noqa: T201
                raise
        given = iter(answers)
        return like(data, [None if prompt is None else value_of(next(given), build) for prompt in prompts])


def value_of(answer: Any, build: Callable[[Any], Any]) -> Any:
    """Return the value of a row, or a ComputerError that describes its problem."""
    if "error" in answer:
        return ComputerError(answer["error"])
    try:
        return build(answer["value"])
    except Exception as error:  # noqa: BLE001 - the user's class may raise anything
        return ComputerError("The answer doesn't fit the schema: %s" % error)


def parts_of(prompts: list[Any]) -> list[list[Any]]:
    """Cut prompts into calls that fit into a message to the host: usually one."""
    parts: list[list[Any]] = []
    size = MAX_CALL
    for prompt in prompts:
        length = sum(len(piece) for piece in prompt) * 2
        if size + length > MAX_CALL:
            parts.append([])
            size = 0
        parts[-1].append(prompt)
        size += length
    return parts


# -- data to prompts -------------------------------------------------------------------------------------------------


def prompts_of(template: str, data: Any) -> list[list[str] | None]:
    """Write the prompt of each row: its text, then its images. None for a row whose only value is missing."""
    columns = columns_of(data)
    if columns is None:
        return [None if is_missing(value) else prompt_of(template, {"": value}, "") for value in data]
    names = [str(name) for name in columns]
    rows = zip(*[list(data[name]) for name in columns]) if not isinstance(data, list) else None
    if rows is None:
        return [prompt_of(template, row, None) for row in data]
    unused = names[0] if len(names) == 1 and not PLACEHOLDER.search(template) else None
    return [prompt_of(template, dict(zip(names, row)), unused) for row in rows]


def columns_of(data: Any) -> list[Any] | None:
    """Return the columns of a table or a list of dicts; None for anything with one value in each row."""
    if isinstance(data, (str, bytes)) or not hasattr(data, "__iter__"):
        raise TypeError("ask.map() takes a Series, a DataFrame or a list. ask(question, data) asks about one thing.")
    if hasattr(data, "columns") and hasattr(data, "__getitem__"):
        return list(data.columns)
    if isinstance(data, list) and data and all(isinstance(row, dict) for row in data):
        return list(data[0])
    return None


def prompt_of(template: str, row: dict[str, Any], rest: str | None) -> list[str]:
    """Fill the template; a value that it doesn't mention, named by `rest`, follows it."""
    images: list[str] = []
    filled: list[str] = []

    def fill(match: Any) -> str:
        name = match.group(1)
        if name not in row:
            raise KeyError(
                "There is no column %r for the template. Columns: %s." % (name, ", ".join(map(str, row)))
                if "" not in row
                else "Only {} can be in this template, because the data has no columns."
            )
        filled.append(name)
        return as_text(row[name], images)

    text = PLACEHOLDER.sub(fill, template)
    if rest is not None and rest not in filled:
        text = "%s\n\n%s" % (text, as_text(row[rest], images))
    elif rest is None and not filled:
        pairs = ["%s: %s" % (name, as_text(value, images)) for name, value in row.items() if not is_missing(value)]
        text = "\n".join([text, "", *pairs])
    return [text, *images]


def is_missing(value: Any) -> bool:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return type(value).__name__ in ("NAType", "NaTType")


def as_text(value: Any, images: list[str]) -> str:
    """Write a value for the model; an image is added to `images`, and named in the text."""
    image = image_of(value)
    if image is not None:
        images.append(base64.b64encode(image).decode("ascii"))
        return "(image %d)" % len(images)
    if isinstance(value, str):
        return value
    if is_missing(value):
        return ""
    if hasattr(value, "to_csv"):  # pandas
        return str(value.to_csv())
    if hasattr(value, "write_csv"):  # polars
        return str(value.write_csv())
    if isinstance(value, (dict, list, tuple)):
        pieces = (
            [as_text(each, images) if image_of(each) else each for each in value]
            if not hasattr(value, "items")
            else value
        )
        return json.dumps(pieces, ensure_ascii=False, default=str)
    return str(value)


def image_of(value: Any) -> bytes | None:
    """Return the file of an image: a Pillow image, a picture, the bytes of an image, or the path of one."""
    if isinstance(value, os.PathLike) and str(value).lower().endswith(IMAGE_FILES):
        with open(value, "rb") as file:
            return file.read()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value) if bytes(value[:4]).startswith(IMAGE_BYTES) else None
    if isinstance(getattr(value, "png", None), bytes):
        return bytes(value.png)
    if type(value).__module__.partition(".")[0] == "PIL" and hasattr(value, "getbands"):
        buffer = io.BytesIO()
        value.save(buffer, "PNG")
        return buffer.getvalue()
    return None


def like(data: Any, values: list[Any]) -> Any:
    """Return the values in the form of the data: a Series with its index, or a list."""
    kind = type(data).__module__.partition(".")[0]
    if kind == "pandas" and hasattr(data, "index"):
        pandas = sys.modules["pandas"]
        is_index = isinstance(data, pandas.Index)
        return pandas.Series(
            values,
            index=None if is_index else data.index,
            dtype=None if values else object,
            name=getattr(data, "name", None),
        )
    if kind == "polars":
        polars = sys.modules["polars"]
        is_plain = all(value is None or isinstance(value, (str, int, float, bool)) for value in values)
        return polars.Series(getattr(data, "name", ""), values, dtype=None if is_plain else polars.Object)
    return values


# -- what a value has to be ----------------------------------------------------------------------------------------


def form_of(kind: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return a type's JSON schema, and a function that builds a value of that type from JSON."""
    if kind is None:
        return None, lambda value: value
    if isinstance(kind, dict):
        return kind, lambda value: value
    if isinstance(kind, (list, tuple, set, frozenset)):
        return {"enum": list(kind)}, lambda value: value
    if kind in SIMPLE:
        return {"type": SIMPLE[kind]}, (float if kind is float else lambda value: value)
    if hasattr(kind, "__supertype__"):  # NewType
        return form_of(kind.__supertype__)
    origin: Any = getattr(kind, "__origin__", None)
    arguments: Any = getattr(kind, "__args__", ())
    if hasattr(kind, "__members__"):  # an Enum
        names = {str(member.value) if isinstance(member.value, str) else member.name: member for member in kind}
        return {"enum": list(names)}, names.__getitem__
    if str(origin) == "typing.Literal" or str(kind).startswith(("typing.Literal", "typing_extensions.Literal")):
        return {"enum": list(arguments)}, lambda value: value
    if origin in (list, tuple, set) or kind in (list, tuple, set):
        item, build = form_of(arguments[0] if arguments else None)
        made = origin or kind
        return {"type": "array", **({"items": item} if item else {})}, lambda value: made(map(build, value))
    if origin is dict:
        item, build = form_of(arguments[-1])
        schema = {"type": "object", "additionalProperties": item or True}
        return schema, lambda value: {key: build(each) for key, each in value.items()}
    if origin is typing.Union or type(kind).__name__ == "UnionType":
        forms = [form_of(each) for each in arguments]
        return {"anyOf": [schema for schema, _ in forms]}, first_that_fits(forms)
    if hasattr(kind, "model_json_schema"):  # pydantic
        return kind.model_json_schema(), kind.model_validate
    if hasattr(kind, "__annotations__"):  # a dataclass, a TypedDict or a NamedTuple
        return form_of_class(kind)
    raise TypeError("%r can't be a schema. Use a type, a dataclass, a list of choices or a JSON Schema." % (kind,))


def form_of_class(kind: Any) -> tuple[Any, Callable[[Any], Any]]:
    forms = {name: form_of(hint) for name, hint in typing.get_type_hints(kind).items()}
    optional = set(getattr(kind, "_field_defaults", ()))
    if dataclasses.is_dataclass(kind):
        missing = dataclasses.MISSING
        fields = [each for each in dataclasses.fields(kind) if each.init]
        forms = {each.name: forms[each.name] for each in fields}
        optional = {each.name for each in fields if (each.default, each.default_factory) != (missing, missing)}
    required = [name for name in forms if name not in optional and name in getattr(kind, "__required_keys__", forms)]
    schema = {
        "type": "object",
        "properties": {name: schema for name, (schema, _) in forms.items()},
        "required": required,
        "additionalProperties": False,
    }
    return schema, lambda value: kind(**{name: forms[name][1](each) for name, each in value.items()})


def first_that_fits(forms: list[Any]) -> Callable[[Any], Any]:
    kinds: dict[str, Any] = {"null": type(None), "object": dict, "array": list, "string": str}

    def build(value: Any) -> Any:
        for schema, make in forms:
            try:
                if isinstance(value, kinds.get((schema or {}).get("type", ""), object)):
                    return make(value)
            except (TypeError, ValueError, KeyError):
                pass
        return value

    return build


# -- sub-agents ------------------------------------------------------------------------------------------------------


class Agents:
    """Have sub-agents do tasks in copies of the session.

    `agent("task")` waits for the result; `agent.start("task")` returns a handle at once.
    """

    def __call__(self, task: str, data: Any = None, schema: Any = None, **limits: Any) -> Any:
        """Return the result of a sub-agent: its last message, or with `schema` a checked value."""
        form, build = form_of(schema)
        given = by_value(data)

        def work() -> Any:
            result = host("run", task=task, data=given, form=form, **limits)
            if result["files"]:
                number, files = result["number"], ", ".join(result["files"])
                print("Sub-agent %d changed %s. To accept: agent.accept(%d)" % (number, files, number))  # noqa: T201
            return build(result["value"])

        return awaitable(work)

    def start(self, task: str, data: Any = None, schema: Any = None, **limits: Any) -> Any:
        """Start a sub-agent in the background. It ends with the session, not with this block."""
        form, build = form_of(schema)
        return Handle(host("start", task=task, data=by_value(data), form=form, **limits), build)

    def all(self) -> list[Any]:
        """Return handles of all sub-agents of this session."""
        return [Handle(number, lambda value: value) for number in host("all")]

    def accept(self, number: int, overwrite: Any = ()) -> Any:
        """Bring the changes of a sub-agent into the workspace; returns the files that have changed here, too."""
        return host("accept", number=number, overwrite=list(overwrite))

    def drop(self, number: int) -> None:
        """Discard the changes of a sub-agent."""
        host("drop", number=number)


class Handle:
    """A sub-agent that works in the background."""

    def __init__(self, number: int, build: Callable[[Any], Any]) -> None:
        self.number, self._build = number, build

    def result(self, seconds: float | None = None) -> Any:
        """Wait for the result. Raises the error of a sub-agent that has none."""
        return awaitable(lambda: self._build(host("wait", number=self.number, seconds=seconds)))

    def stop(self) -> None:
        host("stop", number=self.number)

    def accept(self, overwrite: Any = ()) -> Any:
        return agent.accept(self.number, overwrite)

    def drop(self) -> None:
        agent.drop(self.number)

    @property
    def status(self) -> dict[str, Any]:
        """Return the sub-agent's state, last line, usage, changed files and their diff."""
        status: dict[str, Any] = host("status", number=self.number)
        return status

    def __repr__(self) -> str:
        status = self.status
        return "<sub-agent %d: %s, %s>" % (self.number, status["task"], status["state"])


def by_value(data: Any) -> Any:
    """Pack the data of a task, and describe it for the model."""
    if data is None:
        return None
    try:
        pickled = pickle.dumps(data)
    except Exception as error:  # noqa: BLE001 - any class may refuse
        raise TypeError("`data` can't be copied: %s" % error) from None
    if len(pickled) > MAX_CALL * 3 // 4:
        raise ValueError("`data` is too large. Assign it to a variable in a block before: those are copied, too.")
    shown = " ".join(repr(data).split())
    about = "a %s: %s" % (type(data).__name__, shown if len(shown) <= 300 else shown[:300] + "...")
    return {"pickled": base64.b64encode(pickled).decode("ascii"), "about": about}


ask = Ask()
agent = Agents()
