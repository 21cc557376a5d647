"""When the model cannot be asked, a typed error says what is wrong and what to do."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from asking import HELLO, SYSTEM, Start, folded
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


def refusal(status: int, **fields: Any) -> RawReply:
    return error(status, {"error": {"message": "Sorry.", **fields}})


ERRORS: dict[str, tuple[RawReply, type[ModelError], str]] = {
    "wrong key": (refusal(401, code="invalid_api_key"), WrongKeyError, "key"),
    "forbidden": (refusal(403), WrongKeyError, "key"),
    "unknown model": (refusal(404, code="model_not_found"), UnknownModelError, "gpt-4o"),
    "unknown model, by field": (
        refusal(400, code="model_not_found", param="model"),
        UnknownModelError,
        "--model",
    ),
    "no such page": (error(404, b"<html>", {"Content-Type": "text/html"}), NotAStreamError, "api_base"),
    "moved": (error(301, b"", {"Location": "https://x.y/v1"}), NotAStreamError, "https://x.y/v1"),
    "rate limit": (refusal(429, type="rate_limit_exceeded"), RateLimitedError, "later"),
    "quota": (refusal(429, code="insufficient_quota"), QuotaExceededError, "quota"),
    "payment": (refusal(402), QuotaExceededError, "quota"),
    "context": (refusal(400, code="context_length_exceeded"), ContextTooLongError, "too long"),
    "context of llama.cpp": (refusal(400, type="exceed_context_size_error"), ContextTooLongError, "too long"),
    "context of vLLM": (
        refusal(400, type="BadRequestError", param="input_tokens", code=400),
        ContextTooLongError,
        "too long",
    ),
    "too large": (error(413, b""), ContextTooLongError, "too long"),
    "server": (refusal(500), ModelOverloadedError, "HTTP 500"),
    "gateway": (error(502, b"<html>", {"Content-Type": "text/html"}), ModelOverloadedError, "HTTP 502"),
    "overloaded": (refusal(529, type="overloaded_error"), ModelOverloadedError, "HTTP 529"),
    "refused": (refusal(400, param="messages"), RequestRefusedError, "HTTP 400"),
    "in a stream": (
        raw(b'data: {"error": {"message": "Sorry.", "code": 429}}\n\n'),
        RateLimitedError,
        "later",
    ),
    "in a stream, by type": (
        raw(b'data: {"error": {"type": "server_error"}}\n\n'),
        ModelOverloadedError,
        "later",
    ),
    "as an answer": (raw(b'{"error": {"code": "insufficient_quota"}}'), QuotaExceededError, "quota"),
    "in a list": (
        error(400, b'[{"error": {"code": 400, "message": "Sorry."}}]'),
        RequestRefusedError,
        "Sorry.",
    ),
    "wrong key at Google": (
        error(400, b'[{"error": {"status": "INVALID_ARGUMENT", "details": [{"reason": "API_KEY_INVALID"}]}}]'),
        WrongKeyError,
        "--api_key",
    ),
    "as a word": (error(400, b'{"error": "Sorry."}'), RequestRefusedError, "Sorry."),
}


@pytest.mark.parametrize(("reply", "kind", "words"), ERRORS.values(), ids=ERRORS.keys())
def test_each_failure_has_its_error(asking: Start, reply: RawReply, kind: type[ModelError], words: str) -> None:
    chunks, caught = asking(reply, reply, max_retries=0).until_error(ModelError)
    assert type(caught) is kind
    assert words in str(caught)
    assert chunks == []


def test_the_servers_own_words_are_passed_on_and_never_read(asking: Start) -> None:
    misleading = error(400, "Rate limit! Invalid API key! context_length_exceeded", None)
    _, caught = asking(misleading, misleading).until_error(ModelError)
    assert type(caught) is RequestRefusedError
    assert caught.detail == "Rate limit! Invalid API key! context_length_exceeded"
    assert caught.detail in str(caught)


def test_no_key_is_said_before_anything_is_sent() -> None:
    with pytest.raises(MissingKeyError, match=r"OPENAI_API_KEY.*--api_key.*--api_base"):
        next(OpenInterpreter().llm.reply([SYSTEM, HELLO]))


def test_a_server_that_wants_a_key_is_another_matter_than_a_wrong_key(asking: Start) -> None:
    locked = {"api_key": "right"}
    _, missing = asking(server=locked, api_key=None).until_error(MissingKeyError)
    assert "--api_key" in str(missing)
    asking(server=locked, api_key="wrong").until_error(WrongKeyError)
    assert folded(asking(text("Hi"), server=locked, api_key="right\n").chunks()) == ["Hi"]


def test_a_key_that_cannot_be_one(asking: Start) -> None:
    asking(api_key="sk-…").until_error(WrongKeyError)


def test_an_unknown_provider_is_named_with_the_way_to_those_that_are_known(asking: Start) -> None:
    _, caught = asking(model="nobody/x", api_base=None).until_error(ProviderNotFoundError)
    assert "'nobody'" in str(caught)
    assert "--models" in str(caught)


def test_nothing_listens_there(asking: Start) -> None:
    with socket.socket() as taken:  # so that nobody else comes to listen there
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        chunks, caught = asking(api_base=f"http://127.0.0.1:{port}/v1").until_error(ModelUnreachableError)
        assert f"127.0.0.1:{port}" in str(caught)
        assert chunks == []  # a server on this machine that is not there will not come by waiting
        _, caught = asking(api_base=f"http://127.0.0.1:{port}", model="ollama/x").until_error(ModelUnreachableError)
        assert "ollama serve" in str(caught)


def test_an_address_that_is_none(asking: Start) -> None:
    asking(api_base="ftp://x/v1").until_error(NotAStreamError)
    asking(api_base="http://x:port/v1").until_error(NotAStreamError)


def test_a_server_that_says_nothing(asking: Start) -> None:
    silent, late = stall(), text("Hi").then(stall())
    asking(silent, timeout=0.05, max_retries=0).until_error(ModelTimeoutError)
    chunks, _ = asking(late, timeout=2, max_retries=0).until_error(ModelTimeoutError)
    assert folded(chunks) == ["Hi"]


def test_an_unknown_model_of_ollama_says_how_to_get_it(asking: Start) -> None:
    model = asking(refusal(404), model="ollama/tiny")
    _, caught = model.until_error(UnknownModelError)
    assert "ollama pull tiny" in str(caught)
