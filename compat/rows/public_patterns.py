# Programs around the interpreter, in miniature. The caller's side of a framework is a stand-in of a few lines.

# row: FastAPI streaming endpoint
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import threading
import urllib.parse
import urllib.request

from interpreter import interpreter

scripted(code("print(6 * 7)", before="Let me compute."), "It is 42.")
interpreter.auto_run = True


class StreamingResponse:
    def __init__(self, content, media_type):
        self.content, self.media_type = content, media_type


def chat_endpoint(message):
    def event_stream():
        for result in interpreter.chat(message, stream=True, display=False):
            yield f"data: {json.dumps(result)}\n\n"

    return StreamingResponse(event_stream(), media_type="text/event-stream")


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        query = urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query)
        response = chat_endpoint(query["message"][0])
        self.send_response(200)
        self.send_header("Content-Type", response.media_type)
        self.end_headers()
        for piece in response.content:
            self.wfile.write(piece.encode())

    def log_message(self, *args):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/chat?message=hi") as answer:
    events = [json.loads(line[6:]) for line in answer.read().decode().split("\n\n") if line]
assert "".join(e.get("content", "") for e in events if e["type"] == "message") == "Let me compute.It is 42."
assert {e["type"] for e in events} == {"message", "code", "console"}

# row: FastAPI history endpoint
import json

from interpreter import interpreter

scripted("Hello.")
interpreter.chat("Hi", display=False)
body = json.dumps(interpreter.messages)
assert json.loads(body)[-1]["content"] == "Hello."

# row: FastAPI websocket that stops at the confirmation
import asyncio

from interpreter import interpreter

scripted(code("print('ran')"), "Done.")


class WebSocket:
    def __init__(self, answers):
        self.answers, self.sent = answers, []

    async def send_json(self, data):
        self.sent.append(data)

    async def receive_text(self):
        return self.answers.pop(0)


async def talk(socket):
    for chunk in interpreter.chat("Go", display=False, stream=True):
        await socket.send_json(dict(chunk))
        if chunk["type"] == "confirmation" and await socket.receive_text() != "yes":
            break


yes = WebSocket(["yes"])
asyncio.run(talk(yes))
assert any(c["type"] == "console" and c.get("content") == "ran\n" for c in yes.sent)

# row: Gradio chat function
from interpreter import interpreter

scripted(code("print('hello')", before="Sure."), "There it is.")
interpreter.auto_run = True


def bot(message, history):
    active_block_type = ""
    text_so_far = ""
    for chunk in interpreter.chat(message, stream=True, display=False):
        if chunk["type"] == "message" and "content" in chunk:
            if active_block_type != "message":
                active_block_type = "message"
            text_so_far += chunk["content"]
        elif chunk["type"] in ["code", "console"]:
            if "start" in chunk:
                text_so_far += f"\n```{chunk.get('format', '')}\n"
            elif "end" in chunk:
                text_so_far += "\n```\n"
            elif chunk.get("format") != "active_line":
                text_so_far += chunk["content"]
        yield text_so_far


steps = list(bot("hi", []))
assert steps[-1].startswith("Sure.") and steps[-1].endswith("There it is.")
assert "```python\nprint('hello')\n```" in steps[-1]

# row: Gradio history of pairs
from interpreter import interpreter

scripted("One.", "Two.")


def respond(message, history):
    answer = interpreter.chat(message, display=False)[-1]["content"]
    return history + [(message, answer)]


history = respond("a", [])
history = respond("b", history)
assert history == [("a", "One."), ("b", "Two.")]

# row: Streamlit chat
from interpreter import OpenInterpreter

session_state = {}


def rerun(prompt=None, replies=()):
    """A run of the page: Streamlit runs the script from top to bottom for every action."""
    if "interpreter" not in session_state:
        session_state["interpreter"] = OpenInterpreter(auto_run=True)
        session_state["messages"] = []
    agent = session_state["interpreter"]
    if prompt:
        scripted(*replies, on=agent)
        session_state["messages"].append({"role": "user", "content": prompt})
        full_response, output = "", ""
        for chunk in agent.chat(prompt, display=False, stream=True):
            if "content" not in chunk:
                continue
            if chunk["role"] == "assistant" and chunk["type"] == "message":
                full_response += chunk["content"]
            elif chunk["role"] == "computer" and chunk["format"] == "output":
                output += chunk["content"]
        session_state["messages"].append({"role": "assistant", "content": full_response, "output": output})


