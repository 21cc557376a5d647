"""`--models`: what can be asked now, by the keys in the environment and the servers on this machine."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from interpreter.app.models import Source, models_without_key, usable_models
from interpreter.config.settings import from_environment
from interpreter.llm.providers import saved_keys
from interpreter.llm.usage import Price

if TYPE_CHECKING:
    from interpreter.frontends.terminal.flags import Parsed

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
    environ = {**saved_keys(), **os.environ}
    found = usable_models(words, environ, offline=bool(said.get("offline")))
    sections = [as_section(source, whole=bool(words)) for source in found]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDE
    for section in sections:
        print("\n".join(lines(section, width)) + "\n")
    if not sections:
        print("\n".join(nothing(words, environ)))
    elif any(row.price for section in sections for row in section.rows):
        print("Prices: US dollars for a million tokens read / written. Use one with --model.")
    return 0 if sections else 1


def as_section(source: Source, whole: bool) -> Section:
    """A source of models as it is listed; `whole`: with all of them, else the first ones of a provider."""
    free = "free" if source.kind != "provider" else ""
    rows = tuple(Row(each.model, _tokens(each.window), free or _price(each.price)) for each in source.models)
    if source.kind != "provider":
        note = source.problem or (f"With --api_base {source.api_base}" if source.api_base else "")
        return Section(f"{source.name}, on this machine", rows, note)
    title, more = f"{source.name}, with {source.key}", 0 if whole else max(0, len(rows) - _SHOWN)
    if not rows:
        return Section(title, note=f"Its own list has the names: --model {source.name}/NAME")
    shown = rows[: len(rows) - more]
    return Section(title, shown, f"and {more} more: interpreter --models {source.name}/" if more else "")


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
    for source in models_without_key(words, environ):
        yield f"  {source.name} has {len(source.models)} such models: set {source.key}."


def _tokens(count: int | None) -> str:
    """A window as its makers write it: 128k, 1M."""
    if not count:
        return ""
    if count >= 1_000_000:
        return f"{count / 1_000_000:.1f}".removesuffix(".0") + "M"
    return f"{round(count / 1000)}k" if count >= 1000 else str(count)


def _price(price: Price | None) -> str:
    return f"{price.read:.2f} / {price.written:.2f}" if price else ""
