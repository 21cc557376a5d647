# Attributes and arguments of the constructor, of 0.4.3 and of versions before it.

# row: defaults
from interpreter import OpenInterpreter

agent = OpenInterpreter()
assert agent.messages == [] and agent.auto_run is False and agent.offline is False
assert agent.verbose is False and agent.debug is False
assert agent.max_output == 2800 and agent.safe_mode == "off"
assert agent.loop is False and agent.conversation_history is True
assert agent.conversation_filename is None and agent.os is False
assert agent.custom_instructions == "" and agent.user_message_template == "{content}"
assert agent.multi_line is True and agent.plain_text_display is False

# row: defaults of the model
from interpreter import OpenInterpreter

llm = OpenInterpreter().llm
assert llm.context_window is None and llm.max_tokens is None
assert llm.api_base is None and llm.api_key is None and llm.api_version is None
assert llm.supports_functions is None and llm.supports_vision is None
assert llm.max_budget is None
assert isinstance(llm.execution_instructions, str)

# row: defaults of the computer
from interpreter import OpenInterpreter

computer = OpenInterpreter().computer
assert not computer.verbose and not computer.debug and not computer.offline
assert computer.import_computer_api is False and computer.import_skills is False
assert computer.emit_images is True and computer.max_output == 2800
assert isinstance(computer.system_message, str)

# row: every argument of the constructor
from interpreter import OpenInterpreter

agent = OpenInterpreter(
    messages=[],
    offline=True,
    auto_run=True,
    verbose=False,
    debug=False,
    max_output=1000,
    safe_mode="off",
    shrink_images=True,
    loop=False,
    loop_message="Go on.",
    loop_breakers=["Done."],
    disable_telemetry=True,
    in_terminal_interface=False,
    conversation_history=False,
    conversation_filename="talk.json",
    conversation_history_path="talks",
    os=False,
    speak_messages=False,
    llm=None,
    system_message="Be brief.",
    custom_instructions="In English.",
    user_message_template="{content}",
    always_apply_user_message_template=False,
    code_output_template="{content}",
    empty_code_output_template="Nothing.",
    code_output_sender="user",
    computer=None,
    sync_computer=False,
    import_computer_api=False,
    skills_path=None,
    import_skills=False,
    multi_line=True,
    contribute_conversation=False,
    plain_text_display=False,
)
assert agent.auto_run is True and agent.max_output == 1000
assert agent.system_message == "Be brief." and agent.loop_breakers == ["Done."]

# row: a custom attribute
from interpreter import interpreter

interpreter.user_name = "Ada"
interpreter.session_state = {"step": 1}
assert interpreter.user_name == "Ada"
interpreter.session_state["step"] += 1
assert interpreter.session_state == {"step": 2}

# row: a custom attribute on the model
from interpreter import interpreter

interpreter.llm.provider = "my provider"
interpreter.llm.extra_headers = {"x": "y"}
assert interpreter.llm.provider == "my provider"

# row: a custom attribute on the computer
from interpreter import interpreter

interpreter.computer.my_tool = lambda x: x + 1
assert interpreter.computer.my_tool(1) == 2

# row: a method replaced on the object
from interpreter import interpreter

said = []
interpreter.display_message = lambda message: said.append(message)
interpreter.display_message("Hello")
assert said == ["Hello"]

# row: hasattr and getattr with a default
from interpreter import interpreter

assert not hasattr(interpreter, "no_such_thing")
assert getattr(interpreter, "no_such_thing", 5) == 5
assert getattr(interpreter.llm, "no_such_thing", None) is None
assert getattr(interpreter.computer, "no_such_thing", None) is None

# row: delete a custom attribute
from interpreter import interpreter

interpreter.scratch = 1
del interpreter.scratch
assert not hasattr(interpreter, "scratch")

# row: vars shows the settings
from interpreter import interpreter

interpreter.auto_run = True
assert vars(interpreter)["auto_run"] is True

# row: settings from a dictionary with setattr
from interpreter import interpreter

config = {"auto_run": True, "offline": True, "custom_instructions": "Be kind.", "team": "blue"}
for name, value in config.items():
    setattr(interpreter, name, value)
for name, value in {"model": "gpt-4o-mini", "temperature": 0.5, "note": "x"}.items():
    setattr(interpreter.llm, name, value)
assert interpreter.auto_run and interpreter.team == "blue" and interpreter.llm.temperature == 0.5

# row: old names that 0.4.3 stores
from interpreter import interpreter

interpreter.model = "gpt-4"
interpreter.local = False
interpreter.temperature = 0.3
interpreter.context_window = 8000
interpreter.max_tokens = 1000
interpreter.api_base = "http://localhost:1234/v1"
interpreter.api_key = "key"
interpreter.debug_mode = False
interpreter.max_budget = 0.5
interpreter.conversation_name = "talk"
assert interpreter.model == "gpt-4" and interpreter.context_window == 8000

# row: old names set the right thing
from interpreter import interpreter

interpreter.model = "openai/old"
interpreter.temperature = 0.3
interpreter.context_window = 8000
interpreter.max_tokens = 1000
interpreter.api_base = "http://localhost:1234/v1"
interpreter.api_key = "key"
interpreter.max_budget = 0.5
llm = interpreter.llm
assert (llm.model, llm.temperature, llm.context_window, llm.max_tokens) == ("openai/old", 0.3, 8000, 1000)
assert (llm.api_base, llm.api_key, llm.max_budget) == ("http://localhost:1234/v1", "key", 0.5)

# row: an old name warns once
import warnings

from interpreter import interpreter

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    interpreter.context_window = 8000
    interpreter.context_window = 9000
