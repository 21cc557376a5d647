"""Model providers: their table, the endpoint of a model string, what a model can do by its name, and API keys."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from interpreter.config.homes import make_folder, our_folder
from interpreter.errors import LiteLLMMissingError, MissingKeyError, OfflineError, ProviderNotFoundError
from interpreter.host.installation import install_hint


@dataclass(frozen=True)
class Provider:
    """One row: the prefix of its model strings, where it is, and which variables hold its key and address."""

    prefix: str
    base_url: str  # empty where each user has a different address
    key_variables: tuple[str, ...] = ()
    base_variables: tuple[str, ...] = ()
    is_local: bool = False
    base_path: str = ""  # added to an address without a path: people write http://localhost:11434 for Ollama
    wire: str = "chat"  # the wire format: "chat", "anthropic" or "responses"
    key_header: str = "Authorization"
    refused_fields: tuple[str, ...] = ()  # fields of a request that it refuses


_OLLAMA = "http://localhost:11434/v1"
_REFUSES_STREAM_OPTIONS = ("stream_options",)  # it counts tokens without being asked to

# fmt: off
PROVIDERS: tuple[Provider, ...] = (
    Provider("openai", "https://api.openai.com/v1", ("OPENAI_API_KEY",),
             ("OPENAI_BASE_URL", "OPENAI_API_BASE")),
    Provider("anthropic", "https://api.anthropic.com/v1", ("ANTHROPIC_API_KEY",),
             ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"), base_path="/v1", wire="anthropic",
             key_header="x-api-key"),
    Provider("gemini", "https://generativelanguage.googleapis.com/v1beta/openai",
             ("GEMINI_API_KEY", "GOOGLE_API_KEY"), ("GEMINI_API_BASE",)),
    # On this machine
    Provider("ollama", _OLLAMA, (), ("OLLAMA_HOST",), is_local=True, base_path="/v1"),
    Provider("ollama_chat", _OLLAMA, (), ("OLLAMA_HOST",), is_local=True, base_path="/v1"),
    Provider("lm_studio", "http://localhost:1234/v1", ("LM_STUDIO_API_KEY",), ("LM_STUDIO_API_BASE",),
             is_local=True),
    Provider("jan", "http://localhost:1337/v1", ("JAN_API_KEY",), is_local=True),
    Provider("llamafile", "http://localhost:8080/v1", ("LLAMAFILE_API_KEY",), ("LLAMAFILE_API_BASE",),
             is_local=True),
    Provider("builtin", "http://127.0.0.1", (), is_local=True),  # its engine says the rest when it runs
    Provider("xinference", "http://127.0.0.1:9997/v1", ("XINFERENCE_API_KEY",), ("XINFERENCE_API_BASE",),
             is_local=True),
    Provider("docker_model_runner", "http://localhost:12434/engines/v1", ("DOCKER_MODEL_RUNNER_API_KEY",),
             ("DOCKER_MODEL_RUNNER_API_BASE",), is_local=True),
    Provider("lemonade", "http://localhost:8000/api/v1", ("LEMONADE_API_KEY",), ("LEMONADE_API_BASE",),
             is_local=True),
    # Wherever the user has it
    Provider("azure", "", ("AZURE_API_KEY", "AZURE_OPENAI_API_KEY"),
             ("AZURE_API_BASE", "AZURE_OPENAI_ENDPOINT"), key_header="api-key"),
    Provider("hosted_vllm", "", ("HOSTED_VLLM_API_KEY",), ("HOSTED_VLLM_API_BASE",), base_path="/v1"),
    Provider("litellm_proxy", "", ("LITELLM_PROXY_API_KEY",), ("LITELLM_PROXY_API_BASE",)),
    Provider("databricks", "", ("DATABRICKS_API_KEY",), ("DATABRICKS_API_BASE",),
             base_path="/serving-endpoints"),
    # On the net
    Provider("ai21", "https://api.ai21.com/studio/v1", ("AI21_API_KEY",)),
    Provider("aiml", "https://api.aimlapi.com/v1", ("AIML_API_KEY",), ("AIML_API_BASE",)),
    Provider("baseten", "https://inference.baseten.co/v1", ("BASETEN_API_KEY",)),
    Provider("cerebras", "https://api.cerebras.ai/v1", ("CEREBRAS_API_KEY",), ("CEREBRAS_API_BASE",)),
    Provider("chutes", "https://llm.chutes.ai/v1", ("CHUTES_API_KEY",), ("CHUTES_API_BASE",)),
    Provider("codestral", "https://codestral.mistral.ai/v1", ("CODESTRAL_API_KEY",),
             refused_fields=_REFUSES_STREAM_OPTIONS),
    Provider("cohere", "https://api.cohere.ai/compatibility/v1", ("COHERE_API_KEY", "CO_API_KEY")),
    Provider("cohere_chat", "https://api.cohere.ai/compatibility/v1", ("COHERE_API_KEY", "CO_API_KEY")),
    Provider("cometapi", "https://api.cometapi.com/v1", ("COMETAPI_KEY",), ("COMETAPI_API_BASE",), base_path="/v1"),
    Provider("compactifai", "https://api.compactif.ai/v1", ("COMPACTIFAI_API_KEY",)),
    Provider("dashscope", "https://dashscope.aliyuncs.com/compatible-mode/v1", ("DASHSCOPE_API_KEY",),
             ("DASHSCOPE_API_BASE",)),
    Provider("deepinfra", "https://api.deepinfra.com/v1/openai", ("DEEPINFRA_API_KEY",),
             ("DEEPINFRA_API_BASE",)),
    Provider("deepseek", "https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",), ("DEEPSEEK_API_BASE",)),
    Provider("featherless_ai", "https://api.featherless.ai/v1",
             ("FEATHERLESS_AI_API_KEY", "FEATHERLESS_API_KEY"), ("FEATHERLESS_API_BASE",)),
    Provider("fireworks_ai", "https://api.fireworks.ai/inference/v1",
             ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY", "FIREWORKSAI_API_KEY"), ("FIREWORKS_API_BASE",)),
    Provider("friendliai", "https://api.friendli.ai/serverless/v1", ("FRIENDLIAI_API_KEY", "FRIENDLI_TOKEN"),
             ("FRIENDLI_API_BASE",)),
    Provider("galadriel", "https://api.galadriel.com/v1", ("GALADRIEL_API_KEY",), ("GALADRIEL_API_BASE",)),
    Provider("github", "https://models.inference.ai.azure.com", ("GITHUB_API_KEY",), ("GITHUB_API_BASE",)),
    Provider("gradient_ai", "https://inference.do-ai.run/v1", ("GRADIENT_AI_API_KEY",)),
    Provider("groq", "https://api.groq.com/openai/v1", ("GROQ_API_KEY",), ("GROQ_API_BASE",)),
    Provider("huggingface", "https://router.huggingface.co/v1", ("HF_TOKEN", "HUGGINGFACE_API_KEY"),
             ("HUGGINGFACE_API_BASE",), base_path="/v1"),
    Provider("hyperbolic", "https://api.hyperbolic.xyz/v1", ("HYPERBOLIC_API_KEY",),
             ("HYPERBOLIC_API_BASE",)),
    Provider("inception", "https://api.inceptionlabs.ai/v1", ("INCEPTION_API_KEY",),
             ("INCEPTION_API_BASE",)),
    Provider("lambda_ai", "https://api.lambda.ai/v1", ("LAMBDA_API_KEY",), ("LAMBDA_API_BASE",)),
    Provider("meta_llama", "https://api.llama.com/compat/v1", ("LLAMA_API_KEY",), ("LLAMA_API_BASE",)),
    Provider("meta", "https://api.meta.ai/v1", ("META_API_KEY",), ("META_API_BASE",)),
    Provider("minimax", "https://api.minimax.io/v1", ("MINIMAX_API_KEY",), ("MINIMAX_API_BASE",), base_path="/v1"),
    Provider("mistral", "https://api.mistral.ai/v1", ("MISTRAL_API_KEY",), ("MISTRAL_API_BASE",),
             base_path="/v1", refused_fields=_REFUSES_STREAM_OPTIONS),
    Provider("moonshot", "https://api.moonshot.ai/v1", ("MOONSHOT_API_KEY",), ("MOONSHOT_API_BASE",)),
    Provider("morph", "https://api.morphllm.com/v1", ("MORPH_API_KEY",), ("MORPH_API_BASE",)),
    Provider("nebius", "https://api.studio.nebius.ai/v1", ("NEBIUS_API_KEY",), ("NEBIUS_API_BASE",)),
    Provider("novita", "https://api.novita.ai/v3/openai", ("NOVITA_API_KEY",), ("NOVITA_API_BASE",)),
    Provider("nscale", "https://inference.api.nscale.com/v1", ("NSCALE_API_KEY",), ("NSCALE_API_BASE",)),
    Provider("nvidia_nim", "https://integrate.api.nvidia.com/v1", ("NVIDIA_NIM_API_KEY", "NVIDIA_API_KEY"),
             ("NVIDIA_NIM_API_BASE",)),
    Provider("openrouter", "https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY", "OR_API_KEY"),
             ("OPENROUTER_API_BASE",)),
    Provider("ovhcloud", "https://oai.endpoints.kepler.ai.cloud.ovh.net/v1", ("OVHCLOUD_API_KEY",),
             ("OVHCLOUD_API_BASE",)),
    Provider("perplexity", "https://api.perplexity.ai", ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
             ("PERPLEXITY_API_BASE",)),
    Provider("poe", "https://api.poe.com/v1", ("POE_API_KEY",)),
    Provider("sambanova", "https://api.sambanova.ai/v1", ("SAMBANOVA_API_KEY",), ("SAMBANOVA_API_BASE",)),
    Provider("scaleway", "https://api.scaleway.ai/v1", ("SCW_SECRET_KEY",)),
    Provider("synthetic", "https://api.synthetic.new/openai/v1", ("SYNTHETIC_API_KEY",)),
    Provider("together_ai", "https://api.together.xyz/v1",
             ("TOGETHER_API_KEY", "TOGETHERAI_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHER_AI_TOKEN"),
             ("TOGETHER_AI_API_BASE",)),
    Provider("v0", "https://api.v0.dev/v1", ("V0_API_KEY",), ("V0_API_BASE",)),
    Provider("veniceai", "https://api.venice.ai/api/v1", ("VENICE_AI_API_KEY",)),
    Provider("vercel_ai_gateway", "https://ai-gateway.vercel.sh/v1",
             ("VERCEL_AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN"), ("VERCEL_AI_GATEWAY_API_BASE",)),
    Provider("volcengine", "https://ark.cn-beijing.volces.com/api/v3", ("VOLCENGINE_API_KEY", "ARK_API_KEY")),
    Provider("wandb", "https://api.inference.wandb.ai/v1", ("WANDB_API_KEY",), ("WANDB_API_BASE",)),
    Provider("xai", "https://api.x.ai/v1", ("XAI_API_KEY",), ("XAI_API_BASE",)),
    Provider("zai", "https://api.z.ai/api/paas/v4", ("ZAI_API_KEY",), ("ZAI_API_BASE",)),
)
# fmt: on

ROWS = {row.prefix: row for row in PROVIDERS}

# Some providers that LiteLLM is known to have, so that the advice is short. It has more.
THROUGH_LITELLM = frozenset(
    "azure_ai bedrock clarifai cloudflare gigachat github_copilot litellm nlp_cloud oci petals predibase "
    "replicate sagemaker sagemaker_chat snowflake triton vertex_ai vertex_ai_beta watsonx watsonx_text".split()
)


# Models that are written without a prefix and that OpenAI does not have.
_UNPREFIXED_MODELS = {"claude": "anthropic", "gemini": "gemini", "command": "cohere"}
# Prefixes that mean the same on the command line with any server.
_KEPT_WITH_API_BASE = frozenset(
    {"openai", "azure", "anthropic", "ollama", "ollama_chat", "jan", "lm_studio", "llamafile"}
    | {"hosted_vllm", "databricks", "litellm_proxy", "litellm"}
)
# Prefixes that LiteLLM doesn't know: at another address they are part of a model's name, such as meta/llama-3.
_PART_OF_NAME = ("builtin", "meta")
# With an `api_base`, these use another protocol, which LiteLLM speaks.
_OWN_PROTOCOL = ("gemini", "cohere", "cohere_chat")
# Providers with models of many makers, under names such as deepseek/deepseek-chat.
_GATEWAYS = (
    "aiml", "baseten", "chutes", "deepinfra", "featherless_ai", "huggingface", "hyperbolic", "nebius", "novita",
    "nscale", "nvidia_nim", "openrouter", "together_ai", "vercel_ai_gateway", "wandb",
)  # fmt: skip
LITELLM = "litellm"  # the wire of what goes through LiteLLM, and the prefix that asks for it

_RESPONSES = "responses/"  # LiteLLM's way to ask for that wire format: openai/responses/gpt-5
# What OpenAI serves over Responses and not over Chat Completions.
_ONLY_RESPONSES = (
    "codex-*", "*-codex*", "o1-pro*", "o3-pro*", "gpt-*-pro*", "*deep-research*", "computer-use-*",
)  # fmt: skip


@dataclass(frozen=True)
class Endpoint:
    """The target of requests for one model: everything except the conversation."""

    provider: str
    model: str
    base_url: str
    key: str | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    key_header: str = "Authorization"
    wire: str = "chat"
    extra_headers: Mapping[str, str] = field(default_factory=dict)
    refused_fields: tuple[str, ...] = ()

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.base_url)

    @property
    def headers(self) -> dict[str, str]:
        if not self.key:
            return dict(self.extra_headers)
        value = f"Bearer {self.key}" if self.key_header == "Authorization" else self.key
        return {self.key_header: value, **self.extra_headers}


def is_loopback(address: str) -> bool:
    authority = address.partition("://")[2].partition("/")[0].rpartition("@")[2]
    host = authority.partition("]")[0].removeprefix("[") if authority.startswith("[") else authority.partition(":")[0]
    return host.lower() in ("localhost", "::1", "0.0.0.0") or re.fullmatch(r"127(\.\d+){1,3}", host) is not None


def resolve(
    model: str,
    environ: Mapping[str, str],
    api_base: str | None = None,
    api_key: str | None = None,
    api_version: str | None = None,
) -> Endpoint:
    """Return the endpoint of a model string, or raise an error that says what is missing."""
    provider, name = identify(model, api_base)
    row = ROWS.get(provider)
    if row is None:
        return _through_litellm(model, provider, api_base, api_key)
    base_url, wire = _base_url(row, environ, api_base), row.wire
    if api_base and provider in _OWN_PROTOCOL and base_url != row.base_url:
        return _through_litellm(model, provider, api_base, api_key)
    key = (api_key or next(filter(None, map(environ.get, row.key_variables)), "")).strip() or None
    query: dict[str, str] = {}
    headers: dict[str, str] = {}
    if key is None and base_url == row.base_url and not row.is_local:
        raise MissingKeyError(
            f"There is no key for {row.prefix}. Set {row.key_variables[0]} in the environment, or pass --api_key "
            "(in Python: interpreter.llm.api_key). To use your own server, pass --api_base and --model."
        )
    is_only_responses = base_url == row.base_url and matches(name, _ONLY_RESPONSES)
    if row.prefix == "azure":
        query = {"api-version": api_version or environ.get("AZURE_API_VERSION") or "2024-10-21"}
        base_url = f"{base_url}/openai/deployments/{name}"
    elif row.wire == "anthropic":
        headers = {"anthropic-version": api_version or "2023-06-01"}
    elif row.prefix == "openai" and (is_only_responses or name.startswith(_RESPONSES)):
        wire, name = "responses", name.removeprefix(_RESPONSES)
    elif row.prefix == "fireworks_ai" and "#" not in name and not name.startswith("accounts/"):
        name = f"accounts/fireworks/models/{name}"
    return Endpoint(row.prefix, name, base_url, key, query, row.key_header, wire, headers, row.refused_fields)


def _through_litellm(model: str, provider: str, api_base: str | None, api_key: str | None) -> Endpoint:
    """Return the endpoint of a model without a row: LiteLLM may know it, if it is installed."""
    from difflib import get_close_matches
    from importlib.util import find_spec

    if find_spec(LITELLM) is not None:
        return Endpoint(provider, model.removeprefix(f"{LITELLM}/"), api_base or "", api_key, wire=LITELLM)
    if provider in THROUGH_LITELLM or provider in _OWN_PROTOCOL:
        advice = " For a server with OpenAI's API, put openai/ before the name." if api_base else ""
        raise LiteLLMMissingError(
            f"{model!r} needs LiteLLM, which is not installed. Run: {install_hint('litellm')}.{advice}"
        )
    close = get_close_matches(provider, ROWS, n=3)
    meant = f"Did you mean {' or '.join(close)}? " if close else ""
    raise ProviderNotFoundError(
        f"Unknown provider {provider!r} in {model!r}. {meant}`interpreter --models` lists the models you can use. "
        f"LiteLLM supports more providers: `{install_hint('litellm')}`. "
        "For a server with OpenAI's Chat Completions API, use --api_base."
    )


def identify(model: str, api_base: str | None = None) -> tuple[str, str]:
    """Return the provider of a model string, and the name that its server knows the model by."""
    prefix, slash, name = model.partition("/")
    prefix = prefix.lower()
    if api_base:
        is_provider = prefix in THROUGH_LITELLM or (prefix in ROWS and prefix not in _PART_OF_NAME)
        is_full_name = "/" not in name and _host(api_base) in {_host(ROWS[each].base_url) for each in _GATEWAYS}
        return (prefix, name) if slash and is_provider and not is_full_name else ("openai", model)
    if slash:
        return prefix, name
    return next((who for start, who in _UNPREFIXED_MODELS.items() if model.startswith(start)), "openai"), model


def with_prefix_in_name(model: str, api_base: str) -> str:
    """Change a model string so that the server gets the whole name, as with `--model` and `--api_base` in 0.4.3."""
    provider = identify(model, api_base)[0]
    is_at_home = provider in ROWS and _host(api_base) == _host(ROWS[provider].base_url)
    return model if provider in _KEPT_WITH_API_BASE or is_at_home else f"openai/{model}"


def _host(address: str) -> str:
    return address.rpartition("://")[2].partition("/")[0].lower()


def _base_url(row: Provider, environ: Mapping[str, str], api_base: str | None) -> str:
    given = api_base or next(filter(None, map(environ.get, row.base_variables)), None)
    if not given:
        if not row.base_url:
            raise ProviderNotFoundError(
                f"Models from {row.prefix} need a server URL. Set api_base or {row.base_variables[0]}."
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
    """Complete OLLAMA_HOST, the server's own setting: an address to listen at, with parts left out."""
    scheme, separator, rest = host.rpartition("://")
    address, slash, path = rest.partition("/")
    has_port = ":" in address and not address.endswith("]")
    name, _, port = address.rpartition(":") if has_port else (address, "", "")
    name = "127.0.0.1" if name in ("", "0.0.0.0", "[::]") else name
    port = port or ("443" if scheme == "https" else "80" if separator else "11434")
    return f"{scheme or 'http'}://{name}:{port}{slash}{path}"


