"""What snapshots add to a small Python block: in an empty session and with a gigabyte, unhurried and on end.

As a rule somebody reads or a model writes between two blocks, and the snapshot is taken meanwhile: `small` and `large`
have such a pause, in `hurried` one block follows the other at once. After a pause a block takes longer whatever is done
in it: the machine has to wake up, and has forgotten what it held ready.
"""

import statistics
import time

from common import tell

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
    """The quietest of some rounds, each with and without in turn."""
    rounds = [(median(KEPT, repeats, pause), median(0, repeats, pause)) for _ in range(ROUNDS)]
    return min(with_ for with_, _ in rounds), min(without for _, without in rounds)


def crash():
    """From the death of the worker until its newest snapshot has run a block."""
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
tell(
    small=small,
    without=hurried_without,
    paused=without,
    added=small - without,
    hurried=hurried - hurried_without,
    large=large - large_without,
    recovered=recovered,
)
