# Small scripts that use the library, as in public code.

# row: say hello and read the answer from the returned list
from interpreter import interpreter

scripted("Hello there.")
interpreter.auto_run = True
messages = interpreter.chat("Say hello", display=False)
assert messages == [{"role": "assistant", "type": "message", "content": "Hello there."}]

# row: run code and read the last message
from interpreter import interpreter

scripted(code("print(6 * 7)"), "The answer is 42.")
interpreter.auto_run = True
messages = interpreter.chat("What is 6 * 7?", display=False)
assert messages[-1]["content"] == "The answer is 42."
assert [m["type"] for m in messages] == ["code", "console", "message"]
assert messages[1]["content"].strip() == "42"

# row: a model without tool calls
from interpreter import interpreter

scripted(code("print(6 * 7)", before="Sure."), "The answer is 42.", functions=False)
interpreter.auto_run = True
messages = interpreter.chat("What is 6 * 7?", display=False)
assert [m["type"] for m in messages] == ["message", "code", "console", "message"], messages
assert messages[1]["content"].strip() == "print(6 * 7)"

# row: chat prints by default
import contextlib
import io

from interpreter import interpreter

scripted("Hello there.")
shown = io.StringIO()
with contextlib.redirect_stdout(shown):
    interpreter.chat("Say hello")
assert interpreter.messages[-1]["content"] == "Hello there."

# row: chat with display still returns the messages
from interpreter import interpreter

scripted(code("print('done')"), "Finished.")
interpreter.auto_run = True
result = interpreter.chat("Do it")
assert result[-1]["content"] == "Finished."

# row: print the answer as it streams
from interpreter import interpreter

scripted("Hello there.")
answer = ""
for chunk in interpreter.chat("Say hello", display=False, stream=True):
    if chunk["type"] == "message" and "content" in chunk:
        answer += chunk["content"]
assert answer == "Hello there."

# row: add to the system message
from interpreter import interpreter

server = scripted("Yes.")
interpreter.system_message += "\nAlways answer in one word."
interpreter.chat("Is it so?", display=False)
system = server.chats[0].messages[0]
assert system["role"] == "system" and "Always answer in one word." in system["content"]

# row: replace the system message
from interpreter import interpreter

server = scripted("Ahoy.")
interpreter.system_message = "You are a pirate."
interpreter.chat("Hello", display=False)
assert server.chats[0].messages[0]["content"].startswith("You are a pirate.")

# row: custom instructions reach the model
from interpreter import interpreter

server = scripted("Done.")
interpreter.custom_instructions = "Use metric units."
interpreter.chat("How far?", display=False)
assert "Use metric units." in server.chats[0].messages[0]["content"]

# row: keep a conversation and go back to it
from interpreter import interpreter

server = scripted("Noted.", "It is Ada.")
interpreter.chat("My name is Ada.", display=False)
saved = interpreter.messages
interpreter.messages = []
interpreter.messages = saved
interpreter.chat("What is my name?", display=False)
sent = [m["content"] for m in server.chats[1].messages if m["role"] == "user"]
assert sent == ["My name is Ada.", "What is my name?"]

# row: save the messages as JSON and load them
import json

from interpreter import interpreter

scripted(code("print('saved')"), "Ok.", "Still here.")
interpreter.auto_run = True
interpreter.chat("Hello", display=False)
with open("conversation.json", "w") as file:
    json.dump(interpreter.messages, file)
interpreter.reset()
with open("conversation.json") as file:
    interpreter.messages = json.load(file)
assert [m["role"] for m in interpreter.messages] == ["user", "assistant", "computer", "assistant"]
interpreter.chat("Are you there?", display=False)
assert interpreter.messages[-1]["content"] == "Still here."

# row: reset starts a new conversation
from interpreter import interpreter

server = scripted("One.", "Two.")
interpreter.chat("First", display=False)
interpreter.reset()
assert interpreter.messages == []
interpreter.chat("Second", display=False)
assert [m["content"] for m in server.chats[1].messages if m["role"] == "user"] == ["Second"]

# row: a separate instance
from interpreter import OpenInterpreter

