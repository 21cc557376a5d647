"""From chat messages to the parts of a Responses request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interpreter.llm.kept import KeptReplies, Parts, Prefix, call, stretch, words

Item = dict[str, Any]

# Of the server's own books; it knows nothing of them when it is asked to store nothing.
_THEIRS = ("id", "status")


def instructions_of(chat: Sequence[Mapping[str, Any]]) -> str:
    return "\n\n".join(message["content"] for message in chat if message["role"] == "system").strip()


def tools_of(tools: Sequence[Mapping[str, Any]] | None) -> list[Item]:
    return [{"type": "function", **tool["function"], "strict": False} for tool in tools or ()]


def input_of(chat: Sequence[Mapping[str, Any]], prefix: Prefix, replies: KeptReplies) -> list[Item]:
    """The items of the conversation, replies that were kept as they were."""
    told = [message for message in chat if message["role"] != "system"]
    out: list[Item] = []
    at = 0
    while at < len(told):
        message = told[at]
        at += 1
        kept = _kept(message, out, prefix, replies)
        reply = stretch(told, at - 1, _parts(kept)) if kept else None
        if reply is None:
            out += _beginning(kept) + _items(message)
            continue
        out += _with_ids(kept, reply.ids)
        for result in reply.results:
            out += _items(result)
        at = reply.end
    return out


def text_of(item: Mapping[str, Any]) -> str:
    """What a message of the model's says."""
    parts = item.get("content") or ()
    return "".join(part.get("text") or part.get("refusal") or "" for part in parts)


def _kept(message: Mapping[str, Any], out: list[Item], prefix: Prefix, replies: KeptReplies) -> Sequence[Item]:
    if message["role"] != "assistant" or not len(replies):
        return []
    return replies.answer_to(prefix.at(out))


def _items(message: Mapping[str, Any]) -> list[Item]:
    role, content = message["role"], message["content"]
    if role == "tool":
        return [{"type": "function_call_output", "call_id": message["tool_call_id"], "output": content}]
    if role == "user":
        return [{"type": "message", "role": "user", "content": _parts_of(content)}] if content else []
    said = [_said(content)] if content and content.strip() else []
    calls = [_call(each["id"], each["function"]) for each in message.get("tool_calls") or ()]
    return said + calls


def _parts_of(content: str | Sequence[Mapping[str, Any]]) -> list[Item]:
    if isinstance(content, str):
        return [{"type": "input_text", "text": content}]
    return [_image(part) if part["type"] == "image_url" else _text(part["text"]) for part in content]


def _text(text: str) -> Item:
    return {"type": "input_text", "text": text}


def _image(part: Mapping[str, Any]) -> Item:
    image = part["image_url"]
    return {"type": "input_image", "image_url": image["url"], "detail": image.get("detail", "auto")}


def _said(text: str) -> Item:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def _call(call_id: str, function: Mapping[str, Any]) -> Item:
    return {"type": "function_call", "call_id": call_id, **function}


def _parts(items: Sequence[Item]) -> Parts:
    """What a kept reply says; texts that no call stands between count as one."""
    parts: Parts = []
    texts: list[str] = []
    for item in items:
        if item["type"] == "message":
            texts.append(text_of(item))
        elif item["type"] == "function_call":
            parts += [*words(" ".join(texts)), call(item["arguments"])]
            texts = []
    return parts + words(" ".join(texts))


def _with_ids(items: Sequence[Item], ids: Sequence[str]) -> list[Item]:
    """The reply as it was, its calls under the ids that their outputs go by."""
    waiting = iter(ids)
    calls = {"function_call"}
    return [{**_ours(i), "call_id": next(waiting)} if i["type"] in calls else _ours(i) for i in items]


def _beginning(items: Sequence[Item]) -> list[Item]:
    until = next((at for at, item in enumerate(items) if item["type"] != "reasoning"), len(items))
    return [_ours(item) for item in items[:until]]


def _ours(item: Item) -> Item:
    return {key: value for key, value in item.items() if key not in _THEIRS}
