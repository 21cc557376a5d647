# Messages as data, and conversations on disk.

# row: messages are plain dictionaries in a plain list
from interpreter import interpreter

scripted(code("print(1)"), "One.")
interpreter.auto_run = True
interpreter.chat("Go", display=False)
assert type(interpreter.messages) is list
assert all(type(message) is dict for message in interpreter.messages)

# row: the exact messages of a turn
from interpreter import interpreter

scripted(code("print(1)", before="Sure."), "One.")
interpreter.auto_run = True
interpreter.chat("Go", display=False)
assert interpreter.messages == [
    {"role": "user", "type": "message", "content": "Go"},
    {"role": "assistant", "type": "message", "content": "Sure."},
    {"role": "assistant", "type": "code", "format": "python", "content": "print(1)"},
    {"role": "computer", "type": "console", "format": "output", "content": "1\n"},
    {"role": "assistant", "type": "message", "content": "One."},
], interpreter.messages

# row: copy, deepcopy and pickle of messages
import copy
import pickle

from interpreter import interpreter

scripted(code("print(1)"), "One.")
interpreter.auto_run = True
interpreter.chat("Go", display=False)
messages = interpreter.messages
assert copy.copy(messages) == messages
assert copy.deepcopy(messages) == messages
assert pickle.loads(pickle.dumps(messages)) == messages
kept = messages.copy()
interpreter.messages = []
assert len(kept) == 4

# row: a snapshot of the messages does not change with the next turn
import copy

from interpreter import interpreter

scripted("One.", "Two.")
interpreter.chat("First", display=False)
snapshot = copy.deepcopy(interpreter.messages)
interpreter.chat("Second", display=False)
assert len(snapshot) == 2 and snapshot[1]["content"] == "One."
interpreter.messages = snapshot
assert len(interpreter.messages) == 2

# row: change a message before the next turn
from interpreter import interpreter

server = scripted("One.", "Two.")
interpreter.chat("First", display=False)
interpreter.messages[-1]["content"] = "Uno."
interpreter.chat("Second", display=False)
assert "Uno." in [m["content"] for m in server.chats[1].messages]

# row: drop the last messages
from interpreter import interpreter

server = scripted("One.", "Two.")
interpreter.chat("First", display=False)
interpreter.messages = interpreter.messages[:-2]
interpreter.chat("Second", display=False)
assert [m["content"] for m in server.chats[1].messages if m["role"] != "system"] == ["Second"]

# row: a conversation file is written after a turn
import json
import pathlib

from interpreter import interpreter

scripted("General Kenobi.")
interpreter.chat("hello there friend", display=False)
folder = pathlib.Path(interpreter.conversation_history_path)
[file] = folder.glob("*.json")
assert file.name.startswith("hello_there__") and file.suffix == ".json"
assert json.loads(file.read_text()) == interpreter.messages
assert interpreter.conversation_filename == file.name

# row: the name of a conversation file
import pathlib
import re

from interpreter import interpreter

scripted("Ok.")
interpreter.chat("plot the stock price of all companies", display=False)
[file] = pathlib.Path(interpreter.conversation_history_path).glob("*.json")
assert re.fullmatch(r"plot_the_stock_price_of__[A-Z][a-z]+_\d\d_\d{4}_\d\d-\d\d-\d\d\.json", file.name), file.name

# row: the name of a conversation file from one word
import pathlib

from interpreter import interpreter

scripted("Ok.")
interpreter.chat("supercalifragilistic", display=False)
[file] = pathlib.Path(interpreter.conversation_history_path).glob("*.json")
assert file.name.startswith("supercalifragil"), file.name

# row: later turns go to the same conversation file
import json
import pathlib

from interpreter import interpreter

scripted("One.", "Two.")
interpreter.chat("first question here", display=False)
interpreter.chat("second question here", display=False)
[file] = pathlib.Path(interpreter.conversation_history_path).glob("*.json")
assert len(json.loads(file.read_text())) == 4

# row: no conversation file when history is off
import pathlib

from interpreter import interpreter

scripted("Ok.")
interpreter.conversation_history = False
interpreter.chat("hello there friend", display=False)
folder = pathlib.Path(interpreter.conversation_history_path)
assert not list(folder.glob("*.json"))
assert interpreter.conversation_filename is None

# row: conversations in a custom folder
import os

from interpreter import interpreter

scripted("Ok.")
interpreter.conversation_history_path = os.path.join(os.getcwd(), "talks")
interpreter.chat("hello there friend", display=False)
assert len([name for name in os.listdir("talks") if name.endswith(".json")]) == 1

# row: a custom file name
import json
import os

from interpreter import interpreter

scripted("Ok.")
interpreter.conversation_history_path = os.getcwd()
interpreter.conversation_filename = "talk.json"
interpreter.chat("hello there friend", display=False)
assert json.load(open("talk.json")) == interpreter.messages

# row: a conversation file with code
import json
import pathlib

from interpreter import interpreter

