"""The streamed reply of a model, in OpenAI's shape, as message, code, tool call and reasoning chunks.

`ReplyParser` puts it together: text (text_mode), calls (tool_mode), and malformed calls that models write in place of
real ones. `Repetition` detects a reply that repeats itself.
"""

from __future__ import annotations

import codecs
import json
import re
from collections import deque
from collections.abc import Collection, Mapping
from typing import Any, cast

from interpreter.llm.failures import too_large
from interpreter.llm.providers import matches
from interpreter.llm.text_mode import PROSE_LANGUAGES, TextParser
from interpreter.llm.tool_mode import MAX_CALLS, CallArguments, ToolArguments, begins_call, called_tool
from interpreter.messages import Chunk
from interpreter.tools.toolbox import read_arguments

MAX_REPLY_LENGTH = 10_000_000  # characters
_CHECK_INTERVAL = 200  # characters between two checks, so that the work stays linear in the text
_LOOKS_BACK = 4000
_MIN_REPEATS = 6  # a stretch that is repeated this often ...
_MIN_REPEATED_LENGTH = 600  # ... and makes up so many characters is not a list or table that the user wants
_PROBE = 40
_DULL = 3  # shorter stretches are rules and rows of zeros, and have to repeat for longer


class Repetition:
    """Detects a model that repeats itself; gets everything it says."""

    def __init__(self) -> None:
        self._tail = ""
        self._new: list[str] = []  # since the last check
        self._unseen = 0

    def feed(self, text: str) -> bool:
        self._new.append(text)
        self._unseen += len(text)
        if self._unseen < _CHECK_INTERVAL:
            return False
        self._tail = "".join([self._tail, *self._new])[-_LOOKS_BACK:]
        self._new, self._unseen = [], 0
        return repeats(self._tail)


def repeats(text: str) -> bool:
    """Return whether a text ends with many repetitions of one stretch."""
    end = text[-_PROBE:]
    before = text.rfind(end, 0, len(text) - 1)
    if before < 0:
        return False
    stretch = len(text) - len(end) - before
    needed = max(_MIN_REPEATED_LENGTH, _MIN_REPEATS * stretch) if stretch > _DULL else 2 * _MIN_REPEATED_LENGTH
    return len(text) >= needed and text[-needed:-stretch] == text[stretch - needed :]


def thinks_first(model: str) -> bool:
    """Return whether a model's reply begins inside its thinking, unless its server separates the two."""
    # Their templates end a request with the opening mark, so that the reply has only the closing one.
    return matches(model.lower(), ("*deepseek-r1*", "*r1-distill*", "*qwq*", "*-thinking-2507*", "*glm-z1*"))


WRAPPER = "functions.execute("
ECHO = "executeexecute"
_ECHO = re.compile(rf"{ECHO}(?=\s*\Z)")
_ECHO_BEGUN = re.compile(rf"{ECHO}\s*\Z|(?:{'|'.join(ECHO[:length] for length in range(len(ECHO) - 1, 0, -1))})\Z")
_STRAY_TICK = "`\n"
_BLANK_LINES = re.compile(r"\s*\n")


def unwrapped(text: str) -> tuple[str, str] | None:
    """Return the language and code of a call that was written out as text: these two keys and nothing else."""
    text = text.strip()
    if text.startswith(WRAPPER):
        text = text.removeprefix(WRAPPER).rstrip(";").rstrip().removesuffix(")").strip()
    if not text.startswith("{") or not text.endswith("}"):
        return None
    call = CallArguments()
    chunks = call.feed(text) + call.finish()
    if not call.complete or sorted(call.keys) != ["code", "language"]:
        return None
    return chunks[-1]["format"], "".join(chunk["content"] for chunk in chunks if "content" in chunk)