agent = OpenInterpreter()
scripted("Hello from the agent.", on=agent)
agent.auto_run = True
assert agent.chat("Hello", display=False)[0]["content"] == "Hello from the agent."

# row: two instances talk to each other
from interpreter import OpenInterpreter

first, second = OpenInterpreter(), OpenInterpreter()
scripted("What is two and two?", on=first)
scripted("Four.", on=second)
first.system_message = "You ask."
second.system_message = "You answer."
question = first.chat("Ask something", display=False)[-1]["content"]
answer = second.chat(question, display=False)[-1]["content"]
assert answer == "Four."
assert len(first.messages) == 2 and len(second.messages) == 2

# row: several prompts in a loop
from interpreter import interpreter

scripted("One.", "Two.", "Three.")
for prompt in ["a", "b", "c"]:
    interpreter.chat(prompt, display=False)
assert [m["content"] for m in interpreter.messages if m["role"] == "assistant"] == ["One.", "Two.", "Three."]

# row: a message as a dictionary
from interpreter import interpreter

scripted("Hi.")
interpreter.chat({"role": "user", "type": "message", "content": "Hello"}, display=False)
assert interpreter.messages[0] == {"role": "user", "type": "message", "content": "Hello"}

# row: a message as a dictionary without a role
from interpreter import interpreter

scripted("Hi.")
interpreter.chat({"type": "message", "content": "Hello"}, display=False)
assert interpreter.messages[0]["role"] == "user"
assert interpreter.messages[0]["content"] == "Hello"

# row: a list of messages replaces the conversation
from interpreter import interpreter

server = scripted("Ada.")
result = interpreter.chat(
    [
        {"role": "user", "type": "message", "content": "My name is Ada."},
        {"role": "assistant", "type": "message", "content": "Hello, Ada."},
        {"role": "user", "type": "message", "content": "Who am I?"},
    ],
    display=False,
)
assert [m["content"] for m in result] == ["Ada."]
assert len(interpreter.messages) == 4
assert len(server.chats[0].messages) == 4

# row: chat in the background and wait for it
from interpreter import interpreter

scripted("Done.")
assert interpreter.chat("Work", display=False, blocking=False) is None
messages = interpreter.wait()
assert messages[-1]["content"] == "Done."

# row: the answer of a helper function
from interpreter import interpreter


def ask(question):
    interpreter.messages = []
    for message in interpreter.chat(question, display=False, stream=False):
        if message["role"] == "assistant" and message["type"] == "message":
            return message["content"]


scripted("Paris.", "Rome.")
assert ask("Capital of France?") == "Paris."
assert ask("Capital of Italy?") == "Rome."

# row: code writes a file in the working directory
import os

from interpreter import interpreter

scripted(code("with open('out.csv', 'w') as f:\n    f.write('a,b\\n1,2\\n')"), "Written.")
interpreter.auto_run = True
interpreter.chat("Write a CSV file", display=False)
assert os.path.exists("out.csv")
assert open("out.csv").read() == "a,b\n1,2\n"

# row: variables persist between chats
from interpreter import interpreter

scripted(code("x = 20"), "Set.", code("print(x + 1)"), "It is 21.")
interpreter.auto_run = True
interpreter.chat("Set x", display=False)
messages = interpreter.chat("Add one", display=False)
console = [m for m in messages if m["type"] == "console"]
assert console[0]["content"].strip() == "21"

# row: an error in the code is console output
from interpreter import interpreter

server = scripted(code("1 / 0"), "You cannot divide by zero.")
interpreter.auto_run = True
messages = interpreter.chat("Divide", display=False)
console = [m for m in messages if m["type"] == "console"]
assert console[0]["format"] == "output"
assert "ZeroDivisionError" in console[0]["content"]
assert any("ZeroDivisionError" in str(m["content"]) for m in server.chats[1].messages)

# row: several blocks in one turn
from interpreter import interpreter

server = scripted(code("a = 1"), code("b = a + 1"), code("print(a + b)"), "Three.")
interpreter.auto_run = True
messages = interpreter.chat("Count", display=False)
assert [m["type"] for m in messages].count("code") == 3
assert messages[-2]["content"].strip() == "3"

# row: long output is cut
from interpreter import interpreter

