# How readers of `chat(stream=True)` and `computer.run(stream=True)` process chunks.

# row: accumulate by start and end
from interpreter import interpreter

scripted(code("print('a')\nprint('b')", before="Sure."), "Done.")
interpreter.auto_run = True
blocks, current = [], None
for chunk in interpreter.chat("Go", display=False, stream=True):
    if chunk.get("start"):
        assert current is None
        current = {"role": chunk["role"], "type": chunk["type"], "content": ""}
    elif chunk.get("end"):
        assert current["type"] == chunk["type"]
        blocks.append(current)
        current = None
    elif chunk.get("format") == "active_line":
        continue
    else:
        assert (current["role"], current["type"]) == (chunk["role"], chunk["type"])
        current["content"] += chunk["content"]
assert current is None
assert [(b["role"], b["type"]) for b in blocks] == [
    ("assistant", "message"),
    ("assistant", "code"),
    ("computer", "console"),
    ("assistant", "message"),
]
assert blocks[0]["content"] == "Sure." and blocks[2]["content"].split() == ["a", "b"]

# row: concatenate all content
from interpreter import interpreter

scripted(code("print('out')", before="Sure."), "Done.")
interpreter.auto_run = True
everything = ""
for chunk in interpreter.chat("Go", display=False, stream=True):
    content = chunk.get("content")
    if content and chunk.get("format") != "active_line":
        everything += content
assert everything.startswith("Sure.") and everything.endswith("Done.")
assert "print('out')" in everything and "out" in everything

# row: switch on role
from interpreter import interpreter

scripted(code("print('out')", before="Sure."), "Done.")
interpreter.auto_run = True
said, computed = "", ""
for chunk in interpreter.chat("Go", display=False, stream=True):
    if "content" not in chunk:
        continue
    if chunk["role"] == "assistant":
        said += chunk["content"]
    elif chunk["role"] == "computer":
        if chunk["format"] == "output":
            computed += chunk["content"]
    else:
        raise ValueError(chunk["role"])
assert said == "Sure.print('out')Done."
assert computed.strip() == "out"

# row: strict switch on type
from interpreter import interpreter

scripted(code("print('out')", before="Sure."), "Done.")
seen = []
for chunk in interpreter.chat("Go", display=False, stream=True):
    kind = chunk["type"]
    if kind == "message":
        seen.append("m")
    elif kind == "code":
        assert chunk["format"] == "python"
        seen.append("c")
    elif kind == "console":
        seen.append("o")
    elif kind == "confirmation":
        assert set(chunk["content"]) == {"type", "format", "content"}
        seen.append("?")
    elif kind in ("image", "file", "review"):
        seen.append("x")
    else:
        raise ValueError(f"unknown type {kind}: {chunk}")
assert list(dict.fromkeys(seen)) == ["m", "c", "?", "o"]

# row: a new bubble when the type changes
from interpreter import interpreter

scripted(code("print('one')\nprint('two')", before="Let me see."), "Done.")
interpreter.auto_run = True
bubbles = []
for chunk in interpreter.chat("Go", display=False, stream=True):
    if not bubbles or bubbles[-1][0] != chunk["type"]:
        bubbles.append([chunk["type"], ""])
    if isinstance(chunk.get("content"), str):
        bubbles[-1][1] += chunk["content"]
assert [kind for kind, _ in bubbles] == ["message", "code", "console", "message"], bubbles

# row: notebook formatter
from interpreter import interpreter

scripted(code("print('out')", before="Sure."), "Done.")
interpreter.auto_run = True
lines, last = [], None
for chunk in interpreter.chat("Go", display=False, stream=True):
    kind, content = chunk["type"], chunk.get("content", "")
    if "start" in chunk:
        lines.append({"message": "", "code": f"```{chunk.get('format')}\n", "console": "```output\n"}[kind])
    elif "end" in chunk:
        lines.append({"message": "\n\n", "code": "\n```\n", "console": "\n```\n"}[kind])
    elif chunk.get("format") == "active_line":
        continue
    else:
        lines.append(content)
