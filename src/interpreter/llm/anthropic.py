"""Anthropic's Messages API: the request, and the streamed reply as chunks in OpenAI's shape."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from interpreter.llm.http import Exchange, Replies, arguments_chunk, call_chunk, delta_chunk, loads
from interpreter.llm.kept_replies import Parts, Prefix, call_part, joined_parts, turns
from interpreter.llm.native_tools import NativeTool, native_tool_in
from interpreter.llm.providers import Endpoint, matches
from interpreter.tools import EXECUTE

Block = dict[str, Any]

_HANDLED = frozenset(
    {"api_base", "api_key", "api_version", "messages", "tools", "max_tokens", "temperature", "stop"}
    | {"stream", "stream_options"}
)
# A limit is required. Thinking counts towards it. No limit here is higher than its model allows.
_MAX_TOKENS = (
    ("claude-2*", 4096), ("claude-instant*", 4096), ("claude-3-5-*", 8192), ("claude-3-7-*", 32_000),
    ("claude-3-*", 4096), ("claude-*-4*", 32_000), ("claude-*", 64_000), ("*", 8192),
)  # fmt: skip
_EARLIER = ("claude-2*", "claude-instant*", "claude-3*", "claude-*-4*")  # they think only if asked to
_THINKING = ("thinking", "redacted_thinking")
_GO_ON = "Go on."
_CACHE_MARKS = 2  # in the messages; one more follows the tools and the system part; four are allowed
_FINISH_REASONS = {"max_tokens": "length", "model_context_window_exceeded": "length", "tool_use": "tool_calls"}
# The field of each delta, and the kind of block that it belongs to, for servers that don't announce blocks.
_DELTAS = {
    "text_delta": ("text", "text"),
    "input_json_delta": ("partial_json", "tool_use"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", ""),
}
_COUNTED = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


class AnthropicMessages(Exchange):
    """The wire format. Keeps replies with thinking in them, since they go back with their signatures."""

    path = "/messages"

    def __init__(self, endpoint: Endpoint, params: Mapping[str, Any], replies: Replies) -> None:
        super().__init__(endpoint, params, replies)
        self._open: dict[int, _OpenBlock] = {}
        self._complete: list[Block] = []
        self._calls = 0
        self._usage: dict[str, int] = {}

    def make_body(self, params: Mapping[str, Any]) -> dict[str, Any]:
        endpoint = self.endpoint
        name = endpoint.model.lower()
        thinks = name.startswith("claude-") and not matches(name, _EARLIER)
        system = [_text(text) for text in self.system if text.strip()]
        tools = _tools(endpoint, params.get("tools"))
        body: Block = {
            **{key: value for key, value in params.items() if key not in _HANDLED and value is not None},
            "model": endpoint.model,
            "max_tokens": params.get("max_tokens") or next(n for each, n in _MAX_TOKENS if fnmatchcase(name, each)),
            "stream": True,
            **({"tools": tools} if tools else {}),
            **({"system": system} if system else {}),
            "messages": self._messages(Prefix(endpoint, system, tools)),
        }
        self._unmarked = system, tools, list(body["messages"])
        if params.get("temperature") is not None and not thinks and not matches(name, ("claude-*-4[-.][789]*",)):
            body["temperature"] = min(1, params["temperature"])
        if thinks:  # it thinks by default, but shows nothing unless asked
            body.setdefault("thinking", {"type": "adaptive", "display": "summarized"})
        if stop := params.get("stop"):
            body["stop_sequences"] = [stop] if isinstance(stop, str) else list(stop)
        _mark_for_cache(body)
        return body

    def _messages(self, prefix: Prefix) -> list[Block]:
        native, chat = self.native_tool, self.chat
        out: list[Block] = []
        if chat and chat[0]["role"] == "assistant":
            _add(out, "user", [_text(_GO_ON)])  # a conversation begins with the user
        blind = Prefix.without_pictures(self.endpoint) if native is not None else None
        for turn in turns(chat, out, self.replies, prefix, lambda kept: _parts(kept, native), blind):
            message = turn.messages[0]
            if message["role"] != "assistant":
                _add(out, "user", _blocks(message))
            elif turn.ids is None:
                # Changed since. Its thinking still precedes everything that was changed.
                until = next((at for at, b in enumerate(turn.kept) if b["type"] not in _THINKING), len(turn.kept))
                _add(out, "assistant", [dict(block) for block in turn.kept[:until]] + _blocks(message))
            else:
                ids = iter(turn.ids)  # the calls go out under the ids that their results refer to
                _add(out, "assistant", [{**b, "id": _id(next(ids))} if _is_call(b) else dict(b) for b in turn.kept])
                for result in turn.results:
                    _add(out, "user", _blocks(result))
        if not out or out[-1]["role"] == "assistant":
            _add(out, "user", [_text(_GO_ON)])  # or the last message is taken for the beginning of the reply
        return out

    def read(self, event: Mapping[str, Any]) -> list[dict[str, Any]]:
        index = event.get("index", 0)
        match event.get("type"):
            case "content_block_delta":
                return self._delta(index, event.get("delta") or {})
            case "message_start":
                return self._count((event.get("message") or {}).get("usage"))
            case "content_block_start":
                return self._start(index, event.get("content_block") or {})
            case "content_block_stop":
                return self._stop(index)
            case "message_delta":
                return self._count(event.get("usage")) + self._finish(event.get("delta") or {})
            case "message_stop":
                self.has_ended = True
            case _ if event.get("error"):
                return [{"error": event["error"]}]
        return []

    def read_whole(self, answer: Mapping[str, Any]) -> list[dict[str, Any]]:
        out = []
        for index, block in enumerate(answer["content"]):
            out += self._start(index, block) + self._stop(index)
        return out + self._count(answer.get("usage")) + self._finish(answer)

    def _start(self, index: int, content: Mapping[str, Any]) -> list[dict[str, Any]]:
        out = self._stop(index)  # some servers don't say when a block ends
        block = self._open[index] = _OpenBlock(content, _is_native_call(content, self.native_tool))
        if _is_call(content):
            block.number = self._calls
            self._calls += 1
            name = EXECUTE if block.is_action else content.get("name") or ""
            out.append(call_chunk(block.number, content.get("id") or "", name))
        elif content.get("text"):
            out.append(delta_chunk(content=content["text"]))
        elif content.get("thinking"):
            out.append(delta_chunk(reasoning_content=content["thinking"]))
        return out

    def _delta(self, index: int, delta: Mapping[str, Any]) -> list[dict[str, Any]]:
        field, kind = _DELTAS.get(delta.get("type", ""), ("", ""))
        out = self._start(index, {"type": kind}) if index not in self._open and kind else []
        block, piece = self._open.get(index), delta.get(field)
        if block is None or not piece:
            return out
        block.pieces.setdefault(field, []).append(piece)
        if field == "text":
            out.append(delta_chunk(content=piece))
        elif field == "thinking":
            out.append(delta_chunk(reasoning_content=piece))
        elif field == "partial_json" and not block.is_action:
            out.append(arguments_chunk(block.number, piece))
        return out

    def _stop(self, index: int) -> list[dict[str, Any]]:
        block = self._open.pop(index, None)
        if block is None:
            return []
        out = []
        complete = block.complete()
        if self.native_tool is not None and block.is_action:
            out.append(arguments_chunk(block.number, self.native_tool.as_arguments(complete or {"input": {}})))
        elif _is_call(block.content) and "partial_json" not in block.pieces:  # it came in one piece
            arguments = json.dumps(block.content.get("input") or {}, ensure_ascii=False)
            out.append(arguments_chunk(block.number, arguments))
        if complete is not None:
            self._complete.append(complete)
            # Text followed by one call is sent back the same without being stored.
            is_special = any(b["type"] in _THINKING or _is_native_call(b, self.native_tool) for b in self._complete)
            if is_special or any(map(_is_call, self._complete[:-1])):
                system, tools, messages = self._unmarked
                self.replies[Prefix(self.endpoint, system, tools).at(messages)] = list(self._complete)
                if self.native_tool is not None:
                    # Thinking is refused after anything but the messages that it originally followed.
                    actions = [block for block in self._complete if block["type"] not in _THINKING]
                    self.replies[Prefix.without_pictures(self.endpoint).at(self.chat)] = actions
        return out

    def _finish(self, delta: Mapping[str, Any]) -> list[dict[str, Any]]:
        reason = delta.get("stop_reason")
        if not reason:
            return []
        self.has_ended = True
        if reason == "refusal":
            why = (delta.get("stop_details") or {}).get("explanation")
            return [{"error": {"type": "refusal", "message": why or ""}}]
        return [{"choices": [{"delta": {}, "finish_reason": _FINISH_REASONS.get(reason, "stop")}]}]

    def _count(self, usage: Mapping[str, Any] | None) -> list[dict[str, Any]]:
        """Return the usage so far. Counts arrive at the beginning and at the end; later counts replace earlier ones."""
        counts = {name: (usage or {}).get(name) for name in _COUNTED}
        self._usage |= {name: count for name, count in counts.items() if count is not None}
        if not counts["output_tokens"] or "input_tokens" not in self._usage:
            return []
        read, written = (self._usage.get(name, 0) for name in _COUNTED[1:3])
        counted = {
            "prompt_tokens": self._usage["input_tokens"] + read + written,
            "completion_tokens": self._usage["output_tokens"],
            "prompt_tokens_details": {"cached_tokens": read, "cache_creation_tokens": written},
        }
        return [{"choices": [], "usage": counted}]


def _tools(endpoint: Endpoint, tools: Sequence[Mapping[str, Any]] | None) -> list[Block]:
    """Return the tools in Anthropic's format: functions, and the provider's own tool."""
    name = endpoint.model.lower()
    # Without eager streaming, code is held back until it is complete.
    eager = {"eager_input_streaming": True} if name.startswith("claude-") else {}
    out: list[Block] = []
    for tool in tools or ():
        if function := tool.get("function"):
            out.append(
                {
                    "name": function["name"],
                    "description": function["description"],
                    "input_schema": function["parameters"],
                    **eager,
                }
            )
    native = native_tool_in(tools)
    return [*out, dict(native)] if native is not None else out


def _add(out: list[Block], role: str, blocks: list[Block]) -> None:
    """Add blocks to the last message if it has the same role; results of calls come first in a message."""
    if not blocks:
        return
    if not out or out[-1]["role"] != role:
        out.append({"role": role, "content": []})
    content: list[Block] = out[-1]["content"]
    for block in blocks:
        if block["type"] == "tool_result":
            content.insert(sum(each["type"] == "tool_result" for each in content), block)
        else:
            content.append(block)


def _blocks(message: Mapping[str, Any]) -> list[Block]:
    content = message["content"]
    if message["role"] == "tool":
        return [{"type": "tool_result", "tool_use_id": _id(message["tool_call_id"]), "content": content}]
    out = []
    for part in [_text(content)] if isinstance(content, str) else content or ():
        if part["type"] == "image_url":
            url = part["image_url"]["url"]
            source = {"type": "url", "url": url}
            if url.startswith("data:"):
                kind, _, data = url.removeprefix("data:").partition(";base64,")
                source = {"type": "base64", "media_type": kind, "data": data}
            out.append({"type": "image", "source": source})
        elif part["text"].strip():  # an empty block is refused
            out.append(_text(part["text"]))
    for call in message.get("tool_calls") or ():
        function = call["function"]
        arguments = json.loads(function["arguments"])
        out.append({"type": "tool_use", "id": _id(call["id"]), "name": function["name"], "input": arguments})
    return out


def _id(call_id: str) -> str:
    """Return a call's id in characters that Anthropic accepts; another model's may have others."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", call_id)


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _is_call(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "tool_use"


def _is_native_call(block: Mapping[str, Any], native: NativeTool | None) -> bool:
    return native is not None and _is_call(block) and block.get("name") == native["name"]


def _parts(blocks: Sequence[Block], native: NativeTool | None) -> Parts:
    """Return a stored reply in comparable form; a call of the provider's own tool is compared by its code."""
    pieces: list[str | tuple[str, str]] = []
    for block in blocks:
        if block["type"] == "text":
            pieces.append(block["text"])
        elif native is not None and _is_native_call(block, native):
            pieces.append(call_part(native.as_arguments(block)))
        elif _is_call(block):
            pieces.append(call_part(block["input"], block.get("name") or ""))
    return joined_parts(pieces)


def _mark_for_cache(body: Block) -> None:
    """Mark how far the body will be the same next time, so that it is read from the cache."""

    def with_mark(blocks: list[Block]) -> list[Block]:
        return [*blocks[:-1], {**blocks[-1], "cache_control": {"type": "ephemeral"}}]

    first = "system" if body.get("system") else "tools"
    if body.get(first):
        body[first] = with_mark(body[first])
    messages: list[Block] = body["messages"]
    asked = [at for at, message in enumerate(messages) if message["role"] == "user"]
    for at in asked[-_CACHE_MARKS:]:
        messages[at] = {**messages[at], "content": with_mark(messages[at]["content"])}


class _OpenBlock:
    def __init__(self, content: Mapping[str, Any], is_action: bool) -> None:
        self.content = content
        self.is_action = is_action  # of the provider's own tool; it is run as code
        self.number = 0  # among the calls
        self.pieces: dict[str, list[str]] = {}  # by field

    def complete(self) -> Block | None:
        """Return the block as it is sent back; None if that is not possible."""
        block = dict(self.content)
        arrived = {field: "".join(pieces) for field, pieces in self.pieces.items()}
        arguments = arrived.pop("partial_json", None)
        block |= {field: (block.get(field) or "") + text for field, text in arrived.items()}
        match block.get("type"):
            case "tool_use":
                if arguments is not None:
                    try:
                        block["input"] = loads(arguments)
                    except ValueError:
                        return None
                return block if isinstance(block.get("input"), dict) else None
            case "thinking":
                return block if block.get("signature") else None  # refused without one
            case "redacted_thinking":
                return block
        return block if block.get("text", "").strip() else None
