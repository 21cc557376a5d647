"""Functions and classes of 0.4.3 that have no counterpart today, made of current parts. `old_paths` leads to them."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

from interpreter.api import OpenInterpreter
from interpreter.config.homes import our_folder
from interpreter.host import processes
from interpreter.messages import Chunk
from interpreter.runtimes.base import BaseLanguage

# -- a conversation and its model --------------------------------------------------------------------------------------


def respond(interpreter: Any) -> Any:
    """Answer the conversation as it is; yield chunks."""
    return interpreter._respond_and_store()


def convert_to_openai_messages(
    messages: list[Any],
    function_calling: bool = True,
    vision: bool = False,
    shrink_images: bool = True,
    interpreter: Any = None,
) -> list[dict[str, Any]]:
    """Convert messages to those of a request in OpenAI's format."""
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


def render_message(interpreter: Any, message: str) -> str:
    """Replace each `{{ code }}` with what the Python code prints."""
    rendered: str = interpreter.prompt.fill(message)
    return rendered


def merge_deltas(original: dict[str, Any], delta: Any) -> dict[str, Any]:
    """Add a streamed delta to what has come so far: texts grow, dicts merge, None changes nothing."""
    for key, value in dict(delta).items():
        if isinstance(value, dict):
            original[key] = merge_deltas(original.get(key) or {}, value)
        elif isinstance(value, str | list):
            original[key] = original[key] + value if original.get(key) else value
        elif value is not None:
            original[key] = value
    return original


def parse_partial_json(s: str) -> Any:
    """Parse JSON that may break off in the middle; None if its value isn't clear yet."""
    closing, in_string = "", False
    for token in re.findall(r"\\.|[\"{}\[\]]", s, re.DOTALL):
        if token == '"':
            in_string = not in_string
        elif not in_string and token in "{[":
            closing = ("}" if token == "{" else "]") + closing
        elif not in_string and token in "}]":
            closing = closing[1:]
    try:
        return json.loads(s + ('"' if in_string else "") + closing, strict=False)
    except ValueError:
        return None


def count_tokens(text: str = "", model: str = "gpt-4") -> int:
    from interpreter.llm.context import estimate_text

    return estimate_text(text)


def token_cost(tokens: int = 0, model: str = "gpt-4") -> float:
    """Return the price of this many input tokens in US dollars; 0 if it is unknown."""
    from interpreter.llm.usage import look_up

    price = look_up(model).price
    return round(price.cost(tokens, 0), 6) if price is not None else 0


def count_messages_tokens(messages: Iterable[Any] = (), model: str | None = None) -> tuple[int, float]:
    """Estimate the tokens of messages, and what they cost as input."""
    from interpreter.llm.context import cost

    tokens = sum(count_tokens(each) if isinstance(each, str) else cost(each) for each in messages)
    return tokens, token_cost(tokens, model or "gpt-4")


def validate_llm_settings(interpreter: Any) -> None:
    """Make sure that the model can be asked: a missing key is asked for, anything else raises its error."""
    from interpreter.app.models import model_problem
    from interpreter.errors import MissingKeyError
    from interpreter.frontends.terminal.setup import ask_for_key

    error = model_problem(interpreter)
    terminal = _terminal(interpreter)
    if error is not None and not (
        isinstance(error, MissingKeyError) and terminal.is_attended and ask_for_key(terminal, interpreter)
    ):
        raise error


# -- output, scans and files -------------------------------------------------------------------------------------------


def truncate_output(data: str, max_output_chars: int = 2800, add_scrollbars: bool = False) -> str:
    """Shorten a long output to its beginning and end, with a note on what is left out."""
    from interpreter.console_text import ConsoleText

    text = ConsoleText(max_output_chars)
    text.write(data)
    return text.text()


def format_to_recipient(text: str, recipient: str) -> str:
    return f"@@@RECIPIENT:{recipient}@@@CONTENT:{text}@@@END"


