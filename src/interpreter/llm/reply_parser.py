"""The streamed reply of a model, in OpenAI's shape, as message, code, tool call and reasoning chunks.

`ReplyParser` puts it together: thinking in the text, fences (text_mode), calls (tool_mode), and malformed calls that
models write in place of real ones. `Repetition` detects a reply that repeats itself.
"""

from __future__ import annotations

import codecs
import json
import re
from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import Any

from interpreter.llm.providers import matches
from interpreter.llm.text_mode import PROSE_LANGUAGES, FenceParser
from interpreter.llm.tool_mode import CallArguments, ToolArguments, begins_call, called_tool
from interpreter.messages import Chunk
from interpreter.tools.toolbox import read_arguments

_EVERY = 200  # characters between two checks, so that the work stays linear in the text
_LOOKS_BACK = 4000
_TIMES = 6  # a stretch that is repeated this often ...
_LEAST = 600  # ... and makes up so many characters is not a list or table that the user wants
_PROBE = 40
_DULL = 3  # shorter stretches are rules and rows of zeros, and have to go on for longer


class Repetition:
    """Detects a model that repeats itself; gets everything it says."""

    def __init__(self) -> None:
        self._tail = ""
        self._unseen = 0

    def feed(self, text: str) -> bool:
        """Whether the end of the text repeats itself."""
        self._tail = (self._tail + text)[-_LOOKS_BACK:] if len(text) < _LOOKS_BACK else text[-_LOOKS_BACK:]
        self._unseen += len(text)
        if self._unseen < _EVERY:
            return False
        self._unseen = 0
        return repeats(self._tail)


def repeats(text: str) -> bool:
    """Whether a text ends with many repetitions of one stretch."""
    end = text[-_PROBE:]
    before = text.rfind(end, 0, len(text) - 1)
    if before < 0:
        return False
    stretch = len(text) - len(end) - before
    needed = max(_LEAST, _TIMES * stretch) if stretch > _DULL else 2 * _LEAST
    return len(text) >= needed and text[-needed:-stretch] == text[stretch - needed :]


MARKS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
)
_CLOSING = dict(MARKS)
_OPENING = re.compile(r"[ \t]*(" + "|".join(re.escape(opening) for opening, _ in MARKS) + ")")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")

# Their templates end a request with the opening mark, so that the reply has only the closing one.
_THINK_FIRST = ("*deepseek-r1*", "*r1-distill*", "*qwq*", "*-thinking-2507*", "*glm-z1*")

Spans = list[tuple[str, str]]


def thinks_first(model: str) -> bool:
    """Whether a model's reply begins inside its thinking, unless its server separates the two."""
    return matches(model.lower(), _THINK_FIRST)


