"""Seconds until a sub-agent has its sandboxed copy of a session with `megabytes` of data, and the memory of one.

Alternating with the bare limit: a process with as much data forks, and the fork mounts an overlay on the workspace.
"""

import ctypes
import os
import tempfile
import time
from pathlib import Path

import psutil
from common import ARGUMENTS, report

from interpreter import OpenInterpreter
from interpreter.agents.subagents import Task, subagents_of

NEW_MOUNTS, NEW_USER = 0x00020000, 0x10000000
megabytes = ARGUMENTS["megabytes"]
folder = Path(tempfile.mkdtemp(prefix="bench-agents-"))
for name in ("workspace", "upper", "work", "merged"):
    (folder / name).mkdir()
libc = ctypes.CDLL(None, use_errno=True)
data = b"x" * (megabytes << 20)


def bare():
    began = time.perf_counter()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        failed = libc.unshare(NEW_MOUNTS | (NEW_USER if os.geteuid() else 0))
        options = f"lowerdir={folder}/workspace,upperdir={folder}/upper,workdir={folder}/work"
        failed |= libc.mount(b"overlay", str(folder / "merged").encode(), b"overlay", 0, options.encode())
        os.write(writer, b"y" if not failed else b"n")
        os._exit(0)
    assert os.read(reader, 1) == b"y", "no overlay here"
    seconds = time.perf_counter() - began
    os.waitpid(pid, 0)
    return seconds


interpreter = OpenInterpreter(workspace=str(folder / "workspace"), auto_run=True, agents_memory=8192)
interpreter.llm.model, interpreter.llm.api_base, interpreter.llm.api_key = "gpt-4o", "http://127.0.0.1:9/v1", "key"
interpreter.computer.run("python", f"data = b'x' * ({megabytes} << 20)")
family, seconds, bares, memory = subagents_of(interpreter.agent), [], [], []
for _ in range(ARGUMENTS["runs"]):
    bares.append(bare())
    before = {each.pid for each in psutil.Process().children(recursive=True)}
    began = time.perf_counter()
    child = family.start(Task("wait", is_try=True))
    child.wait_for_fork()
    seconds.append(time.perf_counter() - began)
    new = [each for each in psutil.Process().children(recursive=True) if each.pid not in before]
    memory.append(sum(each.memory_full_info().uss for each in new) / (1 << 20) - megabytes)
    child.stop()
    child.done.wait()
interpreter.computer.terminate()
report(seconds=min(seconds), bare=min(bares), megabytes=max(memory))