scripted(code("print(1)"), "One.")
interpreter.auto_run = True
interpreter.chat("run a program", display=False)
[file] = pathlib.Path(interpreter.conversation_history_path).glob("*.json")
saved = json.loads(file.read_text())
assert [(m["role"], m["type"]) for m in saved] == [
    ("user", "message"),
    ("assistant", "code"),
    ("computer", "console"),
    ("assistant", "message"),
]

# row: continue a conversation from a file
import json
import pathlib

from interpreter import OpenInterpreter, interpreter

scripted("Noted.")
interpreter.chat("my name is Ada", display=False)
[file] = pathlib.Path(interpreter.conversation_history_path).glob("*.json")
again = OpenInterpreter(messages=json.loads(file.read_text()))
server = scripted("Ada.", on=again)
again.chat("what is my name", display=False)
assert "my name is Ada" in [m["content"] for m in server.chats[0].messages]

# row: a new conversation after reset has its own file
import pathlib

from interpreter import interpreter

scripted("One.", "Two.")
interpreter.chat("first question here", display=False)
interpreter.reset()
interpreter.chat("second question here", display=False)
names = sorted(file.name for file in pathlib.Path(interpreter.conversation_history_path).glob("*.json"))
assert len(names) == 2, names

# row: a user message with an image as base64
from interpreter import interpreter

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
server = scripted("A dot.")
interpreter.llm.supports_vision = True
interpreter.messages = [{"role": "user", "type": "image", "format": "base64.png", "content": PNG}]
interpreter.chat("What is it?", display=False)
assert PNG in str(server.chats[0].messages)

# row: a user message with the path of an image
import base64

from interpreter import interpreter

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
open("dot.png", "wb").write(base64.b64decode(PNG))
server = scripted("A dot.")
interpreter.llm.supports_vision = True
interpreter.messages = [{"role": "user", "type": "image", "format": "path", "content": "dot.png"}]
interpreter.chat("What is it?", display=False)
assert "data:image/png;base64," in str(server.chats[0].messages)

# row: a user message with a file
from interpreter import interpreter

server = scripted("Read.")
interpreter.messages = [{"role": "user", "type": "file", "content": "/data/table.csv"}]
interpreter.chat("What is in it?", display=False)
assert "/data/table.csv" in str(server.chats[0].messages)

# row: messages of the computer with a recipient
from interpreter import interpreter

server = scripted("Ok.")
interpreter.messages = [
    {"role": "user", "type": "message", "content": "Hi"},
    {"role": "assistant", "type": "message", "content": "Hello."},
    {"role": "user", "type": "message", "content": "For people only", "recipient": "user"},
]
interpreter.chat("Go on", display=False)
sent = str(server.chats[0].messages)
assert "Hello." in sent and "For people only" not in sent

# row: what a tool call looks like to the model
import json

from interpreter import interpreter

server = scripted(code("print(1)"), "One.")
interpreter.auto_run = True
interpreter.chat("Go", display=False)
sent = server.chats[1].messages
assert [m["role"] for m in sent] == ["system", "user", "assistant", "tool"]
call = sent[2]["tool_calls"][0]
assert call["function"]["name"] == "execute"
assert json.loads(call["function"]["arguments"]) == {"language": "python", "code": "print(1)"}
assert sent[3]["tool_call_id"] == call["id"] and sent[3]["content"].strip() == "1"

# row: what code looks like to a model without tools
from interpreter import interpreter

server = scripted(code("print(1)", before="Sure."), "One.", functions=False)
interpreter.auto_run = True
interpreter.chat("Go", display=False)
sent = server.chats[1].messages
assert [m["role"] for m in sent] == ["system", "user", "assistant", "user"]
assert "```python\n" in sent[2]["content"] and "print(1)" in sent[2]["content"]
assert "tools" not in server.chats[1].body

# row: nothing is added to the messages of the user
from interpreter import interpreter

server = scripted(code("print(1)"), "One.", functions=False)
interpreter.auto_run = True
interpreter.chat("Go", display=False)
assert [m["content"] for m in interpreter.messages if m["role"] == "user"] == ["Go"]
assert [m["type"] for m in interpreter.messages if m["role"] == "computer"] == ["console"]

# row: no output is stored as empty output
from interpreter import interpreter

server = scripted(code("x = 1"), "Set.")
interpreter.auto_run = True
interpreter.chat("Go", display=False)
assert interpreter.messages[2] == {"role": "computer", "type": "console", "format": "output", "content": ""}
assert server.chats[1].messages[-1]["content"].strip() == "No output"

# row: code the model wraps in its own call
from interpreter import interpreter

wrapped = 'functions.execute({"language": "python", "code": "print(9)"})'
scripted(tool_call("python", wrapped), "Nine.")
interpreter.auto_run = True
messages = interpreter.chat("Go", display=False)
assert messages[0]["content"] == "print(9)" and messages[1]["content"].strip() == "9"

# row: a block of markdown is not run
from interpreter import interpreter

server = scripted(code("# A title", "markdown"), "Done.")
interpreter.auto_run = True
messages = interpreter.chat("Write it", display=False)
assert all(m["type"] == "message" for m in messages), messages
assert "# A title" in messages[0]["content"]

