"""Anthropic's Messages API: the request, and the streamed reply as chunks in OpenAI's shape."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from interpreter.errors import BrokenStreamError, RequestRefusedError
from interpreter.llm.computer_use import TOOL, Screen, as_call, code_of, kind_of, screen_in
from interpreter.llm.http import Sent, arguments_chunk, call_chunk, delta_chunk, joined_chunk, json_objects
from interpreter.llm.kept_replies import KeptReplies, Parts, Prefix, call_part, joined_parts, turns, without_system
from interpreter.llm.providers import Endpoint, matches
from interpreter.tools import EXECUTE

Block = dict[str, Any]

_HANDLED = frozenset(
    {"api_base", "api_key", "api_version", "messages", "tools", "max_tokens", "temperature", "stop"}
    | {"stream", "stream_options"}
)
# A limit is required. Thinking counts towards it. None is higher than the model allows.
_MAX_TOKENS = (
    ("claude-2*", 4096), ("claude-instant*", 4096), ("claude-3-5-*", 8192), ("claude-3-7-*", 32_000),
    ("claude-3-*", 4096), ("claude-*-4*", 32_000), ("claude-*", 64_000), ("*", 8192),
)  # fmt: skip
_EARLIER = ("claude-2*", "claude-instant*", "claude-3*", "claude-*-4*")  # they think only if asked to
_WITHOUT_SAMPLING = ("claude-*-4[-.][789]*",)
_THINKING = ("thinking", "redacted_thinking")
_GO_ON = "Go on."
_CACHE_MARK = {"type": "ephemeral"}
_CACHE_MARKS = 2  # in the messages; one more is behind the tools and the system part, four are allowed
_NOT_IN_AN_ID = re.compile(r"[^A-Za-z0-9_-]")
_FINISH_REASONS = {"max_tokens": "length", "model_context_window_exceeded": "length", "tool_use": "tool_calls"}
# The kind of block that a delta belongs to, for servers that don't announce blocks.
_KINDS = {"text_delta": "text", "input_json_delta": "tool_use", "thinking_delta": "thinking"}
_COUNTED = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


class AnthropicMessages:
    """The wire format. Keeps replies with thinking in them, since they go back with their signatures."""

    path = "/messages"

    def __init__(self, replies: KeptReplies) -> None:
        self._replies = replies

    def body(self, endpoint: Endpoint, params: Mapping[str, Any]) -> dict[str, Any]:
        """The request's body. Parameters that are not set are not sent, except for those that are required."""
        name = endpoint.model.lower()
        thinks = name.startswith("claude-") and not matches(name, _EARLIER)
        body = {key: value for key, value in params.items() if key not in _HANDLED and value is not None}
        texts = [message["content"] for message in params["messages"] if message["role"] == "system"]
        system = [_text(text) for text in texts if text.strip()]
        tools = _tools(endpoint, params.get("tools"))
        body |= {
            "model": endpoint.model,
            "max_tokens": params.get("max_tokens") or next(n for each, n in _MAX_TOKENS if fnmatchcase(name, each)),
            "stream": True,
        }
        body |= {"tools": tools} if tools else {}
        body |= {"system": system} if system else {}
        body["messages"] = self._messages(endpoint, params, Prefix(endpoint, system, tools))
        if params.get("temperature") is not None and not thinks and not matches(name, _WITHOUT_SAMPLING):
            body["temperature"] = min(1, params["temperature"])
        if thinks:  # it thinks by default, but shows nothing unless asked
            body.setdefault("thinking", {"type": "adaptive", "display": "summarized"})
        if params.get("stop"):
            stop = params["stop"]
            body["stop_sequences"] = [stop] if isinstance(stop, str) else list(stop)
        _mark_for_cache(body)
        return body

    def _messages(self, endpoint: Endpoint, params: Mapping[str, Any], prefix: Prefix) -> list[Block]:
        """User and assistant in turn, stored replies as they were."""
        screen = screen_in(params.get("tools"))
        chat = without_system(params["messages"])
        out: list[Block] = []
        if chat and chat[0]["role"] == "assistant":
            _add(out, "user", [_text(_GO_ON)])  # a conversation begins with the user
        blind = Prefix.without_pictures(endpoint) if screen is not None else None
        for turn in turns(chat, out, self._replies, prefix, lambda kept: _parts(kept, screen), blind):
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

    def adapt(self, endpoint: Endpoint, error: RequestRefusedError, params: Mapping[str, Any]) -> bool:
        """Never: Anthropic names no field that it objects to."""
        return False

    def chunks(self, events: Iterator[bytes], framed: bool, sent: Sent) -> Iterator[dict[str, Any]]:
        """The chunks of a streamed reply; it is complete once it says why it stopped."""
        reader = MessageReader(self._replies, sent)
        for data in events:
            for event in json_objects(data):
                yield from reader.read(event)
        if not reader.has_ended:
            raise BrokenStreamError("The server ended its reply in the middle. Try again.")

    def whole(self, answer: dict[str, Any], sent: Sent) -> dict[str, Any]:
        """The reply of a server that does not stream, as one chunk."""
        return joined_chunk(MessageReader(self._replies, sent).read_whole(answer))


