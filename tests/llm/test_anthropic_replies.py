"""Replies in Anthropic's format become the same chunks and errors as those of other providers."""

from __future__ import annotations

from typing import Any

import pytest

from anthropic_server import (
    AnthropicServer,
    cut,
    error_event,
    failure,
    message,
    redacted,
    say,
    thinking,
    use,
    whole,
)
from interpreter.errors import (
    BrokenStreamError,
    ContextTooLongError,
    MissingKeyError,
    ModelError,
    ModelOverloadedError,
    ModelTimeoutError,
    QuotaExceededError,
    RateLimitedError,
    ReplyCutError,
    ReplyDeclinedError,
    RequestRefusedError,
    UnknownModelError,
    WrongKeyError,
)
from model_server import RawReply, raw
from scripted_llm import ScriptedLlm, Start, folded


@pytest.fixture
def claude(asking: Start) -> Start:
    def start(*replies: Any, **settings: Any) -> ScriptedLlm:
        settings = {"model": "anthropic/claude-sonnet-4-5", "max_retries": 0} | settings
        return asking(*replies, kind=AnthropicServer, **settings)

    return start


def test_text_arrives_piece_by_piece(claude: Start) -> None:
    pieces = ["He", "llo", " you"]
    chunks = claude(message(say("Hello you", pieces))).chunks()
    assert chunks == [{"type": "message", "content": piece} for piece in pieces]


@pytest.mark.parametrize("split", [None, 1, 7])
def test_a_tool_use_streams_as_a_block(claude: Start, split: Any) -> None:
    model = claude(message(say("Look:"), use("python", 'print("é\\n")\n', split)))
    assert folded(model.chunks()) == ["Look:", ("python", 'print("é\\n")\n')]


def test_two_tool_uses_become_two_blocks(claude: Start) -> None:
    model = claude(message(use("python", "1", 3), use("shell", "ls", 3, "toolu_01B")))
    assert folded(model.chunks()) == [("python", "1"), ("shell", "ls")]


def test_thinking_becomes_reasoning_and_redacted_thinking_is_dropped(claude: Start) -> None:
    model = claude(message(thinking("Hm, well", split=3), redacted("ZW5j"), say("Yes")))
    chunks = model.chunks()
    assert [chunk["type"] for chunk in chunks] == ["reasoning"] * 3 + ["message"]
    assert "".join(chunk["content"] for chunk in chunks) == "Hm, wellYes"


def test_usage_includes_cached_tokens(claude: Start) -> None:
    [*_, usage] = claude(message(say("Hi"), usage=(10, 7), cached=(100, 20))).stream()
    expected = {"input_tokens": 130, "output_tokens": 7, "cached_tokens": 100, "estimated": False}
    assert (usage["type"], usage["format"]) == ("status", "usage")
    assert usage["content"].items() >= expected.items()


def test_fenced_code_becomes_a_block_without_tool_support(claude: Start) -> None:
    model = claude(message(say("Look:\n```shell\nls\n```\n", 1)), supports_functions=False)
    assert folded(model.chunks()) == ["Look:\n", ("shell", "ls")]


def test_a_reply_that_is_not_streamed(claude: Start) -> None:
    used = {"type": "tool_use", "id": "toolu_01", "name": "execute"}
    contents = [
        {"type": "thinking", "thinking": "Hm", "signature": "s"},
        {"type": "text", "text": "Look:"},
        used | {"input": {"language": "shell", "code": "ls"}},
    ]
    [first, *chunks] = claude(whole(*contents, stop="tool_use")).stream()
    assert first == {"type": "reasoning", "content": "Hm"}
    assert folded(chunks[:-1]) == ["Look:", ("shell", "ls")]
    assert chunks[-1]["content"]["output_tokens"] == 15


