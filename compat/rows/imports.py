# Where public code imports things from.

# row: the object
from interpreter import interpreter

assert type(interpreter).__name__ == "OpenInterpreter"

# row: the class
from interpreter import OpenInterpreter

assert isinstance(OpenInterpreter(), OpenInterpreter)

# row: the class of the object
from interpreter import OpenInterpreter, interpreter

assert isinstance(interpreter, OpenInterpreter)

# row: everything with a star
from interpreter import *

assert OpenInterpreter and interpreter and computer and BaseLanguage

# row: the base of languages
from interpreter import BaseLanguage

assert isinstance(BaseLanguage, type)

# row: the asynchronous class
from interpreter import AsyncInterpreter

assert isinstance(AsyncInterpreter, type)

# row: core.core
from interpreter import OpenInterpreter as Same
from interpreter.core.core import OpenInterpreter

assert OpenInterpreter is Same

# row: core.computer.computer
from interpreter import interpreter
from interpreter.core.computer.computer import Computer

assert isinstance(interpreter.computer, Computer)

# row: core.computer.terminal.base_language
from interpreter import BaseLanguage as Same
from interpreter.core.computer.terminal.base_language import BaseLanguage

assert BaseLanguage is Same

# row: core.llm.llm
from interpreter import interpreter
from interpreter.core.llm.llm import Llm

assert isinstance(interpreter.llm, Llm)

# row: core.async_core
from interpreter.core.async_core import AsyncInterpreter

assert isinstance(AsyncInterpreter, type)

# row: terminal_interface.profiles.profiles
from interpreter.terminal_interface.profiles.profiles import profile

assert callable(profile)

# row: terminal_interface.start_terminal_interface
from interpreter.terminal_interface.start_terminal_interface import main

assert callable(main)

# row: core.utils.truncate_output
from interpreter.core.utils.truncate_output import truncate_output

short = truncate_output("x" * 5000, max_output_chars=1000)
assert len(short) < 2000
assert truncate_output("short", max_output_chars=1000) == "short"

# row: core.utils.lazy_import
from interpreter.core.utils.lazy_import import lazy_import

math = lazy_import("math")
assert math.sqrt(4) == 2

# row: core.utils.system_debug_info
from interpreter.core.utils.system_debug_info import system_info

assert callable(system_info)

# row: core.utils.telemetry
from interpreter.core.utils.telemetry import send_telemetry

assert callable(send_telemetry)

# row: the package as a module attribute
import interpreter.core.core

assert interpreter.core.core.OpenInterpreter is interpreter.OpenInterpreter

# row: core.computer.terminal.languages.python
from interpreter.core.computer.terminal.languages.python import Python

assert Python.name == "Python"

# row: core.computer.terminal.languages.shell
from interpreter.core.computer.terminal.languages.shell import Shell

assert Shell.name == "Shell" and "bash" in Shell.aliases

# row: core.computer.terminal.languages.javascript
from interpreter.core.computer.terminal.languages.javascript import JavaScript

assert JavaScript.name == "JavaScript"

# row: core.computer.terminal.terminal
from interpreter import interpreter
from interpreter.core.computer.terminal.terminal import Terminal

assert isinstance(interpreter.computer.terminal, Terminal)

# row: core.respond
from interpreter.core.respond import respond

assert callable(respond)

# row: core.llm.utils.convert_to_openai_messages
from interpreter import interpreter
from interpreter.core.llm.utils.convert_to_openai_messages import convert_to_openai_messages

found = convert_to_openai_messages(
    [
        {"role": "user", "type": "message", "content": "Hi"},
        {"role": "assistant", "type": "message", "content": "Hello"},
    ],
    function_calling=False,
    interpreter=interpreter,
)
assert [(m["role"], m["content"]) for m in found] == [("user", "Hi"), ("assistant", "Hello")]

# row: terminal_interface.terminal_interface
from interpreter.terminal_interface.terminal_interface import terminal_interface

