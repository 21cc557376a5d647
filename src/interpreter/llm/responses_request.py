"""From chat messages to the parts of a Responses request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interpreter.llm.computer_use import TOOL, Kind, Screen, as_call, code_of, screen_in
from interpreter.llm.kept import KeptReplies, Parts, Prefix, Stretch, call, stretch, told_of, words
from interpreter.llm.left_out import is_left_out, left_out_url
from interpreter.llm.tool_chat import NO_OUTPUT, SEE_IMAGE, on_this_computer

Item = dict[str, Any]

# Of the server's own books; it knows nothing of them when it is asked to store nothing.
_THEIRS = ("id", "status")
_CALLS = ("function_call", "computer_call")


def instructions_of(chat: Sequence[Mapping[str, Any]]) -> str:
    return "\n\n".join(message["content"] for message in chat if message["role"] == "system").strip()


def tools_of(tools: Sequence[Mapping[str, Any]] | None, kind: Kind | None = None) -> list[Item]:
    functions = [tool["function"] for tool in tools or () if "function" in tool]
    out: list[Item] = [{"type": "function", **function, "strict": False} for function in functions]
    screen = screen_in(tools)
    return [*out, _computer(kind, screen)] if kind and screen else out


def input_of(
    chat: Sequence[Mapping[str, Any]],
    prefix: Prefix,
    replies: KeptReplies,
    screen: Screen | None = None,
    unseen: Prefix | None = None,
) -> list[Item]:
    """The items of the conversation, replies that were kept as they were."""
    told = told_of(chat)
    out: list[Item] = []
    at = 0
    while at < len(told):
        message = told[at]
        at += 1
        kept = _kept(message, out, prefix, replies)
        if not kept and screen is not None and unseen is not None and message["role"] == "assistant":
            kept = replies.answer_to(unseen.at(told[: at - 1]))
        reply = stretch(told, at - 1, _parts(kept, screen)) if kept else None
        answers = _answers(kept, reply) if reply is not None else None
        if reply is None or answers is None:
            out += _beginning(kept) + _items(message)
            continue
        out += _with_ids(kept, reply.ids) + answers
        at = reply.end
    return out


def code_of_call(item: Mapping[str, Any], screen: Screen) -> str:
    """The code of an action on the screen, or of several."""
    actions = item.get("actions") or [item.get("action") or {}]
    warnings = [check.get("message") or check.get("code") or "" for check in item.get("pending_safety_checks") or ()]
    return code_of(actions, screen, warnings)


def _computer(kind: Kind, screen: Screen) -> Item:
    if kind.tool == TOOL:
        return {"type": TOOL}
    system = {"darwin": "mac", "windows": "windows"}.get(screen.system, "linux")
    return {"type": kind.tool, "display_width": screen.width, "display_height": screen.height, "environment": system}


def _answers(kept: Sequence[Item], reply: Stretch) -> list[Item] | None:
    """What came of the calls of a kept reply; None if an action has no picture to answer it with."""
    calls = dict(zip(reply.ids, (item for item in kept if item["type"] in _CALLS), strict=False))
    pictures = [part for result in reply.results for part in _pictures(result)]
    acted = sum(item["type"] == "computer_call" for item in calls.values())
    if not acted:
        return [item for result in reply.results for item in _items(result)]
    if not pictures:
        return None
    out: list[Item] = []
    told: list[Item] = []
    for result in reply.results:
        if result["role"] == "tool" and calls[result["tool_call_id"]]["type"] == "computer_call":
            out.append(_seen(result["tool_call_id"], calls[result["tool_call_id"]], pictures[-1]))
            told += _told(result["content"])
        elif not _pictures(result):
            out += _items(result)
    return out + told


def _told(output: str) -> list[Item]:
    """What an action printed, which the picture that answers it has no place for: what went wrong, what is there."""
    words = output.strip()
    return [] if words in ("", NO_OUTPUT, SEE_IMAGE) else _items({"role": "user", "content": on_this_computer(words)})


def _pictures(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The pictures of a result, and the words in the place of old ones."""
    content = result["content"]
    parts = () if isinstance(content, str) else content or ()
    return [part for part in parts if part["type"] == "image_url" or is_left_out(part)]


def _seen(call_id: str, item: Item, picture: Mapping[str, Any]) -> Item:
    url = left_out_url() if is_left_out(picture) else picture["image_url"]["url"]  # it takes nothing but a picture
    output = {"type": "computer_screenshot", "image_url": url}
    answer = {"type": "computer_call_output", "call_id": call_id, "output": output}
    checks = item.get("pending_safety_checks")
    return answer | ({"acknowledged_safety_checks": checks} if checks else {})


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


def _parts(items: Sequence[Item], screen: Screen | None) -> Parts:
    """What a kept reply says; texts that no call stands between count as one."""
    parts: Parts = []
    texts: list[str] = []
    for item in items:
        if item["type"] == "message":
            texts.append(text_of(item))
        elif item["type"] == "function_call":
            parts += [*words(" ".join(texts)), call(item["arguments"], item.get("name") or "")]
            texts = []
        elif item["type"] == "computer_call" and screen is not None:
            parts += [*words(" ".join(texts)), call(as_call(code_of_call(item, screen)))]
            texts = []
    return parts + words(" ".join(texts))


def _with_ids(items: Sequence[Item], ids: Sequence[str]) -> list[Item]:
    """The reply as it was, its calls under the ids that their outputs go by."""
    waiting = iter(ids)
    return [{**_ours(i), "call_id": next(waiting)} if i["type"] in _CALLS else _ours(i) for i in items]


def _beginning(items: Sequence[Item]) -> list[Item]:
    until = next((at for at, item in enumerate(items) if item["type"] != "reasoning"), len(items))
    return [_ours(item) for item in items[:until]]


def _ours(item: Item) -> Item:
    return {key: value for key, value in item.items() if key not in _THEIRS}
