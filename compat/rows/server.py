# AsyncInterpreter's server, from a program that has the key.

# row: routes of one's own
import os

os.environ["INTERPRETER_API_KEY"] = "the-key"
from interpreter import AsyncInterpreter

agent = AsyncInterpreter()


@agent.server.app.get("/status")
def status():
    return {"messages": len(agent.messages)}


@agent.server.app.post("/notes/{name}")
async def note(name: str, data: dict):
    return {name: data}


@agent.server.app.middleware("http")
async def count(request, call_next):
    counted.append(request.url.path)
    return await call_next(request)


counted = []
server = served(agent)
assert server.ask("/status") == {"messages": 0}
assert server.ask("/notes/a", {"text": "Hi"}) == {"a": {"text": "Hi"}}
assert server.ask("/heartbeat") == {"status": "alive"}
assert counted == ["/status", "/notes/a", "/heartbeat"]

# row: settings over HTTP
import os

os.environ["INTERPRETER_API_KEY"] = "the-key"
from interpreter import AsyncInterpreter

agent = AsyncInterpreter()
server = served(agent)
said = [{"role": "user", "type": "message", "content": "Hi"}]
body = {"system_message": "Be a parrot.", "messages": said, "llm": {"api_base": "http://127.0.0.1:9/v1", "model": "x"}}
assert server.ask("/settings", body) == {"status": "success"}
assert (agent.system_message, agent.messages) == ("Be a parrot.", said)
assert (agent.llm.api_base, agent.llm.model) == ("http://127.0.0.1:9/v1", "x")

# row: settings are read over HTTP
import json
import os

os.environ["INTERPRETER_API_KEY"] = "the-key"
from interpreter import AsyncInterpreter

agent = AsyncInterpreter()
agent.custom_instructions = "Be kind."
server = served(agent)
assert json.loads(server.ask("/settings/custom_instructions")) == {"custom_instructions": "Be kind."}
assert json.loads(server.ask("/settings/auto_run")) == {"auto_run": False}

# row: code over HTTP
import os

os.environ["INTERPRETER_API_KEY"], os.environ["INTERPRETER_INSECURE_ROUTES"] = "the-key", "true"
from interpreter import AsyncInterpreter

output = served(AsyncInterpreter()).ask("/run", {"language": "python", "code": "print(6 * 7)"})["output"]
assert output[0]["type"] == "console" and output[0]["content"].strip() == "42"

# row: a message over the WebSocket
import json
import os

os.environ["INTERPRETER_API_KEY"] = "the-key"
from websockets.sync.client import connect

from interpreter import AsyncInterpreter

agent = AsyncInterpreter()
scripted("Hello there.", on=agent)
server = served(agent)
with connect(f"ws://127.0.0.1:{server.port}/") as client:
    client.send(json.dumps({"auth": "the-key"}))
    assert json.loads(client.recv(30)) == {"auth": True}
    for part in ({"start": True}, {"type": "message", "content": "Hi"}, {"end": True}):
        client.send(json.dumps({"role": "user", **part}))
    said = ""
    while (frame := json.loads(client.recv(30))).get("content") != "complete":
        said += frame.get("content") or ""
assert said == "Hello there."

# row: go runs the block over the WebSocket
import json
import os

os.environ["INTERPRETER_API_KEY"] = "the-key"
from websockets.sync.client import connect

from interpreter import AsyncInterpreter

agent = AsyncInterpreter()
scripted(code("print(6 * 7)"), "Done.", on=agent)
server = served(agent)


def turn(client, kind, content):
    """Send a message or command; what came until the server was done, by type."""
    for part in ({"start": True}, {"type": kind, "content": content}, {"end": True}):
        client.send(json.dumps({"role": "user", **part}))
    came = {}
    while (frame := json.loads(client.recv(30))).get("content") != "complete":
        if isinstance(frame.get("content"), str):
            came[frame["type"]] = came.get(frame["type"], "") + frame["content"]
    return came


with connect(f"ws://127.0.0.1:{server.port}/") as client:
    client.send(json.dumps({"auth": "the-key"}))
    client.recv(30)
    first = turn(client, "message", "Go")
    assert first["code"] == "print(6 * 7)" and "console" not in first
    second = turn(client, "command", "go")
assert "42" in second["console"] and second["message"] == "Done."

# row: the OpenAI endpoint
import os

os.environ["INTERPRETER_API_KEY"] = "the-key"
from interpreter import AsyncInterpreter

agent = AsyncInterpreter()
scripted("Hello there.", on=agent)
body = {"model": "any", "messages": [{"role": "user", "content": "Hi"}]}
answer = served(agent).ask("/openai/chat/completions", body)
assert answer["choices"][0]["message"]["content"] == "Hello there."