assert callable(terminal_interface)

# row: terminal_interface.utils.display_markdown_message
from interpreter.terminal_interface.utils.display_markdown_message import display_markdown_message

display_markdown_message("> A note")

# row: terminal_interface.utils.count_tokens
from interpreter.terminal_interface.utils.count_tokens import count_tokens

assert callable(count_tokens)

# row: terminal_interface.local_setup
from interpreter.terminal_interface.local_setup import local_setup

assert callable(local_setup)

# row: a path that never existed is an ImportError
try:
    from interpreter.core.no_such_module import something
except ImportError:
    pass
else:
    raise AssertionError("no ImportError")

# row: the version
import importlib.metadata

assert importlib.metadata.version("open-interpreter")

# row: star import gives the right names and no others
names = {}
exec("from interpreter import *", names)
assert {"interpreter", "computer", "OpenInterpreter"} <= set(names)

# row: an old path warns once and names the new one
import warnings

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from interpreter.core.core import OpenInterpreter
    from interpreter.core.core import OpenInterpreter as Again
assert len([w for w in caught if issubclass(w.category, DeprecationWarning) and "interpreter" in str(w.message)]) == 1

# row: importlib finds an old path
import importlib

module = importlib.import_module("interpreter.core.core")
assert module.OpenInterpreter

# row: core.default_system_message
from interpreter.core.default_system_message import default_system_message

assert isinstance(default_system_message, str) and len(default_system_message) > 100

# row: core.utils.temporary_file
import os

from interpreter.core.utils.temporary_file import cleanup_temporary_file, create_temporary_file

path = create_temporary_file("print(1)", "py", verbose=False)
with open(path) as file:
    assert file.read() == "print(1)" and path.endswith(".py")
cleanup_temporary_file(path, verbose=False)
assert not os.path.exists(path)

# row: core.utils.scan_code
import inspect

from interpreter.core.utils.scan_code import scan_code

assert list(inspect.signature(scan_code).parameters) == ["code", "language", "interpreter"]

# row: core.render_message
from interpreter import interpreter
from interpreter.core.render_message import render_message

assert render_message(interpreter, "No code here.") == "No code here."
assert render_message(interpreter, "Two: {{print(1 + 1)}}").strip() == "Two: 2"

# row: core.llm.utils.merge_deltas
from interpreter.core.llm.utils.merge_deltas import merge_deltas

message = {}
for delta in ({"role": "assistant", "content": None}, {"content": "Hel"}, {"content": "lo", "call": {"name": "e"}}):
    message = merge_deltas(message, delta)
message = merge_deltas(message, {"call": {"name": "x", "arguments": "{"}})
assert message == {"role": "assistant", "content": "Hello", "call": {"name": "ex", "arguments": "{"}}

# row: core.llm.utils.parse_partial_json
from interpreter.core.llm.utils.parse_partial_json import parse_partial_json

assert parse_partial_json('{"language": "python", "code": "print(\\"hi') == {"language": "python", "code": 'print("hi'}
assert parse_partial_json('{"a": {"b": [1, 2') == {"a": {"b": [1, 2]}}
assert parse_partial_json('{"a": "x\ny"}') == {"a": "x\ny"}
assert parse_partial_json('{"a":') is None and parse_partial_json("nonsense") is None

# row: core.computer.utils.recipient_utils
from interpreter.core.computer.utils.recipient_utils import format_to_recipient, parse_for_recipient

marked = format_to_recipient("Hello", "user")
assert marked == "@@@RECIPIENT:user@@@CONTENT:Hello@@@END"
assert parse_for_recipient(marked) == ("user", "Hello") and parse_for_recipient("Hi") == (None, "Hi")

# row: core.computer.files.files
from interpreter import interpreter
from interpreter.core.computer.files.files import Files, get_close_matches_in_text