def parse_for_recipient(content: str) -> tuple[str | None, str]:
    """Read who a marked text is for, and the text; None if it is not marked."""
    marked = re.fullmatch(r"@@@RECIPIENT:(.*?)@@@CONTENT:(.*)@@@END", content, re.DOTALL)
    return (marked[1], marked[2]) if marked else (None, content)


def scan_code(code: str, language: str, interpreter: Any) -> None:
    """Scan code as safe mode does, and show the findings."""
    findings = [str(finding) for finding in interpreter.scanner.scan(language, code).findings]
    interpreter.display_message("\n".join(findings or ["No problems were found."]))


def create_temporary_file(contents: str, extension: str | None = None, verbose: bool = False) -> str:
    suffix = f".{extension}" if extension else ""
    with tempfile.NamedTemporaryFile("w", suffix=suffix, delete=False, encoding="utf-8") as file:
        file.write(contents)
    return file.name


def cleanup_temporary_file(temp_file_name: str, verbose: bool = False) -> None:
    os.remove(temp_file_name)


def get_storage_path(subdirectory: str | None = None) -> str:
    """Return our configuration folder, or a folder in it."""
    return os.path.join(our_folder(), subdirectory or "").rstrip(os.sep)


def find_image_path(text: str) -> str | None:
    """Find the first image of this machine that a text names; None if it names none."""
    from interpreter.app.attachments import attachments

    return next((each.path for each in attachments(text, os.getcwd()) if each.is_image), None)


# -- the computer ------------------------------------------------------------------------------------------------------


def pytesseract_get_text(img: Any) -> str:
    return "\n".join(" ".join(line) for line in OpenInterpreter().computer.display.get_text_as_list_of_lists(img))


class SubprocessLanguage(BaseLanguage):
    """Runs code in a program that reads it from its input.

    A subclass sets `start_cmd`. Its `preprocess_code` makes the program print a last line, which
    `detect_end_of_execution` recognises.
    """

    start_cmd: list[str] = []  # noqa: RUF012 - assigned by subclasses
    process: Any = None

    def preprocess_code(self, code: str) -> str:
        return code

    def line_postprocessor(self, line: str) -> str | None:
        return line

    def detect_active_line(self, line: str) -> int | None:
        return None

    def detect_end_of_execution(self, line: str) -> bool | None:
        return None

    def start_process(self) -> None:
        self.terminate()
        self.process = processes.start(
            self.start_cmd, cwd=os.getcwd(), stdin=processes.PIPE, stdout=processes.PIPE, stderr=processes.STDOUT
        )

    def run(self, code: str) -> Iterator[Chunk]:
        if self.process is None or self.process.poll() is not None:
            self.start_process()
        self.process.stdin.write(f"{self.preprocess_code(code)}\n".encode())
        self.process.stdin.flush()
        for read in self.process.stdout:
            line = self.line_postprocessor(read.decode(errors="replace"))
            if line is None:
                continue
            if self.detect_end_of_execution(line):
                return
            if (number := self.detect_active_line(line)) is not None:
                yield {"type": "console", "format": "active_line", "content": number}
                line = re.sub(r"##active_line\d+##\n?", "", line)
            if line:
                yield {"type": "console", "format": "output", "content": line}

    def stop(self) -> None:
        self.terminate()

    def terminate(self) -> None:
        if self.process is not None:
            processes.kill(self.process)
            self.process = None


# -- the terminal ------------------------------------------------------------------------------------------------------


def _terminal(interpreter: Any = None) -> Any:
    from interpreter.frontends.terminal.terminal import Terminal

    return Terminal(plain=interpreter is not None and interpreter.plain_text_display)


