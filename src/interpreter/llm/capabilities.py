"""What a model can do, where nobody said: told by its provider and its name."""

from __future__ import annotations

from fnmatch import fnmatchcase

from interpreter.llm.providers import identify

# Patterns over the lower-cased name behind the last slash.
_CALLS_TOOLS = (
    "gpt-3.5-turbo*", "gpt-4*", "gpt-5*", "gpt-oss*", "chatgpt-4o*", "o1", "o1-2*", "o3*", "o4*",
    "computer-use-*", "claude-*", "*anthropic.claude-*", "gemini-*", "grok-*", "deepseek-chat*", "deepseek-reasoner*",
    "deepseek-v3*", "deepseek-v4*", "kimi-k2*", "glm-4*",
    "mistral-large*", "mistral-medium*", "mistral-small*", "codestral*", "devstral*", "command-r*",
    "llama-3.1*", "llama-3.3*", "llama-4*", "meta-llama-3.1*", "meta-llama-3.3*", "qwen3*", "qwen2.5-72b*",
)  # fmt: skip
_NO_TOOLS = ("claude-2*", "claude-instant*", "*vision-preview*", "gpt-3.5-turbo-instruct*", "gpt-4-base*")
_SEES = (
    "gpt-4o*", "chatgpt-4o*", "gpt-4.1*", "gpt-4.5*", "gpt-4-turbo*", "gpt-4-vision*", "gpt-5*",
    "o1", "o1-2*", "o3", "o3-2*", "o3-pro*", "o4*", "claude-*", "*anthropic.claude-*", "gemini-*",
    "grok-4*", "computer-use-*",
    "llama-4*", "*llava*", "*-vl*", "*.5vl*", "*vision*", "pixtral*", "gemma3*", "gemma-3*", "minicpm-v*",
)  # fmt: skip
_BLIND = ("claude-2*", "claude-instant*", "gpt-4o-audio*", "gemma3:1b*", "gemma-3-1b*")


def calls_tools(model: str, api_base: str | None = None) -> bool:
    """Whether the model is asked in tool mode; one in Ollama or a built-in one is not, unless the user says so."""
    provider, model = identify(model, api_base)
    name = _short_name(model)
    if provider.startswith(("ollama", "builtin")) or _matches(name, _NO_TOOLS):
        return False
    at_openai = provider in ("openai", "azure") and not api_base
    return at_openai or provider == "azure" or _matches(name, _CALLS_TOOLS)


def sees_images(model: str, api_base: str | None = None) -> bool:
    """Whether images are sent to the model."""
    name = _short_name(identify(model, api_base)[1])
    return _matches(name, _SEES) and not _matches(name, _BLIND)


def _short_name(model: str) -> str:
    return model.lower().rpartition("/")[2]


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