text_of_it = "".join(lines)
assert "```python\nprint('out')\n```" in text_of_it
assert "```output\n" in text_of_it and text_of_it.startswith("Sure.")

# row: the flags have role, type and format
from interpreter import interpreter

scripted(code("print(1)"), "One.")
interpreter.auto_run = True
chunks = [dict(c) for c in interpreter.chat("Go", display=False, stream=True)]
assert {"role": "assistant", "type": "code", "format": "python", "start": True} in chunks
assert {"role": "assistant", "type": "code", "format": "python", "end": True} in chunks
assert {"role": "computer", "type": "console", "start": True} in chunks
assert {"role": "computer", "type": "console", "end": True} in chunks
assert {"role": "assistant", "type": "message", "start": True} in chunks
assert {"role": "assistant", "type": "message", "end": True} in chunks

# row: every chunk has a role and a type
from interpreter import interpreter

scripted(code("print(1)", before="Sure."), "One.")
for chunk in interpreter.chat("Go", display=False, stream=True):
    assert chunk["role"] in ("assistant", "computer"), chunk
    assert chunk["type"] in ("message", "code", "console", "confirmation"), chunk
    assert ("content" in chunk) + ("start" in chunk) + ("end" in chunk) == 1, chunk

# row: the confirmation comes after the code, with language and code
from interpreter import interpreter

scripted(code("print(1)"), "One.")
chunks = [dict(c) for c in interpreter.chat("Go", display=False, stream=True)]
at = next(n for n, chunk in enumerate(chunks) if chunk["type"] == "confirmation")
assert chunks[at] == {
    "role": "computer",
    "type": "confirmation",
    "format": "execution",
    "content": {"type": "code", "format": "python", "content": "print(1)"},
}
assert chunks[at - 1]["type"] == "code" and chunks[at - 1]["end"]
assert chunks[at + 1] == {"role": "computer", "type": "console", "start": True}

# row: no confirmation with auto_run
from interpreter import interpreter

scripted(code("print(1)"), "One.")
interpreter.auto_run = True
assert all(chunk["type"] != "confirmation" for chunk in interpreter.chat("Go", display=False, stream=True))

# row: breaking at the confirmation runs nothing
import os

from interpreter import interpreter

scripted(code("open('ran', 'w').close()"), "Ok.")
for chunk in interpreter.chat("Go", display=False, stream=True):
    if chunk["type"] == "confirmation":
        break
assert not os.path.exists("ran")
assert [m["type"] for m in interpreter.messages] == ["message", "code"]

# row: active lines are numbers, and None at the end
from interpreter import interpreter

scripted(code("import time\nprint('a')\ntime.sleep(0.3)\nprint('b')"), "Done.")
interpreter.auto_run = True
lines = [c["content"] for c in interpreter.chat("Go", display=False, stream=True) if c.get("format") == "active_line"]
assert lines[-1] is None
assert lines[:-1] and all(isinstance(line, int) for line in lines[:-1])

# row: console chunks have strings
from interpreter import interpreter

scripted(code("print(1)\n2 + 2"), "Done.")
interpreter.auto_run = True
outputs = [dict(c) for c in interpreter.chat("Go", display=False, stream=True) if c.get("format") == "output"]
assert outputs and all(isinstance(c["content"], str) for c in outputs)
assert "".join(c["content"] for c in outputs).split() == ["1", "4"]

# row: an image is one group
from interpreter import interpreter

scripted(
    code(
        "from IPython.display import Image, display\nimport base64\n"
        "display(Image(data=base64.b64decode('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='), format='png'))"
    ),
    "A dot.",
)
interpreter.auto_run = True
chunks = [dict(c) for c in interpreter.chat("Show", display=False, stream=True)]
images = [c for c in chunks if c["type"] == "image"]
assert [sorted(c) for c in images] == [
    ["format", "role", "start", "type"],
    ["content", "format", "role", "type"],
    ["end", "format", "role", "type"],
], images
assert images[1]["format"] == "base64.png" and isinstance(images[1]["content"], str)
assert images[0]["role"] == "computer"

# row: code streams in pieces that add up
from interpreter import interpreter

