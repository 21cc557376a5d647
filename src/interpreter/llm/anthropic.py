"""Anthropic's Messages: what is asked, and how the answer reads."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from interpreter.errors import BrokenStreamError, RequestRefusedError
from interpreter.llm.computer_use import TOOL, Kind, Screen, as_call, code_of, kind_of, screen_in
from interpreter.llm.http import Sent, objects
from interpreter.llm.kept_replies import KeptReplies, Parts, Prefix, call, stretch, told_of, unseen, words
from interpreter.llm.providers import Endpoint
from interpreter.tools import EXECUTE

_HANDLED = frozenset(
    {"api_base", "api_key", "api_version", "messages", "tools", "max_tokens", "temperature", "stop"}
    | {"stream", "stream_options"}
)
# A limit has to be sent. Thinking counts towards it; none is higher than the model allows.
_MAX_TOKENS = (
    ("claude-2*", 4096), ("claude-instant*", 4096), ("claude-3-5-*", 8192), ("claude-3-7-*", 32_000),
    ("claude-3-*", 4096), ("claude-*-4*", 32_000), ("claude-*", 64_000), ("*", 8192),
)  # fmt: skip
_EARLIER = ("claude-2*", "claude-instant*", "claude-3*", "claude-*-4*")
_WITHOUT_SAMPLING = ("claude-*-4[-.][789]*",)


class AnthropicMessages:
    """Keeps replies with thinking in them, since they go back with their signatures."""

    path = "/messages"

    def __init__(self, replies: KeptReplies) -> None:
        self._replies = replies

    def body(self, endpoint: Endpoint, params: Mapping[str, Any]) -> dict[str, Any]:
        """The request's body; what is not set is not sent, but for what has to be."""
        name = endpoint.model.lower()
        body = {key: value for key, value in params.items() if key not in _HANDLED and value is not None}
        kind, screen = kind_of(endpoint.wire, name), screen_in(params.get("tools"))
        system, tools = system_of(params["messages"]), tools_of(params.get("tools"), _is_claude(name), kind)
        prefix = Prefix(endpoint, system, tools)
        messages = messages_of(params["messages"], prefix, self._replies, screen, unseen(endpoint))
        body |= {
            "model": endpoint.model,
            "max_tokens": params.get("max_tokens") or _first_match(name),
            "stream": True,
        }
        body |= {"tools": tools} if tools else {}
        body |= {"system": system} if system else {}
        body |= {"messages": messages}
        if _takes_temperature(name) and params.get("temperature") is not None:
            body["temperature"] = min(1, params["temperature"])
        if _thinks_anyway(name):
            body.setdefault("thinking", {"type": "adaptive", "display": "summarized"})
        if params.get("stop"):
            stop = params["stop"]
            body["stop_sequences"] = [stop] if isinstance(stop, str) else list(stop)
        return marked(body)

    def gives_in(self, endpoint: Endpoint, error: RequestRefusedError, params: Mapping[str, Any]) -> bool:
        """Never: Anthropic does not say in a field what it objects to."""
        return False

    def chunks(self, events: Iterator[bytes], framed: bool, sent: Sent) -> Iterator[dict[str, Any]]:
        """The chunks of a streamed answer; it is whole once it says why it stopped."""
        reader = MessageReader(lambda blocks: self._keep(sent, blocks), sent.screen)
        for event in objects(events):
            yield from reader.read(event)
        reader.end()

    def whole(self, answer: dict[str, Any], sent: Sent) -> dict[str, Any]:
        """The answer of a server that does not stream, as one chunk."""
        reader = MessageReader(lambda blocks: self._keep(sent, blocks), sent.screen)
        return reader.whole(answer)

    def _keep(self, sent: Sent, blocks: list[dict[str, Any]]) -> None:
        body = sent.body
        system, tools = unmarked(body.get("system")), unmarked(body.get("tools"))
        prefix = Prefix(sent.endpoint, system, tools)
        messages = [{**message, "content": unmarked(message["content"])} for message in body["messages"]]
        self._replies.keep(prefix.at(messages), blocks)
        if sent.screen is not None:
            self._replies.keep(unseen(sent.endpoint).at(told_of(sent.chat)), unbound(blocks))


def _first_match(name: str) -> int:
    return next(most for pattern, most in _MAX_TOKENS if fnmatchcase(name, pattern))


def _is_claude(name: str) -> bool:
    return name.startswith("claude-")


def _thinks_anyway(name: str) -> bool:
    """Whether the model thinks unless it is told otherwise; it shows nothing of it unless it is asked to."""
    return _is_claude(name) and not any(fnmatchcase(name, pattern) for pattern in _EARLIER)


def _takes_temperature(name: str) -> bool:
    return not _thinks_anyway(name) and not any(fnmatchcase(name, each) for each in _WITHOUT_SAMPLING)


Block = dict[str, Any]

THINKING = ("thinking", "redacted_thinking")
GO_ON = "Go on."
_MARK = {"type": "ephemeral"}
_NOT_IN_AN_ID = re.compile(r"[^A-Za-z0-9_-]")
_BREAKPOINTS = 2  # in the messages; one more stands behind the tools and the system part, four are allowed


def system_of(chat: Sequence[Mapping[str, Any]]) -> list[Block]:
    texts = [message["content"] for message in chat if message["role"] == "system"]
    return [_text(text) for text in texts if text.strip()]


def tools_of(tools: Sequence[Mapping[str, Any]] | None, eager: bool, kind: Kind | None = None) -> list[Block]:
    """Tools as Anthropic wants them; `eager`, or code would be held back until it is whole."""
    at_once = {"eager_input_streaming": True} if eager else {}
    functions = [_tool(tool["function"]) | at_once for tool in tools or () if "function" in tool]
    screen = screen_in(tools)
    return [*functions, _computer(kind, screen)] if kind and screen else functions


