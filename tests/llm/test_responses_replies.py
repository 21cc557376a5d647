"""Replies in OpenAI's Responses format become the same chunks and errors as those of other providers."""

from __future__ import annotations

from typing import Any

import pytest

from interpreter.errors import (
    BrokenStreamError,
    ContextTooLongError,
    ModelError,
    ModelOverloadedError,
    QuotaExceededError,
    RateLimitedError,
    ReplyCutError,
    ReplyDeclinedError,
    RequestRefusedError,
    UnknownModelError,
    WrongKeyError,
)
from model_server import RawReply, raw
from responses_server import (
    ResponsesServer,
    call,
    cut,
    error_event,
    failure,
    reasoning,
    response,
    say,
    whole,
)
from scripted_llm import ScriptedLlm, Start, folded


@pytest.fixture
def gpt(asking: Start) -> Start:
    def start(*replies: Any, **settings: Any) -> ScriptedLlm:
        settings = {"model": "openai/responses/gpt-5", "max_retries": 0} | settings
        return asking(*replies, kind=ResponsesServer, **settings)

    return start


def test_text_arrives_piece_by_piece(gpt: Start) -> None:
    pieces = ["He", "llo", " you"]
    chunks = gpt(response(say("Hello you", pieces))).chunks()
    assert chunks == [{"type": "message", "content": piece} for piece in pieces]


@pytest.mark.parametrize("split", [None, 1, 7])
def test_a_function_call_streams_as_a_block(gpt: Start, split: Any) -> None:
    model = gpt(response(say("Look:"), call("python", 'print("é\\n")\n', split)))
    assert folded(model.chunks()) == ["Look:", ("python", 'print("é\\n")\n')]


def test_two_calls_become_two_blocks(gpt: Start) -> None:
    model = gpt(response(call("python", "1", 3), call("shell", "ls", 3, "call_2")))
    assert folded(model.chunks()) == [("python", "1"), ("shell", "ls")]


def test_reasoning_summaries_become_reasoning(gpt: Start) -> None:
    chunks = gpt(response(reasoning("First.", "Second.", split=3), say("Yes"))).chunks()
    assert {chunk["type"] for chunk in chunks[:-1]} == {"reasoning"}
    assert "".join(chunk["content"] for chunk in chunks[:-1]) == "First.\n\nSecond."
    assert chunks[-1] == {"type": "message", "content": "Yes"}


def test_usage_includes_cached_tokens(gpt: Start) -> None:
    [*_, usage] = gpt(response(say("Hi"), usage=(130, 7), cached=100)).stream()
    expected = {"input_tokens": 130, "output_tokens": 7, "cached_tokens": 100, "estimated": False}
    assert (usage["type"], usage["format"]) == ("status", "usage")
    assert usage["content"].items() >= expected.items()
    [*_, usage] = gpt(response(say("Hi"), usage=None)).stream()
    assert usage["content"]["estimated"] is True


def test_a_reply_that_is_not_streamed(gpt: Start) -> None:
    [first, *chunks] = gpt(whole(reasoning("Hm"), say("Look:"), call("shell", "ls"))).stream()
    assert first == {"type": "reasoning", "content": "Hm"}
    assert folded(chunks[:-1]) == ["Look:", ("shell", "ls")]
    assert chunks[-1]["content"]["output_tokens"] == 15


def test_hitting_the_token_limit_inside_a_block_raises_an_error(gpt: Start) -> None:
    full = {"reason": "max_output_tokens"}
    added, begun, *_ = call("python", "print(1)", [r'{"language": "python", "code": "print(', '1)"}'])
    cut_short = added | {"arguments": begun["delta"], "status": "incomplete"}
    model = gpt(
        response([added, begun, cut_short], status="incomplete", incomplete_details=full),
        response(say("So"), status="incomplete", incomplete_details=full),
    )
    chunks, _ = model.until_error(ReplyCutError)
    assert folded(chunks) == [("print(",)]
    assert folded(model.chunks()) == ["So"]


@pytest.mark.parametrize("breaks_off", [True, False])
def test_a_truncated_reply_raises_an_error(gpt: Start, breaks_off: bool) -> None:
    chunks, _ = gpt(cut(say("Hello", 1), keep=7, breaks_off=breaks_off)).until_error(BrokenStreamError)
    assert folded(chunks) == ["Hel"]


def failed(code: str) -> RawReply:
    return response(status="failed", usage=None, error={"code": code, "message": "Sorry."})


def filtered() -> RawReply:
    return response(say("Ha"), status="incomplete", incomplete_details={"reason": "content_filter"})


def error_after_text(code: str | None) -> RawReply:
    return cut(say("Hi"), keep=2, then=error_event(code))


INVALID = "invalid_request_error"
ERRORS: dict[str, tuple[RawReply, type[ModelError]]] = {
    "invalid request": (failure(400, INVALID, param="input"), RequestRefusedError),
    "wrong key": (failure(401, INVALID, "invalid_api_key"), WrongKeyError),
    "unknown model": (failure(404, INVALID, "model_not_found", "model"), UnknownModelError),
    "too long": (failure(400, INVALID, "context_length_exceeded", "input"), ContextTooLongError),
    "quota": (failure(429, "insufficient_quota", "insufficient_quota"), QuotaExceededError),
    "rate limit": (failure(429, "requests", "rate_limit_exceeded"), RateLimitedError),
    "server error": (failure(500, "server_error"), ModelOverloadedError),
    "failed": (failed("server_error"), ModelOverloadedError),
    "failed, rate limit": (failed("rate_limit_exceeded"), RateLimitedError),
    "failed, too long": (failed("context_length_exceeded"), ContextTooLongError),
    "failed, invalid prompt": (failed("invalid_prompt"), RequestRefusedError),
    "filtered": (filtered(), ReplyDeclinedError),
    "error event": (error_after_text("server_error"), ModelOverloadedError),
    "error event without a code": (error_after_text(None), ModelOverloadedError),
    "rate limit event": (error_after_text("rate_limit_exceeded"), RateLimitedError),
    "200 with an error inside": (
        raw(b'{"error": {"message": "Sorry.", "code": "rate_limit_exceeded"}}'),
        RateLimitedError,
    ),
    "200 with a failed response": (
        whole(status="failed", error={"code": "server_error", "message": "Sorry."}),
        ModelOverloadedError,
    ),
}


@pytest.mark.parametrize(("reply", "kind"), ERRORS.values(), ids=ERRORS.keys())
def test_api_errors_map_to_typed_errors(gpt: Start, reply: RawReply, kind: type[ModelError]) -> None:
    _, error = gpt(reply).until_error(kind)
    assert type(error) is kind
    assert error.detail in ("Sorry.", "")


def test_a_response_that_failed_before_any_text_is_retried(gpt: Start) -> None:
    chunks = gpt(failed("server_error"), response(say("Hi")), max_retries=1).chunks()
    assert [chunk.get("format") for chunk in chunks] == ["retry", None]
