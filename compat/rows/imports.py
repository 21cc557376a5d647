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
