"""The overhead of snapshots for a small Python block: in an empty session and with a gigabyte, with and without pauses.

Usually a user reads or a model writes between two blocks, and the snapshot is taken in that time: `small` and `large`
have such a pause, in `hurried` blocks follow each other immediately. After a pause any block takes longer, because the
CPU has to wake up and its caches are cold.
"""

import statistics
import time

from common import report

from interpreter import interpreter

KEPT = interpreter.computer.undo_snapshots
ROUNDS = 4
PAUSE = 0.1


def run(code="1 + 1"):
    began = time.perf_counter()
    for _ in interpreter.computer.run("python", code, stream=True):
        pass
    return time.perf_counter() - began


def median(kept, repeats, pause):
    interpreter.computer.undo_snapshots = kept
    times = []
    for _ in range(repeats):
        time.sleep(pause)
        times.append(run())
    return statistics.median(times[2:])


def with_and_without(repeats, pause):
    """Return the round with the least noise, each with and without snapshots."""
    rounds = [(median(KEPT, repeats, pause), median(0, repeats, pause)) for _ in range(ROUNDS)]
    return min(with_ for with_, _ in rounds), min(without for _, without in rounds)


def crash():
    """Seconds from the worker's death until its newest snapshot has run a block."""
    interpreter.computer.undo_snapshots = KEPT
    run("import os")
    began = time.perf_counter()
    run("os._exit(1)")
    run()
    return time.perf_counter() - began


run()
small, without = with_and_without(12, PAUSE)
hurried, hurried_without = with_and_without(40, 0)
recovered = crash()
run("held = bytearray(b'x') * (1 << 30)")
large, large_without = with_and_without(7, PAUSE)
interpreter.computer.terminate()
report(
    small=small,
    without=hurried_without,
    paused=without,
    added=small - without,
    hurried=hurried - hurried_without,
    large=large - large_without,
    recovered=recovered,
)
