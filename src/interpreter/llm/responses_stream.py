"""From the events of a Responses answer to chunks in OpenAI's older shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from interpreter.errors import BrokenStreamError
from interpreter.llm.computer_use import Screen, as_call
from interpreter.llm.responses_request import code_of_call, text_of
from interpreter.tools import EXECUTE

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
                yield from self._begin(_place(event), event.get("item") or {})
            case "response.output_text.delta" | "response.refusal.delta" if event.get("delta"):
                self._came.add(_place(event))
                yield _chunk(content=event["delta"])
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._came.add(_place(event))
                yield _chunk(reasoning_content=event.get("delta"))
            case "response.reasoning_summary_part.added" if event.get("summary_index"):
                yield _chunk(reasoning_content="\n\n")
            case "response.function_call_arguments.delta" if event.get("delta"):
                yield from self._arguments(_place(event), event["delta"])
            case "response.output_item.done":
                yield from self._done(_place(event), event.get("item") or {})
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


def _place(event: Mapping[str, Any]) -> Any:
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
