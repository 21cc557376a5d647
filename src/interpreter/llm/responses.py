"""OpenAI's Responses: what is asked, and how the answer reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from interpreter.errors import BrokenStreamError, RequestRefusedError
from interpreter.llm.computer_use import TOOL, Kind, Screen, as_call, code_of, kind_of, screen_in
from interpreter.llm.context import is_left_out, left_out_url
from interpreter.llm.http import Sent, objects
from interpreter.llm.kept_replies import KeptReplies, Parts, Prefix, Stretch, call, stretch, told_of, unseen, words
from interpreter.llm.providers import Endpoint
from interpreter.llm.tool_mode import NO_OUTPUT, SEE_IMAGE, on_this_computer
from interpreter.tools import EXECUTE

_HANDLED = frozenset(
    {
        "api_base",
        "api_key",
        "api_version",
        "messages",
        "tools",
        "max_tokens",
        "stream",
        "stream_options",
        "stop",
    }
)
# Models that do not reason; all others are asked for their reasoning, and take no temperature at OpenAI.
_WITHOUT_REASONING = ("gpt-3.5*", "gpt-4*", "chatgpt-*", "gpt-*-chat*")
_CAN_DO_WITHOUT = frozenset({"temperature", "include", "reasoning", "max_output_tokens", "store"})


class Responses:
    """Keeps replies with reasoning in them; remembers what each server objected to."""

    path = "/responses"

    def __init__(self, replies: KeptReplies) -> None:
        self._replies = replies
        self._objections: dict[tuple[str, str], set[str]] = {}

    def body(self, endpoint: Endpoint, params: Mapping[str, Any]) -> dict[str, Any]:
        """The request's body; the server stores nothing, so reasoning travels with it, encrypted."""
        body = {key: value for key, value in params.items() if key not in _HANDLED and value is not None}
        chat = params["messages"]
        kind, screen = kind_of(endpoint.wire, endpoint.model), screen_in(params.get("tools"))
        instructions, tools = instructions_of(chat), tools_of(params.get("tools"), kind)
        body |= {"model": endpoint.model, "stream": True, "store": False}
        body |= {"instructions": instructions} if instructions else {}
        body |= {"tools": tools} if tools else {}
        prefix = Prefix(endpoint, instructions, tools)
        body["input"] = input_of(chat, prefix, self._replies, screen, unseen(endpoint))
        if kind is not None and screen is not None and kind.tool == "computer_use_preview":
            body.setdefault("truncation", "auto")  # it takes no request without
        if params.get("max_tokens") is not None:
            body["max_output_tokens"] = params["max_tokens"]
        if not any(fnmatchcase(endpoint.model.lower(), pattern) for pattern in _WITHOUT_REASONING):
            body.setdefault("reasoning", {"summary": "auto"})
            body["include"] = ["reasoning.encrypted_content"]
            if endpoint.provider == "openai" and endpoint.base_url.startswith("https://api.openai.com"):
                body.pop("temperature", None)
        for name in self._objections.get(_place(endpoint), ()):
            body.pop(name, None)
        return body

    def gives_in(self, endpoint: Endpoint, error: RequestRefusedError, params: Mapping[str, Any]) -> bool:
        """Whether the request is worth sending again without what the server objects to."""
        known = self._objections.setdefault(_place(endpoint), set())
        # A field may be named with what is in it: reasoning.summary, include[0].
        named = {param.partition(".")[0].partition("[")[0] for param in error.params}
        new = (named & _CAN_DO_WITHOUT) - known
        known |= new
        return bool(new)

    def chunks(self, events: Iterator[bytes], framed: bool, sent: Sent) -> Iterator[dict[str, Any]]:
        """The chunks of a streamed answer; it is whole once the response is completed or incomplete."""
        reader = ResponseReader(lambda items: self._keep(sent, items), sent.screen)
        for event in objects(events):
            yield from reader.read(event)
        reader.end()

    def whole(self, answer: dict[str, Any], sent: Sent) -> dict[str, Any]:
        """The answer of a server that does not stream, as one chunk."""
        return ResponseReader(lambda items: self._keep(sent, items), sent.screen).whole(answer)

    def _keep(self, sent: Sent, items: list[dict[str, Any]]) -> None:
        body = sent.body
        prefix = Prefix(sent.endpoint, body.get("instructions", ""), body.get("tools", []))
        self._replies.keep(prefix.at(body["input"]), items)
        if sent.screen is not None:
            self._replies.keep(unseen(sent.endpoint).at(told_of(sent.chat)), items)


def _place(endpoint: Endpoint) -> tuple[str, str]:
    return endpoint.base_url, endpoint.model


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


_REASONS = {"max_output_tokens": "length"}


