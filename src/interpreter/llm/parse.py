"""From the chunks of a model's reply, in OpenAI's shape, to message, code and reasoning chunks of ours."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Collection, Mapping
from typing import Any

from interpreter.llm.fences import PROSE_LANGUAGES, FenceParser
from interpreter.llm.thinking import ThinkSpans
from interpreter.llm.tolerance import Mender
from interpreter.llm.tool_call import CallArguments, ToolArguments, called_tool
from interpreter.messages import Chunk
from interpreter.tools.calls import read_arguments

_SURROGATE = re.compile("[\ud800-\udfff]")


class ReplyParser:
    """Takes a reply chunk by chunk. `finish_reason` and `usage` are what the server said of them so far.

    `tools` are the names that can be called beside `execute`. A call of any other name comes out as a call too.
    """

    def __init__(self, *, fences: bool, thinks_first: bool = False, tools: Collection[str] = ()) -> None:
        self.finish_reason: str | None = None
        self.usage: Mapping[str, Any] | None = None
        self.written = 0  # characters that the model wrote, whatever they are
        self._fences = FenceParser(tools) if fences else None
        self._calls = _Calls(tools)
        self._mender = Mender()
        self._words = _Pairing()
        self._spans = ThinkSpans(thinks_first)
        self._waiting: deque[_Call | list[Chunk]] = deque()  # what came behind a call that is not whole yet

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
                self._spans.told_apart()
                out.append({"type": "reasoning", "content": reasoning})
            if delta.get("content"):
                out += self._say(_text_of(delta["content"]))
            if delta.get("tool_calls") or delta.get("function_call"):
                out += self._call(delta.get("tool_calls") or [{"function": delta["function_call"]}])
            break  # more than one choice was never asked for
        return out

    def finish(self, close: bool = True) -> list[Chunk]:
        """What is left at the end; without `close` a block that has no end yet gets none."""
        chunks = self._spoken(self._spans.finish(is_whole=close))
        chunks += self._fences.finish(close) if self._fences else []
        if chunks:
            self._queue(chunks)
        for call in self._calls.all:
            call.finish(close)
            if not call.is_waiting and call.out:
                self._waiting.append(call)
        return self._mender.feed(self._drain(everything=True)) + self._mender.finish()

    @property
    def has_called(self) -> bool:
        """Whether the model has called a tool."""
        return bool(self._calls.all)

    @property
    def weakness(self) -> str:
        """How the model has failed to call a tool as it should; empty if it has not. To be asked behind `finish`."""
        fenced = self._fences.languages - PROSE_LANGUAGES if self._fences is not None else ()
        if fenced or self._mender.unwrapped:
            return "wrote code as text instead of calling the tool"
        return "wrote a tool call that can't be read" if any(call.is_malformed for call in self._calls.all) else ""

    @property
    def in_block(self) -> bool:
        """Whether a block has begun and not ended; to be asked behind `finish(close=False)`."""
        unfinished = any(not call.complete for call in self._calls.all)
        return unfinished or (self._fences is not None and self._fences.in_block)

    def _say(self, text: str) -> list[Chunk]:
        self.written += len(text)
        chunks = self._spoken(self._spans.feed(self._words.whole(text)))
        if self._waiting:
            self._queue(chunks)
            return self._mender.feed(self._drain())
        return self._mender.feed(chunks)

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
            call = self._calls.of(delta)
            self.written += call.add(delta)
            if not call.is_waiting:
                call.is_waiting = True
                self._waiting.append(call)
        return self._mender.feed(self._drain())

    def _queue(self, chunks: list[Chunk]) -> None:
        if self._waiting and isinstance(self._waiting[-1], list):
            self._waiting[-1].extend(chunks)
        else:
            self._waiting.append(list(chunks))

    def _drain(self, everything: bool = False) -> list[Chunk]:
        """Everything up to the first call that is not whole, and what that one has so far."""
        out: list[Chunk] = []
        while self._waiting:
            first = self._waiting[0]
            if isinstance(first, list):
                out += first
            else:
                out += first.take()
                if not first.complete and not everything:
                    break
                first.is_waiting = False
            self._waiting.popleft()
        return out


class _Call:
    """One tool call of the reply; what it is a call of is settled when its arguments begin."""

    def __init__(self, call_id: str, tools: Collection[str]) -> None:
        self.id = call_id
        self.out: list[Chunk] = []
        self.is_waiting = False
        self._tools = tools
        self._name = ""
        self._arguments: CallArguments | ToolArguments | None = None
        self._call: str | None = None  # the id that all its chunks carry
        self._written: list[str] = []
        self._characters = _Pairing()

    @property
    def complete(self) -> bool:
        return self._arguments is not None and self._arguments.complete

    def add(self, delta: Mapping[str, Any]) -> int:
        text = _arguments_of(delta)
        self.id = self.id or delta.get("id") or ""
        self._name = self._name or (delta.get("function") or {}).get("name") or ""
        if text:
            self._written.append(text)
            self._give(self._settled().feed(self._characters.whole(text)))
        return len(text)

    @property
    def is_malformed(self) -> bool:
        """Whether its arguments are no JSON object."""
        return read_arguments("".join(self._written)) is None

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

    def take(self) -> list[Chunk]:
        out, self.out = self.out, []
        return out

    def finish(self, close: bool) -> None:
        self._give(self._settled().finish(close))


class _Calls:
    """Which call a delta belongs to; servers leave indexes and ids out, repeat them, or give wrong ones."""

    def __init__(self, tools: Collection[str]) -> None:
        self.all: list[_Call] = []
        self._tools = tools
        self._by_index: dict[Any, _Call] = {}

    def of(self, delta: Mapping[str, Any]) -> _Call:
        index, call_id = delta.get("index"), delta.get("id") or ""
        name = (delta.get("function") or {}).get("name") or ""
        last = self.all[-1] if self.all else None
        call = last if index is None else self._by_index.get(index)
        if call is None or _is_another(call, call_id, name, delta):
            call = _Call(call_id, self._tools)
            self.all.append(call)
        if index is not None:
            self._by_index[index] = call
        return call


def _is_another(call: _Call, call_id: str, name: str, delta: Mapping[str, Any]) -> bool:
    """Whether a delta in the place of this call begins another one."""
    if call_id and call.id and call_id != call.id:
        return bool(name) or call.complete
    return bool(name) and call.complete and bool(_arguments_of(delta).strip())


def _arguments_of(delta: Mapping[str, Any]) -> str:
    arguments = (delta.get("function") or {}).get("arguments")
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _reasoning_of(delta: Mapping[str, Any]) -> str:
    """What the model thinks aloud; some servers send it as parts of the content."""
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
    return "".join(part.get("text") or "" for part in content if isinstance(part, dict))


class _Pairing:
    """Joins characters that a server cut into the halves of a UTF-16 pair; a lone half is replaced."""

    def __init__(self) -> None:
        self._half = ""

    def whole(self, text: str) -> str:
        if not self._half and (text.isascii() or not _SURROGATE.search(text)):
            return text
        text = self._half + text
        self._half = text[-1] if "\ud800" <= text[-1:] < "\udc00" else ""
        text = text.removesuffix(self._half) if self._half else text
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