class ThinkSpans:
    """Takes the text of a reply piece by piece; gives it back as ("message" or "reasoning", text).

    The result does not depend on how the text is split. `first`: the text begins inside a span. If that span never
    ends, it was none, and the whole text comes again as a message.
    """

    def __init__(self, first: bool = False) -> None:
        self.first = first
        self._unopened: list[str] | None = None  # a span that began with the reply
        self._text = ""
        self._fence = ""  # the mark of the fenced block that is open
        self._closing = ""  # the mark that ends the span
        self._blank = ""  # space that belongs to the span only if more of it comes
        self._step: Callable[[], bool] = self._reply_begins
        self._out: Spans = []

    def feed(self, text: str) -> Spans:
        """What this piece makes certain."""
        if not self._text and self._step == self._line and "\n" not in text:  # nearly every piece
            return [("message", text)] if text else []
        self._text += text
        if self._unopened is not None:
            self._unopened.append(text)
        while self._step():
            pass
        out, self._out = self._out, []
        return out

    def finish(self, is_whole: bool = True) -> Spans:
        """The rest, at the end of the reply, which also ends an open span."""
        if self._unopened is not None and is_whole:
            self._give("message", "".join(self._unopened))
        elif self._closing:
            self._think(self._text)
        else:
            self._give("message", self._text)
        self._text = self._blank = ""
        out, self._out = self._out, []
        return out

    # Steps: each consumes what it can from the text and returns whether the next step can run.

    def _reply_begins(self) -> bool:
        """Space before a span at the very beginning is dropped."""
        begun = self._text.lstrip()
        if not begun or (begun not in _CLOSING and any(mark.startswith(begun) for mark in _CLOSING)):
            return False
        opened = _OPENING.match(begun)
        if self.first and not opened:
            self._unopened, self._closing = [self._text], MARKS[0][1]
            self._step = self._after_mark
            return True
        self._text = begun if opened else self._text
        self._step = self._line_begins
        return True

    def _line_begins(self) -> bool:
        begun = None if self._fence else _OPENING.match(self._text)
        if begun:
            self._closing = _CLOSING[begun[1]]
            self._text = self._text[begun.end() :]
            self._step = self._after_mark
            return True
        line = self._text.lstrip(" \t")
        may_be_fence = not line.strip("`") or not line.strip("~")
        if may_be_fence or (not self._fence and any(opening.startswith(line) for opening, _ in MARKS)):
            return False  # it depends on what comes next
        fence = _FENCE.match(self._text)
        if fence and not self._fence:
            self._fence = fence[1]
        elif fence and fence[1].startswith(self._fence):  # of the same kind, and at least as long
            self._fence = ""
        self._step = self._line
        return True

    def _line(self) -> bool:
        end = self._text.find("\n") + 1
        said = self._text[: end or len(self._text)]
        self._text = self._text[len(said) :]
        self._give("message", said)
        if end:
            self._step = self._line_begins
        return bool(end)

    def _after_mark(self) -> bool:
        self._text = self._text.lstrip()
        if self._text:
            self._step = self._span if self._closing else self._line_begins
        return bool(self._text)

    def _span(self) -> bool:
        end = self._text.find(self._closing)
        if end < 0:
            # The end of the text may be the beginning of the mark.
            longest = min(len(self._text), len(self._closing) - 1)
            sizes = range(longest, 0, -1)
            held = next((size for size in sizes if self._text.endswith(self._closing[:size])), 0)
            self._think(self._text[: len(self._text) - held])
            self._text = self._text[len(self._text) - held :]
            return False
        self._think(self._text[:end])
        self._text = self._text[end + len(self._closing) :]
        self._closing = self._blank = ""
        self._unopened = None
        self._step = self._after_mark
        return True

    def _think(self, text: str) -> None:
        """Space at the end of a span is dropped."""
        text = self._blank + text
        thought = text.rstrip()
        self._blank = text[len(thought) :]
        self._give("reasoning", thought)

    def _give(self, kind: str, text: str) -> None:
        if text:
            self._out.append((kind, text))


WRAPPER = "functions.execute("
ECHO = "executeexecute"
_ECHO_BEGUN = tuple(ECHO[:length] for length in range(len(ECHO), 0, -1))
_STRAY_TICK = "`\n"
_BLANK_LINES = re.compile(r"\s*\n")


def unwrapped(text: str) -> tuple[str, str] | None:
    """The language and code of a call that was written out as text: these two keys and nothing else."""
    text = text.strip()
    if text.startswith(WRAPPER):
        text = text.removeprefix(WRAPPER).rstrip(";").rstrip().removesuffix(")").strip()
    if not text.startswith("{") or not text.endswith("}"):
        return None
    call = CallArguments()
    chunks = call.feed(text) + call.finish()
    if not call.complete or sorted(call.keys) != ["code", "language"]:
        return None
    code = "".join(chunk["content"] for chunk in chunks if "content" in chunk)
    return chunks[-1]["format"], code


def suspicious(beginning: str) -> bool | None:
    """Whether a text with this beginning may be a call written out as text; None if it is too short to tell."""
    beginning = beginning.lstrip()
    if beginning.startswith(WRAPPER):
        return True
    if WRAPPER.startswith(beginning):
        return None
    return begins_call(beginning)


