"""The overhead of the session kernel for a warm block: the same block with and without it, alternating."""

import statistics
import time

from common import report

from interpreter import interpreter

computer, timeline = interpreter.computer, interpreter.timeline


def timed(run):
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def through():
    for _ in computer.run("shell", "true", stream=True):
        pass


def past():
    computer.runtimes.apply_sandbox()
    language = computer.runtimes.runtime("shell")
    timeline.before_block("shell", "true")
    for _ in language.run("true"):
        pass
    timeline.after()


for _ in range(20):
    through(), past()
pairs = [(timed(through), timed(past)) for _ in range(400)]
computer.terminate()
report(added=statistics.median(one for one, _ in pairs) - statistics.median(other for _, other in pairs))
