"""Who serves which model: rows of data, and the rules that turn a model string into an address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from interpreter.errors import MissingKeyError, ProviderNotFoundError


@dataclass(frozen=True)
class Provider:
    """One row: the prefix of its model strings, where it is, and which variables hold its key and address."""

    prefix: str
    base_url: str
    key_variables: tuple[str, ...] = ()
    base_variables: tuple[str, ...] = ()
    is_local: bool = False
    base_path: str = ""
    """What an address that has no path gets: people write http://localhost:11434 for Ollama."""


_OLLAMA = "http://localhost:11434/v1"
_OPENAI_BASES = ("OPENAI_BASE_URL", "OPENAI_API_BASE")

# fmt: off
PROVIDERS: tuple[Provider, ...] = (
    Provider("openai", "https://api.openai.com/v1", ("OPENAI_API_KEY",), _OPENAI_BASES),
    Provider("ollama", _OLLAMA, (), ("OLLAMA_HOST",), is_local=True, base_path="/v1"),
    Provider("ollama_chat", _OLLAMA, (), ("OLLAMA_HOST",), is_local=True, base_path="/v1"),
    Provider("lm_studio", "http://localhost:1234/v1", ("LM_STUDIO_API_KEY",), ("LM_STUDIO_API_BASE",),
             is_local=True),
    Provider("jan", "http://localhost:1337/v1", ("JAN_API_KEY",), is_local=True),
    Provider("llamafile", "http://localhost:8080/v1", (), is_local=True),
    Provider("azure", "", ("AZURE_API_KEY", "AZURE_OPENAI_API_KEY"),
             ("AZURE_API_BASE", "AZURE_OPENAI_ENDPOINT")),
    Provider("groq", "https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
    Provider("openrouter", "https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",)),
    Provider("mistral", "https://api.mistral.ai/v1", ("MISTRAL_API_KEY",)),
    Provider("deepseek", "https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",)),
    Provider("xai", "https://api.x.ai/v1", ("XAI_API_KEY",)),
    Provider("together_ai", "https://api.together.xyz/v1", ("TOGETHER_API_KEY", "TOGETHERAI_API_KEY")),
    Provider("cerebras", "https://api.cerebras.ai/v1", ("CEREBRAS_API_KEY",)),
    Provider("gemini", "https://generativelanguage.googleapis.com/v1beta/openai",
             ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
)
# fmt: on

_ROWS = {row.prefix: row for row in PROVIDERS}

# Models that are written without a prefix and that OpenAI does not have.
_ELSEWHERE = {"claude": "anthropic", "gemini": "gemini", "command": "cohere"}
_KEPT_WITH_API_BASE = frozenset({"openai", "azure", "ollama", "ollama_chat", "jan", "lm_studio", "llamafile"})

AZURE_VERSION = "2024-10-21"


@dataclass(frozen=True)
class Endpoint:
    """Where one model is asked: everything about the request that is not the conversation."""

    provider: str
    model: str
    base_url: str
    key: str | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    key_header: str = "Authorization"

    @property
    def is_loopback(self) -> bool:
        """Whether the server is on this machine."""
        host = self.base_url.partition("://")[2].partition("/")[0]
        return any(fnmatchcase(host, pattern) for pattern in ("localhost*", "127.*", "[[]::1[]]*", "0.0.0.0*"))

    @property
    def headers(self) -> dict[str, str]:
        if not self.key:
            return {}
        return {self.key_header: f"Bearer {self.key}" if self.key_header == "Authorization" else self.key}


def resolve(
    model: str,
    environ: Mapping[str, str],
    api_base: str | None = None,
    api_key: str | None = None,
    api_version: str | None = None,
) -> Endpoint:
    """The endpoint of a model string, or an error that says what is missing."""
    provider, name = identify(model, api_base)
    row = _ROWS.get(provider)
    if row is None:
        raise _no_provider(model, provider)
    base_url = _base_url(row, environ, api_base)
    key = (api_key or next(filter(None, map(environ.get, row.key_variables)), "")).strip() or None
    if row.prefix == "azure":
        version = api_version or environ.get("AZURE_API_VERSION") or AZURE_VERSION
        base_url = f"{base_url}/openai/deployments/{name}"
        return Endpoint("azure", name, base_url, key, {"api-version": version}, "api-key")
    if key is None and base_url == row.base_url and not row.is_local:
        raise _missing_key(row)
    return Endpoint(row.prefix, name, base_url, key)


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
            raise ProviderNotFoundError(f"Models of {row.prefix} need their server's address: set api_base.")
        return row.base_url
    if row.prefix.startswith("ollama") and not api_base:
        given = _ollama_address(given)
    given = given.rstrip("/").removesuffix("/chat/completions").rstrip("/")
    if "://" not in given:
        given = f"http://{given}"
    has_path = "/" in given.partition("://")[2]
    return given if has_path else given + row.base_path


def _ollama_address(host: str) -> str:
    """OLLAMA_HOST is the server's own setting: an address to listen at, with parts left out."""
    scheme, found, rest = host.rpartition("://")
    address, slash, path = rest.partition("/")
    name, _, port = address.rpartition(":") if ":" in address else (address, "", "")
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
    known = ", ".join(row.prefix for row in PROVIDERS)
    return ProviderNotFoundError(
        f"No provider named {provider!r} is known, so {model!r} cannot be asked. Known are {known}. "
        "A server that speaks OpenAI's Chat Completions can be used with --api_base."
    )