class CallRepair:
    """Repairs malformed calls that models write in place of a real one; holds back only suspicious beginnings.

    It also drops blank messages, and blank lines at the beginning of the others.
    """

    def __init__(self) -> None:
        self.unwrapped = False  # a call was written out as text
        self.blocks = 0  # that have ended
        self._open = ""  # the type of the message, block or call that is open
        self._head: Chunk = {}  # what all its chunks have in common
        self._held: list[str] = []  # its beginning
        self._is_suspicious: bool | None = None  # whether that may be a call written out, once it is known
        self._tail = ""  # the end of the code so far, if it may be the echo
        self._passed = False  # something of it was passed on
        self._out: list[Chunk] = []

    def feed(self, chunks: list[Chunk]) -> list[Chunk]:
        for chunk in chunks:
            kind = chunk["type"]
            is_past = kind == self._open == "message" and self._is_suspicious is False
            if is_past or kind == "reasoning":
                self._out.append(chunk)
                continue
            if kind != self._open:
                self._begin(chunk)
            if kind == "tool_call":
                self._out.append(chunk)
            elif "end" not in chunk:
                text = self._tail + self._released(chunk["content"])
                if kind == "code":
                    echo = _ECHO_BEGUN.search(text)
                    self._tail = echo[0] if echo else ""
                self._give(text.removesuffix(self._tail))
            else:
                self._settle()
                if not self._passed:
                    self._out.append({**self._head, "content": ""})
                self._out.append({**self._head, "end": True})
            if "end" in chunk:
                self.blocks += 1
                self._open = ""
        out, self._out = self._out, []
        return out

    def finish(self) -> list[Chunk]:
        """Return everything held back. An open block stays open."""
        if self._open in ("message", "code"):
            self._settle()
        out, self._out = self._out, []
        return out

    def _begin(self, chunk: Chunk) -> None:
        if self._open == "message":
            self._settle()
        self._open = chunk["type"]
        self._head = cast("Chunk", {name: chunk[name] for name in ("type", "format", "call") if name in chunk})
        self._held, self._is_suspicious, self._tail, self._passed = [], None, "", False

    def _released(self, text: str) -> str:
        """Return what can be passed on now: nothing while the beginning is suspicious, or everything so far."""
        if self._is_suspicious is False:
            return text
        self._held.append(text)
        whole = "".join(self._held) if self._is_suspicious is None else ""
        if self._open == "code":
            whole = whole.removeprefix(_STRAY_TICK)
        begun = whole.lstrip()
        if self._is_suspicious or WRAPPER.startswith(begun) or (self._open == "code" and whole == _STRAY_TICK[0]):
            return ""
        self._is_suspicious = begun.startswith(WRAPPER) or begins_call(begun)
        if self._is_suspicious is not False:
            return ""
        self._held = []
        return whole

    def _settle(self) -> None:
        """Pass on what is held back at the end of a message or block, as code if it is a call written out."""
        text = self._tail + "".join(self._held)
        text = _ECHO.sub("", text) if self._open == "code" else text
        call = unwrapped(text) if not self._passed else None
        if call is not None:
            language, text = call
            self._head |= {"type": "code", "format": language}
        self._give(text)
        if call is not None and self._open == "message":
            self.unwrapped = True
            self._out.append({**self._head, "end": True})
        self._tail, self._held = "", []

    def _give(self, text: str) -> None:
        if self._head["type"] == "message":
            blank = _BLANK_LINES.match(text)
            text = text[blank.end() :] if blank else text
            text = text if text.strip() else ""
        if text:
            self._passed = True
            self._out.append({**self._head, "content": text})


def repaired(language: str, code: str) -> tuple[str, str]:
    """Clean a stored block, which may be a call written out as text, or end in an echo."""
    block: Chunk = {"type": "code", "format": language}
    chunks = CallRepair().feed([{**block, "content": code}, {**block, "end": True}])
    return chunks[0]["format"], "".join(chunk.get("content", "") for chunk in chunks)


