"""Names that profiles of older versions use, and names that old pages told people to use."""

from __future__ import annotations

from types import MappingProxyType

RENAMED = MappingProxyType(
    {name: f"llm.{name}" for name in ("model", "temperature", "context_window", "max_tokens", "max_budget")}
    | {name: f"llm.{name}" for name in ("api_base", "api_key", "api_version")}
    | {name: f"llm.{name}" for name in ("supports_vision", "supports_functions", "execution_instructions")}
    | {
        "llm_supports_vision": "llm.supports_vision",
        "llm_supports_functions": "llm.supports_functions",
        "function_calling_llm": "llm.supports_functions",
        "vision": "llm.supports_vision",
        "local": "offline",
        "debug_mode": "verbose",
        "force_task_completion": "loop",
        "force_task_completion_message": "loop_message",
        "force_task_completion_breakers": "loop_breakers",
        "plain": "plain_text_display",
        "llm.max_output": "max_output",
        "llm.custom_instructions": "custom_instructions",
        "llm.system_message": "system_message",
        "computer.skills.path": "computer.skills_path",
        "computer.terminal.languages": "computer.languages",
        "languages": "computer.languages",
    }
)

GONE = MappingProxyType(
    {
        "fast": "use --fast, or --profile fast",
        "use_containers": "there are no containers here",
        "disable_procedures": "nothing is fetched from anywhere",
        "download_open_procedures": "nothing is fetched from anywhere",
        "embed_function": "nothing is embedded",
        "use_trusted_hosts": "it never did anything",
        "tts": "messages are not spoken yet",
        "computer.vision": "images are not described yet",
    }
)
"""Had a meaning once, and why they have none here."""
