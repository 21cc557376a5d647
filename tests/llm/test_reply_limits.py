"""Model replies are limited in size, depth, number and time, and a bad reply raises a typed error."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostile_server import HI, JSON, LINES, STREAM, HostileServer, repeated
from interpreter import OpenInterpreter
from interpreter.errors import LocalServerError, ModelError, ModelTimeoutError, NotAStreamError, ReplyTooLargeError
from interpreter.llm import Llm
from interpreter.llm.anthropic import AnthropicMessages
from interpreter.llm.chat_completions import ChatCompletions
from interpreter.llm.failures import MALFORMED
from interpreter.llm.http import Exchange, event_data, fetch_json, read_events
from interpreter.llm.providers import resolve
from interpreter.llm.reply_parser import ReplyParser
from interpreter.llm.responses import Responses
from interpreter.local_models import ollama, servers
from interpreter.local_models.ollama import OllamaChat
from interpreter.local_models.servers import KINDS, look
from interpreter.messages import Message
from scripted_llm import HELLO, SYSTEM, folded
from waiting import until

MB = 1024 * 1024
SHOWN = JSON + b'{"details": {}}'  # Ollama's model info
MODELS = {
    "chat": "gpt-4o",
    "anthropic": "anthropic/claude-x",
    "responses": "openai/responses/gpt-5",
    "ollama": "ollama/tiny",
}


def model_at(server: HostileServer, wire: str = "chat", **settings: Any) -> Llm:
    llm = OpenInterpreter(stream_all=True).llm
    base = server.address if wire == "ollama" else f"{server.address}/v1"
    settings = {
        "model": MODELS[wire],
        "api_base": base,
        "api_key": "key",
        "max_retries": 0,
        "context_window": 500_000,
    } | settings
    for name, value in settings.items():
        setattr(llm, name, value)
    return llm


def failure(answer: bytes | Iterable[bytes], wire: str = "chat", **settings: Any) -> ModelError:
    """The error that this answer raises; the next request still gets its reply."""
    before = [SHOWN] if wire == "ollama" else []
    with HostileServer(*before, answer, HI) as server:
        llm = model_at(server, wire, **settings)
        with pytest.raises(ModelError) as caught:
            list(llm.reply([SYSTEM, HELLO]))
        llm.model, llm.api_base = MODELS["chat"], f"{server.address}/v1"
        llm.timeout, llm.reply_timeout = 60, 60
        assert folded([c for c in llm.reply([SYSTEM, HELLO]) if c.get("format") != "usage"]) == ["Hi"]
    return caught.value


def after(head: bytes, pieces: Iterable[bytes]) -> Iterator[bytes]:
    yield head
    yield from pieces


def event(data: Any) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


# -- size ----------------------------------------------------------------------------------------------------------

BEGINNINGS = {"chat": STREAM + b"data: ", "anthropic": STREAM + b"data: ", "responses": STREAM + b"data: "}


@pytest.mark.parametrize("wire", MODELS)
def test_an_endless_line_raises_an_error(wire: str) -> None:
    head = BEGINNINGS.get(wire, LINES) + b'{"x": "'
    assert isinstance(failure(after(head, repeated(b"x", 30 * MB)), wire), ReplyTooLargeError)


@pytest.mark.parametrize(
    ("head", "piece"),
    [(STREAM, b"data: x\n"), (STREAM, b" \n"), (JSON, b"{ "), (STREAM, b"data: 1\ndata: 2\r")],
    ids=["event with many lines", "leading blank lines", "one JSON document", "carriage returns"],
)
def test_an_endless_reply_of_any_form_raises_an_error(head: bytes, piece: bytes) -> None:
    error = failure(after(head, repeated(piece, 50 * MB)))
    assert isinstance(error, ReplyTooLargeError | NotAStreamError)


def test_endless_text_raises_an_error() -> None:
    words = event({"choices": [{"delta": {"content": "".join(f"{n:x}" for n in range(100_000))}}]})
    assert isinstance(failure(after(STREAM, repeated(words, 80 * MB))), ReplyTooLargeError)


def test_a_large_error_body_keeps_its_status_and_is_shortened() -> None:
    head = b"HTTP/1.1 500 Oops\r\nContent-Type: text/plain\r\n\r\n"
    error = failure(after(head, repeated(b"x", 40 * MB)))
    assert error.status == 500
    assert len(str(error)) < 1000


@pytest.mark.parametrize("coding", ["gzip", "br"])
def test_a_compression_bomb_raises_an_error(coding: str) -> None:
    bomb = gzip.compress(b"data: " + bytes(60 * MB))
    head = STREAM.replace(b"\r\n\r\n", b"\r\nContent-Encoding: " + coding.encode() + b"\r\n\r\n")
    assert isinstance(failure(head + bomb), ReplyTooLargeError | NotAStreamError)


def test_a_compressed_reply_is_read() -> None:
    head, _, body = HI.partition(b"\r\n\r\n")
    with HostileServer(head + b"\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(body)) as server:
        chunks = list(model_at(server).run([SYSTEM, HELLO]))
    assert chunks[0] == {"type": "message", "content": "Hi"}


def test_endless_headers_raise_an_error() -> None:
    failure(after(b"HTTP/1.1 200 OK\r\n", (b"X-%d: %s\r\n" % (n, b"x" * 1000) for n in range(5000))))


# -- number --------------------------------------------------------------------------------------------------------


def call(index: int, arguments: str = '{"language": "python", "code": "1"}', name: str = "execute") -> dict[str, Any]:
    return {"index": index, "id": f"c{index}", "function": {"name": name, "arguments": arguments}}


FLOODS: dict[str, Callable[[], Iterable[bytes]]] = {
    "many events": lambda: (event({"choices": [{"delta": {"tool_calls": [call(n)]}}]}) for n in range(20_000)),
    "one event": lambda: [event({"choices": [{"delta": {"tool_calls": [call(n) for n in range(20_000)]}}]})],
    "one call": lambda: [event({"choices": [{"delta": {"tool_calls": [call(0, '{"code": "1"}' * 200_000)]}}]})],
    "another tool": lambda: [event({"choices": [{"delta": {"tool_calls": [call(0, "{}" * 1_000_000, "note")]}}]})],
}


@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_of_tool_calls_raises_an_error_quickly(flood: str) -> None:
    pieces = list(FLOODS[flood]())
    began = time.monotonic()
    assert isinstance(failure(after(STREAM, pieces)), ReplyTooLargeError)
    assert time.monotonic() - began < 5


def test_a_flood_of_fenced_blocks_raises_an_error() -> None:
    fences = event({"choices": [{"delta": {"content": "".join(f"```python\n{n}\n```\n" for n in range(5000))}}]})
    assert isinstance(failure(STREAM + fences, supports_functions=False), ReplyTooLargeError)


# -- depth and shape -----------------------------------------------------------------------------------------------

DEEP = b"[" * 100_000


@pytest.mark.parametrize("wire", MODELS)
def test_deeply_nested_json_raises_a_typed_error(wire: str) -> None:
    failure(BEGINNINGS.get(wire, LINES) + b'{"x": ' + DEEP + b"\n\n", wire)
    failure(JSON + b'{"x": ' + DEEP, wire)
    failure(b"HTTP/1.1 500 Oops\r\nContent-Type: application/json\r\n\r\n" + DEEP, wire)


@pytest.mark.parametrize("wire", ["chat", "anthropic"])
@pytest.mark.parametrize("depth", [300, 900, 100_000])
def test_a_call_with_deeply_nested_arguments_does_not_break_the_conversation(wire: str, depth: int) -> None:
    arguments = '{"x": ' + "[" * depth + "]" * depth + "}"
    if wire == "chat":
        answer = event({"choices": [{"delta": {"tool_calls": [call(0, arguments, "note")]}, "finish_reason": "stop"}]})
        answer += b"data: [DONE]\n\n"
    else:
        block = {"type": "tool_use", "id": "c", "name": "note"}
        delta = {"type": "input_json_delta", "partial_json": arguments}
        answer = event({"type": "content_block_start", "index": 0, "content_block": block})
        answer += event({"type": "content_block_delta", "index": 0, "delta": delta})
        answer += event({"type": "content_block_stop", "index": 0})
        answer += event({"type": "message_delta", "delta": {"stop_reason": "tool_use"}})
    with HostileServer(STREAM + answer, STREAM + answer) as server:
        llm = model_at(server, wire)
        chunks = [c for c in llm.reply([SYSTEM, HELLO]) if c["type"] == "tool_call"]
        content = "".join(c.get("content", "") for c in chunks)
        called: Message = {"role": "assistant", "type": "tool_call", "format": "note", "content": content, "call": "c"}
        assert list(llm.reply([SYSTEM, HELLO, called, HELLO]))
    assert len(server.requests) == 2


BAD_EVENTS: dict[str, list[Any]] = {
    "chat": [
        {"choices": 5},
        {"choices": ["x"]},
        {"choices": [{"delta": "x"}]},
        {"choices": [{"delta": {"content": 7}}]},
        {"choices": [{"delta": {"tool_calls": [1]}}]},
        {"choices": [{"delta": {"tool_calls": [{"function": "x"}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": [], "function": {"name": 5, "arguments": "{"}}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": {"a": 1}, "arguments": "{"}}]}}]},
    ],
    "anthropic": [
        {"type": "content_block_delta", "index": [], "delta": {"type": "text_delta", "text": "x"}},
        {"type": "content_block_delta", "index": 0, "delta": "x"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": 5}},
        {"type": "content_block_start", "index": 0, "content_block": "x"},
        {"type": "message_start", "message": {"usage": 5}},
        {"type": "message_delta", "delta": "x"},
        {"type": ["x"], "delta": {}},
    ],
    "responses": [
        {"type": "response.output_item.done", "item": "x"},
        {"type": "response.output_item.done", "output_index": [], "item": {"type": "message"}},
        {"type": "response.output_item.done", "item": {"type": "message", "content": [5]}},
        {"type": "response.output_text.delta", "delta": 5},
        {"type": "response.completed", "response": "x"},
    ],
    "ollama": [
        {"message": "x"},
        {"message": {"tool_calls": [5]}},
        {"message": {"content": "x", "tool_calls": 5}},
    ],
}


@pytest.mark.parametrize(("wire", "data"), [(wire, data) for wire, all_ in BAD_EVENTS.items() for data in all_])
def test_a_malformed_event_raises_a_typed_error(wire: str, data: Any) -> None:
    line = json.dumps(data).encode() + b"\n"
    failure(LINES + line if wire == "ollama" else STREAM + b"data: " + line + b"\n", wire)


def test_invalid_token_counts_are_replaced_by_estimates() -> None:
    for usage in (
        "x",
        [1],
        {"prompt_tokens": "many"},
        {"prompt_tokens": 5, "completion_tokens": {}},
        {"prompt_tokens": -1},
    ):
        answer = event({"choices": [{"delta": {"content": "Hi"}}], "usage": usage}) + b"data: [DONE]\n\n"
        with HostileServer(STREAM + answer) as server:
            *_, last = model_at(server).run([SYSTEM, HELLO])
        assert last["format"] == "usage"
        assert last["content"]["input_tokens"] > 0


# -- time ----------------------------------------------------------------------------------------------------------


def slowly(pieces: Iterable[bytes], pause: float = 0.05) -> Iterator[bytes]:
    for piece in pieces:
        yield piece
        time.sleep(pause)


TRICKLES: dict[str, Callable[[], Iterable[bytes]]] = {
    "a byte at a time": lambda: after(STREAM, slowly([b"data: "] + [b"x"] * 200)),
    "comments": lambda: after(STREAM, slowly([b": still here\n\n"] * 200)),
    "empty chunks": lambda: after(STREAM, slowly([event({"choices": [{"delta": {}}]})] * 200)),
    "blank space": lambda: after(STREAM, slowly([b" "] * 200)),
    "headers": lambda: slowly([b"HTTP/1.1 200 OK\r\n"] + [b"X: y\r\n"] * 200),
    "one JSON document": lambda: after(JSON, slowly([b'{"choices": ['] + [b" "] * 200)),
    "an error": lambda: after(b"HTTP/1.1 500 Oops\r\n\r\n", slowly([b"x"] * 200)),
}


@pytest.mark.parametrize("trickle_kind", TRICKLES)
def test_a_server_that_only_trickles_bytes_times_out(trickle_kind: str) -> None:
    began = time.monotonic()
    error = failure(TRICKLES[trickle_kind](), timeout=0.5, connect_timeout=0.5)
    assert isinstance(error, ModelTimeoutError)
    assert "llm.timeout" in str(error)
    assert time.monotonic() - began < 5


def test_the_time_for_connecting_is_not_added_to_that_for_the_headers() -> None:
    began = time.monotonic()
    error = failure(TRICKLES["headers"](), timeout=0.5, connect_timeout=30)
    assert isinstance(error, ModelTimeoutError) and "llm.timeout" in str(error)
    assert time.monotonic() - began < 5


def test_a_slow_but_steady_model_does_not_time_out() -> None:
    word = event({"choices": [{"delta": {"content": "x "}}]})
    with HostileServer(after(STREAM, slowly([*[word] * 12, b"data: [DONE]\n\n"], 0.1))) as server:
        chunks = list(model_at(server, timeout=0.5).run([SYSTEM, HELLO]))
    assert "".join(c["content"] for c in chunks if c["type"] == "message") == "x " * 12


def test_the_whole_reply_has_a_time_limit() -> None:
    word = event({"choices": [{"delta": {"content": "x "}}]})
    error = failure(after(STREAM, slowly([word] * 200)), reply_timeout=0.5)
    assert isinstance(error, ModelTimeoutError)
    assert "llm.reply_timeout" in str(error)


# -- other places --------------------------------------------------------------------------------------------------


def test_a_redirect_is_not_followed() -> None:
    with HostileServer(HI) as other:
        moved = f"HTTP/1.1 307 Moved\r\nLocation: {other.address}/v1/chat/completions\r\nContent-Length: 0\r\n\r\n"
        error = failure(moved.encode())
        assert other.address in str(error)
        assert other.requests == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("answer", ["large", "deep", "slow"])
def test_a_model_list_is_limited_in_size_depth_and_time(kind: Any, answer: str) -> None:
    answers = {
        "large": lambda: after(JSON, repeated(b"[1],", 60 * MB)),
        "deep": lambda: [JSON, DEEP],
        "slow": lambda: after(JSON, slowly([b"[ "] * 200)),
    }
    began = time.monotonic()
    with HostileServer(*(answers[answer]() for _ in range(3))) as server:
        assert look(replace(kind, address=server.address), {}, timeout=0.5) is None
    assert server.sent < 16 * MB
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("answer", [b"x", b"["])
def test_ollama_replies_are_limited_in_size(answer: bytes) -> None:
    with HostileServer(*(after(JSON, repeated(answer, 40 * MB)) for _ in range(2))) as server:
        with pytest.raises(LocalServerError):
            ollama.show(server.address, "tiny")
        with pytest.raises(ReplyTooLargeError):
            list(ollama.pull(server.address, "tiny"))
        assert server.sent < 16 * MB


@pytest.mark.parametrize(
    "said", [{"model_info": [1]}, {"parameters": 5}, {"details": "x"}, {"model_info": {"a.context_length": []}}]
)
def test_malformed_ollama_model_info_is_ignored(said: dict[str, Any]) -> None:
    with HostileServer(JSON + json.dumps(said).encode()) as server:
        assert ollama.show(server.address, "tiny") == ollama.OllamaModel()


@pytest.mark.parametrize(
    "said",
    [
        5,
        {"digest": ["a"]},
        {"digest": "a", "total": "x"},
        {"digest": "a", "completed": {"b": 1}},
        {"digest": "a", "total": float("inf")},
        {"digest": "a", "total": float("nan")},
        {"digest": "a", "completed": 10**4000},
        {"digest": "a", "completed": -1},
    ],
    ids=lambda said: f"{said}"[:40],
)
def test_a_malformed_pull_event_raises_a_typed_error(said: Any) -> None:
    with (
        HostileServer(JSON + json.dumps(said).encode() + b"\n") as server,
        pytest.raises(LocalServerError, match="not Ollama"),
    ):
        list(ollama.pull(server.address, "tiny"))


def test_a_pull_with_too_many_layers_raises_a_typed_error() -> None:
    layers = "".join(f'{{"status": "x", "digest": "{number}"}}\n' for number in range(2000))
    with HostileServer(JSON + layers.encode()) as server, pytest.raises(LocalServerError, match="not Ollama"):
        list(ollama.pull(server.address, "tiny"))


@pytest.mark.parametrize("row", [5, {}, {"id": "m", "meta": "x"}, {"id": [], "type": "llm"}, {"name": 5, "size": {}}])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_malformed_model_list_is_tolerated(kind: Any, row: Any) -> None:
    listed = JSON + json.dumps({"data": [row], "models": [row]}).encode()
    with HostileServer(listed, listed, listed) as server:
        found = look(replace(kind, address=server.address), {}, timeout=2)
    assert found is None or all(isinstance(model.name, str) for model in found.models)


def test_a_malformed_window_size_is_ignored() -> None:
    for row in ({"meta": "x"}, {"meta": {"n_ctx": []}}, {"max_model_len": "x"}, {"max_model_len": True}):
        listed = JSON + json.dumps({"data": [{"id": "local-model", **row}]}).encode()
        with HostileServer(listed, listed) as server:
            assert model_at(server, model="local-model", context_window=None).window(5000) is None


def test_a_json_reply_that_is_slow_to_parse_raises_an_error() -> None:
    """Empty lists take 30 times their size in memory, and parsing them blocks Ctrl-C for seconds."""
    lists = chain([JSON + b'{"choices": [[]'], repeated(b",[]", 12 * MB), [b"]}"])
    assert isinstance(failure(lists), ReplyTooLargeError)


@pytest.mark.parametrize("number", ["1e999", "1" + "0" * 4000])
def test_an_implausible_window_size_is_ignored(number: str) -> None:
    listed = JSON + f'{{"data": [{{"id": "local-model", "max_model_len": {number}}}]}}'.encode()
    with HostileServer(listed, listed) as server:
        assert model_at(server, model="local-model", context_window=None).window(5000) is None


def hanging() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    time.sleep(90)  # in a daemon thread; longer than any wait in these tests


# The program with waits that only Ctrl-C ends: a limit of seconds could pass first on a busy machine.
PATIENT = """
import sys
from interpreter.llm import http
fetch_json = http.fetch_json
http.fetch_json = lambda method, url, seconds, *args, **named: fetch_json(method, url, 600, *args, **named)
from interpreter.local_models import servers
at_once = servers._at_once
servers._at_once = lambda ask, items, seconds: at_once(ask, items, 600)
from runpy import run_module
run_module("interpreter", run_name="__main__", alter_sys=True)
"""
MANY = JSON + json.dumps({"models": [{"name": f"m{number}"} for number in range(40)]}).encode()


@pytest.mark.parametrize(
    ("argv", "answers"),
    [
        (["--json", "--model", "ollama/tiny", "hello"], []),
        (["--json", "--model", "openai/tiny", "--api_base", "{address}/v1", "hello"], []),
        (["--models"], []),
        (["--models"], [MANY]),
    ],
    ids=["Ollama model info", "window size", "model lists", "window sizes of many models"],
)
def test_ctrl_c_ends_the_wait_for_a_hanging_server(argv: list[str], answers: list[bytes], tmp_path: Path) -> None:
    with HostileServer(*answers, *(hanging() for _ in range(40))) as server:
        env = {**os.environ, "HOME": str(tmp_path), "OLLAMA_HOST": server.address, "OPENAI_API_KEY": "k"}
        argv = [sys.executable, "-c", PATIENT, *(word.format(address=server.address) for word in argv)]
        null = subprocess.DEVNULL
        with subprocess.Popen(argv, env=env, stdin=null, stdout=null, stderr=null) as program:
            try:
                until(lambda: len(server.requests) > len(answers), "the program's request")
                program.send_signal(signal.SIGINT)
                assert program.wait(20) == 130
            finally:
                program.kill()


def test_asking_for_many_window_sizes_has_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "_ALL_ANSWERS_TIMEOUT", 0.5)
    with HostileServer(*(hanging() for _ in range(40))) as server:
        began = time.monotonic()
        known = servers.LocalServer(replace(KINDS[0], address=server.address))
        assert servers.contexts_of(known, [servers.Model(f"m{number}") for number in range(40)]) == [None] * 40
    assert time.monotonic() - began < 4


def test_endless_interim_responses_time_out() -> None:
    interim = (b"HTTP/1.1 100 Continue\r\n\r\n" for _ in range(100_000))
    error = failure(slowly(interim, 0.001), timeout=0.5, connect_timeout=0.5)
    assert isinstance(error, ModelTimeoutError)


# -- any bytes -----------------------------------------------------------------------------------------------------

WIRES: dict[str, type[Exchange]] = {
    "chat": ChatCompletions,
    "anthropic": AnthropicMessages,
    "responses": Responses,
    "ollama": OllamaChat,
}
KEYS = (
    "type index delta content_block message usage choices finish_reason content tool_calls function name arguments id "
    "text thinking partial_json signature stop_reason item output_index response output error reasoning_content done "
    "output_tokens input_tokens summary action actions status"
).split()
WORDS = st.sampled_from(
    (
        "text_delta input_json_delta content_block_delta content_block_start content_block_stop tool_use message_delta "
        "message_start response.output_item.done response.output_item.added function_call response.completed "
        'response.output_text.delta message reasoning execute {"code":"1"} {'
    ).split()
)
VALUES = st.recursive(
    WORDS | st.none() | st.booleans() | st.integers(-2, 3) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=20,
)
EVENTS = st.lists(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6) | VALUES, max_size=6)


def read_anything(wire: str, stream: bytes) -> None:
    """Read a reply as `Llm` does; only typed errors may result."""
    endpoint = resolve("openai/x", {}, api_base="http://127.0.0.1:1/v1", api_key="k")
    exchange = WIRES[wire](endpoint, {"messages": []}, {})
    parser = ReplyParser(fences=True, tools=["note"])
    try:
        for chunk in read_events(event_data([stream]), exchange):
            parser.feed(chunk)
    except (ModelError, *MALFORMED):
        pass  # the caller turns these into typed errors
    parser.finish()
    assert isinstance(parser.weakness, str)


@given(st.sampled_from(list(WIRES)), EVENTS)
def test_any_events_give_a_reply_or_a_typed_error(wire: str, events: list[Any]) -> None:
    read_anything(wire, b"".join(map(event, events)))


@given(st.sampled_from(list(WIRES)), st.binary(max_size=200), EVENTS)
def test_any_bytes_give_a_reply_or_a_typed_error(wire: str, noise: bytes, events: list[Any]) -> None:
    stream = b"".join(map(event, events))
    middle = len(stream) // 2
    read_anything(wire, stream[:middle] + noise + stream[middle:])


FUZZ = """
import sys, time
sys.path.insert(0, {tests!r})
from hypothesis import HealthCheck, given, settings, seed
import importlib.util
spec = importlib.util.spec_from_file_location("limits", {file!r})
limits = importlib.util.module_from_spec(spec); spec.loader.exec_module(limits)
many = settings(max_examples=2000, database=None, deadline=None, suppress_health_check=list(HealthCheck))
events, noise = limits.test_any_events_give_a_reply_or_a_typed_error, limits.test_any_bytes_give_a_reply_or_a_typed_error
tests = [many(events), many(noise)]
ends, runs = time.monotonic() + {seconds}, 0
while time.monotonic() < ends:
    runs += 1
    for test in tests:
        seed(time.time_ns())(test)()
