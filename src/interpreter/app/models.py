"""Which models can be used now, and which one is: by the settings, a key in the environment, or the last choice."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from interpreter.api import OpenInterpreter
from interpreter.config.homes import make_folder
from interpreter.config.setting import apply, sources
from interpreter.errors import ModelError
from interpreter.leaves import hosts, load
from interpreter.llm.providers import (
    PROVIDERS,
    ROWS,
    Provider,
    check_offline,
    identify,
    keys_in_environment,
    resolve,
    saved_key_for,
    selects_provider,
    starting_model,
)
from interpreter.llm.usage import Price, known_models

# These are in the list of prices, but can't chat.
_NOT_FOR_CHATS = (
    "image", "tts", "audio", "realtime", "transcribe", "embed", "moderation", "davinci", "babbage", "curie",
    "-live", "robotics", "rerank", "ft:", "whisper", "veo-", "guard",
)  # fmt: skip


# -- available models --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Available:
    """A model, by its value for `llm.model`, with its window and price if known."""

    model: str
    window: int | None = None  # in tokens
    price: Price | None = None  # None if it is free or unknown


@dataclass(frozen=True)
class ModelSource:
    """A source of models: a server on this machine, the built-in engine, or a provider."""

    kind: Literal["server", "builtin", "provider"]
    name: str
    # Higher numbers first: they are mostly the newer models. None if a provider doesn't publish its list.
    models: tuple[Available, ...] = ()
    api_base: str | None = None  # the server's address, for models whose name doesn't imply it
    key: str = ""  # the variable that has the provider's key
    problem: str | None = None


def usable_models(words: Sequence[str], environ: Mapping[str, str], offline: bool = False) -> Iterator[ModelSource]:
    """Yield the sources that can be used now, each with its models whose names have all of these words."""
    for host in hosts():
        yield from load(host.listed)(words, environ)
    for row in PROVIDERS if not offline else ():
        if not row.is_local and row.prefix != "cohere_chat" and (key := _key_of(row, environ)):
            models_with_names = _at_provider(row, words)
            if models_with_names or not words or has_words(row.prefix, words):
                yield ModelSource("provider", row.prefix, models_with_names, key=key)


def models_without_key(words: Sequence[str], environ: Mapping[str, str]) -> Iterator[ModelSource]:
    """Yield providers that have such models but no key; `key` is the variable to set."""
    for row in PROVIDERS:
        if row.key_variables and not _key_of(row, environ) and (models := _at_provider(row, words)):
            yield ModelSource("provider", row.prefix, models, key=row.key_variables[0])


def _at_provider(row: Provider, words: Sequence[str]) -> tuple[Available, ...]:
    known = [each for each in known_models(row.prefix) if not any(word in each.name for word in _NOT_FOR_CHATS)]
    made = [Available(f"{row.prefix}/{each.name}", each.window, each.price) for each in known]
    return tuple(each for each in reversed(made) if has_words(each.model, words))


def _key_of(row: Provider, environ: Mapping[str, str]) -> str:
    """Name the variable with the provider's key or, if it is self-hosted, with its URL; empty if none is set."""
    if not row.base_url and not any(map(environ.get, row.base_variables)):
        return ""
    names = (*row.key_variables, *(() if row.base_url else row.base_variables))
    return next((name for name in names if environ.get(name)), "")


def has_words(name: str, words: Sequence[str]) -> bool:
    return all(word in name.lower() for word in words)


# -- which one is used -------------------------------------------------------------------------------------------


def model_problem(interpreter: OpenInterpreter) -> ModelError | None:
    """Say why the model can't be used, judging by the settings."""
    llm = interpreter.llm
    if getattr(llm.completions, "__self__", None) is not llm:
        return None  # the caller's own function
    try:
        if interpreter.offline:
            check_offline(llm.model, os.environ, llm.api_base)
        resolve(llm.model, os.environ, llm.api_base, llm.api_key, llm.api_version)
    except ModelError as error:
        return error
    return None


def is_model_named(interpreter: OpenInterpreter) -> bool:
    """Check whether the settings name a model or a server, and load a saved key for that model's provider."""
    given = sources(interpreter.llm)
    named = any(given[f"llm.{name}"] != "default" for name in ("model", "api_base", "api_key"))
    if named and interpreter.llm.api_base is None and interpreter.llm.api_key is None:
        row = ROWS.get(identify(interpreter.llm.model)[0])
        if row is not None and not any(map(os.environ.get, row.key_variables)):
            _use_saved_key(interpreter, row)
    return named


def _use_saved_key(interpreter: OpenInterpreter, row: Provider) -> None:
    """Use the saved key for this provider, if there is one."""
    key = saved_key_for(row)
    if key is not None:
        apply(interpreter, {"llm.api_key": key}, "default")


def default_by_key(environ: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the default model of the first provider whose key is set, and the variable with that key."""
    for row, variable in keys_in_environment(environ):
        if selects_provider(row, variable):
            # Another server that speaks OpenAI's API has its own names: the setting's default stays.
            is_elsewhere = row.prefix == "openai" and any(map(environ.get, row.base_variables))
            return None if is_elsewhere else (starting_model(row), variable)
    return None


def choose_by_key(interpreter: OpenInterpreter) -> str | None:
    """Use the model for a key in the environment; return the variable with that key, None if there is none."""
    llm = interpreter.llm
    has_own_completions = getattr(llm.completions, "__self__", None) is not llm
    default = default_by_key(os.environ)
    if interpreter.offline or has_own_completions or default is None:
        return None
    model, variable = default
    apply(interpreter, {"llm.model": model}, "default")
    return variable


# -- the last choice ---------------------------------------------------------------------------------------------


class Remembered(NamedTuple):
    """The user's last choice: a model, its server's address, and the program that has to run for it."""

    model: str
    api_base: str | None = None
    program: str = ""

    @property
    def problem(self) -> str:
        """Return the reason that this model can't answer now, judging by this machine; empty if it may be able to."""
        return next(filter(None, (load(host.problem)(self) for host in hosts())), "")


def remember(interpreter: OpenInterpreter, program: str = "") -> None:
    """Remember the current choice for the next start."""
    chosen = Remembered(interpreter.llm.model, interpreter.llm.api_base, program)
    path = _memory(interpreter)
    with suppress(OSError):  # if the folder can't be written, the next start only asks again
        make_folder(path.parent)
        path.write_text(json.dumps(chosen._asdict()) + "\n", encoding="utf-8")


def recall(interpreter: OpenInterpreter) -> Remembered | None:
    """Return the last choice, or None if there is none or it can't be read."""
    try:
        saved = json.loads(_memory(interpreter).read_text(encoding="utf-8"))
        return Remembered(**saved) if isinstance(saved["model"], str) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def use_remembered(interpreter: OpenInterpreter, chosen: Remembered) -> ModelError | None:
    """Use the last choice; if that fails, return why and change nothing."""
    before = {"llm.model": interpreter.llm.model, "llm.api_base": None, "llm.api_key": None}
    apply(interpreter, {"llm.model": chosen.model, "llm.api_base": chosen.api_base}, "default")
    row = ROWS.get(identify(chosen.model)[0])
    if chosen.api_base and chosen.model.startswith("openai/"):
        apply(interpreter, {"llm.api_key": "local"}, "default")  # or OpenAI's own key would go to this server
    elif row is not None:
        _use_saved_key(interpreter, row)
    error = model_problem(interpreter)
    if error is not None:
        apply(interpreter, before, "default")
    return error


def _memory(interpreter: OpenInterpreter) -> Path:
    return Path(interpreter.get_oi_dir()) / "model.json"