def test_hitting_the_token_limit_inside_a_block_raises_an_error(claude: Start) -> None:
    [start, _, begun] = use("python", "print(1)", [r'{"language": "python", "code": "print(', '1)"}'])[:3]
    model = claude(message([start, begun], stop="max_tokens"), message(say("So"), stop="max_tokens"))
    chunks, _ = model.until_error(ReplyCutError)
    assert folded(chunks) == [("print(",)]
    assert folded(model.chunks()) == ["So"]


@pytest.mark.parametrize("breaks_off", [True, False])
def test_a_truncated_reply_raises_an_error(claude: Start, breaks_off: bool) -> None:
    model = claude(cut(say("Hello", 1), keep=6, breaks_off=breaks_off))
    chunks, _ = model.until_error(BrokenStreamError)
    assert folded(chunks) == ["Hel"]


def test_a_declined_reply_raises_an_error_with_the_reason(claude: Start) -> None:
    why = {"type": "refusal", "category": "cyber", "explanation": "That would do harm."}
    model = claude(message(stop="refusal", stop_details=why))
    _, error = model.until_error(ReplyDeclinedError)
    assert "That would do harm." in str(error)


ERRORS: dict[str, tuple[RawReply, type[ModelError]]] = {
    "invalid request": (failure(400, "invalid_request_error"), RequestRefusedError),
    "wrong key": (failure(401, "authentication_error"), WrongKeyError),
    "billing": (failure(402, "billing_error"), QuotaExceededError),
    "permission": (failure(403, "permission_error"), WrongKeyError),
    "unknown model": (failure(404, "not_found_error"), UnknownModelError),
    "too large": (failure(413, "request_too_large"), ContextTooLongError),
    "rate limit": (failure(429, "rate_limit_error", headers={"retry-after": "7"}), RateLimitedError),
    "server error": (failure(500, "api_error"), ModelOverloadedError),
    "overloaded": (failure(529, "overloaded_error"), ModelOverloadedError),
    "overloaded in the stream": (
        cut(say("Hi"), keep=1, then=error_event("overloaded_error")),
        ModelOverloadedError,
    ),
    "server error in the stream": (cut(say("Hi"), keep=1, then=error_event("api_error")), ModelOverloadedError),
    "rate limit in the stream": (cut(say("Hi"), keep=1, then=error_event("rate_limit_error")), RateLimitedError),
    "time-out in the stream": (cut(say("Hi"), keep=1, then=error_event("timeout_error")), ModelTimeoutError),
    "invalid request in the stream": (
        cut(say("Hi"), keep=1, then=error_event("invalid_request_error")),
        RequestRefusedError,
    ),
    "200 with an error inside": (
        raw(b'{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}'),
        ModelOverloadedError,
    ),
}


@pytest.mark.parametrize(("reply", "kind"), ERRORS.values(), ids=ERRORS.keys())
def test_api_errors_map_to_typed_errors(claude: Start, reply: RawReply, kind: type[ModelError]) -> None:
    _, error = claude(reply).until_error(kind)
    assert type(error) is kind
    assert error.detail in ("Sorry.", "Overloaded")


def test_an_overloaded_server_is_retried_after_the_time_it_names(claude: Start) -> None:
    busy = failure(529, "overloaded_error", headers={"retry-after": "0"})
    chunks = claude(busy, message(say("Hi")), max_retries=1).chunks()
    assert [chunk.get("format") for chunk in chunks] == ["retry", None]


def test_an_error_after_text_keeps_the_text(claude: Start) -> None:
    model = claude(cut(say("Hello", 1), keep=8, then=error_event("overloaded_error")), max_retries=3)
    chunks, _ = model.until_error(ModelOverloadedError)
    assert folded(chunks) == ["Hello"]
    assert len(model.server.requests) == 1


def test_missing_and_wrong_keys_raise_different_errors(claude: Start) -> None:
    claude(api_key=None).until_error(MissingKeyError)
    claude(server={"api_key": "right"}).until_error(WrongKeyError)
    _, error = claude(api_key=None, api_base=None).until_error(MissingKeyError)
    assert "ANTHROPIC_API_KEY" in str(error)
