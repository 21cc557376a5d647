# Profiles in YAML, JSON and Python.

# row: a YAML profile
import pathlib

folder = pathlib.Path.home() / ".config/open-interpreter/profiles"
folder.mkdir(parents=True)
(folder / "mine.yaml").write_text(
    "llm:\n  temperature: 0.3\n  max_tokens: 700\nauto_run: true\ncustom_instructions: Be kind.\nversion: 0.2.5\n"
)
run = command_line("--profile", "mine.yaml", "--stdin", stdin="Hi\n", replies=(code("print(5)"), "Five."))
body = run.chats[0].body
assert body["temperature"] == 0.3 and "Be kind." in body["messages"][0]["content"] and "Five." in run

# row: the default profile
import pathlib

folder = pathlib.Path.home() / ".config/open-interpreter/profiles"
folder.mkdir(parents=True)
(folder / "default.yaml").write_text("llm:\n  temperature: 0.3\nversion: 0.2.5\n")
run = command_line("--stdin", stdin="Hi\n")
assert run.chats[0].body["temperature"] == 0.3

# row: a flag overrides the profile
import pathlib

folder = pathlib.Path.home() / ".config/open-interpreter/profiles"
folder.mkdir(parents=True)
(folder / "mine.yaml").write_text("llm:\n  temperature: 0.3\nversion: 0.2.5\n")
run = command_line("--profile", "mine.yaml", "--temperature", "0.6", "--stdin", stdin="Hi\n")
assert run.chats[0].body["temperature"] == 0.6

# row: a profile without a suffix in its name
import pathlib

folder = pathlib.Path.home() / ".config/open-interpreter/profiles"
folder.mkdir(parents=True)
(folder / "mine.yaml").write_text("llm:\n  temperature: 0.3\nversion: 0.2.5\n")
run = command_line("-p", str(folder / "mine.yaml"), "--stdin", stdin="Hi\n")
assert run.chats[0].body["temperature"] == 0.3

# row: a Python profile
import pathlib

folder = pathlib.Path.home() / ".config/open-interpreter/profiles"
folder.mkdir(parents=True)
(folder / "mine.py").write_text(
    "from interpreter import interpreter\n\n"
    "interpreter.llm.temperature = 0.3\n"
    "interpreter.auto_run = True\n"
    "interpreter.custom_instructions = 'Be kind.'\n"
)
run = command_line("--profile", "mine.py", "--stdin", stdin="Hi\n", replies=(code("print(5)"), "Five."))
body = run.chats[0].body
assert body["temperature"] == 0.3 and "Be kind." in body["messages"][0]["content"] and "Five." in run

# row: a Python profile that makes its own object
import pathlib

folder = pathlib.Path.home() / ".config/open-interpreter/profiles"
folder.mkdir(parents=True)
(folder / "mine.py").write_text(
    "from interpreter import OpenInterpreter\n\ninterpreter = OpenInterpreter()\ninterpreter.llm.temperature = 0.3\n"
)
run = command_line("--profile", "mine.py", "--stdin", stdin="Hi\n")
assert run.chats[0].body["temperature"] == 0.3

# row: a Python profile with a language
import pathlib

folder = pathlib.Path.home() / ".config/open-interpreter/profiles"
folder.mkdir(parents=True)
(folder / "mine.py").write_text(
    "from interpreter import interpreter\n\n"
    "class Shout:\n"
    "    name = 'shout'\n"
    "    def __init__(self):\n"
    "        pass\n"
    "    def run(self, code):\n"
    "        yield {'type': 'console', 'format': 'output', 'content': code.upper()}\n"
    "    def stop(self):\n"
    "        pass\n"
    "    def terminate(self):\n"
    "        pass\n\n"
    "interpreter.computer.languages = [Shout]\n"
    "interpreter.auto_run = True\n"
)
run = command_line("--profile", "mine.py", "--stdin", stdin="Hi\n", replies=(code("hello", "shout"), "Done."))
assert "HELLO" in run and "Done." in run

