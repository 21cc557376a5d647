# Places where scripts plug in their own code.

# row: an object with run as the model
from interpreter import interpreter


class Model:
    def __init__(self):
        self.seen = []

    def run(self, messages):
        self.seen.append(messages)
        yield {"type": "message", "content": "Hello "}
        yield {"type": "message", "content": "from my model."}


interpreter.llm = model = Model()
interpreter.offline = interpreter.disable_telemetry = True
answer = interpreter.chat("Hi", display=False)
assert answer == [{"role": "assistant", "type": "message", "content": "Hello from my model."}]
assert model.seen[0][0]["role"] == "system"
assert model.seen[0][-1] == {"role": "user", "type": "message", "content": "Hi"}

# row: a custom model that writes code
from interpreter import interpreter


class Model:
    def __init__(self):
        self.turn = 0

    def run(self, messages):
        self.turn += 1
        if self.turn == 1:
            yield {"type": "code", "format": "python", "content": "print("}
            yield {"type": "code", "format": "python", "content": "'mine')"}
        else:
            assert messages[-1]["content"].strip() == "mine"
            yield {"type": "message", "content": "Done."}


interpreter.llm = Model()
interpreter.offline = interpreter.disable_telemetry = interpreter.auto_run = True
messages = interpreter.chat("Go", display=False)
assert [m["type"] for m in messages] == ["code", "console", "message"]
assert messages[0]["content"] == "print('mine')"

# row: a subclass of Llm with its own run
from interpreter import OpenInterpreter
from interpreter.core.llm.llm import Llm


class Mine(Llm):
    def run(self, messages):
        yield {"type": "message", "content": "Mine."}


agent = OpenInterpreter(offline=True, disable_telemetry=True)
agent.llm = Mine(agent)
assert agent.chat("Hi", display=False)[0]["content"] == "Mine."

# row: llm.completions with a generator
from interpreter import interpreter

asked = []


def completions(**params):
    asked.append(params)
    for piece in ["Hello ", "there."]:
        yield {"choices": [{"delta": {"content": piece}}]}


interpreter.offline = interpreter.disable_telemetry = True
interpreter.llm.model = "openai/mine"
interpreter.llm.supports_functions = False
interpreter.llm.supports_vision = False
interpreter.llm.context_window, interpreter.llm.max_tokens = 8000, 1000
interpreter.llm.completions = completions
assert interpreter.chat("Hi", display=False)[0]["content"] == "Hello there."
assert asked[0]["stream"] is True and asked[0]["messages"][0]["role"] == "system"
assert asked[0]["messages"][-1] == {"role": "user", "content": "Hi"}
assert asked[0]["model"] == "openai/mine" and asked[0]["max_tokens"] == 1000

# row: llm.completions with a tool call
import json

from interpreter import interpreter

turn = []


def completions(**params):
    turn.append(params)
    if len(turn) == 1:
        assert params["tools"][0]["function"]["name"] == "execute"
        arguments = json.dumps({"language": "python", "code": "print(40 + 2)"})
        call = {"index": 0, "id": "a", "type": "function", "function": {"name": "execute", "arguments": arguments}}
        yield {"choices": [{"delta": {"tool_calls": [call]}}]}
    else:
        yield {"choices": [{"delta": {"content": "It is 42."}}]}


interpreter.offline = interpreter.disable_telemetry = interpreter.auto_run = True
interpreter.llm.model = "openai/mine"
interpreter.llm.supports_functions = True
interpreter.llm.supports_vision = False
interpreter.llm.context_window, interpreter.llm.max_tokens = 8000, 1000
interpreter.llm.completions = completions
messages = interpreter.chat("Go", display=False)
assert [m["type"] for m in messages] == ["code", "console", "message"], messages
assert messages[1]["content"].strip() == "42"
assert turn[1]["messages"][-1]["role"] == "tool"

# row: llm.completions that wraps another function
from interpreter import interpreter

server = scripted("Hello.")
original = interpreter.llm.completions
calls = []


def counting(**params):
    calls.append(params["model"])
    yield from original(**params)


interpreter.llm.completions = counting
assert interpreter.chat("Hi", display=False)[0]["content"] == "Hello."
assert len(calls) == 1

# row: a list that ends in code runs that code
from interpreter import interpreter

server = scripted("It printed 5.")
interpreter.auto_run = True
messages = interpreter.chat(
    [
        {"role": "user", "type": "message", "content": "Run it"},
        {"role": "assistant", "type": "code", "format": "python", "content": "print(2 + 3)"},
    ],
    display=False,
)
assert [m["type"] for m in messages] == ["console", "message"], messages
assert messages[0]["content"].strip() == "5"

# row: a list that ends in code asks first
from interpreter import interpreter

server = scripted("It printed 5.")
chunks = []
for chunk in interpreter.chat(
    [
        {"role": "user", "type": "message", "content": "Run it"},
        {"role": "assistant", "type": "code", "format": "python", "content": "print(2 + 3)"},
    ],
    display=False,
    stream=True,
):
    chunks.append(dict(chunk))
    if chunk["type"] == "confirmation":
        break
assert chunks[-1]["type"] == "confirmation"
assert chunks[-1]["content"]["content"] == "print(2 + 3)"
assert not server.chats

# row: _respond_and_store
from interpreter import interpreter

