"""Median seconds to start, discard and apply a preview, by language; and to grant a path for one block."""

import os
import statistics
import tempfile
import time

from common import report

from interpreter import OpenInterpreter
from interpreter.errors import InterpreterError
from interpreter.sandbox.requests import SandboxRequest
from interpreter.sandbox.sandbox import Access
from interpreter.session import Block

CODE = {"python": "open('made', 'w').write('x')", "shell": "echo x >made"}
TIMES = 9

os.chdir(tempfile.mkdtemp(prefix="bench-preview-"))


def timed(act):
    began = time.perf_counter()
    done = act()
    return done, time.perf_counter() - began


def previews(language):
    interpreter = OpenInterpreter(workspace=os.getcwd())
    interpreter.computer.run(language, CODE[language])
    measured = {"enter": [], "discard": [], "apply": []}
    for number in range(2 * TIMES):
        preview, seconds = timed(lambda: interpreter.computer.preview(language, CODE[language]))
        measured["enter"].append(seconds)
        preview.run()
        way = "apply" if number % 2 else "discard"
        measured[way].append(timed(getattr(preview, way))[1])
    interpreter.reset()
    return {f"{language}_{what}": statistics.median(seconds) for what, seconds in measured.items()}


def widened():
    """Measure what granting a path to a Python block costs: its variables go to another session and back."""
    interpreter = OpenInterpreter(workspace=os.getcwd(), sandbox="workspace")
    computer, path = interpreter.computer, tempfile.mkdtemp(prefix="bench-given-")
    computer.run("python", "kept = list(range(1000))")
    request = SandboxRequest((Access("read", path),), granted="block")

    def with_path():
        block = Block("python", "kept")
        block.sandbox_request = request
        interpreter.session.perform(block, interpreter.user).result()

    given = [timed(with_path)[1] for _ in range(TIMES)]
    plain = [timed(lambda: computer.run("python", "kept"))[1] for _ in range(TIMES)]
    interpreter.reset()
    return statistics.median(given) - statistics.median(plain)


result = {}
for kind in CODE:
    try:
        result |= previews(kind)
    except InterpreterError as error:
        result[f"{kind}_failure"] = str(error)
try:
    result["widened"] = widened()
except InterpreterError as error:
    result["widened_failure"] = str(error)
report(**result)
