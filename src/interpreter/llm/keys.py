"""Keys of providers: whose a key is, which one the environment has, and the file that a user may keep some in.

The file is read where a model is chosen at the command line. What is in there is in no environment, so that code
which the model writes does not find it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from interpreter.llm.catalogue import PROVIDERS, ROWS, Provider

# What to begin with where only a key is known: not the dearest of a provider, and able to call tools.
STARTING_MODELS: Mapping[str, str] = {
    "openai": "gpt-4o",
    "anthropic": "claude-sonnet-5",
    "gemini": "gemini-3.5-flash",
    "openrouter": "openrouter/auto",
    "deepseek": "deepseek-chat",
    "mistral": "mistral-medium-latest",
    "groq": "openai/gpt-oss-120b",
    "xai": "grok-4.5",
    "together_ai": "openai/gpt-oss-120b",
    "fireworks_ai": "accounts/fireworks/models/gpt-oss-120b",
    "cerebras": "gpt-oss-120b",
    "moonshot": "kimi-k2.6",
    "zai": "glm-5.2",
    "minimax": "MiniMax-M3",
    "codestral": "codestral-latest",
    "cohere": "command-a-03-2025",
    "perplexity": "sonar-pro",
    "dashscope": "qwen-plus",
    "deepinfra": "openai/gpt-oss-120b",
    "nebius": "openai/gpt-oss-120b",
    "novita": "openai/gpt-oss-120b",
    "baseten": "openai/gpt-oss-120b",
    "sambanova": "gpt-oss-120b",
    "nvidia_nim": "openai/gpt-oss-120b",
    "vercel_ai_gateway": "openai/gpt-4o",
    "huggingface": "openai/gpt-oss-120b",
}
# People have these for other purposes than a model: they are not enough to choose one by.
_SAY_LITTLE = frozenset({"HF_TOKEN", "VERCEL_OIDC_TOKEN", "NVIDIA_API_KEY", "GOOGLE_API_KEY"})

_BEGINNINGS: Mapping[str, str] = {
    "sk-ant-": "anthropic",
    "sk-or-": "openrouter",
    "sk-proj-": "openai",
    "sk-svcacct-": "openai",
    "AIza": "gemini",
    "gsk_": "groq",
    "xai-": "xai",
    "csk-": "cerebras",
    "fw_": "fireworks_ai",
    "tgp_v1_": "together_ai",
    "pplx-": "perplexity",
    "nvapi-": "nvidia_nim",
    "hf_": "huggingface",
}
_IN_EVERY_OPENAI_KEY = "T3BlbkFJ"


def provider_of(key: str) -> Provider | None:
    """Whose key this is, as far as its look tells."""
    if key.startswith("sk-") and _IN_EVERY_OPENAI_KEY in key:
        return ROWS["openai"]
    return next((ROWS[prefix] for start, prefix in _BEGINNINGS.items() if key.startswith(start)), None)


def starting_model(row: Provider) -> str:
    """The model string to begin with at this provider; empty where only its user knows the names."""
    name = STARTING_MODELS.get(row.prefix, "")
    return name and (name if row.prefix == "openai" else f"{row.prefix}/{name}")


def in_environment(environ: Mapping[str, str]) -> Iterator[tuple[Provider, str]]:
    """The providers whose keys are set and the variables that hold them, those with a model to begin with first."""
    found = []
    for row in PROVIDERS:
        name = next((name for name in row.key_variables if environ.get(name, "").strip()), "")
        if name and not row.is_local:
            found.append((row, name))
    yield from sorted(found, key=lambda pair: not settles(*pair))


def settles(row: Provider, variable: str) -> bool:
    """Whether this key alone is reason enough to use its provider."""
    return row.prefix in STARTING_MODELS and variable not in _SAY_LITTLE


# -- the file ------------------------------------------------------------------------------------------------


def file() -> Path:
    """Where keys are kept if the user wants that: lines NAME=value, readable by their owner alone."""
    from platformdirs import user_config_dir

    return Path(user_config_dir("open-interpreter")) / "keys.env"


def kept() -> dict[str, str]:
    """The keys in the file, by the names of their variables; nothing if it cannot be read."""
    try:
        lines = file().read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    pairs = (line.removeprefix("export ").partition("=") for line in lines if not line.lstrip().startswith("#"))
    return {name.strip(): value.strip().strip("'\"") for name, equals, value in pairs if equals and value.strip()}


def keep(variable: str, key: str) -> Path:
    """Put a key into the file, in the place of an older one; nobody else can read it at any moment."""
    path = file()
    path.parent.mkdir(parents=True, exist_ok=True)
    keys = {**kept(), variable: key}
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        out.writelines(f"{name}={value}\n" for name, value in keys.items())
    fresh.replace(path)
    return path


def kept_for(row: Provider) -> str | None:
    """The key of a provider in the file, if there is one."""
    keys = kept()
    return next((keys[name] for name in row.key_variables if name in keys), None)
