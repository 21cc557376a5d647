"""From the events of an answer of Anthropic's to chunks in OpenAI's shape."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from interpreter.errors import BrokenStreamError
from interpreter.llm.anthropic_request import THINKING, is_computer_call
from interpreter.llm.computer_use import Screen, as_call, code_of
from interpreter.tools import EXECUTE

_FINISHED = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
}
# The kind of block that a delta belongs to, for servers that do not say when one begins.
_KINDS = {"text_delta": "text", "input_json_delta": "tool_use", "thinking_delta": "thinking"}
_COUNTED = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


class MessageReader:
    """Takes the events of one answer; `keep` gets the blocks that are whole, where they must go back."""

    def __init__(self, keep: Callable[[list[dict[str, Any]]], None], screen: Screen | None = None) -> None:
        self._keep = keep
        self._screen = screen
        self._open: dict[int, _Block] = {}
        self._whole: list[dict[str, Any]] = []
        self._calls = 0
        self._usage: dict[str, int] = {}
        self._ended = False

    def read(self, event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The chunks of one event; pings and kinds that are not known give none."""
        kind = event.get("type")
        if kind == "content_block_delta":  # nearly all
            yield from self._delta(event.get("index", 0), event.get("delta") or {})
            return
        match kind:
            case "message_start":
                yield from self._count((event.get("message") or {}).get("usage"))
            case "content_block_start":
                yield from self._start(event.get("index", 0), event.get("content_block") or {})
            case "content_block_stop":
                yield from self._stop(event.get("index", 0))
            case "message_delta":
                yield from self._count(event.get("usage"))
                yield from self._finish(event.get("delta") or {})
            case "message_stop":
                self._ended = True
            case _:
                if event.get("error"):
                    yield {"error": event["error"]}

    def end(self) -> None:
        """The stream has ended; it must have said so."""
        if not self._ended:
            raise BrokenStreamError("The server ended its reply in the middle. Try again.")

    def whole(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """An answer that came in one piece, as one chunk."""
        delta: dict[str, Any] = {}
        for index, block in enumerate(answer["content"]):
            for chunk in (*self._start(index, block), *self._stop(index)):
                for key, piece in chunk["choices"][0]["delta"].items():
                    delta[key] = delta[key] + piece if key in delta else piece
        counted = next(self._count(answer.get("usage")), {})
        last = next(self._finish(answer), _chunk())
        if "error" in last:
            return last
        reason = last["choices"][0].get("finish_reason") or "stop"
        return {**counted, "choices": [{"delta": delta, "finish_reason": reason}]}

    def _start(self, index: int, content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        yield from self._stop(index)  # of a server that does not say when a block ends
        block = self._open[index] = _Block(dict(content))
        if block.kind == "tool_use":
            block.number = self._calls
            self._calls += 1
            name = EXECUTE if self._acts(block) else content.get("name") or ""
            function = {"name": name, "arguments": ""}
            call = {"index": block.number, "id": content.get("id") or "", "type": "function"}
            yield _chunk(tool_calls=[{**call, "function": function}])
        elif content.get("text"):
            yield _chunk(content=content["text"])
        elif content.get("thinking"):
            yield _chunk(reasoning_content=content["thinking"])

    def _delta(self, index: int, delta: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        kind = delta.get("type", "")
        if index not in self._open and kind in _KINDS:
            yield from self._start(index, {"type": _KINDS[kind]})
        block = self._open.get(index)
        if block is None:
            return
        match kind:
            case "text_delta":
                block.add("text", delta.get("text"))
                yield _chunk(content=delta.get("text"))
            case "thinking_delta":
                block.add("thinking", delta.get("thinking"))
                yield _chunk(reasoning_content=delta.get("thinking"))
            case "signature_delta":
                block.add("signature", delta.get("signature"))
            case "input_json_delta" if delta.get("partial_json"):
                block.add("json", delta["partial_json"])
                if not self._acts(block):
                    yield _arguments(block.number, delta["partial_json"])

    def _stop(self, index: int) -> Iterator[dict[str, Any]]:
        block = self._open.pop(index, None)
        if block is None:
            return
        found = block.whole()
        if self._screen is not None and self._acts(block):
            action = found["input"] if found is not None else {}
            yield _arguments(block.number, as_call(code_of([action], self._screen)))
        elif block.kind == "tool_use" and not block.has("json"):  # it came in one piece
            yield _arguments(block.number, json.dumps(block.content.get("input") or {}, ensure_ascii=False))
        if found is not None:
            self._whole.append(found)
            if _is_worth_keeping(self._whole):
                self._keep(self._whole)

    def _acts(self, block: _Block) -> bool:
        """Whether it is an action on the screen, which is run as code."""
        return self._screen is not None and is_computer_call({"type": block.kind, **block.content})

    def _finish(self, delta: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        reason = delta.get("stop_reason")
        if not reason:
            return
        self._ended = True
        if reason == "refusal":
            why = (delta.get("stop_details") or {}).get("explanation")
            yield {"error": {"type": "refusal", "message": why or ""}}
            return
        yield {"choices": [{"delta": {}, "finish_reason": _FINISHED.get(reason, "stop")}]}

    def _count(self, usage: Mapping[str, Any] | None) -> Iterator[dict[str, Any]]:
        """Counts come at the beginning and again at the end; later ones stand for earlier ones."""
        counts = {name: (usage or {}).get(name) for name in _COUNTED}
        self._usage |= {name: count for name, count in counts.items() if count is not None}
        if not counts["output_tokens"] or "input_tokens" not in self._usage:
            return
        read, written = (self._usage.get(name, 0) for name in _COUNTED[1:3])
        told = {"prompt_tokens": self._usage["input_tokens"] + read + written}
        details = {"cached_tokens": read, "cache_creation_tokens": written}
        told |= {"completion_tokens": self._usage["output_tokens"]}
        yield {"choices": [], "usage": {**told, "prompt_tokens_details": details}}


class _Block:
    """A block of content as far as it has come."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content
        self.kind: str = content.get("type", "")
        self.number = 0  # among the calls
        self._pieces: dict[str, list[str]] = {}

    def add(self, key: str, piece: str | None) -> None:
        self._pieces.setdefault(key, []).append(piece or "")

    def has(self, key: str) -> bool:
        return key in self._pieces

    def whole(self) -> dict[str, Any] | None:
        """The block as it is sent back; None if that is not possible."""
        found = dict(self.content)
        for key, pieces in self._pieces.items():
            if key != "json":
                found[key] = (found.get(key) or "") + "".join(pieces)
        if self.kind == "tool_use":
            return self._call(found)
        if self.kind == "thinking":
            return found if found.get("signature") else None  # without, it would be refused
        return found if self.kind == "redacted_thinking" or found.get("text", "").strip() else None

    def _call(self, found: dict[str, Any]) -> dict[str, Any] | None:
        if self.has("json"):
            try:
                found["input"] = json.loads("".join(self._pieces["json"]))
            except ValueError:
                return None
        return found if isinstance(found.get("input"), dict) else None


def _is_worth_keeping(blocks: list[dict[str, Any]]) -> bool:
    """With thinking or an action on the screen in it, or more than words and one call behind them."""
    kinds = [block["type"] for block in blocks]
    special = any(block["type"] in THINKING or is_computer_call(block) for block in blocks)
    return special or "tool_use" in kinds[:-1]


def _chunk(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"delta": delta}]}


def _arguments(number: int, piece: str) -> dict[str, Any]:
    return _chunk(tool_calls=[{"index": number, "function": {"arguments": piece}}])
