# Custom languages, and the built-in ones.

# row: a subclass of BaseLanguage
from interpreter import BaseLanguage, interpreter


class Shout(BaseLanguage):
    name = "shout"
    file_extension = "txt"
    aliases = ["yell"]

    def __init__(self):
        super().__init__()

    def run(self, code):
        yield {"type": "console", "format": "output", "content": code.upper()}

    def stop(self):
        pass

    def terminate(self):
        pass


interpreter.computer.languages = [Shout]
assert interpreter.computer.run("shout", "hello") == [{"type": "console", "format": "output", "content": "HELLO"}]

# row: a class without a base
from interpreter import interpreter


class Shout:
    name = "shout"

    def __init__(self):
        self.count = 0

    def run(self, code):
        self.count += 1
        yield {"type": "console", "format": "output", "content": f"{self.count} {code.upper()}"}

    def stop(self):
        pass

    def terminate(self):
        pass


interpreter.computer.languages = [Shout]
assert interpreter.computer.run("shout", "a")[0]["content"] == "1 A"
assert interpreter.computer.run("shout", "b")[0]["content"] == "2 B"

# row: a class without __init__
from interpreter import interpreter


class Shout:
    name = "shout"

    def run(self, code):
        yield {"type": "console", "format": "output", "content": code.upper()}

    def stop(self):
        pass

    def terminate(self):
        pass


interpreter.computer.languages = [Shout]
assert interpreter.computer.run("shout", "hello")[0]["content"] == "HELLO"

# row: only a name and run
from interpreter import interpreter


class Shout:
    name = "shout"

    def __init__(self):
        pass

    def run(self, code):
        yield {"type": "console", "format": "output", "content": code.upper()}


interpreter.computer.languages.append(Shout)
assert interpreter.computer.run("shout", "hello")[0]["content"] == "HELLO"

# row: __init__ takes the computer
from interpreter import interpreter


class Where:
    name = "where"

    def __init__(self, computer):
        self.computer = computer

    def run(self, code):
        same = self.computer is interpreter.computer
        yield {"type": "console", "format": "output", "content": str(same)}

    def stop(self):
        pass

    def terminate(self):
        pass


interpreter.computer.languages = [Where]
assert interpreter.computer.run("where", "x")[0]["content"] == "True"

# row: run returns a list
from interpreter import interpreter


class Twice:
    name = "twice"

    def __init__(self):
        pass

    def run(self, code):
        return [
            {"type": "console", "format": "output", "content": code},
            {"type": "console", "format": "output", "content": code},
        ]

    def stop(self):
        pass

    def terminate(self):
        pass


interpreter.computer.languages = [Twice]
assert interpreter.computer.run("twice", "ab")[0]["content"] == "abab"

# row: a language with an alias
from interpreter import interpreter


class Shout:
    name = "Shout"
    aliases = ["yell"]

    def __init__(self):
        pass

    def run(self, code):
        yield {"type": "console", "format": "output", "content": code.upper()}

    def stop(self):
        pass

    def terminate(self):
        pass


interpreter.computer.languages = [Shout]
assert interpreter.computer.run("yell", "hello")[0]["content"] == "HELLO"
assert interpreter.computer.run("SHOUT", "hello")[0]["content"] == "HELLO"

# row: the model uses a custom language
from interpreter import interpreter


class Shout:
    name = "shout"

    def __init__(self):
        pass

    def run(self, code):
        yield {"type": "console", "format": "output", "content": code.upper()}

    def stop(self):
        pass

    def terminate(self):
        pass


server = scripted(code("hello", "shout"), "Done.")
interpreter.computer.languages = [Shout]
interpreter.auto_run = True
messages = interpreter.chat("Shout", display=False)
assert [m["type"] for m in messages] == ["code", "console", "message"]
assert messages[1]["content"] == "HELLO"
tool = server.chats[0].body["tools"][0]["function"]
assert tool["parameters"]["properties"]["language"]["enum"] == ["shout"]

