# `interpreter.computer`.

# row: run returns one dictionary per kind of output
from interpreter import interpreter

assert interpreter.computer.run("python", "print('x')\nprint('y')") == [
    {"type": "console", "format": "output", "content": "x\ny\n"}
]

# row: run with the value of the last expression
from interpreter import interpreter

found = interpreter.computer.run("python", "print('x')\n1 + 1")
assert len(found) == 1 and found[0]["content"].split() == ["x", "2"]

# row: run keeps variables
from interpreter import interpreter

interpreter.computer.run("python", "x = 5")
assert interpreter.computer.run("python", "print(x)")[0]["content"].strip() == "5"

# row: run with an error
from interpreter import interpreter

found = interpreter.computer.run("python", "int('x')")
assert "ValueError" in found[0]["content"] and found[0]["format"] == "output"

# row: run in the shell keeps the folder
import os

from interpreter import interpreter

os.mkdir("sub")
interpreter.computer.run("shell", "cd sub")
assert interpreter.computer.run("shell", "pwd")[0]["content"].strip().endswith("/sub")

# row: run with keyword arguments
from interpreter import interpreter

found = interpreter.computer.run(language="python", code="print(1)", stream=False, display=False)
assert found[0]["content"].strip() == "1"

# row: exec runs a shell command
from interpreter import interpreter

assert "from exec" in str(interpreter.computer.exec("echo from exec"))

# row: bash and sh are names of the shell
from interpreter import interpreter

assert "one" in interpreter.computer.run("bash", "echo one")[0]["content"]
assert "two" in interpreter.computer.run("sh", "echo two")[0]["content"]

# row: an unknown language is reported
from interpreter import interpreter

try:
    found = interpreter.computer.run("cobol", "x")
except Exception as error:
    assert "cobol" in str(error), error
else:
    assert "cobol" in str(found)

# row: stop and terminate
from interpreter import interpreter

interpreter.computer.run("python", "x = 5")
interpreter.computer.stop()
interpreter.computer.terminate()
found = interpreter.computer.run("python", "try:\n    x\nexcept NameError:\n    print('gone')")
assert found[0]["content"].strip() == "gone"

# row: a plot is an image
from interpreter import interpreter

found = interpreter.computer.run("python", "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")
images = [chunk for chunk in found if chunk["type"] == "image"]
assert len(images) == 1 and images[0]["format"] == "base64.png"

# row: fifteen tools
from interpreter import interpreter

tools = interpreter.computer._get_all_computer_tools_list()
assert len(tools) == 15
names = [type(tool).__name__.lower() for tool in tools]
assert names[0] == "mouse" and names[-1] == "files"

# row: signatures of the tools
from interpreter import interpreter

found = interpreter.computer._get_all_computer_tools_signature_and_description()
assert len(found) > 64 and all(isinstance(one, str) and one.startswith("computer.") for one in found)

# row: to_dict and load_dict
import json

from interpreter import interpreter

state = interpreter.computer.to_dict()
json.dumps(state)
assert {"verbose", "offline", "emit_images", "import_computer_api"} <= set(state)
interpreter.computer.load_dict({"verbose": True, "emit_images": False})
assert interpreter.computer.verbose is True and interpreter.computer.emit_images is False

# row: files.edit replaces text
from interpreter import interpreter

open("notes.txt", "w").write("one two three\n")
interpreter.computer.files.edit("notes.txt", "two", "2")
assert open("notes.txt").read() == "one 2 three\n"

# row: files.edit suggests close matches
from interpreter import interpreter

open("notes.txt", "w").write("the quick brown fox jumps\n")
with raises(ValueError) as caught:
    interpreter.computer.files.edit("notes.txt", "the quick brwn fox", "x")
assert "Original text not found. Did you mean one of these?" in caught.text
assert "the quick brown fox" in caught.text

# row: the parts of the computer
from interpreter import interpreter

for name in "terminal mouse keyboard display clipboard mail sms calendar contacts browser os vision skills docs ai files".split():
    assert getattr(interpreter.computer, name) is not None, name

# row: ai.chat asks the model
from interpreter import interpreter

server = scripted("Blue.")
assert interpreter.computer.ai.chat("What colour is the sky?") == "Blue."
assert "What colour is the sky?" in str(server.chats[0].messages)

# row: the computer API inside Python
from interpreter import interpreter

