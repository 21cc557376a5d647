"""Medians of a small Python block with and without snapshots, of an empty session and of one with a gigabyte."""

import statistics
import time

from common import tell

from interpreter import interpreter

KEPT = interpreter.computer.undo_snapshots


def run(code="1 + 1"):
    began = time.perf_counter()
    for _ in interpreter.computer.run("python", code, stream=True):
        pass
    return time.perf_counter() - began


def with_and_without(repeats):
    times = {}
    for kept in (KEPT, 0):
        interpreter.computer.undo_snapshots = kept
        run()
        times[kept] = statistics.median(run() for _ in range(repeats))
    return times[KEPT], times[0]


def crash():
    """From the death of the worker until its newest snapshot has run a block."""
    run("import os")
    began = time.perf_counter()
    run("os._exit(1)")
    run()
    return time.perf_counter() - began


run()
small, small_without = with_and_without(100)
interpreter.computer.undo_snapshots = KEPT
recovered = crash()
run("held = bytearray(b'x') * (1 << 30)")
large, large_without = with_and_without(15)
interpreter.computer.terminate()
tell(small=small, without=small_without, large=large - large_without, added=small - small_without, recovered=recovered)