class BaseBlock:
    """Shows a message while it grows: each `refresh` adds what is new."""

    def __init__(self, interpreter: Any = None) -> None:
        self._display = _terminal(interpreter).display
        self._group: dict[str, Any] = {}  # what is shown now
        self._shown = 0  # characters of it

    def update_from_message(self, message: Any) -> None:
        raise NotImplementedError("Subclasses must implement this method")

    def refresh(self, cursor: bool = True) -> None:
        raise NotImplementedError("Subclasses must implement this method")

    def end(self) -> None:
        self.refresh(cursor=False)
        self._begin({})
        self._display.finish()

    def _begin(self, group: dict[str, Any]) -> None:
        if self._group:
            self._display.show({**self._group, "end": True})
        self._group, self._shown = group, 0
        if group:
            self._display.show({**group, "start": True})

    def _show(self, text: str, **group: Any) -> None:
        if group != self._group:
            self._begin(group)
        if text[self._shown :]:
            self._display.show({**group, "content": text[self._shown :]})
        self._shown = len(text)


class MessageBlock(BaseBlock):
    def __init__(self) -> None:
        super().__init__()
        self.type, self.message = "message", ""

    def refresh(self, cursor: bool = True) -> None:
        self._show(self.message, role="assistant", type="message")


class CodeBlock(BaseBlock):
    def __init__(self, interpreter: Any = None) -> None:
        super().__init__(interpreter)
        self.type, self.language, self.code, self.output = "code", "", "", ""
        self.active_line: int | None = None

    def refresh(self, cursor: bool = True) -> None:
        if self.code and self._group.get("type") != "console":
            self._show(self.code, role="assistant", type="code", format=self.language)
        if self.output:
            self._show(self.output, role="computer", type="console", format="output")


def terminal_interface(interpreter: Any, message: Any) -> Any:
    """Chat with display; yield chunks."""
    return interpreter.chat(message, display=True, stream=True)


def start_terminal_interface(interpreter: Any) -> None:
    """Apply the command line to this interpreter, and chat."""
    from interpreter.frontends.flags import parse
    from interpreter.frontends.start import start

    start(parse(sys.argv[1:]), interpreter)


def handle_magic_command(self: Any, user_input: str) -> None:
    from interpreter.frontends.terminal import magics

    magics.run(_terminal(self), self, user_input)


def system_info(interpreter: Any) -> None:
    handle_magic_command(interpreter, "%info")


def conversation_navigator(interpreter: Any) -> None:
    """Let the user pick an earlier conversation, show it, and continue it."""
    from interpreter.app import conversations, result_of
    from interpreter.frontends.terminal import sessions

    terminal = _terminal(interpreter)
    if (row := sessions.named(terminal, interpreter, {})) is not None:
        sessions.show(terminal, interpreter, result_of(conversations.resume(interpreter, row)))
        interpreter.chat()


def display_markdown_message(message: str) -> None:
    """Show Markdown to the user."""
    import_module("interpreter").interpreter.display_message(message)


def local_setup(interpreter: Any, provider: str | None = None, model: str | None = None) -> Any:
    """Ask which local model to use."""
    interpreter.local_setup()
    return interpreter


def profile(interpreter: Any, filename_or_url: str) -> Any:
    """Apply a profile."""
    interpreter.load_profile(filename_or_url)
    return interpreter


def run_async_main() -> int:
    from interpreter.frontends.cli import main

    return main(["--os"])


# -- what this version doesn't do, or leaves to Python -----------------------------------------------------------------


def in_jupyter_notebook() -> bool:
    return "IPython" in sys.modules and hasattr(sys.modules["IPython"].get_ipython(), "kernel")


def check_for_update() -> bool:
    """Return False without using the network."""
    return False


def lazy_import(name: str, optional: bool = True) -> Any:
    """Import a module; None if it is not installed and optional."""
    try:
        return import_module(name)
    except ImportError:
        if optional:
            return None
        raise


def send_telemetry(event_name: str, properties: Any = None) -> None:
    """Send nothing."""


def __getattr__(name: str) -> Any:
    match name:
        case "oi_dir":
            return str(our_folder())
        case "default_system_message":
            return OpenInterpreter.setting_rows["system_message"].default_value()
    raise AttributeError(name)