scripted(tool_call("python", "a = 1\nb = 2\nprint(a + b)", 7), "Three.")
interpreter.auto_run = True
chunks = [dict(c) for c in interpreter.chat("Go", display=False, stream=True)]
pieces = [c["content"] for c in chunks if c["type"] == "code" and "content" in c]
assert len(pieces) > 1
assert "".join(pieces) == "a = 1\nb = 2\nprint(a + b)"

# row: text mode has the same chunks
from interpreter import interpreter

scripted(code("print('x')", before="Sure."), "Done.", functions=False)
interpreter.auto_run = True
order = []
for chunk in interpreter.chat("Go", display=False, stream=True):
    if "start" in chunk:
        order.append((chunk["role"], chunk["type"], chunk.get("format")))
assert order == [
    ("assistant", "message", None),
    ("assistant", "code", "python"),
    ("computer", "console", None),
    ("assistant", "message", None),
], order

# row: the stream is a generator
import types

from interpreter import interpreter

scripted("Hi.")
stream = interpreter.chat("Hello", display=False, stream=True)
assert isinstance(stream, types.GeneratorType) or (hasattr(stream, "close") and hasattr(stream, "send"))
first = next(stream)
assert first == {"role": "assistant", "type": "message", "start": True}
stream.close()

# row: stream with display also yields chunks
import contextlib
import io

from interpreter import interpreter

scripted("Hello there.")
with contextlib.redirect_stdout(io.StringIO()):
    chunks = [dict(c) for c in interpreter.chat("Hi", display=True, stream=True)]
assert "".join(c.get("content", "") for c in chunks if c["type"] == "message") == "Hello there."

# row: messages are stored while streaming
from interpreter import interpreter

scripted("Hello there.")
for chunk in interpreter.chat("Hi", display=False, stream=True):
    if chunk.get("end"):
        assert interpreter.messages[-1]["content"] == "Hello there."
assert [m["role"] for m in interpreter.messages] == ["user", "assistant"]

# row: code without output yields a console group
from interpreter import interpreter

scripted(code("x = 1"), "Set.")
interpreter.auto_run = True
chunks = [dict(c) for c in interpreter.chat("Go", display=False, stream=True)]
assert {"role": "computer", "type": "console", "start": True} in chunks
assert {"role": "computer", "type": "console", "end": True} in chunks
assert interpreter.messages[2] == {"role": "computer", "type": "console", "format": "output", "content": ""}

# row: an error streams as output
from interpreter import interpreter

scripted(code("raise ValueError('bad value')"), "Oh.")
interpreter.auto_run = True
chunks = [dict(c) for c in interpreter.chat("Go", display=False, stream=True)]
output = "".join(c["content"] for c in chunks if c.get("format") == "output")
assert "ValueError" in output and "bad value" in output
assert {c["type"] for c in chunks} == {"code", "console", "message"}

# row: computer.run streams only console chunks
from interpreter import interpreter

chunks = list(interpreter.computer.run("python", "print('a')\nprint('b')", stream=True))
assert {c["type"] for c in chunks} == {"console"}, chunks
assert {c["format"] for c in chunks} <= {"output", "active_line"}
assert "".join(c["content"] for c in chunks if c["format"] == "output").split() == ["a", "b"]

# row: computer.run streams while the code runs
import time

from interpreter import interpreter

interpreter.computer.run("python", "pass")
began = time.time()
for chunk in interpreter.computer.run("python", "import time\nprint('early', flush=True)\ntime.sleep(4)", stream=True):
    if chunk["format"] == "output" and "early" in chunk["content"]:
        break
assert time.time() - began < 3.5

# row: llm.run yields chunks without a role
from interpreter import interpreter

scripted("Hello there.")
messages = [
    {"role": "system", "type": "message", "content": "Be kind."},
    {"role": "user", "type": "message", "content": "Hi"},
]
chunks = list(interpreter.llm.run(messages))
assert {c["type"] for c in chunks} == {"message"}, chunks
assert "".join(c["content"] for c in chunks) == "Hello there."

# row: llm.run yields code with its language
from interpreter import interpreter

