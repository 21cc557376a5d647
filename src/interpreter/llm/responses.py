"""OpenAI's Responses API: the request, and the streamed reply as chunks in OpenAI's shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interpreter.llm.context import is_left_out, left_out_url
from interpreter.llm.http import Exchange, Replies, arguments_chunk, call_chunk, delta_chunk
from interpreter.llm.kept_replies import (
    KeptTurn,
    Parts,
    Prefix,
    call_part,
    joined_parts,
    turns,
)
from interpreter.llm.native_tools import NativeTool
from interpreter.llm.providers import Endpoint, matches
from interpreter.llm.tool_mode import NO_OUTPUT, SEE_IMAGE, on_this_computer
from interpreter.tools import EXECUTE

Item = dict[str, Any]

_HANDLED = frozenset(
    {"api_base", "api_key", "api_version", "messages", "tools", "max_tokens", "stop"} | {"stream", "stream_options"}
)
_CALLS = ("function_call", "computer_call")


class Responses(Exchange):
    """The wire format. Keeps replies with reasoning in them."""

    path = "/responses"
    can_do_without = dict.fromkeys(("temperature", "include", "reasoning", "max_output_tokens", "store"))

    def __init__(self, endpoint: Endpoint, params: Mapping[str, Any], replies: Replies) -> None:
        super().__init__(endpoint, params, replies)
        self._items: list[Item] = []
        self._calls: dict[Any, int] = {}  # the number of each call
        self._begun: set[Any] = set()  # items of which a part has arrived

    def make_body(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Build the request's body. The server stores nothing, so reasoning is sent along, encrypted."""
        endpoint = self.endpoint
        instructions = "\n\n".join(self.system).strip()
        tools: list[Item] = [
            {"type": "function", **tool["function"], "strict": False}
            for tool in params.get("tools") or ()
            if "function" in tool
        ]
        if self.native_tool is not None:
            tools.append(dict(self.native_tool))
        body: Item = {
            **{key: value for key, value in params.items() if key not in _HANDLED and value is not None},
            "model": endpoint.model,
            "stream": True,
            "store": False,
            **({"instructions": instructions} if instructions else {}),
            **({"tools": tools} if tools else {}),
            "input": self._input(Prefix(endpoint, instructions, tools)),
        }
        if self.native_tool is not None and endpoint.model.lower().startswith("computer-use-preview"):
            body.setdefault("truncation", "auto")  # required
        if params.get("max_tokens") is not None:
            body["max_output_tokens"] = params["max_tokens"]
        # These models don't reason. All others are asked for their reasoning, and accept no temperature at OpenAI.
        if not matches(endpoint.model.lower(), ("gpt-3.5*", "gpt-4*", "chatgpt-*", "gpt-*-chat*")):
            body.setdefault("reasoning", {"summary": "auto"})
            body["include"] = ["reasoning.encrypted_content"]
            if endpoint.provider == "openai" and endpoint.base_url.startswith("https://api.openai.com"):
                body.pop("temperature", None)
        return body

    def _input(self, prefix: Prefix) -> list[Item]:
        blind = Prefix.without_pictures(self.endpoint) if self.native_tool is not None else None
        out: list[Item] = []
        for turn in turns(self.chat, out, self.replies, prefix, lambda kept: _parts(kept, self.native_tool), blind):
            results = _results(turn)
            if turn.ids is None or results is None:
                until = next((at for at, item in enumerate(turn.kept) if item["type"] != "reasoning"), len(turn.kept))
                out += [_as_sent(item) for item in turn.kept[:until]]
                out += [item for message in turn.messages for item in _items(message)]
                continue
            ids = iter(turn.ids)  # the calls go out under the ids that their results refer to
            for item in turn.kept:
                out.append(_as_sent(item) | ({"call_id": next(ids)} if item["type"] in _CALLS else {}))
            out += results
        return out

    def read(self, event: Mapping[str, Any]) -> list[dict[str, Any]]:
        item, delta = event.get("item") or {}, event.get("delta")
        index = event.get("output_index")
        item_key = index if index is not None else event.get("item_id") or item.get("id")
        match event.get("type"):
            case "response.output_item.added":
                return self._begin(item_key, item)
            case "response.output_text.delta" | "response.refusal.delta" if delta:
                self._begun.add(item_key)
                return [delta_chunk(content=delta)]
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._begun.add(item_key)
                return [delta_chunk(reasoning_content=delta)]
            case "response.reasoning_summary_part.added" if event.get("summary_index"):
                return [delta_chunk(reasoning_content="\n\n")]
            case "response.function_call_arguments.delta" if delta:
                return self._arguments(item_key, delta)
            case "response.output_item.done":
                return self._done(item_key, item)
            case "response.completed" | "response.incomplete" | "response.failed" | "response.done":
                return self._finish(event.get("response") or {})
            case _ if event.get("error"):
                return [{"error": event["error"]}]
            case "error":  # the event itself is the error
                code = event.get("code") or "server_error"
                return [{"error": {"code": code, "message": event.get("message"), "param": event.get("param")}}]
        return []

    def read_whole(self, answer: Mapping[str, Any]) -> list[dict[str, Any]]:
        out = [chunk for index, item in enumerate(answer["output"]) for chunk in self._done(index, item)]
        return out + self._finish(answer)

    def _begin(self, item_key: Any, item: Mapping[str, Any]) -> list[dict[str, Any]]:
        if item.get("type") != "function_call" or item_key in self._calls:
            return []
        number = self._calls[item_key] = len(self._calls)
        begun = call_chunk(number, item.get("call_id") or item.get("id") or "", item.get("name") or "")
        return [begun, *(self._arguments(item_key, item["arguments"]) if item.get("arguments") else ())]

    def _arguments(self, item_key: Any, piece: str) -> list[dict[str, Any]]:
        begun = self._begin(item_key, {"type": "function_call"})
        self._begun.add(item_key)
        return [*begun, arguments_chunk(self._calls[item_key], piece)]

    def _done(self, item_key: Any, item: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Finish an item: return what had not arrived in pieces, and store a reply that must go back unchanged."""
        kind, out = item.get("type"), []
        if kind == "computer_call" and self.native_tool is not None:
            code = self.native_tool.as_arguments(item)
            out += self._begin(item_key, {**item, "type": "function_call", "name": EXECUTE, "arguments": code})
        elif item_key not in self._begun:
            out += self._begin(item_key, item)
        if item_key not in self._begun:
            if kind == "message":
                out.append(delta_chunk(content=_text_of(item)))
            elif kind == "reasoning":
                parts = [part.get("text") or "" for part in item.get("summary") or item.get("content") or ()]
                out.append(delta_chunk(reasoning_content="\n\n".join(parts)))
            elif kind == "function_call":
                out += self._arguments(item_key, item.get("arguments") or "{}")
        # Reasoning without either field refers to content that only the server could look up.
        is_reasoning = kind == "reasoning" and (item.get("encrypted_content") or item.get("content"))
        if not is_reasoning and kind not in ("message", *_CALLS):
            return out
        self._items.append(dict(item))
        is_special = any(each["type"] in ("reasoning", "computer_call") for each in self._items)
        # Text followed by one call is sent back the same without being stored.
        if is_special or any(each["type"] == "function_call" for each in self._items[:-1]):
            prefix = Prefix(self.endpoint, self.body.get("instructions", ""), self.body.get("tools", []))
            self.replies[prefix.at(self.body["input"])] = list(self._items)
            if self.native_tool is not None:
                self.replies[Prefix.without_pictures(self.endpoint).at(self.chat)] = list(self._items)
        return out

    def _finish(self, response: Mapping[str, Any]) -> list[dict[str, Any]]:
        self.has_ended = True
        out: list[dict[str, Any]] = []
        if usage := response.get("usage"):
            out.append(
                {
                    "choices": [],
                    "usage": {
                        "prompt_tokens": usage.get("input_tokens"),
                        "completion_tokens": usage.get("output_tokens"),
                        "prompt_tokens_details": usage.get("input_tokens_details"),
                        "completion_tokens_details": usage.get("output_tokens_details"),
                    },
                }
            )
        reason = (response.get("incomplete_details") or {}).get("reason")
        if response.get("status") == "failed" or response.get("error"):
            return [*out, {"error": response.get("error") or {"code": "server_error", "message": ""}}]
        if reason == "content_filter":
            return [*out, {"error": {"code": reason, "message": ""}}]
        finished = "tool_calls" if self._calls else "stop"
        finish_reason = "length" if reason == "max_output_tokens" else finished
        return [*out, {"choices": [{"delta": {}, "finish_reason": finish_reason}]}]


def _items(message: Mapping[str, Any]) -> list[Item]:
    role, content = message["role"], message["content"]
    if role == "tool":
        return [{"type": "function_call_output", "call_id": message["tool_call_id"], "output": content}]
    if role == "user":
        parts: list[Item] = []
        given: Sequence[Item] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for part in given:
            if part["type"] == "image_url":
                image = part["image_url"]
                detail = image.get("detail", "auto")
                parts.append({"type": "input_image", "image_url": image["url"], "detail": detail})
            else:
                parts.append({"type": "input_text", "text": part["text"]})
        return [{"type": "message", "role": "user", "content": parts}] if content else []
    text = [{"type": "output_text", "text": content}]
    messages = [{"type": "message", "role": "assistant", "content": text}] if content and content.strip() else []
    return messages + [
        {"type": "function_call", "call_id": each["id"], **each["function"]} for each in message.get("tool_calls") or ()
    ]


def _as_sent(item: Item) -> Item:
    # Without meaning for a server that is asked to store nothing
    return {key: value for key, value in item.items() if key not in ("id", "status")}


def _results(turn: KeptTurn) -> list[Item] | None:
    """Return the results of a stored reply's calls; None if an action has no picture to answer it with."""
    calls = dict(zip(turn.ids or (), (item for item in turn.kept if item["type"] in _CALLS), strict=False))
    if all(item["type"] != "computer_call" for item in calls.values()):
        return [item for result in turn.results for item in _items(result)]
    pictures = [part for result in turn.results for part in _pictures(result)]
    if not pictures:
        return None
    # The only answer that an action takes is a picture.
    url = left_out_url() if is_left_out(pictures[-1]) else pictures[-1]["image_url"]["url"]
    out: list[Item] = []
    printed: list[Item] = []
    for result in turn.results:
        call_id = result.get("tool_call_id", "")
        if result["role"] == "tool" and calls[call_id]["type"] == "computer_call":
            picture = {"type": "computer_screenshot", "image_url": url}
            checks = calls[call_id].get("pending_safety_checks")
            answer = {"type": "computer_call_output", "call_id": call_id, "output": picture}
            out.append(answer | ({"acknowledged_safety_checks": checks} if checks else {}))
            printed_text = result["content"].strip()
            if printed_text not in ("", NO_OUTPUT, SEE_IMAGE):
                printed += _items({"role": "user", "content": on_this_computer(printed_text)})
        elif not _pictures(result):
            out += _items(result)
    return out + printed


def _pictures(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = result["content"]
    parts = () if isinstance(content, str) else content or ()
    return [part for part in parts if part["type"] == "image_url" or is_left_out(part)]


def _parts(items: Sequence[Item], native: NativeTool | None) -> Parts:
    """Return a stored reply in comparable form; a call of the provider's own tool is compared by its code."""
    pieces: list[str | tuple[str, str]] = []
    for item in items:
        if item["type"] == "message":
            pieces.append(_text_of(item))
        elif item["type"] == "function_call":
            pieces.append(call_part(item["arguments"], item.get("name") or ""))
        elif item["type"] == "computer_call" and native is not None:
            pieces.append(call_part(native.as_arguments(item)))
    return joined_parts(pieces, " ")


def _text_of(item: Mapping[str, Any]) -> str:
    return "".join(part.get("text") or part.get("refusal") or "" for part in item.get("content") or ())
