"""Tool mode: code and calls go out as tool calls, and their streamed arguments come back as chunks.

`ToolChat` writes the conversation; `CallArguments` and `ToolArguments` read a call while its JSON arrives.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

from interpreter.llm.text_mode import DEFAULT_LANGUAGE
from interpreter.messages import Chunk
from interpreter.tools import EXECUTE
from interpreter.tools.toolbox import read_arguments, wire_name

NOT_RUN = "This code was not run."
NOT_MADE = "This call was not made."
NO_OUTPUT = "No output"
SEE_IMAGE = "The output is the image that follows."
_LONGEST_ID = 40  # characters, at OpenAI


class ToolChat:
    """A conversation in which every call is followed by exactly one result.

    A call keeps its id, unless that is taken or too long for some provider.
    """

    def __init__(self) -> None:
        self._messages: list[dict[str, Any]] = []
        self._said: list[str] = []
        self._calls: list[_Call] = []
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
        arguments = json.dumps({"language": language, "code": code}, ensure_ascii=False)
        self._call(_Call(EXECUTE, arguments, call, NOT_RUN))

    def call(self, name: str, arguments: str, call: str | None = None) -> None:
        self._call(_Call(wire_name(name), _as_object(arguments), call, NOT_MADE))

    def output(self, text: str, failed: bool = False, call: str | None = None) -> None:
        """Output answers the call with its id, or the oldest one without an answer, or adds to the last."""
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

    def _call(self, call: _Call) -> None:
        self._end_answered_turn()
        self._calls.append(call)

    def _id(self, call: str | None) -> str:
        self._count += 1
        free = call if call and len(call) <= _LONGEST_ID else f"toolu_{self._count}"
        while free in self._ids:
            self._count += 1
            free = f"toolu_{self._count}"
        self._ids.add(free)
        return free

    def _add(self, role: str, content: Any) -> None:
        self._messages.append({"role": role, "content": content})

    def _end_answered_turn(self) -> None:
        if any(call.results is not None for call in self._calls):
            self._end_turn()

    def _end_turn(self) -> None:
        """Add the model's words and calls, then the results, then their images."""
        if not self._said and not self._calls:
            return
        message: dict[str, Any] = {"role": "assistant", "content": "\n".join(self._said)}
        results = []
        for call in self._calls:
            call_id = self._id(call.call)
            function = {"name": call.name, "arguments": call.arguments}
            called = {"id": call_id, "type": "function", "function": function}
            message.setdefault("tool_calls", []).append(called)
            content = call.unmade if call.results is None else "\n".join(call.results) or NO_OUTPUT
            results.append({"role": "tool", "tool_call_id": call_id, "name": call.name, "content": content})
        self._messages += [message, *results, *self._pictures]
        self._said, self._calls, self._pictures = [], [], []


def _as_object(arguments: str) -> str:
    """The arguments as a JSON object: some servers refuse a conversation with anything else."""
    try:
        if isinstance(json.loads(arguments), dict):
            return arguments
    except ValueError:
        pass
    given = read_arguments(arguments)
    return json.dumps({"arguments": arguments} if given is None else given, ensure_ascii=False)


def on_this_computer(text: str) -> str:
    """Output that doesn't belong to a call."""
    return f"Output on this computer:\n{text}"


class _Call:
    def __init__(self, name: str, arguments: str, call: str | None, unmade: str) -> None:
        self.name, self.arguments = name, arguments
        self.call = call  # its original id
        self.results: list[str] | None = None
        self.unmade = unmade  # the result of a call that was not made

    def add(self, text: str) -> None:
        self.results = [*(self.results or []), *([text] if text else [])]


