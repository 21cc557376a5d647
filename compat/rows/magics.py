# A chat at the terminal, and its magic commands.

# row: a question and an answer
run = terminal("Hi", replies=("Hello there.",))
assert "Hello there." in run and run.status == 0

# row: y runs the code
run = terminal("Count", "y", replies=(code("print(6 * 7)"), "That is it."))
assert "42" in run and "That is it." in run

# row: n declines the code
run = terminal("Count", "n", "Thanks", replies=(code("open('ran', 'w')"), "Welcome."))
import os

assert not os.path.exists("ran")
assert "Welcome." in run

# row: %help
run = terminal("%help")
assert all(name in run for name in ("%help", "%reset", "%undo", "%save_message", "%load_message", "%tokens", "%info"))

# row: %reset
run = terminal("First", "%reset", "Second", replies=("One.", "Two."))
assert [m["content"] for m in run.chats[1].messages if m["role"] == "user"] == ["Second"]

# row: %undo
run = terminal("First", "Second", "%undo", "Third", replies=("One.", "Two.", "Three."))
assert [m["content"] for m in run.chats[2].messages if m["role"] == "user"] == ["First", "Third"]

# row: %save_message
import json

terminal("First", "%save_message talk.json", replies=("One.",))
saved = json.load(open("talk.json"))
assert [m["content"] for m in saved] == ["First", "One."]

# row: %save_message without a name
import json

terminal("First", "%save_message", replies=("One.",))
assert [m["content"] for m in json.load(open("messages.json"))] == ["First", "One."]

# row: %load_message
import json

with open("talk.json", "w") as file:
    json.dump(
        [
            {"role": "user", "type": "message", "content": "My name is Ada."},
            {"role": "assistant", "type": "message", "content": "Hello, Ada."},
        ],
        file,
    )
run = terminal("%load_message talk.json", "Who am I?", replies=("Ada.",))
assert "My name is Ada." in str(run.chats[0].messages)

# row: %% runs a shell command
run = terminal("%% echo from the $((40 + 2))nd shell")
assert "from the 42nd shell" in run

# row: %verbose
run = terminal("%verbose true", "%verbose false", "Hi", replies=("Hello there.",))
assert "Hello there." in run

# row: %auto_run
run = terminal("%auto_run true", "Count", replies=(code("print(6 * 7)"), "That is it."))
assert "42" in run and "That is it." in run

# row: %tokens
run = terminal("Hi", "%tokens", replies=("Hello there.",))
assert "token" in run.output.lower()

# row: %info
run = terminal("%info")
assert "Python" in run and "openai/scripted" in run

# row: an unknown magic
run = terminal("%nothing", "Hi", replies=("Hello there.",))
assert "Hello there." in run and len(run.chats) == 1

# row: %markdown with a path
import pathlib

terminal("First", "%markdown talk.md", replies=("One.",))
assert "One." in pathlib.Path("talk.md").read_text()

# row: several lines between triple quotes
run = terminal('"""first line\rsecond line"""', replies=("Read.",))
asked = run.chats[0].messages[-1]["content"]
assert "first line\nsecond line" in asked

# row: an image path in a message
import base64
import os

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
with open("dot.png", "wb") as file:
    file.write(base64.b64decode(PNG))
run = terminal(f"What is in {os.getcwd()}/dot.png", flags=["--llm_supports_vision"], replies=("A dot.",))
assert "image_url" in str(run.chats[0].messages)

# row: -y runs code at once
run = terminal("Count", flags=["-y"], replies=(code("print(6 * 7)"), "That is it."))
assert "42" in run and "That is it." in run

# row: an empty line asks nothing
run = terminal("", "Hi", replies=("Hello there.",))
assert len(run.chats) == 1 and "Hello there." in run
