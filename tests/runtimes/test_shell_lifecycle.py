"""A shell's processes and files end with its host, and a background block leaves its state to the next shell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from shell_runtimes import SHELLS, ShellRuntime, fresh
from waiting import until, until_ended, worker_of

__all__ = ["fresh"]

HOST = """
import sys, time
from shell_runtimes import ShellRuntime
session = ShellRuntime(sys.argv[1], keyboard=sys.argv[2] == "keyboard")
print(session.do("sleep 1000 & setsid sleep 1000 & (sleep 1000 &) ; trap '' HUP TERM; echo $$").text, end="")
print(session.runtime.folder, flush=True)
list(session.run("sleep 1000"))
"""


@pytest.mark.parametrize("input_device", ["keyboard", "no keyboard"])
@pytest.mark.parametrize("shell", SHELLS)
def test_nothing_outlives_a_killed_host(shell: str, input_device: str, no_strays: None) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", HOST, shell, input_device], stdout=subprocess.PIPE, text=True, env=env
    ) as host:
        assert host.stdout is not None
        pid, folder = int(host.stdout.readline()), Path(host.stdout.readline().strip())
        assert folder.is_dir()
        family = psutil.Process(host.pid).children(recursive=True)
        assert pid in [process.pid for process in family] and len(family) > 3
        host.kill()
    until_ended(family)
    assert not folder.exists()


def test_a_background_block_leaves_its_state_to_the_next_shell(fresh: ShellRuntime, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    fresh.do(f"cd {tmp_path}; word=kept; f() {{ echo fun; }}; export SHOWN=1")
    ran = fresh.do(f"echo begun; cat {gate}; echo ended", lambda text: fresh.detach() if text == "begun\n" else None)
    assert ran.ended == "background"
    assert fresh.do("pwd; echo $word $SHOWN; f").text == f"{tmp_path}\nkept 1\nfun\n"
    (job,) = fresh.jobs
    gate.write_text("opened\n")
    until(lambda: not job.running, "the end of the job")
    assert job.output() == "begun\nopened\nended\n"
    job.stop()
    fresh.do("exit 1")
    assert fresh.do("echo $word").text == "kept\n"


def test_state_survives_a_killed_supervisor(fresh: ShellRuntime) -> None:
    fresh.do("word=kept")
    fresh.do("true")  # the state of the first block is surely saved by now
    supervisor = worker_of(fresh.runtime).parent()
    assert supervisor is not None
    supervisor.kill()
    until_ended([supervisor])
    fresh.do("true")
    assert fresh.do("echo $word").text == "kept\n"


def test_the_numbers_of_the_hosts_descriptors_do_not_matter() -> None:
    """The supervisor keeps the terminal under separate numbers, and its line to the host may come with one of them."""
    taken = [os.open(os.devnull, os.O_RDONLY)]
    try:
        while taken[-1] < 62:
            taken.append(os.open(os.devnull, os.O_RDONLY))
            if taken[-1] < 54:
                continue
            session = ShellRuntime(keyboard=True)
            try:
                assert session.do("test -t 0; echo $((6 * 7))").text == "42\n", taken[-1]
            finally:
                session.terminate()
    finally:
        for fd in taken:
            os.close(fd)