rerun()
rerun("What is 2 + 2?", [code("x = 2 + 2\nprint(x)"), "Four."])
rerun("And one more?", [code("print(x + 1)"), "Five."])
assert [m["content"] for m in session_state["messages"] if m["role"] == "assistant"] == ["Four.", "Five."]
assert session_state["messages"][-1]["output"].strip() == "5"

# row: Discord-style bot
import asyncio

from interpreter import interpreter

scripted(code("print(2 ** 10)", before="Computing."), "It is 1024.")
interpreter.auto_run = True


class Channel:
    def __init__(self):
        self.sent = []

    async def send(self, text):
        assert isinstance(text, str) and 0 < len(text) <= 2000
        self.sent.append(text)


async def on_message(channel, content):
    last_type, buffer = None, ""
    for chunk in interpreter.chat(content, display=False, stream=True):
        if "content" not in chunk or chunk.get("format") == "active_line":
            continue
        if chunk["type"] != last_type and buffer:
            await channel.send(buffer)
            buffer = ""
        last_type = chunk["type"]
        buffer += chunk["content"]
        await asyncio.sleep(0)
    if buffer:
        await channel.send(buffer)


channel = Channel()
asyncio.run(on_message(channel, "What is 2 to the 10?"))
assert channel.sent == ["Computing.", "print(2 ** 10)", "1024\n", "It is 1024."]

# row: Discord-style bot with one interpreter per channel
import asyncio

from interpreter import OpenInterpreter

agents = {}


def agent_of(channel):
    if channel not in agents:
        agents[channel] = OpenInterpreter()
        agents[channel].auto_run = True
        agents[channel].channel = channel
        scripted(f"Hello {channel}.", on=agents[channel])
    return agents[channel]


async def on_message(channel, content):
    return await asyncio.to_thread(agent_of(channel).chat, content, False)


async def main():
    return await asyncio.gather(*(on_message(name, "hi") for name in ("general", "random")))


answers = asyncio.run(main())
assert [a[-1]["content"] for a in answers] == ["Hello general.", "Hello random."]

# row: crewAI tool
from interpreter import interpreter


class BaseTool:
    name = ""
    description = ""

    def run(self, *args, **kwargs):
        return self._run(*args, **kwargs)


class CodeTool(BaseTool):
    name = "Code interpreter"
    description = "Runs code to answer questions."

    def _run(self, command):
        interpreter.auto_run = True
        interpreter.llm.temperature = 0.7
        result = interpreter.chat(command, display=False)
        return result


scripted(code("print(3)"), "Three.")
assert CodeTool().run("Count")[-1]["content"] == "Three."

# row: crewAI tool with a function
from interpreter import interpreter


def tool(name):
    def wrap(function):
        function.tool_name = name
        return function

    return wrap


@tool("Executor")
def execute(command: str):
    """Executes a task with code."""
    return str(interpreter.chat(f"Execute this: {command}", display=False))


scripted("Done.")
interpreter.auto_run = True
assert "Done." in execute("ls") and execute.tool_name == "Executor"

# row: LangChain wrapper
from interpreter import OpenInterpreter


class LLM:
    def __init__(self, **data):
        for name, value in data.items():
            setattr(self, name, value)

    def invoke(self, prompt, stop=None):
        return self._call(prompt, stop=stop)


class InterpreterLLM(LLM):
    agent: OpenInterpreter

    @property
    def _llm_type(self):
        return "open-interpreter"

    def _call(self, prompt, stop=None, run_manager=None, **kwargs):
        self.agent.messages = []
        said = [m["content"] for m in self.agent.chat(prompt, display=False) if m["type"] == "message"]
        answer = "\n".join(said)
        for word in stop or []:
            answer = answer.split(word)[0]
        return answer


agent = OpenInterpreter(auto_run=True, offline=True)
scripted("Paris. STOP and more", on=agent)
assert InterpreterLLM(agent=agent).invoke("Capital of France?", stop=["STOP"]) == "Paris. "

# row: LangChain tool with a function
from interpreter import interpreter

scripted(code("print('file.txt')"), "There is file.txt.")
interpreter.auto_run = True


def run_interpreter(question: str) -> str:
    messages = interpreter.chat(question, display=False, stream=False)
    return next(m["content"] for m in reversed(messages) if m["role"] == "assistant" and m["type"] == "message")


tools = [{"name": "interpreter", "func": run_interpreter, "description": "Runs code"}]
assert tools[0]["func"]("Which files?") == "There is file.txt."

# row: voice application accumulates sentences
from interpreter import interpreter

