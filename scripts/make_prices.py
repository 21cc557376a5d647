"""Write the list of prices and context windows from two packages: `pip install genai-prices litellm`, then run this.

A row is [name, patterns, window, prices, and for higher prices of long requests: the number of tokens, prices];
prices are US dollars per million tokens read, written, read from the cache, written to the cache. A pattern
is a name, with `*` before or after it for a suffix or prefix, or a regular expression between slashes; no
pattern means the name itself. Windows that genai-prices doesn't have are from LiteLLM.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

LITELLM_LIST = "model_prices_and_context_window_backup.json"
TARGET = Path(__file__).parent.parent / "src" / "interpreter" / "llm" / "prices.json"

# Providers: the name in genai-prices, and the prefix of the model strings.
PREFIXES = {
    "anthropic": "anthropic", "aws": "bedrock", "azure": "azure", "baseten": "baseten",
    "cerebras": "cerebras", "cohere": "cohere", "databricks": "databricks", "deepseek": "deepseek",
    "fireworks": "fireworks_ai", "google": "gemini", "groq": "groq", "meta": "meta", "minimax": "minimax",
    "mistral": "mistral", "moonshotai": "moonshot", "novita": "novita", "openai": "openai",
    "openrouter": "openrouter", "ovhcloud": "ovhcloud", "perplexity": "perplexity",
    "together": "together_ai", "x-ai": "xai", "zai": "zai",
}  # fmt: skip
FIELDS = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")


def patterns(clause: Any) -> list[str]:
    match type(clause).__name__:
        case "ClauseEquals":
            return [clause.equals.lower()]
        case "ClauseStartsWith":
            return [f"{clause.starts_with.lower()}*"]
        case "ClauseEndsWith":
            return [f"*{clause.ends_with.lower()}"]
        case "ClauseContains":
            return [f"*{clause.contains.lower()}*"]
        case "ClauseRegex":
            return [f"/{clause.regex}/"]
        case "ClauseOr":
            return [pattern for inner in clause.or_ for pattern in patterns(inner)]
    return [f"/{''.join(f'(?={_as_regex(inner)})' for inner in clause.and_)}/"]


def _as_regex(clause: Any) -> str:
    """One of several conditions, matched from the start of the name."""
    import re

    alternatives = []
    for pattern in patterns(clause):
        if pattern.startswith("/"):
            inside = pattern[1:-1]
            alternatives.append(inside if inside.startswith("^") else f".*{inside}")
        else:
            alternatives.append(re.escape(pattern).replace(r"\*", ".*") + ("" if pattern.endswith("*") else "$"))
    return f"^(?:{'|'.join(alternatives)})"


def litellm_windows() -> dict[str, int]:
    """Windows by model string, read from the package's list without importing it."""
    package = find_spec("litellm")
    assert package is not None and package.origin is not None, "litellm is not installed"
    listed = json.loads((Path(package.origin).parent / LITELLM_LIST).read_text(encoding="utf-8"))
    windows = {name.lower(): entry.get("max_input_tokens") for name, entry in listed.items()}
    return {name: window for name, window in windows.items() if isinstance(window, int)}


def window_of(prefix: str, model: Any, windows: dict[str, int]) -> int | None:
    spelled = [model.id.lower(), *(pattern.strip("*") for pattern in patterns(model.match))]
    keys = [key for name in spelled for key in (f"{prefix}/{name}", name)]
    return next((windows[key] for key in keys if key in windows), None)


def row(model: Any, now: datetime, window: int | None) -> list[Any] | None:
    """Make a row, or None for models without a text price, such as embedding models."""
    prices = model.get_prices(now)
    base, steps = [], {}
    for number, name in enumerate(FIELDS):
        price = getattr(prices, name, None)
        for tier in getattr(price, "tiers", ()):
            steps.setdefault(tier.start, {})[number] = _number(tier.price)
        base.append(_number(getattr(price, "base", price)))
    if base[0] is None or base[1] is None:
        return None
    spelled = patterns(model.match)
    name = model.id.lower() if model.is_match(model.id.lower()) else spelled[0].strip("*")
    made = [name, [] if spelled == [name] else spelled, model.context_window or window, _trimmed(base)]
    for start in sorted(steps):
        made += [start, _trimmed([steps[start].get(number, known) for number, known in enumerate(base)])]
    return made


def _number(price: Any) -> float | int | None:
    if price is None:
        return None
    return int(price) if price == int(price) else float(price)


def _trimmed(prices: list[Any]) -> list[Any]:
    while prices and prices[-1] is None:
        prices.pop()
    return prices


def main() -> int:
    from genai_prices.data import providers

    now = datetime.now(UTC)
    windows = litellm_windows()
    tables: dict[str, Any] = {}
    for provider in providers:
        if provider.id not in PREFIXES:
            continue
        also = [PREFIXES[name] for name in provider.fallback_model_providers or () if name in PREFIXES]
        prefix = PREFIXES[provider.id]
        # Google offers Claude only on Vertex, where `also` finds it.
        models = [model for model in provider.models if prefix != "gemini" or "claude" not in model.id]
        rows = [row(model, now, window_of(prefix, model, windows)) for model in models]
        tables[prefix] = {"also": also, "models": list(filter(None, rows))}
    versions = " and ".join(f"{name} {version(name)}" for name in ("genai-prices", "litellm"))
    source = f"{versions}, {now:%Y-%m-%d}"
    TARGET.write_text(_text(source, tables), encoding="utf-8")
    print(f"wrote {TARGET.name}: {sum(len(table['models']) for table in tables.values())} models")
    return 0


def _text(source: str, tables: dict[str, Any]) -> str:
    """JSON with one line per model, for readable diffs."""
    parts = []
    for prefix, table in sorted(tables.items()):
        rows = ",\n".join(json.dumps(made, separators=(",", ":")) for made in table["models"])
        parts.append(f'{json.dumps(prefix)}:{{"also":{json.dumps(table["also"])},"models":[\n{rows}]}}')
    return f'{{"source":{json.dumps(source)},"providers":{{\n' + ",\n".join(parts) + "}}\n"


if __name__ == "__main__":
    sys.exit(main())
