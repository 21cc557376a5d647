# Values of almost the right type, as from forms, environments and JSON.

# row: numbers as text
from interpreter import interpreter

server = scripted("Ok.")
interpreter.llm.context_window = "16000"
interpreter.llm.max_tokens = "1000"
interpreter.llm.temperature = "0.7"
interpreter.max_output = "2800"
interpreter.chat("Hi", display=False)
assert float(server.chats[0].body["temperature"]) == 0.7
assert int(server.chats[0].body["max_tokens"]) == 1000

# row: numbers as text, stored as numbers
from interpreter import interpreter

interpreter.llm.context_window = "8192"
interpreter.llm.temperature = "0.7"
assert interpreter.llm.context_window == 8192 and interpreter.llm.temperature == 0.7

# row: a float where a whole number is meant
from interpreter import interpreter

server = scripted("Ok.")
interpreter.llm.max_tokens = 1000.0
interpreter.llm.context_window = 16000.0
interpreter.chat("Hi", display=False)
assert server.chats[0].body["max_tokens"] == 1000

# row: an integer temperature
from interpreter import interpreter

server = scripted("Ok.")
interpreter.llm.temperature = 1
interpreter.chat("Hi", display=False)
assert server.chats[0].body["temperature"] == 1

# row: one and zero for true and false
from interpreter import interpreter

scripted(code("print(1)"), "Ok.")
interpreter.auto_run = 1
interpreter.verbose = 0
interpreter.conversation_history = 0
chunks = [dict(c) for c in interpreter.chat("Go", display=False, stream=True)]
assert all(c["type"] != "confirmation" for c in chunks)
assert interpreter.auto_run

# row: the text True
from interpreter import interpreter

scripted(code("print(1)"), "Ok.")
interpreter.auto_run = "True"
chunks = [dict(c) for c in interpreter.chat("Go", display=False, stream=True)]
assert all(c["type"] != "confirmation" for c in chunks)

# row: the text False means false
from interpreter import interpreter

interpreter.auto_run = "False"
assert not interpreter.auto_run

# row: None for an empty text
from interpreter import interpreter

interpreter.llm.api_base = None
interpreter.llm.api_key = None
interpreter.conversation_filename = None
interpreter.skills_path = None
assert interpreter.llm.api_base is None

# row: None for custom instructions
from interpreter import interpreter

scripted("Ok.")
interpreter.custom_instructions = None
assert interpreter.chat("Hi", display=False)[0]["content"] == "Ok."

# row: None for the offered limits
from interpreter import OpenInterpreter

agent = OpenInterpreter(custom_instructions=None, conversation_filename=None, skills_path=None)
scripted("Ok.", on=agent)
agent.llm.context_window = None
agent.llm.max_tokens = None
agent.llm.max_budget = None
assert agent.chat("Hi", display=False)[0]["content"] == "Ok."

# row: False for safe mode off
from interpreter import interpreter

scripted(code("print(1)"), "Ok.")
interpreter.safe_mode = False
interpreter.auto_run = True
assert interpreter.chat("Go", display=False)[-1]["content"] == "Ok."

# row: a path object for a folder
import pathlib

from interpreter import interpreter

scripted("Ok.")
interpreter.conversation_history_path = pathlib.Path("talks")
interpreter.computer.skills.path = pathlib.Path("skills")
interpreter.chat("Hi", display=False)
assert interpreter.messages[-1]["content"] == "Ok."

# row: a tuple for the loop breakers
from interpreter import interpreter

interpreter.loop_breakers = ("Done.", "Impossible.")
assert list(interpreter.loop_breakers) == ["Done.", "Impossible."]

# row: a key from the environment that is not set
import os

from interpreter import interpreter

scripted("Ok.")
interpreter.llm.api_version = os.environ.get("NO_SUCH_VARIABLE")
assert interpreter.chat("Hi", display=False)[0]["content"] == "Ok."

# row: messages as a tuple
from interpreter import interpreter

scripted("Ok.")
interpreter.messages = list(({"role": "user", "type": "message", "content": "Hi"},))
assert interpreter.chat("Again", display=False)[0]["content"] == "Ok."

# row: text for supports_functions
from interpreter import interpreter

server = scripted("Ok.")
interpreter.llm.supports_functions = "True"
interpreter.llm.supports_vision = 0
interpreter.chat("Hi", display=False)
assert "tools" in server.chats[0].body

# row: zero for the temperature
from interpreter import interpreter

scripted("Ok.")
interpreter.llm.temperature = 0
assert interpreter.chat("Hi", display=False)[0]["content"] == "Ok."

# row: an invalid value is an error that shows a valid one
from interpreter import interpreter

with raises(ValueError, TypeError) as caught:
    interpreter.llm.max_tokens = "many"
assert "max_tokens" in caught.text

# row: a number for the budget
from interpreter import interpreter

scripted("Ok.")
interpreter.llm.max_budget = 5
assert interpreter.chat("Hi", display=False)[0]["content"] == "Ok."

# row: an empty text for the key of a local server
from interpreter import interpreter

scripted("Ok.")
interpreter.llm.api_version = ""
assert interpreter.chat("Hi", display=False)[0]["content"] == "Ok."

# row: a numeric setting from the environment
import os

from interpreter import interpreter

server = scripted("Ok.")
os.environ["MY_MAX_TOKENS"] = "900"
interpreter.llm.max_tokens = int(os.environ["MY_MAX_TOKENS"])
interpreter.chat("Hi", display=False)
assert server.chats[0].body["max_tokens"] == 900