interpreter.computer.import_computer_api = True
found = interpreter.computer.run("python", "print(hasattr(computer, 'mouse'), hasattr(computer, 'files'))")
assert "True True" in found[-1]["content"], found

# row: the computer API reaches the system message
from interpreter import interpreter

server = scripted("Ok.")
interpreter.computer.import_computer_api = True
interpreter.chat("Hi", display=False)
system = server.chats[0].messages[0]["content"]
assert "computer" in system and "browser" in system and "mouse" in system

# row: a custom instruction for the computer
from interpreter import interpreter

server = scripted("Ok.")
interpreter.computer.import_computer_api = True
interpreter.computer.system_message = "Use computer.weather.today()."
interpreter.chat("Hi", display=False)
assert "Use computer.weather.today()." in server.chats[0].messages[0]["content"]

# row: skills of a folder
import os

from interpreter import interpreter

os.mkdir("skills")
open("skills/double.py", "w").write("def double(x):\n    return 2 * x\n")
interpreter.computer.skills.path = os.path.join(os.getcwd(), "skills")
interpreter.computer.skills.import_skills()
found = interpreter.computer.run("python", "print(double(21))")
assert found[-1]["content"].strip() == "42", found

# row: list of skills
import os

from interpreter import interpreter

os.mkdir("skills")
open("skills/double.py", "w").write("def double(x):\n    return 2 * x\n")
interpreter.computer.skills.path = os.path.join(os.getcwd(), "skills")
assert interpreter.computer.skills.list() == ["double()"]

# row: environment variables reach the code
import os

from interpreter import interpreter

os.environ["MY_SETTING"] = "from the script"
assert (
    interpreter.computer.run("python", "import os; print(os.environ['MY_SETTING'])")[0]["content"].strip()
    == "from the script"
)

# row: code sees the working directory
import os

from interpreter import interpreter

assert os.path.realpath(
    interpreter.computer.run("python", "import os; print(os.getcwd())")[0]["content"].strip()
) == os.path.realpath(os.getcwd())

# row: run with display prints the output
import contextlib
import io

from interpreter import interpreter

with contextlib.redirect_stdout(io.StringIO()) as out:
    interpreter.computer.run("python", "print('shown')", display=True)
assert "shown" in out.getvalue()

# row: a long output of run
from interpreter import interpreter

found = interpreter.computer.run("python", "print('x' * 10000)")
assert found[0]["content"].count("x") > 5000

# row: magics of IPython
from interpreter import interpreter

found = interpreter.computer.run("python", "!echo from a magic")
assert "from a magic" in found[0]["content"]

# row: abandon a stream of run and run again
import time

from interpreter import interpreter

for chunk in interpreter.computer.run(
    "python", "import time\nfor i in range(100):\n    print(i, flush=True)\n    time.sleep(0.1)", stream=True
):
    if "3" in str(chunk.get("content")) and chunk["format"] == "output":
        break
interpreter.computer.stop()
time.sleep(3)
assert interpreter.computer.run("python", "print('after')")[-1]["content"].strip().endswith("after")

# row: clipboard, screen and mouse have their methods
from interpreter import interpreter

c = interpreter.computer
for one in (
    c.clipboard.view,
    c.clipboard.copy,
    c.display.screenshot,
    c.display.view,
    c.mouse.click,
    c.mouse.move,
    c.keyboard.write,
    c.keyboard.hotkey,
    c.keyboard.press,
    c.os.notify,
    c.browser.search,
    c.docs.search,
):
    assert callable(one)

# row: notify never raises
from interpreter import interpreter

interpreter.computer.os.notify("Done")

# row: a new skill step by step
import os

from interpreter import interpreter

interpreter.computer.skills.path = os.path.join(os.getcwd(), "skills")
skill = interpreter.computer.skills.new_skill
skill.create()
skill.name = "open the shop"
skill.add_step("Open the door", "print('open')")
skill.save()
assert os.listdir("skills") == ["open_the_shop.py"]

# row: computer.os and the others take the computer
from interpreter import interpreter

assert interpreter.computer.mouse.computer is interpreter.computer
assert interpreter.computer.files.computer is interpreter.computer

# row: a script calls a custom tool of the computer
from interpreter import interpreter


class Weather:
    def __init__(self, computer):
        self.computer = computer

    def today(self):
        """The weather of today."""
        return "sunny"


interpreter.computer.weather = Weather(interpreter.computer)
assert interpreter.computer.weather.today() == "sunny"