assert isinstance(interpreter.computer.files, Files)
assert get_close_matches_in_text("the quik brown", "the quick brown fox jumps", n=1) == ["the quick brown"]

# row: the classes of the computer's tools
from interpreter import interpreter
from interpreter.core.computer.ai.ai import Ai
from interpreter.core.computer.browser.browser import Browser
from interpreter.core.computer.clipboard.clipboard import Clipboard
from interpreter.core.computer.display.display import Display
from interpreter.core.computer.docs.docs import Docs
from interpreter.core.computer.keyboard.keyboard import Keyboard
from interpreter.core.computer.mouse.mouse import Mouse
from interpreter.core.computer.os.os import Os
from interpreter.core.computer.skills.skills import Skills
from interpreter.core.computer.vision.vision import Vision

computer = interpreter.computer
assert isinstance(computer.ai, Ai) and isinstance(computer.browser, Browser) and isinstance(computer.docs, Docs)
assert isinstance(computer.clipboard, Clipboard) and isinstance(computer.display, Display)
assert isinstance(computer.keyboard, Keyboard) and isinstance(computer.mouse, Mouse) and isinstance(computer.os, Os)
assert isinstance(computer.skills, Skills) and isinstance(computer.vision, Vision)

# row: a tool of the computer made from its class
from interpreter import interpreter
from interpreter.core.computer.files.files import Files

with open("words.txt", "w") as file:
    file.write("one two")
Files(interpreter.computer).edit("words.txt", "one", "three")
with open("words.txt") as file:
    assert file.read() == "three two"

# row: all languages
from interpreter.core.computer.terminal.languages.applescript import AppleScript
from interpreter.core.computer.terminal.languages.html import HTML
from interpreter.core.computer.terminal.languages.java import Java
from interpreter.core.computer.terminal.languages.powershell import PowerShell
from interpreter.core.computer.terminal.languages.r import R
from interpreter.core.computer.terminal.languages.react import React
from interpreter.core.computer.terminal.languages.ruby import Ruby

names = [language.name for language in (AppleScript, HTML, Java, PowerShell, R, React, Ruby)]
assert names == ["AppleScript", "HTML", "Java", "PowerShell", "R", "React", "Ruby"]

# row: core.computer.terminal.languages.jupyter_language
from interpreter import interpreter
from interpreter.core.computer.terminal.languages.jupyter_language import JupyterLanguage
from interpreter.core.computer.terminal.languages.python import Python


class Notebook(JupyterLanguage):
    name = "notebook"


assert issubclass(Python, JupyterLanguage)
interpreter.computer.languages = [Notebook]
printed = interpreter.computer.run("notebook", "x = 2\nprint(x * 21)")
assert "42" in printed[0]["content"]

# row: core.computer.terminal.languages.subprocess_language
from interpreter import interpreter
from interpreter.core.computer.terminal.languages.subprocess_language import SubprocessLanguage


class Sh(SubprocessLanguage):
    name = "posix"
    file_extension = "sh"

    def __init__(self):
        super().__init__()
        self.start_cmd = ["sh"]

    def preprocess_code(self, code):
        return code + '\necho "##end_of_execution##"'

    def line_postprocessor(self, line):
        return line

    def detect_active_line(self, line):
        return None

    def detect_end_of_execution(self, line):
        return "##end_of_execution##" in line


interpreter.computer.languages = [Sh]
interpreter.computer.run("posix", "kept=still")
printed = interpreter.computer.run("posix", "echo $kept here")
assert "still here" in "".join(each["content"] for each in printed if each["format"] == "output")

# row: terminal_interface.utils
import os

from interpreter.terminal_interface.utils.check_for_package import check_for_package
from interpreter.terminal_interface.utils.find_image_path import find_image_path
from interpreter.terminal_interface.utils.in_jupyter_notebook import in_jupyter_notebook
from interpreter.terminal_interface.utils.local_storage_path import get_storage_path
from interpreter.terminal_interface.utils.oi_dir import oi_dir

