"""Which models on this machine can be used now, for `--models` and for the last choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from interpreter.app.models import Available, ModelSource, Remembered, has_words
from interpreter.errors import ModelError
from interpreter.local_models import engine, servers, weights


def sources(words: Sequence[str], environ: Mapping[str, str]) -> Iterator[ModelSource]:
    """Yield the servers that run, and the built-in engine, with their models whose names have all of these words."""
    for server in servers.find(environ=environ):
        models = [model for model in server.models if has_words(server.model_string(model), words)]
        windows = servers.contexts_of(server, models)
        models_with_names = tuple(
            Available(server.model_string(each), size) for each, size in zip(models, windows, strict=True)
        )
        if models_with_names or (server.problem and not words):
            base = server.api_base if server.kind.prefix == "openai/" and models_with_names else None
            yield ModelSource("server", server.kind.title, models_with_names, base, problem=server.problem)
    if engine.is_installed():
        names = [weights.model_string(row) for row in weights.WEIGHTS if weights.is_here(row)]
        names += map(weights.model_string, weights.own_files())
        if models_with_names := tuple(Available(name, engine.CONTEXT) for name in names if has_words(name, words)):
            yield ModelSource("builtin", "Built-in", models_with_names)


def problem_with(chosen: Remembered) -> str:
    """Say why a model can't answer now, judging by this machine; empty if it may be able to."""
    if chosen.model.startswith(weights.PREFIX):
        if not engine.is_installed():
            return "it needs llama.cpp, which is not installed"
        try:
            weights.file_of(chosen.model.removeprefix(weights.PREFIX))
        except ModelError:
            return "its file no longer exists"
    elif chosen.api_base and not engine.listens(chosen.api_base):
        return f"nothing answers at {urlsplit(chosen.api_base).netloc}"
    return ""
