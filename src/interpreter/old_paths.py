"""Import paths of 0.4.3 that public code uses. Each leads to today's object, with one DeprecationWarning.

What has no counterpart is made in `old_functions`, or raises an ImportError that says what to use.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pkgutil import resolve_name
from types import ModuleType
from typing import Any

_LANGUAGES, _RUNTIMES = "core.computer.terminal.languages", "interpreter.runtimes"
_LEAVES = "interpreter.languages"
_UTILS = "terminal_interface.utils"
_TOOLS, _MADE = "interpreter.computer_api", "interpreter.old_functions"
_TARGETS = {
    "computer_use.loop.run_async_main": f"{_MADE}.run_async_main",
    "core.async_core.AsyncInterpreter": "interpreter.AsyncInterpreter",
    "core.async_core.Server": "interpreter.frontends.server.async_interpreter.Server",
    "core.async_core.create_router": "interpreter.frontends.server.async_interpreter.create_router",
    "core.computer.ai.ai.Ai": f"{_TOOLS}.ai.Ai",
    "core.computer.browser.browser.Browser": f"{_TOOLS}.browser.Browser",
    "core.computer.calendar.calendar.Calendar": f"{_TOOLS}.people.calendar.Calendar",
    "core.computer.clipboard.clipboard.Clipboard": f"{_TOOLS}.screen.input.Clipboard",
    "core.computer.computer.Computer": f"{_TOOLS}.Computer",
    "core.computer.contacts.contacts.Contacts": f"{_TOOLS}.people.contacts.Contacts",
    "core.computer.display.display.Display": f"{_TOOLS}.screen.display.Display",
    "core.computer.docs.docs.Docs": f"{_TOOLS}.files.Docs",
    "core.computer.files.files.Files": f"{_TOOLS}.files.Files",
    "core.computer.files.files.get_close_matches_in_text": f"{_TOOLS}.files.get_close_matches_in_text",
    "core.computer.keyboard.keyboard.Keyboard": f"{_TOOLS}.screen.input.Keyboard",
    "core.computer.mail.mail.Mail": f"{_TOOLS}.people.mail.Mail",
    "core.computer.mouse.mouse.Mouse": f"{_TOOLS}.screen.input.Mouse",
    "core.computer.os.os.Os": f"{_TOOLS}.screen.desktop.Os",
    "core.computer.skills.skills.NewSkill": f"{_TOOLS}.skills.NewSkill",
    "core.computer.skills.skills.Skills": f"{_TOOLS}.skills.Skills",
    "core.computer.sms.sms.SMS": f"{_TOOLS}.people.sms.SMS",
    "core.computer.terminal.base_language.BaseLanguage": "interpreter.BaseLanguage",
    "core.computer.terminal.terminal.Terminal": f"{_TOOLS}.Computer",
    "core.computer.utils.computer_vision.pytesseract_get_text": f"{_MADE}.pytesseract_get_text",
    "core.computer.utils.recipient_utils.format_to_recipient": f"{_MADE}.format_to_recipient",
    "core.computer.utils.recipient_utils.parse_for_recipient": f"{_MADE}.parse_for_recipient",
    "core.computer.vision.vision.Vision": f"{_TOOLS}.ai.Vision",
    "core.core.OpenInterpreter": "interpreter.OpenInterpreter",
    "core.default_system_message.default_system_message": f"{_MADE}.default_system_message",
    "core.llm.llm.Llm": "interpreter.llm.Llm",
    "core.llm.utils.convert_to_openai_messages.convert_to_openai_messages": f"{_MADE}.convert_to_openai_messages",
    "core.llm.utils.merge_deltas.merge_deltas": f"{_MADE}.merge_deltas",
    "core.llm.utils.parse_partial_json.parse_partial_json": f"{_MADE}.parse_partial_json",
    "core.render_message.render_message": f"{_MADE}.render_message",
    "core.respond.respond": f"{_MADE}.respond",
    "core.utils.lazy_import.lazy_import": f"{_MADE}.lazy_import",
    "core.utils.scan_code.scan_code": f"{_MADE}.scan_code",
    "core.utils.system_debug_info.get_os_version": "platform.platform",
    "core.utils.system_debug_info.get_python_version": "platform.python_version",
    "core.utils.system_debug_info.system_info": f"{_MADE}.system_info",
    "core.utils.telemetry.send_telemetry": f"{_MADE}.send_telemetry",
    "core.utils.temporary_file.cleanup_temporary_file": f"{_MADE}.cleanup_temporary_file",
    "core.utils.temporary_file.create_temporary_file": f"{_MADE}.create_temporary_file",
    "core.utils.truncate_output.truncate_output": f"{_MADE}.truncate_output",
    f"{_LANGUAGES}.applescript.AppleScript": f"{_LEAVES}.applescript.AppleScript",
    f"{_LANGUAGES}.html.HTML": f"{_LEAVES}.html.HTML",
    f"{_LANGUAGES}.java.Java": f"{_LEAVES}.java.Java",
    f"{_LANGUAGES}.javascript.JavaScript": f"{_LEAVES}.javascript.JavaScript",
    f"{_LANGUAGES}.jupyter_language.JupyterLanguage": f"{_RUNTIMES}.python.language.Python",
    f"{_LANGUAGES}.powershell.PowerShell": f"{_LEAVES}.powershell.PowerShell",
    f"{_LANGUAGES}.python.Python": f"{_RUNTIMES}.python.language.Python",
    f"{_LANGUAGES}.r.R": f"{_LEAVES}.r.R",
    f"{_LANGUAGES}.react.React": f"{_LEAVES}.html.React",
    f"{_LANGUAGES}.ruby.Ruby": f"{_LEAVES}.ruby.Ruby",
    f"{_LANGUAGES}.shell.Shell": f"{_RUNTIMES}.shell.language.Shell",
    f"{_LANGUAGES}.subprocess_language.SubprocessLanguage": f"{_MADE}.SubprocessLanguage",
    "terminal_interface.components.base_block.BaseBlock": f"{_MADE}.BaseBlock",
    "terminal_interface.components.code_block.CodeBlock": f"{_MADE}.CodeBlock",
    "terminal_interface.components.message_block.MessageBlock": f"{_MADE}.MessageBlock",
    "terminal_interface.conversation_navigator.conversation_navigator": f"{_MADE}.conversation_navigator",
    "terminal_interface.local_setup.local_setup": f"{_MADE}.local_setup",
    "terminal_interface.magic_commands.handle_magic_command": f"{_MADE}.handle_magic_command",
    "terminal_interface.profiles.profiles.profile": f"{_MADE}.profile",
    "terminal_interface.start_terminal_interface.main": "interpreter.frontends.cli.main",
    "terminal_interface.start_terminal_interface.start_terminal_interface": f"{_MADE}.start_terminal_interface",
    "terminal_interface.terminal_interface.terminal_interface": f"{_MADE}.terminal_interface",
    f"{_UTILS}.check_for_package.check_for_package": "importlib.util.find_spec",
    f"{_UTILS}.check_for_update.check_for_update": f"{_MADE}.check_for_update",
    f"{_UTILS}.count_tokens.count_messages_tokens": f"{_MADE}.count_messages_tokens",
    f"{_UTILS}.count_tokens.count_tokens": f"{_MADE}.count_tokens",
    f"{_UTILS}.count_tokens.token_cost": f"{_MADE}.token_cost",
    f"{_UTILS}.display_markdown_message.display_markdown_message": f"{_MADE}.display_markdown_message",
    f"{_UTILS}.find_image_path.find_image_path": f"{_MADE}.find_image_path",
    f"{_UTILS}.in_jupyter_notebook.in_jupyter_notebook": f"{_MADE}.in_jupyter_notebook",
    f"{_UTILS}.local_storage_path.get_storage_path": f"{_MADE}.get_storage_path",
    f"{_UTILS}.oi_dir.oi_dir": f"{_MADE}.oi_dir",
    "terminal_interface.validate_llm_settings.validate_llm_settings": f"{_MADE}.validate_llm_settings",
}
# What can't work here, and what to use.
_GONE = {
    "core.async_core.authenticate_function": "make tokens for others with `interpreter --server_token NAME`",
    "core.computer.ai.ai.fast_llm": "use computer.ai.chat(text)",
    "core.computer.ai.ai.query_map_chunks": "use computer.ai.query(text, query)",
    "core.computer.ai.ai.query_reduce_chunks": "use computer.ai.query(text, query)",
    "core.computer.ai.ai.split_into_chunks": "use computer.ai.query(text, query)",
    "core.computer.display.display.take_screenshot_to_pil": "use computer.display.screenshot(show=False)",
    "core.computer.display.display.get_displays": "use computer.display.info()",
    "core.computer.display.point.point.point": "use computer.display.find(description)",
    "core.computer.mouse.mouse.smooth_move_to": "use computer.mouse.move(x=X, y=Y)",
    "core.computer.utils.computer_vision.find_text_in_image": "use computer.display.find_text(text, image)",
    "core.computer.utils.computer_vision.pytesseract_get_text_bounding_boxes": (
        "use computer.display.find_text(text, image)"
    ),
    "core.computer.utils.get_active_window.get_active_window": "use computer.display.info()",
    "core.computer.utils.html_to_png_base64.html_to_png_base64": 'use computer.run("html", code)',
    "core.computer.utils.run_applescript.run_applescript": 'use computer.run("applescript", script)',
    "core.computer.utils.run_applescript.run_applescript_capture": 'use computer.run("applescript", script)',
    "core.llm.run_function_calling_llm.run_function_calling_llm": "use interpreter.llm.run(messages)",
    "core.llm.run_text_llm.run_text_llm": "use interpreter.llm.run(messages)",
    "core.llm.run_tool_calling_llm.run_tool_calling_llm": "use interpreter.llm.run(messages)",
    "core.utils.telemetry.get_or_create_uuid": "there is no telemetry, so users have no ids",
    f"{_LANGUAGES}.jupyter_language.add_active_line_prints": "code runs as it is, and reports its lines itself",
    f"{_LANGUAGES}.python.preprocess_python": "code runs as it is",
    f"{_LANGUAGES}.shell.preprocess_shell": "code runs as it is",
    f"{_UTILS}.cli_input.cli_input": "use input()",
    f"{_UTILS}.display_output.display_output": "use interpreter.display_message(text)",
    f"{_UTILS}.export_to_markdown.export_to_markdown": "use %markdown",
    f"{_UTILS}.get_conversations.get_conversations": "list interpreter.conversation_history_path",
    "terminal_interface.contributing_conversations.contribute_conversations": "conversations are never uploaded",
    "terminal_interface.contributing_conversations.contribute_conversation_launch_logic": (
        "conversations are never uploaded"
    ),
    "terminal_interface.profiles.profiles.apply_profile": "use interpreter.load_profile(name)",
    "terminal_interface.profiles.profiles.reset_profile": "run `interpreter --reset_profile NAME`",
    "terminal_interface.render_past_conversation.render_past_conversation": "use interpreter.display_message(text)",
    "terminal_interface.profiles.profiles.write_key_to_profile": "edit default.yaml: `interpreter --profiles` opens it",
}


class _OldModule(ModuleType):
    """Looks names up in the table on first use."""

    def __getattr__(self, name: str) -> Any:
        old = f"{self.__name__}.{name}"
        target = _TARGETS.get(old.removeprefix("interpreter."))
        if advice := _GONE.get(old.removeprefix("interpreter.")):
            raise ImportError(f"{old} is not in this version: {advice}.")
        if target is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = resolve_name(target)
        instead = target if not target.startswith(_MADE) else f"{target}, if you need it at all"
        warnings.warn(f"{old} has moved: use {instead}.", DeprecationWarning, stacklevel=2)
        setattr(self, name, value)
        return value


class _Finder(MetaPathFinder, Loader):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        below = f"{name.removeprefix('interpreter.')}."
        inside = [old.removeprefix(below) for old in (*_TARGETS, *_GONE) if old.startswith(below)]
        if not inside or not name.startswith("interpreter."):
            return None
        return ModuleSpec(name, self, is_package=any("." in rest for rest in inside))

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _OldModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: names are looked up when used."""


sys.meta_path.append(_Finder())
