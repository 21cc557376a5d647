"""Import paths of 0.4.3 that public code uses. Each leads to the object of today, with one DeprecationWarning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_LANGUAGES = "core.computer.terminal.languages"
_TARGETS = {
    "core.core.OpenInterpreter": "interpreter.OpenInterpreter",
    "core.async_core.AsyncInterpreter": "interpreter.AsyncInterpreter",
    "core.respond.respond": "interpreter.old_paths.respond",
    "core.computer.computer.Computer": "interpreter.computer_api.Computer",
    "core.computer.terminal.terminal.Terminal": "interpreter.computer_api.Computer",
    "core.computer.terminal.base_language.BaseLanguage": "interpreter.BaseLanguage",
    f"{_LANGUAGES}.python.Python": "interpreter.runtimes.python.language.Python",
    f"{_LANGUAGES}.shell.Shell": "interpreter.runtimes.shell.language.Shell",
    f"{_LANGUAGES}.javascript.JavaScript": "interpreter.runtimes.javascript.JavaScript",
    "core.llm.llm.Llm": "interpreter.llm.Llm",
    "core.llm.utils.convert_to_openai_messages.convert_to_openai_messages": (
        "interpreter.old_paths.convert_to_openai_messages"
    ),
    "core.utils.lazy_import.lazy_import": "interpreter.old_paths.lazy_import",
    "core.utils.telemetry.send_telemetry": "interpreter.old_paths.send_telemetry",
    "core.utils.truncate_output.truncate_output": "interpreter.old_paths.truncate_output",
    "terminal_interface.local_setup.local_setup": "interpreter.OpenInterpreter.local_setup",
    "terminal_interface.profiles.profiles.profile": "interpreter.old_paths.profile",
    "terminal_interface.start_terminal_interface.main": "interpreter.frontends.cli.main",
    "terminal_interface.terminal_interface.terminal_interface": "interpreter.old_paths.terminal_interface",
    "terminal_interface.utils.count_tokens.count_tokens": "interpreter.old_paths.count_tokens",
    "terminal_interface.utils.display_markdown_message.display_markdown_message": (
        "interpreter.old_paths.display_markdown_message"
    ),
    "terminal_interface.utils.oi_dir.oi_dir": "interpreter.old_paths.oi_dir",
}


class _OldModule(ModuleType):
    """Looks its names up in the table when they are asked for."""

    def __getattr__(self, name: str) -> Any:
        old = f"{self.__name__}.{name}"
        target = _TARGETS.get(old.removeprefix("interpreter."))
        if target is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value: Any = sys.modules["interpreter"]
        for part in target.split(".")[1:]:
            if not hasattr(value, part) and isinstance(value, ModuleType):
                import_module(f"{value.__name__}.{part}")
            value = getattr(value, part)
        instead = target if not target.startswith(__name__) else f"{target}, if you need it at all"
        warnings.warn(f"{old} has moved: use {instead}.", DeprecationWarning, stacklevel=2)
        setattr(self, name, value)
        return value


class _Finder(MetaPathFinder, Loader):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        below = f"{name.removeprefix('interpreter.')}."
        inside = [old.removeprefix(below) for old in _TARGETS if old.startswith(below)]
        if not inside or not name.startswith("interpreter."):
            return None
        return ModuleSpec(name, self, is_package=any("." in rest for rest in inside))

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _OldModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is executed: names are looked up."""


sys.meta_path.append(_Finder())


def respond(interpreter: Any) -> Any:
    """Answer the conversation as it is; a generator of chunks."""
    return interpreter._respond_and_store()


def terminal_interface(interpreter: Any, message: Any) -> Any:
    """Chat with display; a generator of chunks."""
    return interpreter.chat(message, display=True, stream=True)


def convert_to_openai_messages(
    messages: list[Any],
    function_calling: bool = True,
    vision: bool = False,
    shrink_images: bool = True,
    interpreter: Any = None,
) -> list[dict[str, Any]]:
    """Messages as a request in OpenAI's format has them."""
    from interpreter.llm.model_profile import Forms
    from interpreter.llm.request import Memory, convert
    from interpreter.llm.text_mode import TextChat
    from interpreter.llm.tool_mode import ToolChat

    forms = Forms(shrink_images=shrink_images, vision=vision)
    if interpreter is not None:
        forms = forms._replace(
            user_template=interpreter.user_message_template,
            always_use_user_template=interpreter.always_apply_user_message_template,
            output_template=interpreter.code_output_template,
            empty_output_template=interpreter.empty_code_output_template,
            output_sender=interpreter.code_output_sender,
        )
    return convert(messages, ToolChat() if function_calling else TextChat(forms), forms, Memory())


def count_tokens(text: str = "", model: str = "gpt-4") -> int:
    """About how many tokens a text has."""
    from interpreter.llm.context import estimate_text

    return estimate_text(text)


def profile(interpreter: Any, filename_or_url: str) -> Any:
    """Apply a profile."""
    interpreter.load_profile(filename_or_url)
    return interpreter


def display_markdown_message(message: str) -> None:
    """Show Markdown to the user."""
    import_module("interpreter").interpreter.display_message(message)


def truncate_output(data: str, max_output_chars: int = 2800, add_scrollbars: bool = False) -> str:
    """The beginning and the end of a long output, with a note on what is left out."""
    from interpreter.console_text import ConsoleText

    text = ConsoleText(max_output_chars)
    text.write(data)
    return text.text()


def lazy_import(name: str, optional: bool = True) -> Any:
    """A module, or None if it is not installed and optional."""
    try:
        return import_module(name)
    except ImportError:
        if optional:
            return None
        raise


def send_telemetry(event_name: str, properties: Any = None) -> None:
    """Nothing is ever sent."""


def __getattr__(name: str) -> Any:
    if name == "oi_dir":
        from interpreter.config.homes import our_folder

        return str(our_folder())
    raise AttributeError(name)