class CallRepair:
    """Repairs malformed calls that models write in place of a real one; holds back only suspicious beginnings.

    It also drops blank messages, and blank lines at the beginning of the others.
    """

    def __init__(self) -> None:
        self.unwrapped = False  # a call was written out as text
        self._open = ""  # the type of the message, block or call that is open
        self._head: Chunk = {}  # what all chunks of the open block have in common
        self._beginning = _Beginning()
        self._tail = ""  # the end of the code so far, if it may be the echo
        self._passed = False  # something of it was passed on
        self._out: list[Chunk] = []

    def feed(self, chunks: list[Chunk]) -> list[Chunk]:
        """The chunks that are certain so far."""
        for chunk in chunks:
            self._take(chunk)
        out, self._out = self._out, []
        return out

    def finish(self) -> list[Chunk]:
        """Everything held back. An open block stays open."""
        if self._open == "message":
            self._end_message()
        elif self._open == "code":
            self._settle_code()
        out, self._out = self._out, []
        return out

    def _take(self, chunk: Chunk) -> None:
        if chunk["type"] == "reasoning":
            self._out.append(chunk)
            return
        if chunk["type"] != self._open:
            if self._open == "message":
                self._end_message()
            self._open = chunk["type"]
            self._head = {"type": "code", "format": chunk.get("format", "")}
            if chunk.get("call") is not None:
                self._head["call"] = chunk["call"]
            self._beginning, self._tail, self._passed = _Beginning(), "", False
        if self._open == "message" and self._beginning.is_past:
            self._out.append(chunk)
        elif self._open == "message":
            self._say(self._beginning.add(chunk["content"]))
        elif self._open == "tool_call":
            self._out.append(chunk)
            self._open = "" if chunk.get("end") else self._open
        elif chunk.get("end"):
            self._settle_code()
            if not self._passed:
                self._out.append({**self._head, "content": ""})
            self._out.append({**self._head, "end": True})
            self._open = ""
        else:
            code = chunk["content"]
            if not self._beginning.is_past:
                code = self._beginning.add(code, may_have_tick=True)
            code = self._tail + code
            self._tail = next((begun for begun in _ECHO_BEGUN if code.endswith(begun)), "")
            self._run(code.removesuffix(self._tail))

    def _say(self, text: str) -> None:
        blank = _BLANK_LINES.match(text)
        text = text[blank.end() :] if blank else text
        if text.strip():
            self._out.append({"type": "message", "content": text})

    def _end_message(self) -> None:
        text = self._beginning.rest()
        call = unwrapped(text)
        if call is None:
            self._say(text)
        else:
            self.unwrapped = True
            self._out.append({"type": "code", "format": call[0], "content": call[1]})
            self._out.append({"type": "code", "format": call[0], "end": True})
        self._open = ""

    def _settle_code(self) -> None:
        code = (self._tail + self._beginning.rest()).removesuffix(ECHO)
        call = unwrapped(code) if not self._passed else None
        if call is not None:
            self._head["format"], code = call
        self._run(code)
        self._tail = ""

    def _run(self, code: str) -> None:
        if code:
            self._passed = True
            self._out.append({**self._head, "content": code})


class _Beginning:
    """The beginning of a text, held back while it is suspicious, if need be to the end."""

    def __init__(self) -> None:
        self.is_past = False
        self._parts: list[str] = []
        self._verdict: bool | None = None  # whether it is suspicious, once that is known

    def add(self, text: str, may_have_tick: bool = False) -> str:
        """What can be released: nothing, or everything so far."""
        self._parts.append(text)
        if self._verdict:
            return ""
        whole = "".join(self._parts)
        if may_have_tick:
            if whole == _STRAY_TICK[0]:
                return ""
            whole = whole.removeprefix(_STRAY_TICK)
        self._verdict = suspicious(whole)
        self.is_past = self._verdict is False
        return self.rest().removeprefix(_STRAY_TICK if may_have_tick else "") if self.is_past else ""

    def rest(self) -> str:
        """Everything that is still held back."""
        text, self._parts = "".join(self._parts), []
        return text


