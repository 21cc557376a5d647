"""The evaluation's gauge forwards requests, counts tokens like the server, and notices disconnected clients."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from eval.gauge import Gauge, Tokens

from routed_server import Answer, Asked, RoutedServer, as_json

BODY = {"messages": [{"role": "user", "content": "hi"}], "stream": True}


def event(written: int) -> bytes:
    timings = {"prompt_n": 7, "cache_n": 30, "predicted_n": written}
    return b"data: " + json.dumps({"choices": [], "timings": timings}).encode() + b"\n\n"


def streamed(asked: Asked) -> Answer:
    return Answer(200, [event(1), event(2), b"data: [DONE]\n\n"], {"Content-Type": "text/event-stream"})


@pytest.fixture
def server() -> Iterator[RoutedServer]:
    routes = {"POST /v1/chat/completions": streamed, "GET /v1/models": as_json({"data": []})}
    with RoutedServer(routes) as server:
        yield server


def gauge(server: RoutedServer, **options: Any) -> Gauge:
    return Gauge(f"{server.address}/v1", "secret", **options)


def test_a_reply_is_forwarded_and_counted_once(server: RoutedServer) -> None:
    with gauge(server) as between:
        reply = httpx.post(f"{between.base_url}/chat/completions", json=BODY)
        assert reply.content == event(1) + event(2) + b"data: [DONE]\n\n"
        assert reply.headers["content-type"] == "text/event-stream"
        assert between.take() == Tokens(read=37, written=2)
        assert between.take() == Tokens()
    asked = server.asked[-1]
    assert asked.headers["authorization"] == "Bearer secret"
    assert asked.body == BODY | {"timings_per_token": True, "temperature": 0}


def test_a_requested_temperature_is_kept(server: RoutedServer) -> None:
    with gauge(server) as between:
        httpx.post(f"{between.base_url}/chat/completions", json=BODY | {"temperature": 0.7})
    assert server.asked[-1].body["temperature"] == 0.7


def test_fresh_disables_the_servers_cache(server: RoutedServer) -> None:
    with gauge(server, fresh=True) as between:
        httpx.post(f"{between.base_url}/chat/completions", json=BODY)
    assert server.asked[-1].body["cache_prompt"] is False


def test_other_requests_and_errors_are_forwarded(server: RoutedServer) -> None:
    with gauge(server) as between:
        assert httpx.get(f"{between.base_url}/models").json() == {"data": []}
        assert httpx.get(f"{between.base_url}/none").status_code == 404


def test_take_waits_for_a_reply_whose_client_disconnected(server: RoutedServer) -> None:
    go_on = threading.Event()

    def endless(asked: Asked) -> Answer:
        def pieces() -> Iterator[bytes]:
            yield event(1)
            go_on.wait(60)
            for written in range(2, 200_000):
                yield event(written)

        return Answer(200, pieces(), {"Content-Type": "text/event-stream"})

    server.routes["POST /v1/chat/completions"] = endless
    with gauge(server) as between:
        with httpx.stream("POST", f"{between.base_url}/chat/completions", json=BODY) as reply:
            next(reply.iter_lines())
        go_on.set()
        assert 0 < between.take().written < 199_999