print(runs)
"""


@pytest.mark.full
@pytest.mark.timeout(600)
def test_minutes_of_fuzzing_find_only_typed_errors() -> None:
    tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    code = FUZZ.format(tests=tests, file=os.path.abspath(__file__), seconds=200)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) >= 1, "rounds of 4,000 examples"


MEMORY = """
import resource, sys
from interpreter import OpenInterpreter
llm = OpenInterpreter().llm
llm.model, llm.api_base, llm.api_key, llm.max_retries = sys.argv[1], sys.argv[2], "key", 0
def ask():
    try:
        list(llm.reply([dict(role="system", type="message", content="s"), dict(role="user", type="message", content="u")]))
    except Exception as error:
        return type(error).__name__
ask()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(ask(), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("size", [30, pytest.param(200, marks=pytest.mark.full)])
def test_memory_stays_flat_while_a_long_line_arrives(size: int) -> None:
    long = after(STREAM + b'data: {"x": "', repeated(b"x", size * MB))
    with HostileServer(HI, long) as server:
        argv = [sys.executable, "-c", MEMORY, "gpt-4o", f"{server.address}/v1"]
        kind, grown = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
    assert kind == "ReplyTooLargeError"
    assert int(grown) < 24, "megabytes"


def test_a_small_request_times_out_when_headers_trickle_in() -> None:
    server = socket.create_server(("127.0.0.1", 0))

    def trickle() -> None:
        connection, _ = server.accept()
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
            for _ in range(60):
                connection.sendall(b"a")
                time.sleep(0.1)

    threading.Thread(target=trickle, daemon=True).start()
    began = time.monotonic()
    with pytest.raises(httpx.HTTPError):
        fetch_json("GET", f"http://127.0.0.1:{server.getsockname()[1]}/", 0.5, connect=5)
    server.close()
    assert time.monotonic() - began < 4