# row: a JSON profile
import json
import pathlib

folder = pathlib.Path.home() / ".config/open-interpreter/profiles"
folder.mkdir(parents=True)
(folder / "mine.json").write_text(json.dumps({"llm": {"temperature": 0.3}, "auto_run": True, "version": "0.2.5"}))
run = command_line("--profile", "mine.json", "--stdin", stdin="Hi\n")
assert run.chats[0].body["temperature"] == 0.3

# row: a start script in a profile
import pathlib

folder = pathlib.Path.home() / ".config/open-interpreter/profiles"
folder.mkdir(parents=True)
(folder / "mine.yaml").write_text(
    "start_script: |\n  interpreter.custom_instructions = 'From ' + 'a script.'\nversion: 0.2.5\n"
)
run = command_line("--profile", "mine.yaml", "--stdin", stdin="Hi\n")
assert "From a script." in run.chats[0].messages[0]["content"]

# row: settings of the computer in a profile
import pathlib

folder = pathlib.Path.home() / ".config/open-interpreter/profiles"
folder.mkdir(parents=True)
(folder / "mine.yaml").write_text("computer:\n  import_computer_api: true\n  emit_images: false\nversion: 0.2.5\n")
run = command_line("--profile", "mine.yaml", "--stdin", stdin="Hi\n")
assert "Hello." in run and "mouse" in run.chats[0].messages[0]["content"]

# row: the languages of a profile
import pathlib

folder = pathlib.Path.home() / ".config/open-interpreter/profiles"
folder.mkdir(parents=True)
(folder / "mine.yaml").write_text("computer:\n  languages: [python]\nversion: 0.2.5\n")
run = command_line("--profile", "mine.yaml", "--stdin", stdin="Hi\n")
tool = run.chats[0].body["tools"][0]["function"]
assert tool["parameters"]["properties"]["language"]["enum"] == ["python"]

# row: safe mode and telemetry of a profile
import pathlib

folder = pathlib.Path.home() / ".config/open-interpreter/profiles"
folder.mkdir(parents=True)
(folder / "mine.yaml").write_text("safe_mode: 'off'\ndisable_telemetry: true\noffline: true\nversion: 0.2.5\n")
run = command_line("--profile", "mine.yaml", "--stdin", stdin="Hi\n")
assert "Hello." in run

# row: the profile function from a script
import pathlib

from interpreter import interpreter
from interpreter.terminal_interface.profiles.profiles import profile

folder = pathlib.Path.home() / ".config/open-interpreter/profiles"
folder.mkdir(parents=True)
(folder / "mine.yaml").write_text("llm:\n  temperature: 0.3\nversion: 0.2.5\n")
profile(interpreter, "mine.yaml")
assert interpreter.llm.temperature == 0.3

# row: a Python profile with attributes of its own
import pathlib

folder = pathlib.Path.home() / ".config/open-interpreter/profiles"
folder.mkdir(parents=True)
(folder / "mine.py").write_text(
    "from interpreter import interpreter\n\n"
    "interpreter.tts = 'openai'\n"
    "interpreter.llm.speed = 2\n"
    "interpreter.custom_instructions = f'Speak with {interpreter.tts}.'\n"
)
run = command_line("--profile", "mine.py", "--stdin", stdin="Hi\n")
assert "Speak with openai." in run.chats[0].messages[0]["content"]

# row: a Python profile that asks a question
import pathlib

folder = pathlib.Path.home() / ".config/open-interpreter/profiles"
folder.mkdir(parents=True)
(folder / "mine.py").write_text("interpreter.custom_instructions = f'The answer was {input()}.'\n")
run = command_line("--profile", "mine.py", "--stdin", stdin="yes\nHi\n")
assert "Hello." in run and "The answer was yes." in run.chats[0].messages[0]["content"]
assert run.chats[0].messages[-1]["content"].strip() == "Hi"
