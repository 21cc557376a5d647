"""Who serves which model: the rules that turn a model string into an address, over the rows of the catalogue."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from interpreter.errors import LiteLLMMissingError, MissingKeyError, ProviderNotFoundError
from interpreter.llm.catalogue import PROVIDERS, ROWS, THROUGH_LITELLM, Provider

__all__ = ["PROVIDERS", "Endpoint", "Provider", "identify", "resolve"]


# Models that are written without a prefix and that OpenAI does not have.
_ELSEWHERE = {"claude": "anthropic", "gemini": "gemini", "command": "cohere"}
# Prefixes that say how a server is asked, wherever it is.
_KEPT_WITH_API_BASE = frozenset(
    {"openai", "azure", "anthropic", "ollama", "ollama_chat", "jan", "lm_studio", "llamafile"}
    | {"hosted_vllm", "databricks", "litellm_proxy", "litellm"}
)
LITELLM = "litellm"
"""The wire of what goes through LiteLLM, and the prefix that asks for it."""

AZURE_VERSION = "2024-10-21"
ANTHROPIC_VERSION = "2023-06-01"

_LOOPBACK = re.compile(r"127(\.\d+){1,3}")
_RESPONSES = "responses/"  # LiteLLM's way to ask for that wire format: openai/responses/gpt-5
# What OpenAI serves over Responses and not over Chat Completions.
_ONLY_RESPONSES = (
    "codex-*", "*-codex*", "o1-pro*", "o3-pro*", "gpt-*-pro*", "*deep-research*", "computer-use-*",
)  # fmt: skip


@dataclass(frozen=True)
class Endpoint:
    """Where one model is asked: everything about the request that is not the conversation."""

    provider: str
    model: str
    base_url: str
    key: str | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    key_header: str = "Authorization"
    wire: str = "chat"
    extra_headers: Mapping[str, str] = field(default_factory=dict)
    objects_to: tuple[str, ...] = ()

    @property
    def is_loopback(self) -> bool:
        """Whether the server is on this machine."""
        return is_loopback(self.base_url)

    @property
    def headers(self) -> dict[str, str]:
        if not self.key:
            return dict(self.extra_headers)
        value = f"Bearer {self.key}" if self.key_header == "Authorization" else self.key
        return {self.key_header: value, **self.extra_headers}


def is_loopback(address: str) -> bool:
    """Whether an address leads to this machine."""
    place = address.partition("://")[2].partition("/")[0].rpartition("@")[2]
    host = place.partition("]")[0].removeprefix("[") if place.startswith("[") else place.partition(":")[0]
    return host.lower() in ("localhost", "::1", "0.0.0.0") or _LOOPBACK.fullmatch(host) is not None


def resolve(
    model: str,
    environ: Mapping[str, str],
    api_base: str | None = None,
    api_key: str | None = None,
    api_version: str | None = None,
) -> Endpoint:
    """The endpoint of a model string, or an error that says what is missing."""
    provider, name = identify(model, api_base)
    row = ROWS.get(provider)
    if row is None:
        return _through_litellm(model, provider, api_base, api_key)
    base_url = _base_url(row, environ, api_base)
    key = (api_key or next(filter(None, map(environ.get, row.key_variables)), "")).strip() or None
    if row.prefix == "azure":
        version = api_version or environ.get("AZURE_API_VERSION") or AZURE_VERSION
        base_url = f"{base_url}/openai/deployments/{name}"
        return Endpoint("azure", name, base_url, key, {"api-version": version}, row.key_header)
    if key is None and base_url == row.base_url and not row.is_local:
        raise _missing_key(row)
    if row.wire == "anthropic":
        headers = {"anthropic-version": api_version or ANTHROPIC_VERSION}
        return Endpoint(row.prefix, name, base_url, key, {}, row.key_header, row.wire, headers)
    if row.prefix == "openai" and _speaks_responses(name, base_url == row.base_url):
        return Endpoint(row.prefix, name.removeprefix(_RESPONSES), base_url, key, wire="responses")
    return Endpoint(row.prefix, name, base_url, key, wire=row.wire, objects_to=row.objects_to)


def _through_litellm(model: str, provider: str, api_base: str | None, api_key: str | None) -> Endpoint:
    """A model that no row claims: LiteLLM may know it, if it is installed."""
    from importlib.util import find_spec

    if find_spec(LITELLM) is None and provider in THROUGH_LITELLM:
        how = "pip install 'open-interpreter[litellm]'"
        raise LiteLLMMissingError(f"{model!r} is asked through LiteLLM, which is not installed. Run: {how}")
    if find_spec(LITELLM) is None:
        raise _no_provider(model, provider)
    name = model.removeprefix(f"{LITELLM}/")
    return Endpoint(provider, name, api_base or "", api_key, wire=LITELLM)


def _speaks_responses(name: str, at_openai: bool) -> bool:
    """Where the user asks for it, and for the models that OpenAI serves in no other way."""
    only = at_openai and any(fnmatchcase(name, pattern) for pattern in _ONLY_RESPONSES)
    return only or name.startswith(_RESPONSES)


def identify(model: str, api_base: str | None = None) -> tuple[str, str]:
    """Who serves a model string, and the name that its server knows the model by."""
    prefix, slash, name = model.partition("/")
    prefix = prefix.lower()
    if api_base:
        # Any other prefix is part of the name: servers of many models have names such as meta/llama-3.
        return (prefix, name) if slash and prefix in _KEPT_WITH_API_BASE else ("openai", model)
    if slash:
        return prefix, name
    elsewhere = (who for start, who in _ELSEWHERE.items() if model.startswith(start))
    return next(elsewhere, "openai"), model


def _base_url(row: Provider, environ: Mapping[str, str], api_base: str | None) -> str:
    given = api_base or next(filter(None, map(environ.get, row.base_variables)), None)
    if not given:
        if not row.base_url:
            raise ProviderNotFoundError(
                f"Models of {row.prefix} need their server's address: set api_base, or {row.base_variables[0]}."
            )
        return row.base_url
    if row.prefix.startswith("ollama") and not api_base:
        given = _ollama_address(given)
    given = given.rstrip("/")
    for path in ("/chat/completions", "/responses", "/messages"):
        given = given.removesuffix(path).rstrip("/")
    if "://" not in given:
        given = f"http://{given}"
    if row.wire == "anthropic":  # its own clients add the /v1 to any address
        return given.removesuffix("/v1") + "/v1"
    has_path = "/" in given.partition("://")[2]
    return given if has_path else given + row.base_path


def _ollama_address(host: str) -> str:
    """OLLAMA_HOST is the server's own setting: an address to listen at, with parts left out."""
    scheme, found, rest = host.rpartition("://")
    address, slash, path = rest.partition("/")
    has_port = ":" in address and not address.endswith("]")
    name, _, port = address.rpartition(":") if has_port else (address, "", "")
    name = "127.0.0.1" if name in ("", "0.0.0.0", "[::]") else name
    port = port or ("443" if scheme == "https" else "80" if found else "11434")
    return f"{scheme or 'http'}://{name}:{port}{slash}{path}"


def _missing_key(row: Provider) -> MissingKeyError:
    variable = row.key_variables[0]
    return MissingKeyError(
        f"There is no key for {row.prefix}. Set {variable} in the environment, or pass --api_key (in Python: "
        "interpreter.llm.api_key). To use a server of your own, pass --api_base and --model."
    )


def _no_provider(model: str, provider: str) -> ProviderNotFoundError:
    from difflib import get_close_matches

    close = get_close_matches(provider, ROWS, n=3)
    meant = f"Did you mean {' or '.join(close)}? " if close else ""
    return ProviderNotFoundError(
        f"No provider named {provider!r} is known, so {model!r} cannot be asked. {meant}"
        "`interpreter --models` lists what can be used. LiteLLM knows more providers: "
        "`pip install 'open-interpreter[litellm]'`. "
        "A server that speaks OpenAI's Chat Completions can be used with --api_base."
    )
