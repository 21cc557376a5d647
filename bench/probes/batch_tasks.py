"""Milliseconds for a scripted task with one Python block: in a batch, as threads of one process, as a process each."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from common import ARGUMENTS, report

from interpreter import OpenInterpreter

COUNT, AT_ONCE = ARGUMENTS["count"], 8
MODEL = {"model": "openai/gpt-4-scripted", "api_base": ARGUMENTS["api_base"], "api_key": "x"}


def configured(sandbox="off", **settings):
    interpreter = OpenInterpreter(auto_run=True, sandbox=sandbox, **settings)
    for name, value in MODEL.items():
        setattr(interpreter.llm, name, value)
    return interpreter


def in_a_batch(sandbox):
    began = time.perf_counter()
    rows = configured(sandbox).batch([f"Task {number}" for number in range(COUNT)], concurrency=AT_ONCE).list()
    assert all(row["status"] == "done" for row in rows), rows
    return time.perf_counter() - began


def in_a_thread(number):
    interpreter = configured()
    try:
        interpreter.chat(f"Task {number}", display=False)
    finally:
        interpreter.computer.terminate()


def in_a_process(number):
    flags = [each for name, value in MODEL.items() for each in (f"--{name}", value)]
    command = [sys.executable, "-m", "interpreter", "-y", *flags, f"Task {number}"]
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)


def spread(run):
    began = time.perf_counter()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(run, range(COUNT)))
    return time.perf_counter() - began


seconds = {"batch": in_a_batch("off"), "threads": spread(in_a_thread), "processes": spread(in_a_process)}
if ARGUMENTS["sandbox"]:
    seconds["sandbox"] = in_a_batch("workspace")
report(**{name: 1000 * each / COUNT for name, each in seconds.items()})