assert get_storage_path() == oi_dir and get_storage_path("models") == os.path.join(oi_dir, "models")
assert check_for_package("json") and not check_for_package("no_such_package")
assert not in_jupyter_notebook()
picture = os.path.abspath("picture.png")
open(picture, "wb").close()
assert find_image_path(f"Look at {picture} now") == picture and find_image_path("Nothing") is None

# row: terminal_interface.utils.count_tokens.count_messages_tokens
from interpreter.terminal_interface.utils.count_tokens import count_messages_tokens, token_cost

tokens, cost = count_messages_tokens([{"role": "user", "type": "message", "message": "Hi"}], "gpt-4")
assert isinstance(tokens, int) and isinstance(cost, float)
assert token_cost(1000, "gpt-4") == 0.03

# row: terminal_interface.utils.check_for_update
import inspect

from interpreter.terminal_interface.utils.check_for_update import check_for_update

assert not inspect.signature(check_for_update).parameters

# row: terminal_interface.components
from interpreter.terminal_interface.components.base_block import BaseBlock
from interpreter.terminal_interface.components.code_block import CodeBlock
from interpreter.terminal_interface.components.message_block import MessageBlock

message = MessageBlock()
message.message = "Let me"
message.refresh(cursor=False)
message.message = "Let me compute."
message.end()
block = CodeBlock()
block.language, block.code = "python", "print(42)"
block.refresh(cursor=False)
block.active_line, block.output = 1, "42"
block.refresh(cursor=False)
block.end()
assert isinstance(message, BaseBlock) and isinstance(block, BaseBlock)
assert (message.type, block.type) == ("message", "code")

# row: what blocks show
shown = script(
    "from interpreter.terminal_interface.components.code_block import CodeBlock\n"
    "from interpreter.terminal_interface.components.message_block import MessageBlock\n"
    "message = MessageBlock()\nmessage.message = 'Let me compute.'\nmessage.end()\n"
    "block = CodeBlock()\nblock.language, block.code = 'python', 'print(6 * 7)'\nblock.refresh(cursor=False)\n"
    "block.output = '42'\nblock.end()\n"
)
assert "Let me compute." in shown and "print(6 * 7)" in shown and "42" in shown

# row: terminal_interface.magic_commands
from interpreter import interpreter
from interpreter.terminal_interface.magic_commands import handle_magic_command

interpreter.messages = [{"role": "user", "type": "message", "content": "Hi"}]
handle_magic_command(interpreter, "%save_message talk.json")
interpreter.messages = []
handle_magic_command(interpreter, "%load_message talk.json")
assert interpreter.messages[0]["content"] == "Hi"

# row: terminal_interface.validate_llm_settings
from interpreter import interpreter
from interpreter.terminal_interface.validate_llm_settings import validate_llm_settings

interpreter.offline = interpreter.auto_run = True
interpreter.llm.model, interpreter.llm.api_base, interpreter.llm.api_key = "openai/x", "http://127.0.0.1:9/v1", "x"
validate_llm_settings(interpreter)

# row: terminal_interface.start_terminal_interface, with an interpreter
from interpreter.terminal_interface.start_terminal_interface import start_terminal_interface

assert callable(start_terminal_interface)

# row: terminal_interface.conversation_navigator
from interpreter.terminal_interface.conversation_navigator import conversation_navigator

assert callable(conversation_navigator)

# row: core.async_core.Server
from interpreter import AsyncInterpreter
from interpreter.core.async_core import Server, create_router

agent = AsyncInterpreter()
server = Server(agent, "127.0.0.1", 8123)
assert (server.host, server.port) == ("127.0.0.1", 8123) and Server.DEFAULT_PORT == 8000
assert "/heartbeat" in [route.path for route in create_router(agent).routes]

# row: core.computer.utils.computer_vision
from interpreter.core.computer.utils.computer_vision import pytesseract_get_text

assert callable(pytesseract_get_text)