scripted(code("print(1)"))
messages = [
    {"role": "system", "type": "message", "content": "Be kind."},
    {"role": "user", "type": "message", "content": "Hi"},
]
chunks = [c for c in interpreter.llm.run(messages) if c.get("content")]
assert {c["type"] for c in chunks} == {"code"}, chunks
assert {c["format"] for c in chunks} == {"python"}
assert "".join(c["content"] for c in chunks) == "print(1)"

# row: reasoning of the model is not in the default stream
from interpreter import interpreter

scripted(reasoning("Let me think.", 4).then(text("Hello.")))
chunks = [dict(c) for c in interpreter.chat("Hi", display=False, stream=True)]
assert {c["type"] for c in chunks} == {"message"}, chunks
assert "".join(c.get("content", "") for c in chunks) == "Hello."

# row: long output streams without notes of another type
from interpreter import interpreter

scripted(code("print('x' * 20000)"), "Long.")
interpreter.auto_run = True
chunks = [dict(c) for c in interpreter.chat("Go", display=False, stream=True)]
assert {c["type"] for c in chunks} <= {"code", "console", "message"}
assert all(isinstance(c["content"], str) for c in chunks if c.get("format") == "output")

# row: an unknown language is console output
from interpreter import interpreter

scripted(code("whatever", "cobol"), "Sorry.")
interpreter.auto_run = True
chunks = [dict(c) for c in interpreter.chat("Go", display=False, stream=True)]
output = "".join(c["content"] for c in chunks if c.get("format") == "output")
assert "cobol" in output and "not supported" in output

# row: active lines of computer.run are numbers
from interpreter import interpreter

for chunk in interpreter.computer.run("python", "x = 1\nprint(x)", stream=True):
    if chunk["format"] == "active_line":
        line = int(chunk["content"])
        assert line in (1, 2)

# row: computer.run streams an image
from interpreter import interpreter

kinds = []
for chunk in interpreter.computer.run(
    "python", "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()", stream=True
):
    if chunk["type"] == "image":
        assert chunk["format"] == "base64.png" and chunk["content"].startswith("iVBOR")
    kinds.append(chunk["type"])
assert "image" in kinds and set(kinds) <= {"console", "image"}

# row: server-sent events of a chat
import json

from interpreter import interpreter

scripted(code("print(2)", before="Sure."), "Two.")
interpreter.auto_run = True
lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in interpreter.chat("Go", display=False, stream=True)]
back = [json.loads(line[6:]) for line in lines]
assert all(set(chunk) <= {"role", "type", "format", "content", "start", "end"} for chunk in back), back

# row: store chunks as messages
from interpreter import interpreter

scripted(code("print(2)", before="Sure."), "Two.")
interpreter.auto_run = True
messages = []
for chunk in interpreter.chat("Go", display=False, stream=True):
    if "start" in chunk:
        messages.append({k: v for k, v in chunk.items() if k != "start"} | {"content": ""})
    elif "end" not in chunk and chunk.get("format") != "active_line":
        messages[-1]["content"] += chunk["content"]
        messages[-1].update({k: v for k, v in chunk.items() if k == "format"})
assert messages == interpreter.messages[1:], messages

# row: chunks of computer.run have type, format and content
from interpreter import interpreter

for chunk in interpreter.computer.run("python", "print(1)", stream=True):
    assert set(chunk) == {"type", "format", "content"}, chunk

# row: two blocks and words in between
from interpreter import interpreter

scripted(code("print('a')", before="One. "), code("print('b')", before="Two. "), "End.")
interpreter.auto_run = True
order = []
for chunk in interpreter.chat("Go", display=False, stream=True):
    if "start" in chunk:
        order.append(chunk["type"])
assert order == ["message", "code", "console"] * 2 + ["message"]

# row: what was streamed before a break is stored
from interpreter import interpreter

scripted("One two three four five six.")
for chunk in interpreter.chat("Count", display=False, stream=True):
    if "tw" in (chunk.get("content") or ""):
        break
assert interpreter.messages[-1]["role"] == "assistant"
assert interpreter.messages[-1]["content"].startswith("One tw")