_STOPS = {'"': re.compile(r'["\\]'), "'": re.compile(r"['\\]")}
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_HEX_BEGUN = re.compile(r"[0-9a-fA-F]{0,3}\Z")
_LOW = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_LOW_BEGUN = re.compile(r"(?:\\(?:u(?:[dD](?:[c-fC-F][0-9a-fA-F]?)?)?)?)?\Z")
_BEHIND_QUOTE = re.compile(r"\s*(.?)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"', "'": "'"}
_BROKEN = "\ufffd"


def scan(text: str, at: int, quote: str = '"', lenient: bool = False) -> tuple[str, int, bool]:
    """Decode from `at` up to the closing quote, or to where the meaning depends on what comes next.

    Returns the decoded text, where the rest begins, and whether the string has ended.

    Raw newlines and unknown escapes stay as they are. With `lenient`, a quote that is not
    followed by a comma or a brace counts as one that the model forgot to escape.
    """
    decoded: list[str] = []
    while found := _STOPS[quote].search(text, at):
        here = found.start()
        decoded.append(text[at:here])
        if text[here] == quote:
            behind = _BEHIND_QUOTE.match(text, here + 1)
            following = behind[1] if behind else ""
            if not lenient or (following and following in ",}"):
                return "".join(decoded), here + 1, True
            if not following:
                return "".join(decoded), here, False
            character, at = quote, here + 1
        else:
            character, at = _escape(text, here)
            if not character:
                return "".join(decoded), here, False
        decoded.append(character)
    decoded.append(text[at:])
    return "".join(decoded), len(text), False


def _escape(text: str, at: int) -> tuple[str, int]:
    """The character of the escape at this position, and where it ends; "" if it is incomplete."""
    kind = text[at + 1 : at + 2]
    if kind != "u":
        return (_ESCAPES.get(kind, "\\" + kind), at + 2) if kind else ("", at)
    unit = _HEX.match(text, at + 2)
    if unit is None:
        return ("", at) if _HEX_BEGUN.match(text, at + 2) else ("\\u", at + 2)
    code = int(unit.group(), 16)
    if not 0xD800 <= code < 0xE000:
        return chr(code), at + 6
    if code >= 0xDC00:
        return _BROKEN, at + 6
    low = _LOW.match(text, at + 6)
    if low:
        return chr(0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00), at + 12
    return ("", at) if _LOW_BEGUN.match(text, at + 6) else (_BROKEN, at + 6)


# Names that models invent for the tool, with bare code as the arguments.
RAW_NAMES = frozenset({"python", "functions"})
# Names under which models call `execute`; a call of any other name runs no code.
CODE_NAMES = RAW_NAMES | {"", EXECUTE, "execute_code", "run_code", "code_interpreter", "code_execution", "python3"}
_PREFIXES = ("functions.", "tools.", "default_api.", "default_api:")
_IN_JSON = re.compile(r'["{}\[\],]')
_IN_STRING = re.compile(r'["\\]')

_CALL_BEGINS = re.compile(r"\{\s*[\"']?(?P<word>\w*)(?P<colon>[\"']?\s*:)?")
_NOT_SPACE = re.compile(r"\S")
_BARE_KEY = re.compile(r"\w+")


def called_tool(name: str, tools: Collection[str]) -> str | None:
    """The tool that a call names, known or not; None if it is a call of `execute`."""
    name = name.strip()
    prefix = next((each for each in _PREFIXES if name.startswith(each)), "")
    if name not in tools:
        name = name.removeprefix(prefix)
    if name == EXECUTE or (name.lower() in CODE_NAMES and name not in tools):
        return None
    return name


def begins_call(text: str) -> bool | None:
    """Whether the text begins like `{"language": ..., "code": ...}`; None if it is too short to tell."""
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

    It holds back only a few characters, except for code that comes before its language.
    """

    def __init__(self, name: str = "execute") -> None:
        self.complete = False
        self.keys: list[str] = []
        self._may_be_raw = name in RAW_NAMES
        self._text = ""
        self._at = 0
        self._step = self._start
        self._key = ""
        self._quote = '"'
        self._other = ""  # the part of a value that has arrived, if it is not a string
        self._nesting = _Nesting()
        self._inner: CallArguments | None = None
        self._language: str | None = None
        self._word = ""  # the part of the language that has arrived
        self._early: list[str] = []  # code that came before its language
        self._blank = True
        self._in_code = False  # everything so far is decided, and more code follows
        self._out: list[Chunk] = []

    def feed(self, text: str) -> list[Chunk]:
        """The chunks that this piece makes certain."""
        if self._in_code and text and self._quote not in text and "\\" not in text:
            return [{"type": "code", "format": self._language or DEFAULT_LANGUAGE, "content": text}]  # nearly always
        self._text = self._text[self._at :] + text
        self._at = 0
        while self._step():
            pass
        code_goes_on = self._key == "code" and self._step == self._string_value
        self._in_code = code_goes_on and not self._blank and self._at == len(self._text)
        out, self._out = self._out, []
        return out

    def finish(self, close: bool = True) -> list[Chunk]:
        """The rest, at the end of the reply. With `close`, an open block ends too."""
        if self._inner is not None:
            return self._inner.finish(close)
        if self._step in (self._start, self._raw):
            self._step = self._raw
            self._raw()
        elif self._step == self._other_value:
            self._give_other_value()
        if not self.complete:
            self._settle_language()
            if close:
                self._end_block()
        out, self._out = self._out, []
        return out

    # Steps: each consumes what it can from the text and returns whether the next step can run.

    def _start(self) -> bool:
        first = self._next()
        if not first:
            return False
        is_call = begins_call(self._text[self._at :]) if self._may_be_raw else first == "{"
        if is_call is None:
            return False
        if is_call:
            self._at += 1
            self._step = self._key_or_end
        elif first == '"' and not self._may_be_raw:
            self._at += 1
            self._inner = CallArguments()
            self._step = self._whole_in_a_string
        else:
            self._step = self._raw
        return True

    def _raw(self) -> bool:
        self._emit(self._text[self._at :])
        self._at = len(self._text)
        return False

    def _whole_in_a_string(self) -> bool:
        assert self._inner is not None
        text, self._at, ended = scan(self._text, self._at)
        self._out += self._inner.feed(text)
        self.complete = self._inner.complete
        if ended:
            self._step = self._ignore_rest
        return False

    def _ignore_rest(self) -> bool:
        self._at = len(self._text)
        return False

    def _key_or_end(self) -> bool:
        first = self._next()
        if first == "}":
            self._end_block()
            self.complete = True
            self._step = self._after
        elif first and first in "\"'":
            end = self._text.find(first, self._at + 1)
            if end < 0:
                return False
            self._key, self._at = self._text[self._at + 1 : end], end
            self._step = self._colon
        elif bare := _BARE_KEY.match(self._text, self._at):
            if bare.end() == len(self._text):
                return False
            self._key, self._at = bare.group(), bare.end() - 1
            self._step = self._colon
        self._at += bool(first)  # past the brace, the key, a comma or stray text
        return bool(first)

    def _colon(self) -> bool:
        first = self._next()
        if first == ":":
            self._at += 1
            self.keys.append(self._key)
            self._step = self._value
        elif first:
            self._step = self._key_or_end
        return bool(first)

    def _value(self) -> bool:
        first = self._next()
        if first and first in "\"'":
            self._quote = first
            self._at += 1
            self._step = self._string_value
        elif first:
            self._other, self._nesting = "", _Nesting()
            self._step = self._other_value
        return bool(first)

    def _string_value(self) -> bool:
        text, self._at, ended = scan(self._text, self._at, self._quote, lenient=self._key == "code")
        self._give(text)
        if ended:
            self._value_ended()
        return ended

    def _other_value(self) -> bool:
        end = self._nesting.end(self._text, self._at)
        self._other += self._text[self._at : end]
        self._at = len(self._text) if end is None else end
        if end is not None:
            self._give_other_value()
            self._value_ended()
        return end is not None

    def _after(self) -> bool:
        """After an object: another one may follow, which counts as another call."""
        start = self._text.find("{", self._at)
        self._at = start + 1 if start >= 0 else len(self._text)
        if start >= 0:
            self.complete = False
            self._step = self._key_or_end
        return start >= 0

    # What is found.

    def _give(self, text: str) -> None:
        if self._key == "language":
            self._word += text
        elif self._key == "code":
            self._emit(text)

    def _give_other_value(self) -> None:
        """Give a list of lines joined, null as nothing, and anything else as the model wrote it."""
        text = self._other.strip()
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        if isinstance(value, list) and all(isinstance(line, str) for line in value):
            text = "\n".join(value)
        self._give("" if value is None else text)

    def _value_ended(self) -> None:
        self._step = self._key_or_end
        if self._key == "language":
            self._settle_language()

    def _emit(self, code: str) -> None:
        if not code:
            return
        if self._language is None and self._step != self._raw:
            self._early.append(code)
            return
        self._blank = False
        self._out.append({"type": "code", "format": self._language or DEFAULT_LANGUAGE, "content": code})

    def _settle_language(self) -> str:
        self._language = self._language or self._word.strip() or DEFAULT_LANGUAGE
        early, self._early = "".join(self._early), []
        self._emit(early)
        return self._language

    def _end_block(self) -> None:
        language = self._settle_language()
        if self._blank:
            self._out.append({"type": "code", "format": language, "content": ""})
        self._out.append({"type": "code", "format": language, "end": True})
        self._language, self._word, self._blank = None, "", True

    def _next(self) -> str:
        """The next character that is not a space; empty if there is none yet."""
        found = _NOT_SPACE.search(self._text, self._at)
        self._at = found.start() if found else len(self._text)
        return self._text[self._at : self._at + 1]


class ToolArguments:
    """Takes the arguments of a call of another tool. The JSON text stays as it is; each object in it is a call."""

    def __init__(self, name: str) -> None:
        self.complete = False
        self._name = name
        self._nesting = _Nesting()
        self._begun = self._is_raw = False

    def feed(self, text: str) -> list[Chunk]:
        """The chunks that this piece makes certain."""
        out: list[Chunk] = []
        while text:
            if not self._begun and not self._is_raw:
                text = self._skipped(text)
            end = None if self._is_raw else self._nesting.end(text)
            if text[:end]:
                self._begun = True
                out.append({"type": "tool_call", "format": self._name, "content": text[:end]})
            if end is not None:
                out.append(self._close())
            text = "" if end is None else text[end:]
        return out

    def finish(self, close: bool = True) -> list[Chunk]:
        """The rest, at the end of the reply; `{}` for a call without arguments."""
        if self.complete or not close:
            return []
        empty: Chunk = {"type": "tool_call", "format": self._name, "content": "{}"}
        return [*([] if self._begun else [empty]), self._close()]

    def _skipped(self, text: str) -> str:
        """The text from the next object on. Text that is not an object is passed on unchanged."""
        if self.complete:
            start = text.find("{")
            self.complete = start < 0
            return text[start:] if start >= 0 else ""
        text = text.lstrip()
        self._is_raw = bool(text) and text[0] != "{"
        return text

    def _close(self) -> Chunk:
        self.complete, self._begun = True, False
        return {"type": "tool_call", "format": self._name, "end": True}


class _Nesting:
    """Follows a JSON value that is not a string, piece by piece, to its end."""

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = self._escaped = False

    def end(self, text: str, at: int = 0) -> int | None:
        """Where the value ends in this piece; None if it continues in the next."""
        if self._escaped and at < len(text):
            self._escaped, at = False, at + 1
        while found := (_IN_STRING if self._in_string else _IN_JSON).search(text, at):
            at = found.end()
            match found.group():
                case '"':
                    self._in_string = not self._in_string
                case "\\":
                    self._escaped = at == len(text)
                    at += 1
                case "{" | "[":
                    self._depth += 1
                case _ if self._depth == 0:
                    return found.start()  # a comma or a bracket that follows the value
                case "}" | "]":
                    self._depth -= 1
                    if self._depth == 0:
                        return at
        return None