class ReplyParser:
    """Takes a reply chunk by chunk. `finish_reason` and `usage` are the latest that the server sent.

    `tools` are the names that can be called beside `execute`. A call of any other name comes out as a call too.
    """

    def __init__(self, *, fences: bool, thinks_first: bool = False, tools: Collection[str] = ()) -> None:
        self.finish_reason: str | None = None
        self.usage: Mapping[str, Any] | None = None
        self.written = 0  # characters that the model wrote, of any kind
        self._fences = FenceParser(tools) if fences else None
        self._tools = tools
        self._calls: list[_Call] = []
        self._by_index: dict[Any, _Call] = {}
        self._repair = CallRepair()
        self._words = _Pairing()
        self._spans = ThinkSpans(thinks_first)
        self._waiting: deque[_Call | list[Chunk]] = deque()  # what arrived after an incomplete call

    def feed(self, chunk: Mapping[str, Any]) -> list[Chunk]:
        """The chunks that this piece of the reply makes certain."""
        if chunk.get("usage"):
            self.usage = chunk["usage"]
        out: list[Chunk] = []
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or {}
            if choice.get("finish_reason"):
                self.finish_reason = choice["finish_reason"]
            reasoning = _reasoning_of(delta)
            if reasoning:
                self.written += len(reasoning)
                self._spans.first = False  # the server separates thinking from text
                out.append({"type": "reasoning", "content": reasoning})
            if delta.get("content"):
                out += self._say(_text_of(delta["content"]))
            if delta.get("tool_calls") or delta.get("function_call"):
                out += self._call(delta.get("tool_calls") or [{"function": delta["function_call"]}])
            break  # we never request more than one choice
        return out

    def finish(self, close: bool = True) -> list[Chunk]:
        """The rest, at the end of the reply. Without `close`, an open block stays open."""
        chunks = self._spoken(self._spans.finish(is_whole=close))
        chunks += self._fences.finish(close) if self._fences else []
        if chunks:
            self._queue(chunks)
        for call in self._calls:
            call.finish(close)
            if not call.is_waiting and call.out:
                self._waiting.append(call)
        return self._repair.feed(self._drain(everything=True)) + self._repair.finish()

    @property
    def has_called(self) -> bool:
        """Whether the model has called a tool."""
        return bool(self._calls)

    @property
    def weakness(self) -> str:
        """How the model failed to call a tool properly; empty if it did not. Valid after `finish`."""
        fenced = self._fences.languages - PROSE_LANGUAGES if self._fences is not None else ()
        if fenced or self._repair.unwrapped:
            return "wrote code as text instead of calling the tool"
        return (
            "wrote a tool call that can't be read"
            if any(read_arguments("".join(call.written)) is None for call in self._calls)
            else ""
        )

    @property
    def in_block(self) -> bool:
        """Whether a block is still open. Valid after `finish(close=False)`."""
        unfinished = any(not call.complete for call in self._calls)
        return unfinished or (self._fences is not None and self._fences.in_block)

    def _say(self, text: str) -> list[Chunk]:
        self.written += len(text)
        chunks = self._spoken(self._spans.feed(self._words.whole(text)))
        if self._waiting:
            self._queue(chunks)
            return self._repair.feed(self._drain())
        return self._repair.feed(chunks)

    def _spoken(self, spans: list[tuple[str, str]]) -> list[Chunk]:
        chunks: list[Chunk] = []
        for kind, text in spans:
            if self._fences is not None and kind == "message":
                chunks += self._fences.feed(text)
            else:
                chunks.append({"type": kind, "content": text})
        return chunks

    def _call(self, deltas: list[Mapping[str, Any]]) -> list[Chunk]:
        for delta in deltas:
            call = self._called_by(delta)
            self.written += call.add(delta)
            if not call.is_waiting:
                call.is_waiting = True
                self._waiting.append(call)
        return self._repair.feed(self._drain())

    def _called_by(self, delta: Mapping[str, Any]) -> _Call:
        """The call that a delta belongs to; servers omit, repeat or mix up indexes and ids."""
        index, call_id = delta.get("index"), delta.get("id") or ""
        name = (delta.get("function") or {}).get("name") or ""
        last = self._calls[-1] if self._calls else None
        call = last if index is None else self._by_index.get(index)
        if call is not None and call_id and call.id and call_id != call.id:
            is_new = bool(name) or call.complete
        else:
            is_new = call is None or (bool(name) and call.complete and bool(_arguments_of(delta).strip()))
        if call is None or is_new:
            call = _Call(call_id, self._tools)
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call

    def _queue(self, chunks: list[Chunk]) -> None:
        if self._waiting and isinstance(self._waiting[-1], list):
            self._waiting[-1].extend(chunks)
        else:
            self._waiting.append(list(chunks))

    def _drain(self, everything: bool = False) -> list[Chunk]:
        """Everything up to the first incomplete call, and the part of that call that has arrived."""
        out: list[Chunk] = []
        while self._waiting:
            first = self._waiting[0]
            if isinstance(first, list):
                out += first
            else:
                out += first.out
                first.out = []
                if not first.complete and not everything:
                    break
                first.is_waiting = False
            self._waiting.popleft()
        return out


