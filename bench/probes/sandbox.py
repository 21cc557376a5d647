"""Seconds for a session's first block and medians of warm ones, outside and inside a sandbox."""

import statistics
import tempfile
import time

from common import report

from interpreter.languages.javascript import JavaScript
from interpreter.runtimes.launch import RuntimeContext
from interpreter.runtimes.python import Python
from interpreter.runtimes.shell import Shell
from interpreter.sandbox.containment import Containment
from interpreter.sandbox.sandbox import Sandbox

CODE = {Python: "1", Shell: ":", JavaScript: "1"}
STARTS, BLOCKS = 7, 60

workspace = tempfile.mkdtemp(prefix="bench-sandbox-")
began = time.perf_counter()
containment = Containment(Sandbox("workspace", workspace))
made = time.perf_counter() - began


def run(language, code):
    began = time.perf_counter()
    for _ in language.run(code):
        pass
    return time.perf_counter() - began


def one(kind, containment):
    class Computer:
        context = RuntimeContext(cwd=workspace, containment=containment)

    language = kind(Computer())
    times = [run(language, CODE[kind]) for _ in range(BLOCKS + 1)]
    language.terminate()
    return times[0], statistics.median(times[1:])


def pairs(kind):
    """Outside and inside alternately, so that both have the same noise."""
    measured = [(one(kind, None), one(kind, containment)) for _ in range(STARTS)]
    return [min(each[side][what] for each in measured) for side in (0, 1) for what in (0, 1)]


result = {"made": made}
for kind in CODE:
    start, warm, start_inside, warm_inside = pairs(kind)
    name = kind.name.lower()
    result |= {f"{name}_start": start_inside - start, f"{name}_block": warm_inside - warm, f"{name}_warm": warm_inside}
containment.close()
report(**result)
