"""From chat messages to the parts of a request to Anthropic."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from interpreter.llm.computer_use import TOOL, Kind, Screen, as_call, code_of, screen_in
from interpreter.llm.kept import KeptReplies, Parts, Prefix, call, stretch, told_of, words

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