class _Call:
    """One tool call of the reply. Which tool it calls is decided when its arguments begin."""

    def __init__(self, call_id: str, tools: Collection[str]) -> None:
        self.id = call_id
        self.out: list[Chunk] = []
        self.is_waiting = False
        self._tools = tools
        self._name = ""
        self._arguments: CallArguments | ToolArguments | None = None
        self._call: str | None = None  # the id that all its chunks carry
        self.written: list[str] = []  # its arguments
        self._characters = _Pairing()

    @property
    def complete(self) -> bool:
        return self._arguments is not None and self._arguments.complete

    def add(self, delta: Mapping[str, Any]) -> int:
        text = _arguments_of(delta)
        self.id = self.id or delta.get("id") or ""
        self._name = self._name or (delta.get("function") or {}).get("name") or ""
        if text:
            self.written.append(text)
            self._give(self._settled().feed(self._characters.whole(text)))
        return len(text)

    def _settled(self) -> CallArguments | ToolArguments:
        if self._arguments is None:
            tool = called_tool(self._name, self._tools)
            self._arguments = CallArguments(self._name) if tool is None else ToolArguments(tool)
        return self._arguments

    def _give(self, chunks: list[Chunk]) -> None:
        if not chunks:
            return
        self._call = self.id if self._call is None else self._call
        if self._call:
            for chunk in chunks:
                chunk["call"] = self._call
        self.out += chunks

    def finish(self, close: bool) -> None:
        self._give(self._settled().finish(close))


def _arguments_of(delta: Mapping[str, Any]) -> str:
    arguments = (delta.get("function") or {}).get("arguments")
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _reasoning_of(delta: Mapping[str, Any]) -> str:
    """The model's reasoning; some servers send it as parts of the content."""
    reasoning = delta.get("reasoning_content") or delta.get("reasoning")
    if isinstance(reasoning, str):
        return reasoning
    details = delta.get("reasoning_details")
    if isinstance(details, list):
        parts = [part for part in _parts(details) if part.get("type") != "reasoning.encrypted"]
        return "".join(_text_of(part.get("text") or part.get("summary") or "") for part in parts)
    content = delta.get("content")
    if isinstance(content, list):
        return "".join(_text_of(part.get("thinking") or "") for part in _parts(content))
    return ""


def _parts(content: list[Any]) -> list[dict[str, Any]]:
    return [part for part in content if isinstance(part, dict)]


def _text_of(content: Any) -> str:
    """Content as text; some servers send a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or "" for part in _parts(content))


class _Pairing:
    """Joins characters that a server split into the halves of a UTF-16 pair, and replaces a lone half."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-16-le")("replace")

    def whole(self, text: str) -> str:
        if text.isascii() and not self._decoder.getstate()[0]:
            return text
        return self._decoder.decode(text.encode("utf-16-le", "surrogatepass"))