# row: the e2b pattern
from interpreter import interpreter


class Sandbox:
    def run_code(self, code):
        return type("Result", (), {"stdout": f"ran {len(code)} characters", "stderr": ""})()


class PythonE2B:
    name = "python"
    file_extension = "py"

    def __init__(self):
        self.sandbox = Sandbox()

    def run(self, code):
        result = self.sandbox.run_code(code)
        yield {"type": "console", "format": "output", "content": result.stdout + result.stderr}

    def stop(self):
        pass

    def terminate(self):
        self.sandbox = None


scripted(code("print(1)"), "Done.")
interpreter.auto_run = True
interpreter.computer.terminate()
interpreter.computer.languages = [PythonE2B]
messages = interpreter.chat("Go", display=False)
assert messages[1]["content"] == "ran 8 characters", messages
interpreter.computer.terminate()

# row: the e2b pattern with a system message and the computer
from interpreter import interpreter


class PythonE2B:
    name = "Python"
    file_extension = "py"
    system_message = "# This code runs in a remote sandbox."

    def __init__(self, computer):
        self.computer = computer

    def run(self, code):
        for line in code.splitlines():
            yield {"type": "console", "format": "output", "content": f"remote: {line}\n"}

    def stop(self):
        pass

    def terminate(self):
        pass


server = scripted(code("a\nb"), "Done.")
interpreter.auto_run = True
interpreter.computer.languages = [language for language in interpreter.computer.languages if language.name != "Python"]
interpreter.computer.languages += [PythonE2B]
messages = interpreter.chat("Go", display=False)
assert messages[1]["content"] == "remote: a\nremote: b\n"
assert "runs in a remote sandbox" in server.chats[0].messages[0]["content"]

# row: one broken class next to good ones
from interpreter import interpreter


class Broken:
    name = "broken"

    def __init__(self):
        raise RuntimeError("not today")

    def run(self, code):
        yield {"type": "console", "format": "output", "content": "never"}

    def stop(self):
        pass

    def terminate(self):
        pass


interpreter.computer.languages.append(Broken)
assert interpreter.computer.run("python", "print(3)")[0]["content"].strip() == "3"
interpreter.computer.terminate()

# row: a class without optional attributes next to good ones
from interpreter import interpreter


class Odd:
    name = "odd"

    def __init__(self):
        pass

    def run(self, code):
        yield {"type": "console", "format": "output", "content": "odd"}

    def stop(self):
        pass

    def terminate(self):
        pass


server = scripted(code("x", "odd"), code("print(3)"), "Done.")
interpreter.computer.languages.append(Odd)
interpreter.auto_run = True
messages = interpreter.chat("Go", display=False)
assert [m["content"].strip() for m in messages if m["type"] == "console"] == ["odd", "3"]

# row: a language that yields an image
from interpreter import interpreter

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Draw:
    name = "draw"

    def __init__(self):
        pass

    def run(self, code):
        yield {"type": "console", "format": "output", "content": "drawing"}
        yield {"type": "image", "format": "base64.png", "content": PNG}

    def stop(self):
        pass

    def terminate(self):
        pass


interpreter.computer.languages = [Draw]
found = interpreter.computer.run("draw", "dot")
assert [chunk["type"] for chunk in found] == ["console", "image"] and found[1]["content"] == PNG

# row: a language that raises
from interpreter import interpreter


class Bad:
    name = "bad"

    def __init__(self):
        pass

    def run(self, code):
        yield {"type": "console", "format": "output", "content": "begin\n"}
        raise ValueError("broken pipe to nowhere")

    def stop(self):
        pass

    def terminate(self):
        pass


scripted(code("x", "bad"), "Sorry.")
interpreter.computer.languages = [Bad]
interpreter.auto_run = True
messages = interpreter.chat("Go", display=False)
console = "".join(m["content"] for m in messages if m["type"] == "console")
assert "broken pipe to nowhere" in console
assert messages[-1]["content"] == "Sorry."

