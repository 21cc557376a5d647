"""A warm Python block in a local session and in one over ssh on loopback, with everything a session does."""

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from common import report

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from interpreter import OpenInterpreter
from interpreter.remote.machine import connect_in_session
from remote.sshd import SSHD, sshd

REPEATS = 200


def warm(computer):
    computer.run("python", "x = 1")
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        computer.run("python", "x += 1")
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def main():
    if not Path(SSHD).exists():
        report(failure="sshd is not installed")
        return
    folder = Path(tempfile.mkdtemp())
    (folder / "here").mkdir()
    here, there = OpenInterpreter(workspace=str(folder / "here")), OpenInterpreter()
    with sshd(folder) as server:
        there.computer.remote_ssh, there.computer.remote = server.command, server.url()
        began = time.perf_counter()
        connect_in_session(there.computer.machine)
        measured = {"connect": time.perf_counter() - began, "here": warm(here.computer), "there": warm(there.computer)}
        there.computer.terminate()
    here.computer.terminate()
    shutil.rmtree(folder)
    report(**measured)


main()