def check_offline(model: str, environ: Mapping[str, str], api_base: str | None) -> None:
    """In offline mode, reject a model that isn't local and for which the user has set no address."""
    if api_base and identify(model, api_base)[0] in (*ROWS, LITELLM):  # others may also contact their provider
        return
    row = ROWS.get(identify(model)[0])
    if row is not None and (row.is_local or any(map(environ.get, row.base_variables))):
        return
    raise OfflineError(
        f"Can't use {model} while `offline` is set, because it is not on this machine. Use a local model (see "
        f"interpreter --local), name your server with --api_base, or drop --offline."
    )


# The default model where only a key is known: current, able to call tools, and not the provider's most expensive one.
STARTING_MODELS: Mapping[str, str] = {
    "openai": "gpt-6.1-terra",
    "anthropic": "claude-sonnet-5-5",
    "gemini": "gemini-3.8-flash",
    "openrouter": "openrouter/auto",
    "deepseek": "deepseek-chat",
    "mistral": "mistral-medium-latest",
    "groq": "openai/gpt-oss-120b",
    "xai": "grok-4.7",
    "together_ai": "openai/gpt-oss-120b",
    "fireworks_ai": "accounts/fireworks/models/gpt-oss-120b",
    "cerebras": "gpt-oss-120b",
    "moonshot": "kimi-k2.6",
    "zai": "glm-5.3",
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
    "vercel_ai_gateway": "openai/gpt-6.1-terra",
    "huggingface": "openai/gpt-oss-120b",
}
# People have these keys for other purposes, too, so they don't select a provider.
_AMBIGUOUS_KEYS = frozenset({"HF_TOKEN", "VERCEL_OIDC_TOKEN", "NVIDIA_API_KEY", "GOOGLE_API_KEY"})