# row: an empty block is reported to the model
from interpreter import interpreter

server = scripted(code(" "), "Sorry.")
interpreter.auto_run = True
messages = interpreter.chat("Go", display=False)
assert messages[-1]["content"] == "Sorry."
assert [m["type"] for m in messages][-2] == "console"

# row: an assigned list of messages is not copied
from interpreter import interpreter

scripted("Ok.")
mine = [{"role": "user", "type": "message", "content": "Hi"}]
interpreter.messages = mine
assert interpreter.messages is mine

# row: settings survive a copy through a dictionary
import copy

from interpreter import OpenInterpreter, interpreter

interpreter.auto_run = True
interpreter.custom_instructions = "Be kind."
other = OpenInterpreter(auto_run=interpreter.auto_run, custom_instructions=interpreter.custom_instructions)
assert copy.deepcopy(other.custom_instructions) == "Be kind." and other.auto_run

# row: a copy of the interpreter has its own messages attribute
import copy

from interpreter import interpreter

scripted("One.")
twin = copy.copy(interpreter)
twin.messages = []
interpreter.chat("Hi", display=False)
assert twin.messages == [] and len(interpreter.messages) == 2

# row: deepcopy of an interpreter keeps its settings
import copy

from interpreter import OpenInterpreter

agent = OpenInterpreter(auto_run=True, custom_instructions="Be kind.")
agent.messages.append({"role": "user", "type": "message", "content": "Hi"})
twin = copy.deepcopy(agent)
twin.messages.append({"role": "assistant", "type": "message", "content": "Hello"})
assert twin.auto_run is True and twin.custom_instructions == "Be kind."
assert len(agent.messages) == 1 and len(twin.messages) == 2

# row: pickle of settings read from an interpreter
import pickle

from interpreter import interpreter

interpreter.llm.model = "openai/scripted"
state = {name: getattr(interpreter, name) for name in ("auto_run", "safe_mode", "max_output", "loop_breakers")}
state["model"] = interpreter.llm.model
assert pickle.loads(pickle.dumps(state)) == state

# row: the template for every user message
from interpreter import interpreter

server = scripted("One.", "Two.")
interpreter.user_message_template = "<{content}>"
interpreter.always_apply_user_message_template = True
interpreter.chat("a", display=False)
interpreter.chat("b", display=False)
assert [m["content"] for m in server.chats[1].messages if m["role"] == "user"] == ["<a>", "<b>"]

# row: the template for the last user message only
from interpreter import interpreter

server = scripted("One.", "Two.")
interpreter.user_message_template = "<{content}>"
interpreter.chat("a", display=False)
interpreter.chat("b", display=False)
assert [m["content"] for m in server.chats[1].messages if m["role"] == "user"] == ["a", "<b>"]

# row: output sent as the assistant
from interpreter import interpreter

server = scripted(code("print(5)"), "Five.", functions=False)
interpreter.auto_run = True
interpreter.code_output_sender = "assistant"
interpreter.chat("Go", display=False)
assert server.chats[1].messages[-1]["role"] == "assistant"
assert "5" in server.chats[1].messages[-1]["content"]

# row: an image of the computer is stored
from interpreter import interpreter

scripted(code("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"), "A line.")
interpreter.llm.supports_vision = True
interpreter.auto_run = True
interpreter.chat("Plot", display=False)
images = [m for m in interpreter.messages if m["type"] == "image"]
assert len(images) == 1 and images[0]["role"] == "computer"
assert images[0]["format"] == "base64.png" and images[0]["content"].startswith("iVBOR")

# row: an image of the computer reaches a model with vision
from interpreter import interpreter

server = scripted(code("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"), "A line.")
interpreter.llm.supports_vision = True
interpreter.auto_run = True
interpreter.chat("Plot", display=False)
assert "data:image/png;base64,iVBOR" in str(server.chats[1].messages)

# row: a model without vision gets no image
from interpreter import interpreter

server = scripted(code("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"), "A line.")
interpreter.auto_run = True
assert interpreter.chat("Plot", display=False)[-1]["content"] == "A line."
assert "data:image" not in str(server.chats[1].messages)
assert all(m["role"] in ("system", "user", "assistant", "tool") for m in server.chats[1].messages)

# row: malformed calls in a stored block are cleaned
from interpreter import interpreter

interpreter.auto_run = True
blocks = [
    "10+12executeexecute\n",
    '{\n"language": "python",\n"code": "10+12"\n}',
    'functions.execute({\n"language": "python",\n"code": "10+12"\n})',
    '{language: "python", code: "10+12" }',
]
for code in blocks:
    scripted("Done.")
    interpreter.messages = [{"role": "assistant", "type": "code", "format": "python", "content": code}]
    outputs = [chunk for chunk in interpreter._respond_and_store() if chunk.get("format") == "output"]
    assert "".join(str(chunk.get("content", "")) for chunk in outputs).strip() == "22", code
    assert interpreter.messages[0]["content"].strip() == "10+12", code