# row: a language that yields active lines
from interpreter import interpreter


class Lines:
    name = "lines"

    def __init__(self):
        pass

    def run(self, code):
        for number, line in enumerate(code.splitlines(), 1):
            yield {"type": "console", "format": "active_line", "content": number}
            yield {"type": "console", "format": "output", "content": line + "\n"}

    def stop(self):
        pass

    def terminate(self):
        pass


interpreter.computer.languages = [Lines]
chunks = [dict(c) for c in interpreter.computer.run("lines", "a\nb", stream=True)]
assert [c["content"] for c in chunks if c["format"] == "output"] == ["a\n", "b\n"]
assert [c["content"] for c in chunks if c["format"] == "active_line"][:2] == [1, 2]
assert interpreter.computer.run("lines", "a\nb") == [{"type": "console", "format": "output", "content": "a\nb\n"}]

# row: names of the built-in languages
from interpreter import interpreter

names = [language.name for language in interpreter.computer.languages]
assert {"Python", "Shell", "JavaScript"} <= set(names)
assert all(isinstance(language, type) for language in interpreter.computer.languages)

# row: keep only some of the languages
from interpreter import interpreter

server = scripted("Ok.")
interpreter.computer.languages = [l for l in interpreter.computer.languages if l.name.lower() in ["python", "shell"]]
interpreter.chat("Hi", display=False)
enum = server.chats[0].body["tools"][0]["function"]["parameters"]["properties"]["language"]["enum"]
assert sorted(enum) == ["python", "shell"]

# row: terminal.languages and get_language
from interpreter import interpreter

terminal = interpreter.computer.terminal
assert terminal.languages is not None and len(terminal.languages) == len(interpreter.computer.languages)
assert terminal.get_language("python").name == "Python"
assert terminal.get_language("bash").name == "Shell"
assert terminal.get_language("no such language") is None

# row: terminal.run
from interpreter import interpreter

assert interpreter.computer.terminal.run("python", "print(4)")[0]["content"].strip() == "4"

# row: a language that is turned off
from interpreter import interpreter

scripted(code("echo hi", "shell"), "Sorry.")
interpreter.computer.languages = [l for l in interpreter.computer.languages if l.name == "Python"]
interpreter.auto_run = True
messages = interpreter.chat("Go", display=False)
assert "shell" in messages[1]["content"] and "not supported" in messages[1]["content"]

# row: a language keeps state between runs of the model
from interpreter import interpreter


class Counter:
    name = "counter"

    def __init__(self):
        self.total = 0

    def run(self, code):
        self.total += int(code)
        yield {"type": "console", "format": "output", "content": str(self.total)}

    def stop(self):
        pass

    def terminate(self):
        pass


scripted(code("2", "counter"), code("3", "counter"), "Five.")
interpreter.computer.languages = [Counter]
interpreter.auto_run = True
messages = interpreter.chat("Go", display=False)
assert [m["content"] for m in messages if m["type"] == "console"] == ["2", "5"]

# row: terminate reaches the language
from interpreter import interpreter

ended = []


class Watched:
    name = "watched"

    def __init__(self):
        pass

    def run(self, code):
        yield {"type": "console", "format": "output", "content": code}

    def stop(self):
        pass

    def terminate(self):
        ended.append(True)


interpreter.computer.languages = [Watched]
interpreter.computer.run("watched", "x")
interpreter.computer.terminate()
assert ended == [True]

# row: python and shell share nothing but the folder
from interpreter import interpreter

interpreter.computer.run("shell", "echo content > file.txt")
assert interpreter.computer.run("python", "print(open('file.txt').read())")[0]["content"].strip() == "content"

# row: javascript
from interpreter import interpreter

found = interpreter.computer.run("javascript", "console.log(1 + 2)")
assert "3" in found[0]["content"]
