"""Seconds and memory for 100,000 lines of 80 characters."""

import resource
import time

from common import report

from interpreter import interpreter

interpreter.max_output = 2800


def run(lines):
    code = f"for _ in range({lines}): print('x' * 79)"
    size = 0
    for chunk in interpreter.computer.run("python", code, stream=True):
        if chunk.get("format") == "output":
            size += len(chunk["content"])
    return size


run(5_000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
began = time.perf_counter()
size = run(100_000)
seconds = time.perf_counter() - began
assert size == 8_000_000, size
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
interpreter.computer.terminate()
report(seconds=seconds, megabytes=grown / 1024)
