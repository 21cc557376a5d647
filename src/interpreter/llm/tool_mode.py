"""Tool mode: code and calls go out as tool calls, and their streamed arguments come back as chunks.

`ToolChat` writes the conversation; `CallArguments` and `ToolArguments` read a call while its JSON arrives.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Collection, Generator, Iterator
from typing import Any

from interpreter.llm.failures import too_large
from interpreter.llm.http import loads
from interpreter.llm.text_mode import DEFAULT_LANGUAGE
from interpreter.messages import Chunk
from interpreter.tools import EXECUTE
from interpreter.tools.toolbox import read_arguments, wire_name

NO_OUTPUT = "No output"
SEE_IMAGE = "The output is the image that follows."
_MAX_ID_LENGTH = 40  # characters, at OpenAI
MAX_CALLS = 256  # in one reply


class ToolChat:
    """A conversation in which every call is followed by exactly one result.

    A call keeps its id, unless that is taken or too long for some provider.
    """

    def __init__(self) -> None:
        self._messages: list[dict[str, Any]] = []
        self._said: list[str] = []
        self._calls: list[_ChatCall] = []
        self._pictures: list[dict[str, Any]] = []
        self._count = 0
        self._ids: set[str] = set()

    def system(self, text: str) -> None:
        self._add("system", text)

    def user(self, text: str) -> None:
        self._end_turn()
        self._add("user", text)

    def say(self, text: str) -> None:
        if not text:
            return
        self._end_answered_turn()
        self._said.append(text)

    def code(self, language: str, code: str, call: str | None = None) -> None:
        self._end_answered_turn()
        arguments = json.dumps({"language": language, "code": code}, ensure_ascii=False)
        self._calls.append(_ChatCall(EXECUTE, arguments, call, "This code was not run."))

    def call(self, name: str, arguments: str, call: str | None = None) -> None:
        """Add a call of another tool. Some servers refuse arguments that are not a JSON object."""
        self._end_answered_turn()
        given: Any = None
        with contextlib.suppress(ValueError, RecursionError):  # nested too deeply to be sent
            given = loads(json.dumps(read_arguments(arguments)))
        as_object = json.dumps({"arguments": arguments} if given is None else given, ensure_ascii=False)
        with contextlib.suppress(ValueError):
            as_object = arguments if given is not None and isinstance(loads(arguments), dict) else as_object
        self._calls.append(_ChatCall(wire_name(name), as_object, call, "This call was not made."))

    def output(self, text: str, failed: bool = False, call: str | None = None) -> None:
        """Add output: it answers the call with its id, or the oldest without an answer, or is added to the last."""
        if self._calls:
            named = [each for each in self._calls if call is not None and each.call == call] or self._calls
            next((each for each in named if each.results is None), named[-1]).add(text)
        elif text:
            self.user(on_this_computer(text))

    def picture(self, parts: list[dict[str, Any]], shown_by_code: bool) -> None:
        if not shown_by_code or not self._calls:
            self._end_turn()
            self._add("user", parts)
            return
        if self._calls[0].results is None:
            self._calls[0].add(SEE_IMAGE)
        self._pictures.append({"role": "user", "content": parts})

    def finish(self) -> list[dict[str, Any]]:
        self._end_turn()
        return self._messages

    def _add(self, role: str, content: Any) -> None:
        self._messages.append({"role": role, "content": content})

    def _end_answered_turn(self) -> None:
        if any(call.results is not None for call in self._calls):
            self._end_turn()

    def _end_turn(self) -> None:
        """Add the model's text and calls, then the results, then their images."""
        if not self._said and not self._calls:
            return
        message: dict[str, Any] = {"role": "assistant", "content": "\n".join(self._said)}
        results = []
        for call in self._calls:
            self._count += 1
            call_id = call.call if call.call and len(call.call) <= _MAX_ID_LENGTH else f"toolu_{self._count}"
            while call_id in self._ids:
                self._count += 1
                call_id = f"toolu_{self._count}"
            self._ids.add(call_id)
            message.setdefault("tool_calls", []).append(
                {
                    "id": call_id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
            )
            content = call.unmade if call.results is None else "\n".join(call.results) or NO_OUTPUT
            results.append({"role": "tool", "tool_call_id": call_id, "name": call.name, "content": content})
        self._messages += [message, *results, *self._pictures]
        self._said, self._calls, self._pictures = [], [], []


def on_this_computer(text: str) -> str:
    """Mark output that doesn't belong to a call."""
    return f"Output on this computer:\n{text}"


class _ChatCall:
    def __init__(self, name: str, arguments: str, call: str | None, unmade: str) -> None:
        self.name, self.arguments = name, arguments
        self.call = call  # its original id
        self.results: list[str] | None = None
        self.unmade = unmade  # the result of a call that was not made

    def add(self, text: str) -> None:
        self.results = [*(self.results or []), *([text] if text else [])]


_HEX = "[0-9a-fA-F]"
_HIGH = f"u[dD][89abAB]{_HEX}{{2}}"
# An escape: one that may continue in the next piece, a UTF-16 unit or pair of them, or any other character.
_ESCAPE = (
    rf"\\(?:(?P<open>(?:u{_HEX}{{0,3}}|{_HIGH}(?:\\(?:u(?:[dD](?:[c-fC-F]{_HEX}?)?)?)?)?)?\Z)"
    rf"|(?P<unit>{_HIGH}\\u[dD][c-fC-F]{_HEX}{{2}}|u{_HEX}{{4}})|(?P<other>.))"
)
_STOPS = {quote: re.compile(f"{quote}|{_ESCAPE}", re.DOTALL) for quote in "\"'"}
_BEHIND_QUOTE = re.compile(r"\s*(.?)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"', "'": "'"}


def scan(text: str, at: int, quote: str = '"', lenient: bool = False) -> tuple[str, int, bool]:
    """Decode from `at` up to the closing quote, or to where the meaning depends on what comes next.

    Returns the decoded text, where the rest begins, and whether the string has ended.

    Raw newlines and unknown escapes stay as they are. With `lenient`, a quote that is not
    followed by a comma or a brace counts as one that the model forgot to escape.
    """
    decoded: list[str] = []
    for escape in _STOPS[quote].finditer(text, at):
        decoded.append(text[at : escape.start()])
        at = escape.end()
        if escape["other"] is not None:
            decoded.append(_ESCAPES.get(escape["other"], escape.group()))
        elif escape["unit"] is not None:
            character = json.loads(f'"\\{escape["unit"]}"')
            decoded.append("\ufffd" if "\ud800" <= character <= "\udfff" else character)
        elif escape["open"] is not None:
            return "".join(decoded), escape.start(), False
        else:
            behind = _BEHIND_QUOTE.match(text, at)
            following = behind[1] if behind else ""
            if not lenient or (following and following in ",}"):
                return "".join(decoded), at, True
            if not following:
                return "".join(decoded), escape.start(), False
            decoded.append(quote)
    decoded.append(text[at:])
    return "".join(decoded), len(text), False


# Names that models invent for the tool, with bare code as the arguments.
RAW_NAMES = frozenset({"python", "functions"})
# Names under which models call `execute`; a call of any other name runs no code.
CODE_NAMES = RAW_NAMES | {"", EXECUTE, "execute_code", "run_code", "code_interpreter", "code_execution", "python3"}
_PREFIXES = ("functions.", "tools.", "default_api.", "default_api:")
_IN_JSON = re.compile(r'["{}\[\],]')
_IN_STRING = re.compile(r'["\\]')
_CALL_BEGINS = re.compile(r"\{\s*[\"']?(?P<word>\w*)(?P<colon>[\"']?\s*:)?")
_NOT_SPACE = re.compile(r"\S")
_BARE_KEY = re.compile(r"\w+(?!\w|\Z)")


def called_tool(name: str, tools: Collection[str]) -> str | None:
    """Return the tool that a call names, known or not; None if it is a call of `execute`."""
    name = name.strip()
    if name not in tools:
        name = name.removeprefix(next(filter(name.startswith, _PREFIXES), ""))
    if name == EXECUTE or (name.lower() in CODE_NAMES and name not in tools):
        return None
    return name


def begins_call(text: str) -> bool | None:
    """Return whether the text begins like `{"language": ..., "code": ...}`; None if it is too short to tell."""
    if not text:
        return None
    begun = _CALL_BEGINS.match(text)
    if begun is None:
        return False
    word = begun["word"]
    if begun["colon"]:
        return word in ("language", "code")
    unfinished = text[begun.end() :].strip("\"' \t\r\n") == ""
    return None if unfinished and ("language".startswith(word) or "code".startswith(word)) else False


class CallArguments:
    """Takes the arguments of one call piece by piece; each JSON object in them is one block.

    It holds back only a few characters, except for code that comes before its language. The methods that yield read
    what has come (`_text` from `_at` on), and yield where they need more.
    """

    def __init__(self, name: str = "execute") -> None:
        self.complete = False
        self.keys: list[str] = []
        self._may_be_raw = name in RAW_NAMES
        self._text, self._at = "", 0
        self._is_object = False
        self._key, self._quote = "", '"'
        self._other: str | None = None  # the part of a value that has arrived, if it is not a string
        self._inner: CallArguments | None = None
        self._language = ""
        self._word = ""  # the part of the language that has arrived
        self._early: list[str] = []  # code that came before its language
        self._blank = True
        self._in_code = False  # everything so far is decided, and more code follows
        self._out: list[Chunk] = []
        self._reading = self._read()

    def feed(self, text: str) -> list[Chunk]:
        if self._in_code and text and self._quote not in text and "\\" not in text:
            return [{"type": "code", "format": self._language or DEFAULT_LANGUAGE, "content": text}]  # nearly always
        self._text = self._text[self._at :] + text
        self._at = 0
        next(self._reading)
        out, self._out = self._out, []
        return out

    def finish(self, close: bool = True) -> list[Chunk]:
        """Return the rest, at the end of the reply. With `close`, an open block ends too."""
        if self._inner is not None:
            return self._inner.finish(close)
        if not self._is_object:
            self._emit(self._text[self._at :])
        elif self._other is not None:
            self._end_other_value()
        if not self.complete:
            self._settle_language()
            if close:
                self._end_block()
        out, self._out = self._out, []
        return out

    def _read(self) -> Iterator[None]:
        first = yield from self._next()
        is_call: bool | None = first == "{"
        if self._may_be_raw:
            while (is_call := begins_call(self._text[self._at :])) is None:
                yield
        elif first == '"':  # all of it in a string
            self._inner = CallArguments()
            self._at += 1
            ended = False
            while not ended:
                text, self._at, ended = scan(self._text, self._at)
                self._out += self._inner.feed(text)
                self.complete = self._inner.complete
                yield
        self._is_object = bool(is_call)
        while not is_call:
            if self._inner is None:
                self._emit(self._text[self._at :])
            self._at = len(self._text)
            yield
        while True:  # another object that follows counts as another call
            while (start := self._text.find("{", self._at)) < 0:
                self._at = len(self._text)
                yield
            self._at = start + 1
            self.complete = False
            while (first := (yield from self._next())) != "}":
                yield from self._read_member(first)
            self._at += 1
            self._end_block()
            self.complete = True
            if len(self._out) > 2 * MAX_CALLS:
                raise too_large(f"more than {MAX_CALLS} calls")

    def _read_member(self, first: str) -> Iterator[None]:
        if first in "\"'":
            while (end := self._text.find(first, self._at + 1)) < 0:
                yield
            self._key, self._at = self._text[self._at + 1 : end], end + 1
        elif first.isalnum() or first == "_":
            while (bare := _BARE_KEY.match(self._text, self._at)) is None:
                yield
            self._key, self._at = bare.group(), bare.end()
        else:
            self._at += 1  # a comma or stray text
            return
        if (yield from self._next()) != ":":
            return
        self._at += 1
        self.keys.append(self._key)
        first = yield from self._next()
        if first in "\"'":
            self._quote, self._at, ended = first, self._at + 1, False
            while not ended:
                text, self._at, ended = scan(self._text, self._at, first, lenient=self._key == "code")
                self._give(text)
                if not ended:
                    self._in_code = self._key == "code" and not self._blank and self._at == len(self._text)
                    yield
                self._in_code = False
        else:
            self._other, nesting = "", _Nesting()
            while (end_of_value := nesting.end(self._text, self._at)) is None:
                self._other += self._text[self._at :]
                self._at = len(self._text)
                yield
            self._other += self._text[self._at : end_of_value]
            self._at = end_of_value
            self._end_other_value()
        if self._key == "language":
            self._settle_language()

    def _next(self) -> Generator[None, None, str]:
        """Return the next character that is not a space, once it has come."""
        while (match := _NOT_SPACE.search(self._text, self._at)) is None:
            self._at = len(self._text)
            yield
        self._at = match.start()
        return match.group()

    def _give(self, text: str) -> None:
        if self._key == "language":
            self._word += text
        elif self._key == "code":
            self._emit(text)

    def _end_other_value(self) -> None:
        """Emit a list of lines joined, null as nothing, and anything else as the model wrote it."""
        text, self._other = (self._other or "").strip(), None
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = text
        if isinstance(value, list) and all(isinstance(line, str) for line in value):
            text = "\n".join(value)
        self._give("" if value is None else text)

    def _emit(self, code: str) -> None:
        if self._is_object and not self._language:
            self._early.append(code)
        elif code:
            self._blank = False
            self._out.append({"type": "code", "format": self._language or DEFAULT_LANGUAGE, "content": code})

    def _settle_language(self) -> None:
        self._language = self._language or self._word.strip() or DEFAULT_LANGUAGE
        early, self._early = "".join(self._early), []
        self._emit(early)

    def _end_block(self) -> None:
        self._settle_language()
        if self._blank:
            self._out.append({"type": "code", "format": self._language, "content": ""})
        self._out.append({"type": "code", "format": self._language, "end": True})
        self._language, self._word, self._blank = "", "", True


class ToolArguments:
    """Takes the arguments of a call of another tool. The JSON text stays as it is; each object in it is a call."""

    def __init__(self, name: str) -> None:
        self.complete = False
        self._name = name
        self._nesting = _Nesting()
        self._begun = self._is_raw = False

    def feed(self, text: str) -> list[Chunk]:
        out: list[Chunk] = []
        while text:
            if self.complete:
                text = text[text.find("{") :] if "{" in text else ""
                self.complete = not text
            elif not self._begun:  # text that is not an object is passed on unchanged
                text = text.lstrip()
                self._is_raw = bool(text) and text[0] != "{"
            end = None if self._is_raw else self._nesting.end(text)
            if text[:end]:
                self._begun = True
                out.append({"type": "tool_call", "format": self._name, "content": text[:end]})
            if end is None:
                break
            out += self.finish()
            text = text[end:]
            if len(out) > 2 * MAX_CALLS:
                raise too_large(f"more than {MAX_CALLS} calls")
        return out

    def finish(self, close: bool = True) -> list[Chunk]:
        """Return the rest, at the end of the reply; `{}` for a call without arguments."""
        if self.complete or not close:
            return []
        empty: Chunk = {"type": "tool_call", "format": self._name, "content": "{}"}
        content = [] if self._begun else [empty]
        self.complete, self._begun = True, False
        return [*content, {"type": "tool_call", "format": self._name, "end": True}]


class _Nesting:
    """Follows a JSON value that is not a string, piece by piece, to its end."""

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = self._escaped = False

    def end(self, text: str, at: int = 0) -> int | None:
        """Return where the value ends in this piece; None if it continues in the next."""
        if self._escaped and at < len(text):
            self._escaped, at = False, at + 1
        while mark := (_IN_STRING if self._in_string else _IN_JSON).search(text, at):
            at = mark.end()
            match mark.group():
                case '"':
                    self._in_string = not self._in_string
                case "\\":
                    self._escaped = at == len(text)
                    at += 1
                case "{" | "[":
                    self._depth += 1
                case _ if self._depth == 0:
                    return mark.start()  # a comma or a bracket that follows the value
                case "}" | "]":
                    self._depth -= 1
                    if self._depth == 0:
                        return at
        return None