about = [str(w.message) for w in caught if "context_window" in str(w.message)]
assert len(about) == 1 and "llm.context_window" in about[0]

# row: a misspelled setting warns and suggests the right one
import warnings

from interpreter import interpreter

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    interpreter.autorun = True
assert any("auto_run" in str(w.message) for w in caught)
assert interpreter.autorun is True

# row: a custom name does not warn
import warnings

from interpreter import interpreter

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    interpreter.team_color = "blue"
    interpreter.llm.team_color = "blue"
    interpreter.computer.team_color = "blue"
assert not caught

# row: local of version 0.1 means offline
from interpreter import interpreter

interpreter.local = True
assert interpreter.offline is True

# row: debug_mode of version 0.1 means verbose
from interpreter import interpreter

interpreter.debug_mode = True
assert interpreter.verbose is True

# row: function_calling_llm of version 0.1
from interpreter import interpreter

interpreter.function_calling_llm = False
assert interpreter.llm.supports_functions is False

# row: anonymized_telemetry of the old documentation
from interpreter import interpreter

interpreter.anonymized_telemetry = False
assert interpreter.disable_telemetry is True

# row: llm.max_output of the documentation
from interpreter import interpreter

interpreter.llm.max_output = 1000
assert interpreter.max_output == 1000

# row: computer attributes that scripts set
from interpreter import interpreter

interpreter.computer.verbose = True
interpreter.computer.offline = True
interpreter.computer.emit_images = False
interpreter.computer.import_computer_api = True
interpreter.computer.api_base = "https://example.com/v0"
interpreter.computer.system_message = ""
assert interpreter.computer.emit_images is False and interpreter.computer.import_computer_api is True
assert interpreter.computer.api_base == "https://example.com/v0"

# row: flags of the constructor reach the computer
from interpreter import OpenInterpreter

agent = OpenInterpreter(import_computer_api=True, import_skills=False, skills_path="skills")
assert agent.computer.import_computer_api is True
assert str(agent.computer.skills.path).endswith("skills")

# row: the model's settings, one after the other
from interpreter import interpreter

interpreter.llm.model = "azure/my-deployment"
interpreter.llm.api_base = "https://example.openai.azure.com"
interpreter.llm.api_version = "2024-02-01"
interpreter.llm.api_key = "key"
assert interpreter.llm.model == "azure/my-deployment" and interpreter.llm.api_version == "2024-02-01"

# row: execution instructions can be switched off
from interpreter import interpreter

server = scripted("Ok.", functions=False)
interpreter.system_message = "Just talk."
interpreter.llm.execution_instructions = False
interpreter.chat("Hi", display=False)
assert server.chats[0].messages[0]["content"].strip() == "Just talk."

# row: other attributes that scripts read
from interpreter import interpreter

assert interpreter.responding is False
assert interpreter.last_messages_count == 0
assert interpreter.highlight_active_line is True
assert interpreter.in_terminal_interface is False
assert interpreter.contribute_conversation is False
assert isinstance(interpreter.loop_breakers, list) and isinstance(interpreter.loop_message, str)
assert interpreter.conversation_history_path

# row: anonymous_telemetry and will_contribute
from interpreter import interpreter

interpreter.offline = True
assert interpreter.anonymous_telemetry is False
assert not interpreter.will_contribute

# row: set responding and last_messages_count
from interpreter import interpreter

interpreter.responding = True
interpreter.responding = False
interpreter.last_messages_count = 0
interpreter.messages.append({"role": "user", "type": "message", "content": "x"})
assert interpreter.messages[interpreter.last_messages_count :][0]["content"] == "x"

# row: the computer knows its interpreter
from interpreter import OpenInterpreter, interpreter

assert interpreter.computer.interpreter is interpreter
agent = OpenInterpreter()
assert agent.computer.interpreter is agent
assert agent.llm.interpreter is agent

# row: computer exported by the package
from interpreter import computer, interpreter

assert computer is interpreter.computer

# row: a shared computer
from interpreter import OpenInterpreter

first = OpenInterpreter()
second = OpenInterpreter(computer=first.computer)
first.computer.run("python", "shared = 7")
assert second.computer.run("python", "print(shared)")[0]["content"].strip() == "7"

# row: old names in the constructor set the right thing
from interpreter import OpenInterpreter

agent = OpenInterpreter(model="openai/old", temperature=0.3, local=True)
assert agent.llm.model == "openai/old" and agent.llm.temperature == 0.3 and agent.offline is True

# row: display_message prints
import contextlib
import io

from interpreter import interpreter

with contextlib.redirect_stdout(io.StringIO()) as out:
    interpreter.plain_text_display = True
    interpreter.display_message("A **note**")
assert "note" in out.getvalue()

# row: get_oi_dir
from interpreter import interpreter

assert "open-interpreter" in str(interpreter.get_oi_dir())

# row: system_message says which system it is
from interpreter import interpreter

assert isinstance(interpreter.system_message, str) and len(interpreter.system_message) > 100

# row: vars has the conversation, the model and the computer
from interpreter import OpenInterpreter

agent = OpenInterpreter()
stored = vars(agent)
assert {"messages", "llm", "computer", "auto_run"} <= set(stored)
assert stored["llm"] is agent.llm and stored["computer"] is agent.computer and stored["messages"] == []

# row: os without a display
import os

from interpreter import interpreter

for name in ("DISPLAY", "WAYLAND_DISPLAY"):
    os.environ.pop(name, None)
scripted("Hello.")
interpreter.os = True
interpreter.chat("Hi", display=False)
assert interpreter.messages[-1]["content"] == "Hello."