class ReplyParser:
    """Takes a reply chunk by chunk. `finish_reason` and `usage` are the latest that the server sent.

    `tools` are the names that can be called beside `execute`. A call of any other name comes out as a call too.
    """

    def __init__(self, *, fences: bool, thinks_first: bool = False, tools: Collection[str] = ()) -> None:
        self.finish_reason: str | None = None
        self.usage: Mapping[str, Any] | None = None
        self.written = 0  # characters that the model wrote, of any kind
        self._tools = tools
        self.calls: list[_ReplyCall] = []
        self._by_index: dict[Any, _ReplyCall] = {}
        self._repair = CallRepair()
        self._words = _Pairing()
        self._text = TextParser(fences=fences, tools=tools, thinks_first=thinks_first)
        self._waiting: deque[_ReplyCall] = deque()  # an incomplete call, and the calls after it

    def feed(self, chunk: Mapping[str, Any]) -> list[Chunk]:
        usage = chunk.get("usage")
        if usage and isinstance(usage, dict):
            self.usage = usage
        out: list[Chunk] = []
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or {}
            if choice.get("finish_reason"):
                self.finish_reason = choice["finish_reason"]
            is_plain = len(delta) == 1 and type(delta.get("content")) is str  # nearly every chunk
            if not is_plain and (reasoning := _reasoning_of(delta)):
                self.written += len(reasoning)
                self._text.thinks_first = False  # the server separates thinking from text
                out.append({"type": "reasoning", "content": reasoning})
            if delta.get("content"):
                text = _text_of(delta["content"])
                self.written += len(text)
                out += self._repair.feed(self._in_order(self._text.feed(self._words.whole(text))))
            if not is_plain and (delta.get("tool_calls") or delta.get("function_call")):
                out += self._call(delta.get("tool_calls") or [{"function": delta["function_call"]}])
            break  # we never request more than one choice
        if self.written > MAX_REPLY_LENGTH or self._repair.blocks > MAX_CALLS or len(self.calls) > MAX_CALLS:
            raise too_large(f"more than {MAX_REPLY_LENGTH:,} characters, or more than {MAX_CALLS} blocks and calls")
        return out

    def finish(self, close: bool = True) -> list[Chunk]:
        """Return the rest, at the end of the reply. Without `close`, an open block stays open."""
        out = self._in_order(self._text.finish(close))
        for call in self.calls:
            call.finish(close)
            if call.out and call not in self._waiting:
                self._waiting.append(call)
        return self._repair.feed(out + self._drain(everything=True)) + self._repair.finish()

    @property
    def weakness(self) -> str:
        """Say how the model failed to call a tool properly; empty if it did not. Valid after `finish`."""
        if self._text.languages - PROSE_LANGUAGES or self._repair.unwrapped:
            return "wrote code as text instead of calling the tool"
        is_broken = any(read_arguments("".join(call.written)) is None for call in self.calls)
        return "wrote a tool call that can't be read" if is_broken else ""

    @property
    def in_block(self) -> bool:
        """Return whether a block is still open. Valid after `finish(close=False)`."""
        return self._text.in_block or any(not call.complete for call in self.calls)

    def _in_order(self, chunks: list[Chunk]) -> list[Chunk]:
        """Return the chunks, unless they follow an incomplete call and have to wait for its end."""
        if not self._waiting:
            return chunks
        self._waiting[-1].following += chunks
        return []

    def _call(self, deltas: list[Mapping[str, Any]]) -> list[Chunk]:
        for delta in deltas[: MAX_CALLS + 1]:
            # Servers omit, repeat or mix up indexes and ids.
            index, call_id = delta.get("index"), str(delta.get("id") or "")
            name = (delta.get("function") or {}).get("name") or ""
            last = self.calls[-1] if self.calls else None
            call = last if index is None else self._by_index.get(index)
            if call is not None and call_id and call.id and call_id != call.id:
                is_new = bool(name) or call.complete
            else:
                is_new = call is None or (bool(name) and call.complete and bool(_arguments_of(delta).strip()))
            if call is None or is_new:
                call = _ReplyCall(call_id, self._tools)
                self.calls.append(call)
            if index is not None:
                self._by_index[index] = call
            self.written += call.add(delta)
            if call not in self._waiting:
                self._waiting.append(call)
        return self._repair.feed(self._drain())

    def _drain(self, everything: bool = False) -> list[Chunk]:
        """Return everything up to the first incomplete call, and the part of that call that has arrived."""
        out: list[Chunk] = []
        while self._waiting:
            first = self._waiting[0]
            out += first.out
            first.out = []
            if not first.complete and not everything:
                break
            self._waiting.popleft()
            out += first.following
            first.following = []
        return out


class _ReplyCall:
    """One tool call of the reply. Which tool it calls is decided when its arguments begin."""

    def __init__(self, call_id: str, tools: Collection[str]) -> None:
        self.id = call_id
        self.out: list[Chunk] = []
        self.following: list[Chunk] = []  # what came after it
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
        self.id = self.id or str(delta.get("id") or "")
        self._name = self._name or str((delta.get("function") or {}).get("name") or "")
        if text:
            self.written.append(text)
            self._give(self._reader().feed(self._characters.whole(text)))
        return len(text)

    def finish(self, close: bool) -> None:
        self._give(self._reader().finish(close))

    def _reader(self) -> CallArguments | ToolArguments:
        if self._arguments is None:
            tool = called_tool(self._name, self._tools)
            self._arguments = CallArguments(self._name) if tool is None else ToolArguments(tool)
        return self._arguments

    def _give(self, chunks: list[Chunk]) -> None:
        if chunks and self._call is None:
            self._call = self.id
        if self._call:
            for chunk in chunks:
                chunk["call"] = self._call
        self.out += chunks


def _arguments_of(delta: Mapping[str, Any]) -> str:
    arguments = (delta.get("function") or {}).get("arguments")
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _reasoning_of(delta: Mapping[str, Any]) -> str:
    """Return the model's reasoning; some servers send it as parts of the content."""
    reasoning = delta.get("reasoning_content") or delta.get("reasoning")
    if isinstance(reasoning, str):
        return reasoning
    details = delta.get("reasoning_details")
    if isinstance(details, list):
        return "".join(
            _text_of(part.get("text") or part.get("summary") or "")
            for part in _parts(details)
            if part.get("type") != "reasoning.encrypted"
        )
    content = delta.get("content")
    if isinstance(content, list):
        return "".join(_text_of(part.get("thinking") or "") for part in _parts(content))
    return ""


def _parts(content: list[Any]) -> list[dict[str, Any]]:
    return [part for part in content if isinstance(part, dict)]


def _text_of(content: Any) -> str:
    """Return content as text; some servers send a list of parts."""
    return content if isinstance(content, str) else "".join(part.get("text") or "" for part in _parts(content))


class _Pairing:
    """Joins characters that a server split into the halves of a UTF-16 pair, and replaces a lone half."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-16-le")("replace")

    def whole(self, text: str) -> str:
        if text.isascii() and not self._decoder.getstate()[0]:
            return text
        return self._decoder.decode(text.encode("utf-16-le", "surrogatepass"))