scripted(code("print(1)", before="First sentence. Second one! "), "Is it over? Yes.")
interpreter.auto_run = True
spoken, sentence = [], ""
for chunk in interpreter.chat("Talk", display=False, stream=True):
    if chunk["type"] != "message":
        continue
    if "content" in chunk:
        for letter in chunk["content"]:
            sentence += letter
            if letter in ".!?":
                spoken.append(sentence.strip())
                sentence = ""
    if "end" in chunk and sentence.strip():
        spoken.append(sentence.strip())
        sentence = ""
assert spoken == ["First sentence.", "Second one!", "Is it over?", "Yes."]

# row: voice application with an accumulator of messages
from interpreter import interpreter


class Accumulator:
    def __init__(self):
        self.message = None

    def accumulate(self, chunk):
        if "start" in chunk:
            self.message = {k: v for k, v in chunk.items() if k != "start"}
            self.message["content"] = ""
        elif "end" in chunk:
            message, self.message = self.message, None
            return message
        elif chunk.get("format") != "active_line" and chunk["type"] != "confirmation":
            self.message["content"] += chunk["content"]
        return None


scripted(code("print('beep')", before="Sure."), "Done.")
accumulator = Accumulator()
whole = [m for c in interpreter.chat("Go", display=False, stream=True) if (m := accumulator.accumulate(c))]
assert [m["content"] for m in whole] == ["Sure.", "print('beep')", "beep\n", "Done."], whole

# row: a telegram-style bot that sends pictures
import base64

from interpreter import interpreter

scripted(code("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"), "There is the plot.")
interpreter.auto_run = True
photos, texts = [], []
for message in interpreter.chat("Plot", display=False):
    if message["type"] == "image" and message["format"].startswith("base64"):
        photos.append(base64.b64decode(message["content"]))
    elif message["type"] == "message":
        texts.append(message["content"])
interpreter.llm.supports_vision = True
assert texts == ["There is the plot."]

# row: images as they arrive
import base64

from interpreter import interpreter

scripted(code("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"), "There is the plot.")
interpreter.auto_run = True
photos = []
for chunk in interpreter.chat("Plot", display=False, stream=True):
    if chunk["type"] == "image" and "content" in chunk:
        photos.append(base64.b64decode(chunk["content"]))
assert len(photos) == 1 and photos[0].startswith(b"\x89PNG")

# row: a server that keeps one conversation per user in a database
import json
import sqlite3

from interpreter import interpreter

database = sqlite3.connect(":memory:")
database.execute("create table talks (user text primary key, messages text)")
server = scripted("Hello Ada.", "Hello Bob.", "You are Ada.")


def talk(user, text):
    row = database.execute("select messages from talks where user = ?", (user,)).fetchone()
    interpreter.messages = json.loads(row[0]) if row else []
    answer = interpreter.chat(text, display=False)[-1]["content"]
    database.execute("replace into talks values (?, ?)", (user, json.dumps(interpreter.messages)))
    return answer


assert talk("ada", "I am Ada") == "Hello Ada."
assert talk("bob", "I am Bob") == "Hello Bob."
assert talk("ada", "Who am I?") == "You are Ada."
assert "Bob" not in str(server.chats[2].messages)

# row: print chunks in colours
from interpreter import interpreter

scripted(code("print(1)", before="Sure."), "Done.")
interpreter.auto_run = True
colours = {"message": 32, "code": 33, "console": 36}
shown = "".join(
    f"\x1b[{colours[chunk['type']]}m{chunk['content']}\x1b[0m"
    for chunk in interpreter.chat("Go", display=False, stream=True)
    if "content" in chunk and chunk["content"] is not None
)
assert "print(1)" in shown

# row: a benchmark that measures tasks
import time

from interpreter import OpenInterpreter


def task(prompt, *replies):
    agent = OpenInterpreter(auto_run=True, disable_telemetry=True)
    scripted(*replies, on=agent)
    began = time.time()
    messages = agent.chat(prompt, display=False, stream=False)
    agent.computer.terminate()
    return {"time": time.time() - began, "messages": len(messages), "ok": "4" in messages[-1]["content"]}


assert task("2 + 2?", code("print(2 + 2)"), "It is 4.")["ok"]

# row: an approval by a function
from interpreter import interpreter

scripted(code("print('first')"), code("print('second')"), "Done.")


def allowed(source):
    return "second" not in source


for chunk in interpreter.chat("Go", display=False, stream=True):
    if chunk["type"] == "confirmation" and not allowed(chunk["content"]["content"]):
        break
console = [m["content"].strip() for m in interpreter.messages if m["type"] == "console"]
assert console == ["first"]