def _tools(endpoint: Endpoint, tools: Sequence[Mapping[str, Any]] | None) -> list[Block]:
    """Functions, and the computer tool that the model is made for."""
    name = endpoint.model.lower()
    # Without eager streaming, code is held back until it is complete.
    eager = {"eager_input_streaming": True} if name.startswith("claude-") else {}
    out: list[Block] = []
    for tool in tools or ():
        if function := tool.get("function"):
            names = {"name": function["name"], "description": function["description"]}
            out.append({**names, "input_schema": function["parameters"], **eager})
    kind, screen = kind_of(endpoint.wire, name), screen_in(tools)
    if kind and screen:
        size = {"display_width_px": screen.width, "display_height_px": screen.height}
        zoom = {"enable_zoom": True} if kind.tool >= "computer_2025112" else {}
        out.append({"type": kind.tool, "name": TOOL, **size, **zoom})
    return out


def _add(out: list[Block], role: str, blocks: list[Block]) -> None:
    """Neighbours of one role are one message, in which the results of calls come first."""
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
    """The id of a call; another model's may have characters that are refused."""
    return _NOT_IN_AN_ID.sub("_", call_id)


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _is_call(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "tool_use"


def _is_computer_call(block: Mapping[str, Any]) -> bool:
    return _is_call(block) and block.get("name") == TOOL


def _parts(blocks: Sequence[Block], screen: Screen | None) -> Parts:
    """What a stored reply says; an action on the screen is compared by its code."""
    pieces: list[str | tuple[str, str]] = []
    for block in blocks:
        if block["type"] == "text":
            pieces.append(block["text"])
        elif _is_computer_call(block) and screen is not None:
            pieces.append(call_part(as_call(code_of([block["input"]], screen))))
        elif _is_call(block):
            pieces.append(call_part(block["input"], block.get("name") or ""))
    return joined_parts(pieces)


def _mark_for_cache(body: Block) -> None:
    """Mark how far the body will be the same next time, so that it is read from the cache."""

    def with_mark(blocks: list[Block]) -> list[Block]:
        return [*blocks[:-1], {**blocks[-1], "cache_control": _CACHE_MARK}]

    first = "system" if body.get("system") else "tools"
    if body.get(first):
        body[first] = with_mark(body[first])
    messages: list[Block] = body["messages"]
    asked = [at for at, message in enumerate(messages) if message["role"] == "user"]
    for at in asked[-_CACHE_MARKS:]:
        messages[at] = {**messages[at], "content": with_mark(messages[at]["content"])}


def _without_marks(blocks: Sequence[Block] | None) -> list[Block]:
    return [{key: value for key, value in b.items() if key != "cache_control"} for b in blocks or ()]


class MessageReader:
    """Takes the events of one reply, and stores the blocks that have to go back."""

    def __init__(self, replies: KeptReplies, sent: Sent) -> None:
        self.has_ended = False
        self._replies, self._sent, self._screen = replies, sent, sent.screen
        self._open: dict[int, _OpenBlock] = {}
        self._complete: list[Block] = []
        self._calls = 0
        self._usage: dict[str, int] = {}

    def read(self, event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The chunks of one event; pings and unknown events have none."""
        index = event.get("index", 0)
        match event.get("type"):
            case "content_block_delta":
                yield from self._delta(index, event.get("delta") or {})
            case "message_start":
                yield from self._count((event.get("message") or {}).get("usage"))
            case "content_block_start":
                yield from self._start(index, event.get("content_block") or {})
            case "content_block_stop":
                yield from self._stop(index)
            case "message_delta":
                yield from self._count(event.get("usage"))
                yield from self._finish(event.get("delta") or {})
            case "message_stop":
                self.has_ended = True
            case _:
                if event.get("error"):
                    yield {"error": event["error"]}

    def read_whole(self, answer: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The chunks of a reply that came in one piece."""
        for index, block in enumerate(answer["content"]):
            yield from self._start(index, block)
            yield from self._stop(index)
        yield from self._count(answer.get("usage"))
        yield from self._finish(answer)

    def _start(self, index: int, content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        yield from self._stop(index)  # some servers don't say when a block ends
        block = self._open[index] = _OpenBlock(content, self._screen is not None and _is_computer_call(content))
        if _is_call(content):
            block.number = self._calls
            self._calls += 1
            name = EXECUTE if block.is_action else content.get("name") or ""
            yield call_chunk(block.number, content.get("id") or "", name)
        elif content.get("text"):
            yield delta_chunk(content=content["text"])
        elif content.get("thinking"):
            yield delta_chunk(reasoning_content=content["thinking"])

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
                yield delta_chunk(content=delta.get("text"))
            case "thinking_delta":
                block.add("thinking", delta.get("thinking"))
                yield delta_chunk(reasoning_content=delta.get("thinking"))
            case "signature_delta":
                block.add("signature", delta.get("signature"))
            case "input_json_delta" if delta.get("partial_json"):
                block.add("json", delta["partial_json"])
                if not block.is_action:
                    yield arguments_chunk(block.number, delta["partial_json"])

    def _stop(self, index: int) -> Iterator[dict[str, Any]]:
        block = self._open.pop(index, None)
        if block is None:
            return
        complete = block.complete()
        if self._screen is not None and block.is_action:
            action = complete["input"] if complete is not None else {}
            yield arguments_chunk(block.number, as_call(code_of([action], self._screen)))
        elif _is_call(block.content) and "json" not in block.pieces:  # it came in one piece
            yield arguments_chunk(block.number, json.dumps(block.content.get("input") or {}, ensure_ascii=False))
        if complete is None:
            return
        self._complete.append(complete)
        # Words, and one call behind them, go back the same without being stored.
        is_special = any(b["type"] in _THINKING or _is_computer_call(b) for b in self._complete)
        if is_special or any(map(_is_call, self._complete[:-1])):
            self._keep()

    def _keep(self) -> None:
        body, endpoint = self._sent.body, self._sent.endpoint
        prefix = Prefix(endpoint, _without_marks(body.get("system")), _without_marks(body.get("tools")))
        messages = [{**message, "content": _without_marks(message["content"])} for message in body["messages"]]
        self._replies[prefix.at(messages)] = list(self._complete)
        if self._screen is not None:
            # Thinking is refused behind anything but what it was made behind.
            actions = [block for block in self._complete if block["type"] not in _THINKING]
            chat = without_system(self._sent.chat)
            self._replies[Prefix.without_pictures(endpoint).at(chat)] = actions

    def _finish(self, delta: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        reason = delta.get("stop_reason")
        if not reason:
            return
        self.has_ended = True
        if reason == "refusal":
            why = (delta.get("stop_details") or {}).get("explanation")
            yield {"error": {"type": "refusal", "message": why or ""}}
        else:
            yield {"choices": [{"delta": {}, "finish_reason": _FINISH_REASONS.get(reason, "stop")}]}

    def _count(self, usage: Mapping[str, Any] | None) -> Iterator[dict[str, Any]]:
        """Counts come at the beginning and again at the end; later ones replace earlier ones."""
        counts = {name: (usage or {}).get(name) for name in _COUNTED}
        self._usage |= {name: count for name, count in counts.items() if count is not None}
        if not counts["output_tokens"] or "input_tokens" not in self._usage:
            return
        read, written = (self._usage.get(name, 0) for name in _COUNTED[1:3])
        told = {"prompt_tokens": self._usage["input_tokens"] + read + written}
        told |= {"completion_tokens": self._usage["output_tokens"]}
        details = {"cached_tokens": read, "cache_creation_tokens": written}
        yield {"choices": [], "usage": {**told, "prompt_tokens_details": details}}


class _OpenBlock:
    """A block of content that is still arriving."""

    def __init__(self, content: Mapping[str, Any], is_action: bool) -> None:
        self.content = content
        self.is_action = is_action  # on the screen; it is run as code
        self.number = 0  # among the calls
        self.pieces: dict[str, list[str]] = {}

    def add(self, key: str, piece: str | None) -> None:
        self.pieces.setdefault(key, []).append(piece or "")

    def complete(self) -> Block | None:
        """The block as it is sent back; None if that is not possible."""
        block = dict(self.content)
        for key, pieces in self.pieces.items():
            if key != "json":
                block[key] = (block.get(key) or "") + "".join(pieces)
        match block.get("type"):
            case "tool_use":
                if "json" in self.pieces:
                    try:
                        block["input"] = json.loads("".join(self.pieces["json"]))
                    except ValueError:
                        return None
                return block if isinstance(block.get("input"), dict) else None
            case "thinking":
                return block if block.get("signature") else None  # refused without one
            case "redacted_thinking":
                return block
        return block if block.get("text", "").strip() else None
