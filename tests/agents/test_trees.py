"""Trees of sub-agents: limits hold at every level, whatever the tree; nothing is left of one that is stopped."""

from __future__ import annotations

import json
import random
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from conversation import Chatting, chatting
from interpreter import OpenInterpreter
from interpreter.agents.subagents import SubAgent, Task, subagents_of
from model_server import ModelServer, stall, text, tool_call, usage
from waiting import until

__all__ = ["chatting"]
pytestmark = [
    pytest.mark.usefixtures("no_strays"),
    pytest.mark.skipif(sys.platform != "linux", reason="the sandbox of these tests is that of Linux"),
]

CODE = """
import json
from concurrent.futures import ThreadPoolExecutor
def start(below):
    try:
        return agent("tree " + json.dumps(below))
    except Exception as error:
        return "refused: %s" % error
with ThreadPoolExecutor(8) as pool:
    print("below:", list(pool.map(start, json.loads({below!r}))))
"""
TOKENS = 110  # of a request


def grower(body: dict[str, Any]) -> Any:
    """A sub-agent with the task `tree [[], [[]]]` starts one for each item, all at once."""
    if body["messages"][-1]["role"] == "tool":
        return text("grown").then(usage(100, 10))
    contents = "\n".join(str(each["content"]) for each in body["messages"])
    tasks = re.findall(r"Your task:\n\ntree (.*?)\n\nYou work", contents)
    return tool_call("python", CODE.format(below=tasks[-1])).then(usage(100, 10))


def random_tree(numbers: random.Random, depth: int) -> list[Any]:
    return [random_tree(numbers, depth - 1) for _ in range(numbers.randint(depth > 2, 3))] if depth else []


def depth_of(child: SubAgent) -> int:
    return child.depth


def working(chatting: Chatting, workspace: Path, answer: Any, **settings: Any) -> tuple[OpenInterpreter, ModelServer]:
    interpreter, server = chatting(answer, **{"auto_run": True, "workspace": str(workspace), **settings})
    server.repeat = True
    interpreter.llm.model = "gpt-4o"
    return interpreter, server


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.full] * (seed > 1)) for seed in range(8)])
def test_limits_hold_at_every_level_of_a_random_tree(chatting: Chatting, tmp_path: Path, seed: int) -> None:
    numbers = random.Random(seed)
    limits = {
        "agents_depth": numbers.randint(1, 3),
        "agents_total": numbers.randint(2, 7),
        "agents_at_once": numbers.randint(1, 3),
        "agents_tokens": numbers.choice([None, 20_000, 60_000]),
        "agents_budget": numbers.choice([None, 0.2, 1.0]),
    }
    interpreter, server = working(chatting, tmp_path, grower, **limits)
    family, busiest = subagents_of(interpreter.agent), dict[int, int]()

    def watch() -> None:
        for each in [family, *(child.family_below for child in family.walk())]:
            if each is not None:
                running = sum(child.state == "running" for child in list(each.all.values()))
                busiest[id(each)] = max(busiest.get(id(each), 0), running)

    family.watchers.append(watch)
    child = family.start(Task(f"tree {json.dumps(random_tree(numbers, 4))}"))
    assert child.done.wait(300)
    everyone = list(family.walk())
    assert len(everyone) <= limits["agents_total"]
    assert max(map(depth_of, everyone)) <= limits["agents_depth"]
    assert max(busiest.values(), default=0) <= limits["agents_at_once"]
    sent = len([each for each in server.requests if each.method == "POST"])
    assert interpreter.llm.usage.requests == sent  # all that they used is counted here, once
    if limits["agents_tokens"] is not None:
        at_once = limits["agents_at_once"] ** limits["agents_depth"]
        assert interpreter.llm.usage.tokens <= limits["agents_tokens"] + at_once * TOKENS
    if limits["agents_budget"] is not None:
        assert interpreter.llm.usage.cost <= limits["agents_budget"]
        assert interpreter.agent.actor.budget.reserved == 0


def in_a_block(body: dict[str, Any]) -> Any:
    return tool_call("python", "import time\nprint('here')\ntime.sleep(1000)")


def in_a_program(body: dict[str, Any]) -> Any:
    return tool_call("shell", "trap '' INT TERM\nsleep 1000")


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (lambda body: stall(None), "running"),
        (in_a_block, "running"),
        (in_a_program, "running"),
        (lambda body: stall(None), "waiting"),
    ],
    ids=["model", "block", "program", "waiting"],
)
def test_one_that_hangs_ends_within_two_seconds_of_its_stop(
    chatting: Chatting, tmp_path: Path, answer: Any, state: str
) -> None:
    interpreter, server = working(chatting, tmp_path, answer, agents_at_once=1)
    family = subagents_of(interpreter.agent)
    children = [family.start(Task("do it")) for _ in range(2 if state == "waiting" else 1)]
    child = children[-1]
    until(lambda: server.requests and children[0].state == "running", "the request")
    if answer in (in_a_block, in_a_program):
        until(lambda: sleeping() or child.last == "here", "the block")
    began = time.monotonic()
    child.stop()
    assert child.done.wait(2.5), f"{time.monotonic() - began:.1f} s"
    assert child.state == "stopped"
    family.stop()
    until(lambda: not sleeping(), "the end of the program")


def sleeping() -> bool:
    for process in psutil.Process().children(recursive=True):
        try:
            if process.cmdline() == ["sleep", "1000"]:
                return True
        except psutil.Error:
            continue
    return False


def test_one_whose_runtime_is_killed_loses_only_the_block(chatting: Chatting, tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> Any:
        last = body["messages"][-1]
        if last["role"] == "tool":
            return text("It was killed." if "ended" in str(last["content"]) else "It ran.")
        return tool_call("python", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")

    interpreter, _ = working(chatting, tmp_path, answer)
    assert subagents_of(interpreter.agent).start(Task("do it")).result() == "It was killed."


def own_threads() -> list[threading.Thread]:
    """The threads of this process, without those of the scripted server."""
    return [each for each in threading.enumerate() if "process_request_thread" not in each.name]


@pytest.mark.full
def test_fifty_work_at_once_and_leave_nothing_behind(chatting: Chatting, tmp_path: Path) -> None:
    home, canaries = Path.home(), dict[Path, str]()
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    for folder in (workspace, home, Path("/tmp")):
        canary = folder / f"canary-{tmp_path.name}"
        canary.write_text("alive")
        canaries[canary] = "alive"
    paths = [str(path) for path in canaries]
    code = (
        f"for path in {paths!r}:\n"
        "    try: open(path, 'w').write('dead')\n"
        "    except OSError: pass\n"
        "open('mine.txt', 'w').write(str(id(path)))\n"
        "print(x)"
    )

    def answer(body: dict[str, Any]) -> Any:
        last = body["messages"][-1]
        return text(str(last["content"])) if last["role"] == "tool" else tool_call("python", code)

    interpreter, _ = working(chatting, workspace, answer, agents_at_once=50, agents_memory=128)
    interpreter.computer.run("python", "x = 42")
    before = len(own_threads())
    family = subagents_of(interpreter.agent)
    children = [family.start(Task("do it")) for _ in range(50)]
    assert [str(child.result()) for child in children] == ["42"] * 50
    assert {path: path.read_text() for path in canaries} == canaries
    assert not (workspace / "mine.txt").exists()
    assert all("mine.txt" in child.conflicts() for child in children)
    for child in children:
        child.settle_files("dropped")
    until(lambda: len(own_threads()) <= before + 2, "the end of their threads")
    for path in canaries:
        path.unlink()
