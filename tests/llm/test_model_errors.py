"""When a model can't be reached or refuses, a typed error says what is wrong and what to do."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from interpreter import OpenInterpreter
from interpreter.errors import (
    ContextTooLongError,
    MissingKeyError,
    ModelError,
    ModelOverloadedError,
    ModelTimeoutError,
    ModelUnreachableError,
    NotAStreamError,
    ProviderNotFoundError,
    QuotaExceededError,
    RateLimitedError,
    RequestRefusedError,
    UnknownModelError,
    WrongKeyError,
)
from model_server import RawReply, error, raw, stall, text
from scripted_llm import HELLO, SYSTEM, Start, folded


def refusal(status: int, **fields: Any) -> RawReply:
    return error(status, {"error": {"message": "Sorry.", **fields}})


ERRORS: dict[str, tuple[RawReply, type[ModelError], str]] = {
    "wrong key": (refusal(401, code="invalid_api_key"), WrongKeyError, "key"),
    "forbidden": (refusal(403), WrongKeyError, "key"),
    "unknown model": (refusal(404, code="model_not_found"), UnknownModelError, "gpt-4o"),
    "unknown model, status 400": (
        refusal(400, code="model_not_found", param="model"),
        UnknownModelError,
        "--model",
    ),
    "no such page": (error(404, b"<html>", {"Content-Type": "text/html"}), NotAStreamError, "api_base"),
    "moved": (error(301, b"", {"Location": "https://x.y/v1"}), NotAStreamError, "https://x.y/v1"),
    "rate limit": (refusal(429, type="rate_limit_exceeded"), RateLimitedError, "later"),
    "quota": (refusal(429, code="insufficient_quota"), QuotaExceededError, "quota"),
    "payment": (refusal(402), QuotaExceededError, "quota"),
    "context too long": (refusal(400, code="context_length_exceeded"), ContextTooLongError, "too long"),
    "context too long, llama.cpp": (refusal(400, type="exceed_context_size_error"), ContextTooLongError, "too long"),
    "context too long, vLLM": (
        refusal(400, type="BadRequestError", param="input_tokens", code=400),
        ContextTooLongError,
        "too long",
    ),
    "too large": (error(413, b""), ContextTooLongError, "too long"),
    "server error": (refusal(500), ModelOverloadedError, "HTTP 500"),
    "bad gateway": (error(502, b"<html>", {"Content-Type": "text/html"}), ModelOverloadedError, "HTTP 502"),
    "overloaded": (refusal(529, type="overloaded_error"), ModelOverloadedError, "HTTP 529"),
    "refused": (refusal(400, param="messages"), RequestRefusedError, "HTTP 400"),
    "error in a stream": (
        raw(b'data: {"error": {"message": "Sorry.", "code": 429}}\n\n'),
        RateLimitedError,
        "later",
    ),
    "typed error in a stream": (
        raw(b'data: {"error": {"type": "server_error"}}\n\n'),
        ModelOverloadedError,
        "later",
    ),
    "error with status 200": (raw(b'{"error": {"code": "insufficient_quota"}}'), QuotaExceededError, "quota"),
    "error in a list": (
        error(400, b'[{"error": {"code": 400, "message": "Sorry."}}]'),
        RequestRefusedError,
        "Sorry.",
    ),
    "wrong key at Google": (
        error(400, b'[{"error": {"status": "INVALID_ARGUMENT", "details": [{"reason": "API_KEY_INVALID"}]}}]'),
        WrongKeyError,
        "--api_key",
    ),
    "error as a string": (error(400, b'{"error": "Sorry."}'), RequestRefusedError, "Sorry."),
}


@pytest.mark.parametrize(("reply", "kind", "words"), ERRORS.values(), ids=ERRORS.keys())
def test_each_failure_raises_its_typed_error(
    asking: Start, reply: RawReply, kind: type[ModelError], words: str
) -> None:
    chunks, caught = asking(reply, reply, max_retries=0).until_error(ModelError)
    assert type(caught) is kind
    assert words in str(caught)
    assert chunks == []


def test_the_servers_message_is_passed_on_but_never_interpreted(asking: Start) -> None:
    misleading = error(400, "Rate limit! Invalid API key! context_length_exceeded", None)
    _, caught = asking(misleading, misleading).until_error(ModelError)
    assert type(caught) is RequestRefusedError
    assert caught.detail == "Rate limit! Invalid API key! context_length_exceeded"
    assert caught.detail in str(caught)


def test_a_missing_key_is_reported_before_anything_is_sent() -> None:
    with pytest.raises(MissingKeyError, match=r"OPENAI_API_KEY.*--api_key.*--api_base"):
        next(OpenInterpreter().llm.reply([SYSTEM, HELLO]))


def test_a_missing_key_and_a_wrong_key_raise_different_errors(asking: Start) -> None:
    locked = {"api_key": "right"}
    _, missing = asking(server=locked, api_key=None).until_error(MissingKeyError)
    assert "--api_key" in str(missing)
    asking(server=locked, api_key="wrong").until_error(WrongKeyError)
    assert folded(asking(text("Hi"), server=locked, api_key="right\n").chunks()) == ["Hi"]


def test_a_key_with_non_ascii_characters_is_a_wrong_key(asking: Start) -> None:
    asking(api_key="sk-…").until_error(WrongKeyError)


def test_an_unknown_provider_is_named_and_points_to_the_model_list(asking: Start) -> None:
    _, caught = asking(model="acme/x", api_base=None).until_error(ProviderNotFoundError)
    assert "'acme'" in str(caught)
    assert "--models" in str(caught)


def test_a_port_without_a_server_is_reported_at_once(asking: Start) -> None:
    with socket.socket() as taken:  # so that no other server can listen there
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        chunks, caught = asking(api_base=f"http://127.0.0.1:{port}/v1").until_error(ModelUnreachableError)
        assert f"127.0.0.1:{port}" in str(caught)
        assert chunks == []  # no retries: waiting doesn't start a local server
        _, caught = asking(api_base=f"http://127.0.0.1:{port}", model="ollama/x").until_error(ModelUnreachableError)
        assert "ollama serve" in str(caught)


def test_an_invalid_url_raises_an_error(asking: Start) -> None:
    asking(api_base="ftp://x/v1").until_error(NotAStreamError)
    asking(api_base="http://x:port/v1").until_error(NotAStreamError)


def test_a_silent_server_times_out(asking: Start) -> None:
    silent, late = stall(), text("Hi").then(stall())
    asking(silent, timeout=0.05, max_retries=0).until_error(ModelTimeoutError)
    chunks, _ = asking(late, timeout=2, max_retries=0).until_error(ModelTimeoutError)
    assert folded(chunks) == ["Hi"]


def test_an_unknown_ollama_model_suggests_pulling_it(asking: Start) -> None:
    model = asking(refusal(404), model="ollama/tiny")
    _, caught = model.until_error(UnknownModelError)
    assert "ollama pull tiny" in str(caught)
