"""Discovering the model servers on this machine and their models."""

from __future__ import annotations

import socket
import threading
from dataclasses import replace

import pytest

from interpreter.local_models.servers import KINDS, LocalServer, Model, ServerKind, context_of, find, known_kinds, look
from routed_server import Answer, Asked, Route, RoutedServer, as_json

KIND = {kind.name: kind for kind in KINDS}
PROPS = as_json({"default_generation_settings": {"n_ctx": 4096}})
TAGS = as_json(
    {
        "models": [
            {"name": "llama3.1:latest", "size": 4_700_000_000},
            {"name": "qwen2.5-coder:7b", "size": 4_600_000_000},
            {"name": "nomic-embed-text:latest", "size": 1},
        ]
    }
)
LM_STUDIO = as_json(
    {
        "data": [
            {"id": "qwen-7b", "type": "llm", "state": "not-loaded", "max_context_length": 32768},
            {
                "id": "llama-8b",
                "type": "llm",
                "state": "loaded",
                "max_context_length": 131072,
                "loaded_context_length": 4096,
            },
            {"id": "nomic", "type": "embeddings", "state": "not-loaded", "max_context_length": 2048},
        ]
    }
)
LLAMA = {"id": "model.gguf", "meta": {"n_ctx": 8192, "n_ctx_train": 32768, "size": 98_000_000}}


def listed(*rows: dict[str, object]) -> Answer:
    return as_json({"object": "list", "data": list(rows)})


def kind_at(name: str, server: RoutedServer) -> ServerKind:
    return replace(KIND[name], address=server.address)


def look_up(name: str, routes: dict[str, Route | Answer], environ: dict[str, str] | None = None) -> LocalServer | None:
    with RoutedServer(routes) as server:
        return look(kind_at(name, server), environ or {})


def test_all_servers_are_asked_in_parallel() -> None:
    together = threading.Barrier(5)  # each answers only once all have been asked

    def when_all_asked(answer: Answer) -> Route:
        def route(asked: Asked) -> Answer:
            together.wait(60)
            return answer

        return route

    one = listed({"id": "one"})
    with (
        RoutedServer({"GET /api/tags": when_all_asked(TAGS)}) as ollama,
        RoutedServer({"GET /api/v0/models": when_all_asked(LM_STUDIO)}) as lm_studio,
        RoutedServer({"GET /v1/models": when_all_asked(one)}) as jan,
        RoutedServer({"GET /v1/models": when_all_asked(listed(LLAMA))}) as llama,
        RoutedServer({"GET /v1/models": when_all_asked(listed({"id": "v", "max_model_len": 9}))}) as vllm,
    ):
        kinds = [
            kind_at("ollama", ollama),
            kind_at("lm_studio", lm_studio),
            kind_at("jan", jan),
            kind_at("llama.cpp", llama),
            kind_at("vllm", vllm),
        ]
        found = find(kinds, {}, timeout=30)
    assert [server.kind.name for server in found] == ["ollama", "lm_studio", "jan", "llama.cpp", "vllm"]
    assert [len(server.models) for server in found] == [2, 2, 1, 1, 1]


def test_closed_and_silent_ports_are_skipped() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        quiet = replace(KIND["jan"], address=f"http://127.0.0.1:{silent.getsockname()[1]}")
        shut = replace(KIND["vllm"], address=f"http://127.0.0.1:{closed.getsockname()[1]}")
        assert find([quiet, shut], {}, timeout=0.2) == []


@pytest.mark.parametrize(
    "answer",
    [
        Answer(200, [b"<html>It works!</html>"], {"Content-Type": "text/html"}),
        as_json(["a", "list"]),
        as_json({"data": "no list"}),
        as_json({"hello": "world"}),
        Answer(500, [b"oops"]),
    ],
)
def test_another_program_on_the_port_is_not_a_model_server(answer: Answer) -> None:
    for name in ("llama.cpp", "vllm", "jan", "lm_studio"):
        assert look_up(name, {"GET /v1/models": answer}) is None
    assert look_up("ollama", {"GET /api/tags": answer}) is None


def test_ollama_names_are_shortened_and_embedding_models_left_out() -> None:
    server = look_up("ollama", {"GET /api/tags": TAGS})
    assert server is not None
    assert server.models == (
        Model("llama3.1", size=4_700_000_000),
        Model("qwen2.5-coder:7b", size=4_600_000_000),
    )
    assert server.model_string(server.models[0]) == "ollama/llama3.1"


def test_lm_studio_reports_window_sizes_and_model_types() -> None:
    server = look_up("lm_studio", {"GET /api/v0/models": LM_STUDIO})
    assert server is not None
    assert server.models == (Model("qwen-7b", 32768), Model("llama-8b", 4096, is_loaded=True))


def test_an_older_lm_studio_is_read_through_the_openai_api() -> None:
    server = look_up("lm_studio", {"GET /v1/models": listed({"id": "a"}, {"id": "text-embedding-b"})})
    assert server is not None
    assert [model.name for model in server.models] == ["a"]


def test_llama_cpp_reports_its_window_size() -> None:
    server = look_up("llama.cpp", {"GET /v1/models": listed(LLAMA)})
    assert server is not None
    assert server.models == (Model("model.gguf", 8192, 98_000_000, is_loaded=True),)
    older = look_up("llama.cpp", {"GET /v1/models": listed({"id": "m"}), "GET /props": PROPS})
    assert older is not None
    assert older.models[0].context == 4096


def test_a_locked_server_names_its_key_variable() -> None:
    def locked(asked: Asked) -> Answer:
        if asked.headers.get("authorization") != "Bearer k":
            return as_json({"error": "no key"}, 401)
        return listed({"id": "m"})

    server = look_up("jan", {"GET /v1/models": locked})
    assert server is not None
    assert "JAN_API_KEY" in server.problem
    server = look_up("jan", {"GET /v1/models": locked}, {"JAN_API_KEY": "k"})
    assert server is not None
    assert [model.name for model in server.models] == ["m"]


def test_a_server_without_models_is_found_and_reported() -> None:
    server = look_up("ollama", {"GET /api/tags": as_json({"models": []})})
    assert server is not None
    assert "no model yet" in server.problem


def test_server_addresses_come_from_the_environment() -> None:
    kinds = known_kinds({"OLLAMA_HOST": "0.0.0.0:99", "LM_STUDIO_API_BASE": "http://box:7/v1/"})
    places = {kind.name: kind.address for kind in kinds}
    assert places["ollama"] == "http://127.0.0.1:99"
    assert places["lm_studio"] == "http://box:7"
    assert places["jan"] == "http://127.0.0.1:1337"


def test_local_servers_bypass_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    assert look_up("ollama", {"GET /api/tags": TAGS}) is not None


def test_the_window_size_of_a_chosen_model() -> None:
    jan = LocalServer(KIND["jan"], (Model("m", 4096),))
    assert context_of(jan, jan.models[0]) == 4096
    assert context_of(jan, jan.models[0], wanted=2048) == 2048
    assert context_of(jan, jan.models[0], wanted=9999) == 4096
    assert context_of(jan, Model("m")) is None
    shown = as_json({"model_info": {"llama.context_length": 131072}})
    with RoutedServer({"POST /api/show": shown}) as server:
        ollama = LocalServer(kind_at("ollama", server))
        window = context_of(ollama, Model("m"))
        assert window is not None
        assert 8192 <= window <= 16384
        assert context_of(ollama, Model("m"), wanted=20000) == 20000