_KEY_PREFIXES: Mapping[str, str] = {
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


def provider_of(key: str) -> Provider | None:
    if key.startswith("sk-") and "T3BlbkFJ" in key:  # in every key of OpenAI
        return ROWS["openai"]
    return next((ROWS[prefix] for start, prefix in _KEY_PREFIXES.items() if key.startswith(start)), None)


def starting_model(row: Provider) -> str:
    """Return this provider's default model string, or an empty string if it has no default."""
    name = STARTING_MODELS.get(row.prefix, "")
    return name and (name if row.prefix == "openai" else f"{row.prefix}/{name}")


def keys_in_environment(environ: Mapping[str, str]) -> Iterator[tuple[Provider, str]]:
    """Yield providers whose keys are set, with the variables that hold them; first those with a starting model."""
    keys = []
    for row in PROVIDERS:
        name = next((name for name in row.key_variables if environ.get(name, "").strip()), "")
        if name and not row.is_local:
            keys.append((row, name))
    yield from sorted(keys, key=lambda pair: not selects_provider(*pair))


def selects_provider(row: Provider, variable: str) -> bool:
    """Return whether this key alone is reason enough to use its provider."""
    return row.prefix in STARTING_MODELS and variable not in _AMBIGUOUS_KEYS


# -- the file ------------------------------------------------------------------------------------------------


def keys_file() -> Path:
    """Return where keys are kept if the user wants that: lines NAME=value, readable by their owner alone."""
    return our_folder() / "keys.env"


def saved_keys() -> dict[str, str]:
    """Read the keys in the file, by the names of their variables; empty if it cannot be read."""
    try:
        lines = keys_file().read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    pairs = (line.removeprefix("export ").partition("=") for line in lines if not line.lstrip().startswith("#"))
    return {name.strip(): value.strip().strip("'\"") for name, equals, value in pairs if equals and value.strip()}


def save_key(variable: str, key: str) -> Path:
    """Save a key in the file, replacing an older one. Only its owner can ever read the file."""
    path = keys_file()
    make_folder(path.parent)
    keys = {**saved_keys(), variable: key}
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        out.writelines(f"{name}={value}\n" for name, value in keys.items())
    fresh.replace(path)
    return path


def saved_key_for(row: Provider) -> str | None:
    keys = saved_keys()
    return next((keys[name] for name in row.key_variables if name in keys), None)


# Patterns for the lower-cased name after the last slash.
_CALLS_TOOLS = (
    "gpt-3.5-turbo*", "gpt-4*", "gpt-5*", "gpt-6*", "gpt-oss*", "chatgpt-4o*", "o1", "o1-2*", "o3*", "o4*",
    "computer-use-*", "claude-*", "*anthropic.claude-*", "gemini-*", "grok-*", "deepseek-chat*", "deepseek-reasoner*",
    "deepseek-v3*", "deepseek-v4*", "kimi-k2*", "glm-4*",
    "mistral-large*", "mistral-medium*", "mistral-small*", "codestral*", "devstral*", "command-r*",
    "llama-3.1*", "llama-3.3*", "llama-4*", "meta-llama-3.1*", "meta-llama-3.3*", "qwen3*", "qwen2.5-72b*",
)  # fmt: skip
_NO_TOOLS = ("claude-2*", "claude-instant*", "*vision-preview*", "gpt-3.5-turbo-instruct*", "gpt-4-base*")
_SEES = (
    "gpt-4o*", "chatgpt-4o*", "gpt-4.1*", "gpt-4.5*", "gpt-4-turbo*", "gpt-4-vision*", "gpt-5*", "gpt-6*",
    "o1", "o1-2*", "o3", "o3-2*", "o3-pro*", "o4*", "claude-*", "*anthropic.claude-*", "gemini-*",
    "grok-4*", "computer-use-*",
    "llama-4*", "*llava*", "*-vl*", "*.5vl*", "*vision*", "pixtral*", "gemma3*", "gemma-3*", "minicpm-v*",
)  # fmt: skip
_BLIND = ("claude-2*", "claude-instant*", "gpt-4o-audio*", "gemma3:1b*", "gemma-3-1b*")


def calls_tools(model: str, api_base: str | None = None) -> bool:
    """Return whether to use tool mode. Models in Ollama and built-in ones don't get it unless the user sets it."""
    provider, model = identify(model, api_base)
    name = _short_name(model)
    if provider.startswith(("ollama", "builtin")) or matches(name, _NO_TOOLS):
        return False
    at_openai = provider in ("openai", "azure") and not api_base
    return at_openai or provider == "azure" or matches(name, _CALLS_TOOLS)


def sees_images(model: str, api_base: str | None = None) -> bool:
    name = _short_name(identify(model, api_base)[1])
    return matches(name, _SEES) and not matches(name, _BLIND)


def _short_name(model: str) -> str:
    return model.lower().rpartition("/")[2]


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