def messages_of(
    chat: Sequence[Mapping[str, Any]],
    prefix: Prefix,
    replies: KeptReplies,
    screen: Screen | None = None,
    unseen: Prefix | None = None,
) -> list[Block]:
    """User and assistant in turn, replies that were kept as they were."""
    told = told_of(chat)
    out: list[Block] = []
    at = 0
    while at < len(told):
        message = told[at]
        at += 1
        if message["role"] != "assistant":
            _add(out, "user", _blocks(message))
            continue
        if not out:
            _add(out, "user", [_text(GO_ON)])  # a conversation begins with the user
        kept = replies.answer_to(prefix.at(out)) if len(replies) else []
        if not kept and screen is not None and unseen is not None:
            kept = replies.answer_to(unseen.at(told[: at - 1]))
        reply = stretch(told, at - 1, _parts(kept, screen)) if kept else None
        if reply is None:
            # Changed since: its thinking still stands before all that was changed.
            _add(out, "assistant", _beginning(kept) + _blocks(message))
            continue
        _add(out, "assistant", _with_ids(kept, reply.ids))
        for result in reply.results:
            _add(out, "user", _blocks(result))
        at = reply.end
    if not out or out[-1]["role"] == "assistant":
        _add(out, "user", [_text(GO_ON)])  # else it would be taken for the beginning of the reply
    return out


def marked(body: Block) -> Block:
    """The body with marks up to where it will be the same next time, so that it is read from the cache."""
    for part in ("system", "tools"):
        if body.get(part):
            body[part] = _with_mark(body[part])
            break
    messages: list[Block] = body["messages"]
    asked = [at for at, message in enumerate(messages) if message["role"] == "user"]
    for at in asked[-_BREAKPOINTS:]:
        messages[at] = {**messages[at], "content": _with_mark(messages[at]["content"])}
    return body


def unbound(blocks: Sequence[Block]) -> list[Block]:
    """A reply without what is refused behind anything but what it was made behind."""
    return [block for block in blocks if block["type"] not in THINKING]


def unmarked(blocks: Sequence[Block] | None) -> list[Block]:
    return [{key: value for key, value in b.items() if key != "cache_control"} for b in blocks or ()]


def _with_mark(blocks: list[Block]) -> list[Block]:
    return [*blocks[:-1], {**blocks[-1], "cache_control": _MARK}]


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
    if message["role"] == "tool":
        result = {
            "type": "tool_result",
            "tool_use_id": _id(message["tool_call_id"]),
            "content": message["content"],
        }
        return [result]
    calls = [_use(each["id"], each["function"]) for each in message.get("tool_calls") or ()]
    return _said(message["content"]) + calls


def _said(content: str | Sequence[Mapping[str, Any]] | None) -> list[Block]:
    if isinstance(content, str):
        return [_text(content)] if content.strip() else []  # an empty block is refused
    parts = content or ()
    return [
        _image(part["image_url"]["url"]) if part["type"] == "image_url" else _text(part["text"])
        for part in parts
        if part["type"] == "image_url" or part["text"].strip()
    ]


def _use(call_id: str, function: Mapping[str, Any]) -> Block:
    return {
        "type": "tool_use",
        "id": _id(call_id),
        "name": function["name"],
        "input": json.loads(function["arguments"]),
    }


def _id(call_id: str) -> str:
    """The id of a call; another model's may have what is refused here."""
    return _NOT_IN_AN_ID.sub("_", call_id)


def _image(url: str) -> Block:
    if not url.startswith("data:"):
        return {"type": "image", "source": {"type": "url", "url": url}}
    kind, _, data = url.removeprefix("data:").partition(";base64,")
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _tool(function: Mapping[str, Any]) -> Block:
    parameters = function["parameters"]
    return {"name": function["name"], "description": function["description"], "input_schema": parameters}


def is_computer_call(block: Mapping[str, Any]) -> bool:
    return block["type"] == "tool_use" and block.get("name") == TOOL


def _computer(kind: Kind, screen: Screen) -> Block:
    size = {"display_width_px": screen.width, "display_height_px": screen.height}
    zoom = {"enable_zoom": True} if kind.tool >= "computer_2025112" else {}
    return {"type": kind.tool, "name": TOOL, **size, **zoom}


def _call_of(block: Block, screen: Screen | None) -> tuple[str, str]:
    """A call by the code that was run for it."""
    if is_computer_call(block) and screen is not None:
        return call(as_call(code_of([block["input"]], screen)))
    return call(block["input"], block.get("name") or "")


def _parts(blocks: Sequence[Block], screen: Screen | None) -> Parts:
    """What a kept reply says; texts that no call stands between count as one."""
    parts: Parts = []
    texts: list[str] = []
    for block in blocks:
        if block["type"] == "text":
            texts.append(block["text"])
        elif block["type"] == "tool_use":
            parts += [*words("".join(texts)), _call_of(block, screen)]
            texts = []
    return parts + words("".join(texts))


def _with_ids(blocks: Sequence[Block], ids: Sequence[str]) -> list[Block]:
    """The reply as it was, its calls under the ids that the results go by."""
    waiting = iter(ids)
    return [{**b, "id": _id(next(waiting))} if b["type"] == "tool_use" else dict(b) for b in blocks]


def _beginning(blocks: Sequence[Block]) -> list[Block]:
    until = next((at for at, block in enumerate(blocks) if block["type"] not in THINKING), len(blocks))
    return [dict(block) for block in blocks[:until]]


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