scripted(code("print('x' * 10000)"), "Long.")
interpreter.auto_run = True
interpreter.max_output = 500
messages = interpreter.chat("Print much", display=False)
console = [m for m in messages if m["type"] == "console"]
assert len(console[0]["content"]) < 2000

# row: a shell command
from interpreter import interpreter

scripted(code("echo from the shell", "shell"), "Done.")
interpreter.auto_run = True
messages = interpreter.chat("Say it in the shell", display=False)
assert messages[0]["format"] == "shell"
assert "from the shell" in messages[1]["content"]

# row: a class around the interpreter
from interpreter import OpenInterpreter


class Assistant:
    def __init__(self, name):
        self.name = name
        self.interpreter = OpenInterpreter(auto_run=True, offline=True, disable_telemetry=True)
        self.interpreter.llm.temperature = 0.2

    def ask(self, question):
        return "".join(m["content"] for m in self.interpreter.chat(question, display=False) if m["type"] == "message")


assistant = Assistant("Bob")
scripted("I am Bob.", on=assistant.interpreter)
assert assistant.ask("Who are you?") == "I am Bob."

# row: a subclass with attributes and a method
from interpreter import OpenInterpreter


class Agent(OpenInterpreter):
    def __init__(self, name, **kwargs):
        super().__init__(**kwargs)
        self.name = name
        self.history_of_questions = []

    def ask(self, question):
        self.history_of_questions.append(question)
        return self.chat(question, display=False)[-1]["content"]


agent = Agent("helper", auto_run=True)
scripted("Yes.", on=agent)
assert agent.ask("Ready?") == "Yes."
assert agent.name == "helper" and agent.history_of_questions == ["Ready?"]

# row: import the package and use its object
import interpreter

scripted("Hello.", on=interpreter.interpreter)
interpreter.interpreter.auto_run = True
assert interpreter.interpreter.chat("Hi", display=False)[0]["content"] == "Hello."

# row: chat returns what was added to messages
from interpreter import interpreter

scripted(code("print(1)"), "One.")
interpreter.auto_run = True
result = interpreter.chat("Count", display=False)
assert result == interpreter.messages[1:]
assert interpreter.messages[0] == {"role": "user", "type": "message", "content": "Count"}

# row: set up a local server
from interpreter import interpreter

interpreter.offline = True
interpreter.llm.model = "openai/local"
interpreter.llm.api_key = "dummy"
interpreter.llm.api_base = "http://localhost:1234/v1"
interpreter.llm.context_window = 3000
interpreter.llm.max_tokens = 1000
interpreter.llm.supports_functions = False
interpreter.llm.supports_vision = False
assert interpreter.llm.api_base == "http://localhost:1234/v1"

# row: a script ends when it is done
out = script(
    "from interpreter import interpreter\n"
    "interpreter.computer.run('python', 'x = 1')\n"
    "print('result', interpreter.computer.run('python', 'print(x + 1)')[0]['content'].strip())\n"
)
assert "result 2" in out.splitlines(), out

# row: append messages by hand before asking
from interpreter import interpreter

server = scripted("Seven.")
interpreter.messages.append({"role": "user", "type": "message", "content": "Remember seven."})
interpreter.messages.append({"role": "assistant", "type": "message", "content": "I will."})
result = interpreter.chat("Which number?", display=False)
assert result[-1]["content"] == "Seven."
assert [m["content"] for m in server.chats[0].messages[1:]] == ["Remember seven.", "I will.", "Which number?"]

# row: the host runs the code itself and appends the output
from interpreter import interpreter

server = scripted(code("print('on the host')"), "Thanks.")
for chunk in interpreter.chat("Run it", display=False, stream=True):
    if chunk["type"] == "confirmation":
        break
assert interpreter.messages[-1]["type"] == "code"
interpreter.messages.append({"role": "computer", "type": "console", "format": "output", "content": "host output"})
interpreter.chat("Go on", display=False)
assert any("host output" in str(m["content"]) for m in server.chats[1].messages)

# row: a missing server is an error that can be caught
from interpreter import interpreter

scripted("never")
interpreter.llm.api_base = "http://127.0.0.1:9/v1"
try:
    interpreter.chat("Hello", display=False)
except Exception as error:
    assert str(error)
