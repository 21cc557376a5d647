"""`--models`: what can be asked now, by the keys in the environment and the servers on this machine."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from interpreter.llm import keys, prices
from interpreter.llm.catalogue import PROVIDERS, Provider
from interpreter.settings import from_environment

if TYPE_CHECKING:
    from interpreter.llm.local.servers import Server
    from interpreter.terminal.flags import Parsed

# In the list of prices, and nothing to talk to.
_NOT_FOR_CHATS = (
    "image", "tts", "audio", "realtime", "transcribe", "embed", "moderation", "davinci", "babbage", "curie",
    "-live", "robotics", "rerank", "ft:", "whisper", "veo-", "guard",
)  # fmt: skip
_SHOWN = 12
_WIDE = 100  # where the output is no terminal


@dataclass(frozen=True)
class Row:
    """A model: what `--model` takes, and what is known of it."""

    model: str
    window: str = ""
    price: str = ""


@dataclass(frozen=True)
class Section:
    """Who has these models, and what the user should know about that."""

    title: str
    rows: tuple[Row, ...] = ()
    note: str = ""


def list_models(parsed: Parsed) -> int:
    """Print the list; the exit code tells whether there is anything in it."""
    wanted = parsed.actions["models"]
    words = wanted.lower().split() if isinstance(wanted, str) else []
    said = from_environment(os.environ) | parsed.settings
    environ = {**keys.kept(), **os.environ}
    sections = list(usable(words, environ, offline=bool(said.get("offline"))))
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDE
    for section in sections:
        print("\n".join(lines(section, width)) + "\n")
    if not sections:
        print("\n".join(nothing(words, environ)))
    elif any(row.price for section in sections for row in section.rows):
        print("Prices: US dollars for a million tokens read / written. Use one with --model.")
    return 0 if sections else 1


def usable(words: Sequence[str], environ: Mapping[str, str], offline: bool = False) -> Iterator[Section]:
    """What can be asked now, as far as it has all of these words in its name."""
    from interpreter.llm.local import servers

    for server in servers.find(environ=environ):
        yield from _server_section(server, words)
    yield from _builtin_section(words)
    for row in PROVIDERS if not offline else ():
        if not row.is_local and row.prefix != "cohere_chat" and (found := _found(row, environ)):
            yield from _provider_section(row, found, words)


def lines(section: Section, width: int) -> Iterator[str]:
    """A table that fits: where a name leaves no room beside it, what is known stands below it."""
    yield section.title
    window = max((len(row.window) for row in section.rows), default=0)
    price = max((len(row.price) for row in section.rows), default=0)
    widest = max((len(row.model) for row in section.rows), default=0)
    room = width - window - price - 8
    for row in section.rows:
        known = f"{row.window:>{window}}  {row.price:>{price}}".rstrip()
        if len(row.model) > room:
            yield f"  {row.model}"
            if known.strip():
                yield f"    {known.strip()}"
        else:
            yield f"  {row.model:<{min(widest, room)}}  {known}".rstrip()
    if section.note:
        yield f"  {section.note}"


def nothing(words: Sequence[str], environ: Mapping[str, str]) -> Iterator[str]:
    """Why there is nothing to list, and who has what was looked for."""
    if not words:
        yield "No key is in the environment, and no model server runs on this machine."
        yield "Set a key such as OPENAI_API_KEY, or run `interpreter --local`."
        return
    yield f"Nothing that can be used now has {' and '.join(words)!r} in its name."
    for row in PROVIDERS:
        many = len(_rows(row, words))
        if many and row.key_variables and not _found(row, environ):
            yield f"  {row.prefix} has {many} such models: set {row.key_variables[0]}."


def _server_section(server: Server, words: Sequence[str]) -> Iterator[Section]:
    from interpreter.llm.local import servers

    models = [model for model in server.models if _has(server.model_string(model), words)]
    windows = servers.contexts_of(server, models)
    rows = [
        Row(server.model_string(model), _tokens(window), "free") for model, window in zip(models, windows, strict=True)
    ]
    title = f"{server.kind.title}, on this machine"
    note = f"With --api_base {server.api_base}" if server.kind.prefix == "openai/" and rows else ""
    if rows or (server.problem and not words):
        yield Section(title, tuple(rows), server.problem or note)


def _builtin_section(words: Sequence[str]) -> Iterator[Section]:
    from interpreter.llm.local import engine, weights

    if not engine.is_installed():
        return
    names = [weights.model_string(row) for row in weights.WEIGHTS if weights.is_here(row)]
    names += map(weights.model_string, weights.own_files())
    if rows := [Row(name, _tokens(engine.CONTEXT), "free") for name in names if _has(name, words)]:
        yield Section("Built-in, on this machine", tuple(rows))


def _provider_section(row: Provider, found: str, words: Sequence[str]) -> Iterator[Section]:
    rows = _rows(row, words)
    title = f"{row.prefix}, with {found}"
    if not rows:
        if not words or _has(row.prefix, words):
            yield Section(title, note=f"Its own list has the names: --model {row.prefix}/NAME")
        return
    shown = rows if words else rows[:_SHOWN]
    more = len(rows) - len(shown)
    yield Section(title, tuple(shown), f"and {more} more: interpreter --models {row.prefix}/" if more else "")


def _rows(row: Provider, words: Sequence[str]) -> list[Row]:
    """Higher numbers first: they are mostly the newer models."""
    known = [each for each in prices.models(row.prefix) if not _has_any(each.name, _NOT_FOR_CHATS)]
    made = [Row(f"{row.prefix}/{each.name}", _tokens(each.window), _price(each.price)) for each in known]
    return [each for each in reversed(made) if _has(each.model, words)]


def _found(row: Provider, environ: Mapping[str, str]) -> str:
    """The name of the variable with its key or, where everybody has an address, with that."""
    if not row.base_url and not any(map(environ.get, row.base_variables)):
        return ""
    names = (*row.key_variables, *(() if row.base_url else row.base_variables))
    return next((name for name in names if environ.get(name)), "")


def _has(name: str, words: Sequence[str]) -> bool:
    return all(word in name.lower() for word in words)


def _has_any(name: str, words: Sequence[str]) -> bool:
    return any(word in name for word in words)


def _tokens(count: int | None) -> str:
    """A window as its makers write it: 128k, 1M."""
    if not count:
        return ""
    if count >= 1_000_000:
        return f"{count / 1_000_000:.1f}".removesuffix(".0") + "M"
    return f"{round(count / 1000)}k" if count >= 1000 else str(count)


def _price(price: prices.Price | None) -> str:
    return f"{price.read:.2f} / {price.written:.2f}" if price else ""