class ResponseReader:
    """Takes the events of one answer; `keep` gets the items that are whole, where they must go back."""

    def __init__(self, keep: Callable[[list[dict[str, Any]]], None], screen: Screen | None = None) -> None:
        self._keep = keep
        self._screen = screen
        self._items: list[dict[str, Any]] = []
        self._calls: dict[Any, int] = {}  # the number of each call
        self._came: set[Any] = set()  # items of which a piece has come
        self._ended = False

    def read(self, event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The chunks of one event; kinds that are not known give none."""
        match event.get("type"):
            case "response.output_item.added":
                yield from self._begin(_place_of_responses_stream(event), event.get("item") or {})
            case "response.output_text.delta" | "response.refusal.delta" if event.get("delta"):
                self._came.add(_place_of_responses_stream(event))
                yield _chunk(content=event["delta"])
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._came.add(_place_of_responses_stream(event))
                yield _chunk(reasoning_content=event.get("delta"))
            case "response.reasoning_summary_part.added" if event.get("summary_index"):
                yield _chunk(reasoning_content="\n\n")
            case "response.function_call_arguments.delta" if event.get("delta"):
                yield from self._arguments(_place_of_responses_stream(event), event["delta"])
            case "response.output_item.done":
                yield from self._done(_place_of_responses_stream(event), event.get("item") or {})
            case "response.completed" | "response.incomplete" | "response.failed" | "response.done":
                yield from self._finish(event.get("response") or {})
            case _:
                yield from _error(event)

    def end(self) -> None:
        """The stream has ended; it must have said so."""
        if not self._ended:
            raise BrokenStreamError("The server ended its reply in the middle. Try again.")

    def whole(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """An answer that came in one piece, as one chunk."""
        delta: dict[str, Any] = {}
        for index, item in enumerate(answer["output"]):
            for chunk in self._done(index, item):
                for key, piece in chunk["choices"][0]["delta"].items():
                    delta[key] = delta[key] + piece if key in delta else piece
        last: dict[str, Any] = {}
        for chunk in self._finish(answer):
            last |= chunk
        if "error" in last:
            return last
        finish_reason = last["choices"][0]["finish_reason"]
        return {**last, "choices": [{"delta": delta, "finish_reason": finish_reason}]}

    def _begin(self, place: Any, item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if item.get("type") != "function_call" or place in self._calls:
            return
        number = self._calls[place] = len(self._calls)
        function = {"name": item.get("name") or "", "arguments": ""}
        call = {"index": number, "id": item.get("call_id") or item.get("id") or "", "type": "function"}
        yield _chunk(tool_calls=[{**call, "function": function}])
        if item.get("arguments"):
            yield from self._arguments(place, item["arguments"])

    def _arguments(self, place: Any, piece: str) -> Iterator[dict[str, Any]]:
        yield from self._begin(place, {"type": "function_call"})
        self._came.add(place)
        yield _chunk(tool_calls=[{"index": self._calls[place], "function": {"arguments": piece}}])

    def _done(self, place: Any, item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """An item is whole; what had not come of it in pieces comes now."""
        if item.get("type") == "computer_call" and self._screen is not None:
            code = as_call(code_of_call(item, self._screen))
            yield from self._begin(place, {**item, "type": "function_call", "name": EXECUTE, "arguments": code})
        yield from self._begin(place, item) if place not in self._came else ()
        if place not in self._came:
            yield from self._all_of(place, item)
        if _can_go_back(item):
            self._items.append(dict(item))
            if _is_worth_keeping(self._items):
                self._keep(self._items)

    def _all_of(self, place: Any, item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        match item.get("type"):
            case "message":
                yield _chunk(content=text_of(item))
            case "reasoning":
                parts = [part.get("text") or "" for part in item.get("summary") or item.get("content") or ()]
                yield _chunk(reasoning_content="\n\n".join(parts))
            case "function_call":
                yield from self._arguments(place, item.get("arguments") or "{}")

    def _finish(self, response: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        self._ended = True
        usage = response.get("usage")
        if usage:
            yield {"choices": [], "usage": _usage(usage)}
        reason = (response.get("incomplete_details") or {}).get("reason")
        if response.get("status") == "failed" or response.get("error"):
            yield {"error": response.get("error") or {"code": "server_error", "message": ""}}
        elif reason == "content_filter":
            yield {"error": {"code": reason, "message": ""}}
        else:
            finished = "tool_calls" if self._calls else "stop"
            yield {"choices": [{"delta": {}, "finish_reason": _REASONS.get(str(reason), finished)}]}


def _error(event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """An error in the middle: in a field of its own, or the event itself."""
    if event.get("error"):
        yield {"error": event["error"]}
    elif event.get("type") == "error":
        told = {key: event.get(key) for key in ("code", "message", "param")}
        yield {"error": {**told, "code": told["code"] or "server_error"}}


def _usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.get("input_tokens"),
        "completion_tokens": usage.get("output_tokens"),
        "prompt_tokens_details": usage.get("input_tokens_details"),
        "completion_tokens_details": usage.get("output_tokens_details"),
    }


def _place_of_responses_stream(event: Mapping[str, Any]) -> Any:
    """Which item an event is about."""
    index = event.get("output_index")
    return index if index is not None else event.get("item_id") or (event.get("item") or {}).get("id")


def _can_go_back(item: Mapping[str, Any]) -> bool:
    if item.get("type") == "reasoning":  # without either, it stands for what only the server could look up
        return bool(item.get("encrypted_content") or item.get("content"))
    return item.get("type") in ("message", "function_call", "computer_call")


def _is_worth_keeping(items: list[dict[str, Any]]) -> bool:
    """With reasoning or an action on the screen in it, or more than words and one call behind them."""
    special = any(item["type"] in ("reasoning", "computer_call") for item in items)
    return special or any(item["type"] == "function_call" for item in items[:-1])


def _chunk(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"delta": delta}]}