else:
    raise AssertionError("no error")

# row: chat without a message and without display is an error
from interpreter import interpreter

with raises(Exception):
    interpreter.chat(display=False)

# row: the user message template
from interpreter import interpreter

server = scripted("Ok.")
interpreter.user_message_template = "{content} Answer briefly."
interpreter.chat("What is it?", display=False)
assert server.chats[0].messages[-1]["content"] == "What is it? Answer briefly."
assert interpreter.messages[0]["content"] == "What is it?"

# row: templates for the output of code
from interpreter import interpreter

server = scripted(code("print(5)"), "Five.", functions=False)
interpreter.auto_run = True
interpreter.code_output_template = "The code printed: {content} -- what next?"
interpreter.chat("Run", display=False)
last = server.chats[1].messages[-1]
assert last["role"] == "user"
assert last["content"].startswith("The code printed: 5") and last["content"].endswith("what next?")

# row: template for code without output
from interpreter import interpreter

server = scripted(code("x = 1"), "Fine.", functions=False)
interpreter.auto_run = True
interpreter.empty_code_output_template = "Nothing was printed. Continue."
interpreter.chat("Run", display=False)
assert server.chats[1].messages[-1]["content"] == "Nothing was printed. Continue."

# row: chat with keyword arguments
from interpreter import interpreter

scripted("Hello.", "Again.")
assert interpreter.chat(message="Hi", display=False, stream=False, blocking=True)[0]["content"] == "Hello."
assert interpreter.chat("Hi", False, False)[0]["content"] == "Again."

# row: an empty message is a message
from interpreter import interpreter

server = scripted("Yes?")
assert interpreter.chat("", display=False)[0]["content"] == "Yes?"
assert interpreter.messages[0]["content"] == ""

# row: a message with unusual characters
from interpreter import interpreter

server = scripted("Größe: 3 µm 🙂")
answer = interpreter.chat("Wie groß? 🙂", display=False)
assert answer[0]["content"] == "Größe: 3 µm 🙂"
assert server.chats[0].messages[-1]["content"] == "Wie groß? 🙂"

# row: a messages list shared with the caller
from interpreter import interpreter

scripted("Hello.")
mine = []
interpreter.messages = mine
interpreter.chat("Hi", display=False)
assert len(mine) == 2

# row: switch the model between turns
from interpreter import interpreter

server = scripted("One.", "Two.")
interpreter.chat("a", display=False)
interpreter.llm.model = "openai/other"
interpreter.chat("b", display=False)
assert [chat.body["model"] for chat in server.chats] == ["scripted", "other"]

# row: a fresh conversation for each file
import os

from interpreter import interpreter

os.makedirs("data")
for name in ("a.txt", "b.txt"):
    open(f"data/{name}", "w").write(name)
scripted(code("print(open('data/a.txt').read())"), "It says a.", code("print(open('data/b.txt').read())"), "It says b.")
interpreter.auto_run = True
summaries = {}
for name in sorted(os.listdir("data")):
    interpreter.messages = []
    summaries[name] = interpreter.chat(f"Summarize data/{name}", display=False)[-1]["content"]
assert summaries == {"a.txt": "It says a.", "b.txt": "It says b."}

# row: collect the code that was run
from interpreter import interpreter

scripted(code("a = 1"), code("print(a)"), "Done.")
interpreter.auto_run = True
interpreter.chat("Go", display=False)
program = "\n".join(m["content"] for m in interpreter.messages if m["type"] == "code" and m["format"] == "python")
assert program == "a = 1\nprint(a)"

# row: a function of the script prepared in the session
from interpreter import interpreter

interpreter.computer.run("python", "def greet(name):\n    return 'Hello ' + name")
scripted(code("print(greet('Ada'))"), "Done.")
interpreter.auto_run = True
interpreter.custom_instructions = "There is a function greet(name)."
assert interpreter.chat("Greet Ada", display=False)[1]["content"].strip() == "Hello Ada"

# row: try again when the server fails once
from interpreter import interpreter
from http import HTTPStatus

server = scripted({"error": 500}, "Here I am.")
assert HTTPStatus(500)
assert interpreter.chat("Hi", display=False)[-1]["content"] == "Here I am."
