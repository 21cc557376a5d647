"""Seconds until a new Python session has run a block, and its memory: many sessions in one process."""

import os
import statistics
import time

from common import ARGUMENTS, report

from interpreter import OpenInterpreter

MODULES = "numpy", "pandas", "matplotlib.pyplot"


def start():
    interpreter = OpenInterpreter()
    interpreter.computer.preload = list(MODULES) if ARGUMENTS["warm"] else []
    began = time.perf_counter()
    for _ in interpreter.computer.run("python", ARGUMENTS["code"], stream=True):
        pass
    return interpreter, time.perf_counter() - began


def descendants(pid):
    pids = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as file:
            for child in file.read().split():
                pids += [child, *descendants(child)]
    return pids


def megabytes():
    """Measure the memory of all descendants; shared memory counts once."""
    total = 0
    for pid in descendants(os.getpid()):
        with open(f"/proc/{pid}/smaps_rollup") as file:
            total += next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    return total / 1024


first, _ = start()
before = megabytes()
rest = [start() for _ in range(ARGUMENTS["sessions"])]
per_session = (megabytes() - before) / ARGUMENTS["sessions"]
for interpreter, _ in [(first, 0), *rest]:
    interpreter.computer.terminate()
report(median=statistics.median(taken for _, taken in rest), megabytes=per_session)
