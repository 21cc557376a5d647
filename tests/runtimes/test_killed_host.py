"""The host is killed at a random moment while it runs, restores and splits runtimes: nothing is left of them."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from waiting import until

HOST = """
import random, sys, threading
from interpreter import OpenInterpreter
chance = random.Random(int(sys.argv[1]))
computer, others = OpenInterpreter().computer, []
computer.undo_snapshots = 5
def step():
    what = chance.random()
    if what < 0.4:
        computer.run("python", "import subprocess, os; n = 1; subprocess.Popen(['sleep', '1000'], start_new_session=True)")
    elif what < 0.5:
        computer.run("python", "os._exit(1)")
    elif what < 0.65:
        computer.run("shell", "v=1; sleep 1000 & (setsid sleep 1000 &)")
    elif what < 0.8 and computer.runtimes.runtime("python").points():
        computer.runtimes.runtime("python").restore(chance.choice(computer.runtimes.runtime("python").points()))
    elif len(others) < 3:
        others.append(OpenInterpreter().computer)
        block = threading.Thread(target=computer.run, args=("python", "import time; time.sleep(0.03)"))
        if chance.random() < 0.7:
            block.start()
        computer.runtimes.split(others[-1].runtimes)
        if block.ident:
            block.join()
    else:
        others.pop().terminate()
while True:
    print("step", flush=True)
    step()
"""


def kill_at_a_random_moment(seed: int) -> None:
    chance = random.Random(seed)
    host = subprocess.Popen([sys.executable, "-c", HOST, str(seed)], stdout=subprocess.PIPE)
    assert host.stdout is not None
    for _ in range(chance.randint(1, 12)):
        assert host.stdout.readline() == b"step\n"
    time.sleep(chance.random() * 0.03)  # anywhere within a step
    host.send_signal(signal.SIGKILL)
    host.wait()
    host.stdout.close()


@pytest.fixture
def folder(no_strays: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that holds the folders of all runtimes; it must be empty at the end."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    yield tmp_path
    until(lambda: not list(tmp_path.iterdir()), "the folders of all runtimes to be removed")


@pytest.mark.parametrize("seed", range(5))
def test_a_killed_host_leaves_nothing_behind(folder: Path, seed: int) -> None:
    kill_at_a_random_moment(seed)


@pytest.mark.full
@pytest.mark.timeout(600)
def test_many_killed_hosts_leave_nothing_behind(folder: Path) -> None:
    for seed in range(100, 180):
        kill_at_a_random_moment(seed)