scripted("Hello there.")
interpreter.messages = [{"role": "user", "type": "message", "content": "Hi"}]
said = ""
for chunk in interpreter._respond_and_store():
    if chunk["type"] == "message" and "content" in chunk:
        said += chunk["content"]
assert said == "Hello there."
assert interpreter.messages[-1] == {"role": "assistant", "type": "message", "content": "Hello there."}

# row: _streaming_chat
from interpreter import interpreter

scripted("Hello there.")
said = ""
for chunk in interpreter._streaming_chat("Hi", display=False):
    said += chunk.get("content", "")
assert said == "Hello there."

# row: edit the code at the confirmation
from interpreter import interpreter

scripted(code("print('before')"), "Done.")
for chunk in interpreter.chat("Go", display=False, stream=True):
    if chunk["type"] == "confirmation":
        interpreter.messages[-1]["content"] = "print('after')"
console = [m for m in interpreter.messages if m["type"] == "console"]
assert console[0]["content"].strip() == "after"

# row: loop until a breaker
from interpreter import interpreter

server = scripted("Working on it.", "The task is done.")
interpreter.loop = True
interpreter.auto_run = True
messages = interpreter.chat("Do it", display=False)
assert len(server.chats) == 2
assert "The task is done." in messages[-1]["content"]

# row: loop with its own message and breakers
from interpreter import interpreter

server = scripted("Step one.", "ALL DONE")
interpreter.loop = True
interpreter.loop_message = "Continue, please."
interpreter.loop_breakers = ["ALL DONE"]
messages = interpreter.chat("Do it", display=False)
assert "ALL DONE" in messages[-1]["content"]
assert server.chats[1].messages[-1]["content"] == "Continue, please."
assert all(m["content"] != "Continue, please." for m in interpreter.messages)

# row: loop after code
from interpreter import interpreter

server = scripted(code("print(1)"), "One.", "The task is done.")
interpreter.loop = True
interpreter.auto_run = True
messages = interpreter.chat("Do it", display=False)
assert "The task is done." in messages[-1]["content"]

# row: inside a running event loop
import asyncio

from interpreter import interpreter

scripted(code("print(1)"), "Done.")
interpreter.auto_run = True


async def main():
    return interpreter.chat("Go", display=False)


messages = asyncio.run(main())
assert messages[-1]["content"] == "Done." and messages[1]["content"].strip() == "1"

# row: a stream inside a running event loop
import asyncio

from interpreter import interpreter

scripted("Hello there.")


async def main():
    said = ""
    for chunk in interpreter.chat("Hi", display=False, stream=True):
        said += chunk.get("content") or ""
        await asyncio.sleep(0)
    return said


assert asyncio.run(main()) == "Hello there."

# row: in an executor of the event loop
import asyncio

from interpreter import interpreter

scripted(code("print(1)"), "Done.")
interpreter.auto_run = True


async def main():
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(None, lambda: interpreter.chat("Go", display=False))


assert asyncio.run(main())[-1]["content"] == "Done."

# row: one instance per user across threads
import threading

from interpreter import OpenInterpreter

users = {name: OpenInterpreter(auto_run=True) for name in ("ada", "bob", "eve")}
for name, agent in users.items():
    scripted(code(f"who = '{name}'\nprint(who)"), f"Hello {name}.", on=agent)
answers = {}


def serve(name):
    answers[name] = users[name].chat("Hi", display=False)


threads = [threading.Thread(target=serve, args=(name,)) for name in users]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert {name: found[-1]["content"] for name, found in answers.items()} == {n: f"Hello {n}." for n in users}
assert all(found[1]["content"].strip() == name for name, found in answers.items())

# row: chat in one thread, read in another
import queue
import threading

from interpreter import interpreter

scripted("Hello there.")
chunks = queue.Queue()


def produce():
    for chunk in interpreter.chat("Hi", display=False, stream=True):
        chunks.put(dict(chunk))
    chunks.put(None)


threading.Thread(target=produce, daemon=True).start()
said = ""
while (chunk := chunks.get(timeout=15)) is not None:
    said += chunk.get("content", "")
assert said == "Hello there."

# row: wait after a stream returns
from interpreter import interpreter

scripted("Hello.")
for _ in interpreter.chat("Hi", display=False, stream=True):
    pass
assert interpreter.wait()[-1]["content"] == "Hello."

# row: reset in the middle of a stream
from interpreter import interpreter

scripted("Hello there, how are you?", "New.")
for chunk in interpreter.chat("Hi", display=False, stream=True):
    if chunk.get("content"):
        break
interpreter.reset()
assert interpreter.messages == []
assert interpreter.chat("Again", display=False)[-1]["content"] == "New."

# row: a chat after an abandoned stream
from interpreter import interpreter

scripted("Hello there, how are you?", "Second.")
for chunk in interpreter.chat("Hi", display=False, stream=True):
    if chunk.get("content"):
        break
assert interpreter.chat("Again", display=False)[-1]["content"] == "Second."

# row: system messages with Python in braces
from interpreter import interpreter

server = scripted("Ok.")
interpreter.system_message = "The sum is {{print(19 + 4)}}."
interpreter.chat("Hi", display=False)
assert "The sum is 23" in server.chats[0].messages[0]["content"]
