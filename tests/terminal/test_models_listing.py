"""`interpreter --models` lists the available models with their window and price."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from interpreter import OpenInterpreter
from interpreter.app.models import Available, ModelSource, default_by_key
from interpreter.frontends.commands import model_lines
from interpreter.llm.providers import STARTING_MODELS
from interpreter.llm.usage import Price
from routed_server import RoutedServer, as_json
from terminal.person import PROGRAM, someone

KEYS = ("_API_KEY", "_API_BASE", "_TOKEN", "_HOST", "_BASE_URL", "_KEY")
Done = subprocess.CompletedProcess[str]


@pytest.fixture
def server() -> object:
    routes = {
        "GET /api/v0/models": as_json(
            {"data": [{"id": "tiny-coder", "type": "llm", "state": "loaded", "max_context_length": 32768}]}
        )
    }
    with RoutedServer(routes) as running:
        yield running


def listing(*arguments: str, **env: str) -> Done:
    clean = {name: value for name, value in os.environ.items() if not name.endswith(KEYS)}
    # A closed port, in case this machine runs Ollama.
    command = [sys.executable, "-c", PROGRAM, "--models", *arguments]
    closed = {"OLLAMA_HOST": "127.0.0.1:9", **env}
    return subprocess.run(command, capture_output=True, text=True, env=clean | closed, timeout=60)


def test_providers_with_a_key_are_listed() -> None:
    done = listing(OPENAI_API_KEY="sk-secret", POE_API_KEY="x")
    assert done.returncode == 0
    assert "openai, with OPENAI_API_KEY" in done.stdout
    assert "more: interpreter --models openai/" in done.stdout
    assert "poe, with POE_API_KEY" in done.stdout
    assert "anthropic" not in done.stdout
    assert "sk-secret" not in done.stdout + done.stderr


def test_a_filter_shows_matching_models_with_window_and_price() -> None:
    done = listing("gpt-4o-mini", OPENAI_API_KEY="k", ANTHROPIC_API_KEY="k")
    [row] = [line.split() for line in done.stdout.splitlines() if line.startswith("  openai/gpt-4o-mini ")]
    assert row == ["openai/gpt-4o-mini", "128k", "0.15", "/", "0.60"]
    assert "anthropic" not in done.stdout
    assert "image" not in listing("gpt", OPENAI_API_KEY="k").stdout


def test_local_servers_are_listed(server: RoutedServer) -> None:
    done = listing(LM_STUDIO_API_BASE=f"{server.address}/v1")
    assert "LM Studio, on this machine" in done.stdout
    assert "lm_studio/tiny-coder  33k  free" in done.stdout
    assert "tiny-coder" in listing("TINY", LM_STUDIO_API_BASE=f"{server.address}/v1").stdout


@pytest.mark.full
def test_ollama_is_asked_for_missing_window_sizes() -> None:
    shown = as_json({"model_info": {"llama.context_length": 2048}})
    tags = as_json({"models": [{"name": "tiny:latest"}, {"name": "other:1b"}]})
    with RoutedServer({"GET /api/tags": tags, "POST /api/show": shown}) as ollama:
        done = listing(OLLAMA_HOST=ollama.address)
        assert "ollama/tiny      2k  free" in done.stdout
        listing("tiny", OLLAMA_HOST=ollama.address)
        assert ollama.paths().count("POST /api/show") == 3


def test_offline_lists_only_local_models(server: RoutedServer) -> None:
    done = listing("--offline", LM_STUDIO_API_BASE=f"{server.address}/v1", OPENAI_API_KEY="k")
    assert "tiny-coder" in done.stdout
    assert "openai" not in done.stdout
    assert "openai" not in listing(OPENAI_API_KEY="k", INTERPRETER_OFFLINE="true").stdout


def test_an_empty_list_says_what_to_do() -> None:
    done = listing("sonnet", OPENAI_API_KEY="k")
    assert done.returncode == 1
    assert "set ANTHROPIC_API_KEY" in done.stdout


def test_a_table_fits_any_width() -> None:
    long = Available("openrouter/acmecorp/a-model-with-a-long-name", 1_000_000, Price(0.5, 1.5))
    source = ModelSource("provider", "openrouter", (long, Available("x/y", 8000)), key="KEY")
    for width in (20, 40, 60, 100):
        shown = list(model_lines(source, width, whole=True))
        assert all(len(line) <= max(width, len(long.model) + 2) for line in shown)
        assert "0.50 / 1.50" in "\n".join(shown)
    assert shown[2].split() == ["x/y", "8k"]
    assert len({line.index(word) for line, word in zip(shown[1:], ("1M", "8k"), strict=True)}) == 1


def test_a_narrow_terminal_shows_the_price() -> None:
    with someone("--models", "gpt-4o-mini", env={"OPENAI_API_KEY": "k"}, columns=30) as person:
        assert person.ends() == 0
        assert "0.15 / 0.60" in person.screen


def test_the_default_for_each_key_is_listed_with_its_reason() -> None:
    done = listing(OPENAI_API_KEY="k", ANTHROPIC_API_KEY="k")
    first = done.stdout.splitlines()[0]
    assert first == f"Default: {STARTING_MODELS['openai']}, because OPENAI_API_KEY is set."
    assert f"Default: {STARTING_MODELS['openai']} (current" in done.stdout
    assert f"Default: anthropic/{STARTING_MODELS['anthropic']} (current" in done.stdout
    for provider in ("openai", "anthropic"):
        rows = [line.split()[0] for line in done.stdout.splitlines() if line.startswith(f"  {provider}/")]
        assert rows[0] == f"{provider}/{STARTING_MODELS[provider]}"


def test_the_default_models_are_recent_but_the_library_keeps_its_default() -> None:
    assert not any("gpt-4" in name for name in STARTING_MODELS.values())
    assert default_by_key({"OPENAI_API_KEY": "k"}) == (STARTING_MODELS["openai"], "OPENAI_API_KEY")
    assert default_by_key({"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://localhost:1/v1"}) is None
    assert default_by_key({"GROQ_API_KEY": "k", "OPENAI_BASE_URL": "http://localhost:1/v1"}) is not None
    assert OpenInterpreter().llm.model == "gpt-4o"
