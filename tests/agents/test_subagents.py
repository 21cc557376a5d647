"""Sub-agents: contained, within limits, with a result that is a value or an error, and changes that someone accepts."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

import psutil
import pytest

from conversation import Chatting, chatting
from interpreter import OpenInterpreter
from interpreter.agents.subagents import Task, subagents_of
from interpreter.errors import LimitReachedError
from interpreter.session import APPROVE
from model_server import ModelServer, error, stall, text, tool_call, usage
from waiting import in_thread, until

__all__ = ["chatting"]
pytestmark = [
    pytest.mark.usefixtures("no_strays"),
    pytest.mark.skipif(sys.platform != "linux", reason="the sandbox of these tests is that of Linux"),
]

Run = Callable[[str], str]
Working = Callable[..., tuple[Run, ModelServer, OpenInterpreter]]


def task_in(body: dict[str, Any]) -> str:
    """The task of the sub-agent that asks."""
    asked = [str(each["content"]) for each in body["messages"] if each["role"] == "user"]
    tasks = [found[1] for each in asked if (found := re.search(r"Your task:\n\n(.*?)\n\nYou work", each, re.DOTALL))]
    return tasks[-1] if tasks else ""


def worker(body: dict[str, Any]) -> Any:
    """`say WORDS` answers, `run CODE` runs it and answers with its output, `hang` never answers, `fail` is an error."""
    task, last = task_in(body), body["messages"][-1]
    if last["role"] == "tool":
        return text(str(last["content"]).strip() or "nothing").then(usage(100, 10))
    if task.startswith("run "):
        return tool_call("python", task[4:]).then(usage(100, 10))
    if task == "hang":
        return stall(None)
    return error(400, "no such thing") if task == "fail" else text(task[4:] or "hello").then(usage(100, 10))


@pytest.fixture
def working(chatting: Chatting, tmp_path: Path) -> Working:
    """`working(setting=value)` returns what runs Python as the user, the server, and the interpreter."""

    def start(answer: Any = worker, **settings: Any) -> tuple[Run, ModelServer, OpenInterpreter]:
        workspace = tmp_path / "workspace"
        workspace.mkdir(exist_ok=True)
        interpreter, server = chatting(answer, **{"auto_run": True, "workspace": str(workspace), **settings})
        server.repeat = True
        interpreter.llm.model = "gpt-4o"

        def run(code: str) -> str:
            messages = interpreter.computer.run("python", code)
            return "".join(str(each["content"]) for each in messages if each["type"] == "console")

        return run, server, interpreter

    return start


# -- a value, or an error ----------------------------------------------------------------------------------------------


def test_a_sub_agent_has_copies_of_the_variables_and_returns_its_last_message(working: Working) -> None:
    run, _, interpreter = working()
    run("x = 41")
    assert "result: 42" in run("x = 0\nprint('result:', agent('run print(x + 1)'))")  # as before the block
    assert "0\n" in run("print(x)")
    assert interpreter.llm.usage.tokens == 220  # what it used counts here, too


def test_data_and_a_schema_are_values(working: Working) -> None:
    run, _, _ = working()
    code = "import pandas as pd\ntotal = agent('run print(data.n.sum())', data=pd.DataFrame({'n': [1, 2]}), schema=int)"
    assert "4" in run(f"{code}\nprint(total + 1)")
    assert "doesn't fit the schema" in run("agent('say many', schema=int)")


def test_a_failure_is_an_error_and_never_looks_like_a_result(working: Working) -> None:
    run, _, _ = working(max_turns=2)
    assert "no such thing" in run("agent('fail')")
    assert "without a result" in run("agent('say  ')")


def test_sub_agents_are_gathered_where_an_event_loop_runs(working: Working) -> None:
    run, _, _ = working()
    printed = run("import asyncio\nprint(await asyncio.gather(*[agent(f'say {n}') for n in range(4)]))")
    assert "['0', '1', '2', '3']" in printed
    assert "4 agents: 4 done" in printed


def test_the_model_has_the_same_as_a_tool(working: Working) -> None:
    def answer(body: dict[str, Any]) -> Any:
        if task_in(body) or body["messages"][-1]["role"] == "tool":
            return worker(body)
        assert "agent" in {tool["function"]["name"] for tool in body["tools"]}
        return tool_call(name="agent", arguments=json.dumps({"task": "say 42"}))

    _, _, interpreter = working(answer, agents=True)
    interpreter.chat("Ask a sub-agent", display=False)
    assert interpreter.messages[-1]["content"] == "42"


# -- containment ----------------------------------------------------------------------------------------------------


def test_nothing_is_written_outside_its_copy_until_it_is_accepted_and_that_is_undone(
    working: Working, tmp_path: Path
) -> None:
    run, _, interpreter = working()
    workspace, canary = Path(interpreter.workspace), tmp_path / "canary"
    (workspace / "a.txt").write_text("one\n")
    canary.write_text("alive")
    paths = [str(workspace / "a.txt"), str(canary), str(Path.home() / "canary"), "/tmp/canary-of-a-sub-agent"]
    code = f"for path in {paths!r}:\n    try: open(path, 'w').write('x')\n    except OSError: print('no')\n"
    task = f"run {code}open('a.txt', 'a').write('two')"
    run(f"r = agent({task!r})")
    assert not Path(paths[2]).exists() and not Path(paths[3]).exists()
    assert ((workspace / "a.txt").read_text(), canary.read_text()) == ("one\n", "alive")
    assert "+two" in run("print(agent.all()[0].status['diff'])")
    assert "[]" in run("print(agent.accept(1))")
    assert (workspace / "a.txt").read_text() == "one\ntwo"
    interpreter.undo(blocks=True)
    assert (workspace / "a.txt").read_text() == "one\n"


def test_what_a_block_did_before_it_forked_is_still_undone(working: Working) -> None:
    run, _, interpreter = working()
    path = Path(interpreter.workspace, "a.txt")
    path.write_text("one")
    run("open('a.txt', 'w').write('two')\nagent('say hello')\nopen('b.txt', 'w').write('x')")
    interpreter.undo(blocks=True)
    assert path.read_text() == "one" and not Path(interpreter.workspace, "b.txt").exists()


def test_two_that_change_the_same_file_are_a_conflict(working: Working) -> None:
    run, _, interpreter = working()
    Path(interpreter.workspace, "a.txt").write_text("one")
    for word in ("two", "three"):
        task = f"run open('a.txt', 'w').write({word!r})"
        run(f"agent({task!r})")
    assert "{'a.txt': [1]}" in run("print(agent.all()[1].status['conflicts'])")
    assert "[] ['a.txt']" in run("print(agent.accept(1), agent.accept(2))")
    assert Path(interpreter.workspace, "a.txt").read_text() == "two"
    assert "[]" in run("print(agent.accept(2, overwrite=['a.txt']))")
    assert Path(interpreter.workspace, "a.txt").read_text() == "three"


def test_a_sub_agent_accepts_the_changes_of_its_own_in_its_copy(working: Working) -> None:
    run, _, interpreter = working()
    code = "agent(\"run open('b.txt', 'w').write('deep')\")\nprint(agent.accept(2))"
    assert "[]" in run(f"print(agent({f'run {code}'!r}))")
    assert not Path(interpreter.workspace, "b.txt").exists()
    assert "[]" in run("print(agent.accept(1))")
    assert Path(interpreter.workspace, "b.txt").read_text() == "deep"


def test_without_a_sandbox_there_is_no_sub_agent(working: Working, monkeypatch: pytest.MonkeyPatch) -> None:
    from interpreter.sandbox import bubblewrap

    run, _, _ = working()
    monkeypatch.setattr(bubblewrap, "trouble_with", lambda program: "No namespaces here.")
    assert "No namespaces here" in run("agent('run print(1)')")


def test_tools_that_act_are_not_for_sub_agents_unless_they_are_named(working: Working) -> None:
    called: list[str] = []

    def deploy(where: str) -> str:
        called.append(where)
        return "deployed"

    from interpreter.tools import Tool

    run, _, interpreter = working()
    interpreter.tools.append(Tool.function(deploy))
    assert "not one of the tools" in run("print(agent('run print(tools.deploy(\"here\"))'))")
    assert called == []
    assert "deployed" in run("print(agent('run print(tools.deploy(\"here\"))', tools=['deploy']))")


def test_its_question_reaches_whoever_waits(working: Working) -> None:
    run, _, interpreter = working(auto_run=False, mode="ask")
    asked: list[str] = []

    def answer(question: Any) -> Any:
        from interpreter.session import Answer

        asked.append(question.text)
        return Answer(APPROVE)

    with interpreter.session.questions.answerable(["confirm"], answer):
        assert "42" in run("print(agent('run print(6 * 7)'))")
    assert "Sub-agent 1 wants to run this python:\nprint(6 * 7)" in asked[0]
    assert "without a result" in run("print(agent('run print(6 * 7)'))")  # no one can be asked


def test_the_provider_has_cached_what_its_requests_begin_with(working: Working) -> None:
    run, server, interpreter = working(agents=True)
    interpreter.chat("hello " * 200, display=False)
    run("agent('say hello')")
    first, second = (request.body for request in server.requests if request.method == "POST")
    assert first["tools"] == second["tools"]
    common = list(takewhile(lambda pair: pair[0] == pair[1], zip(first["messages"], second["messages"], strict=False)))
    assert len(common) == len(first["messages"])  # all that was sent before


# -- limits ---------------------------------------------------------------------------------------------------------


def test_depth_and_number_are_limited(working: Working) -> None:
    run, _, interpreter = working(agents_depth=2, agents_total=4)
    assert "hello" in run("print(agent('run print(agent(\"say hello\"))'))")
    assert "may be 2 deep" in run("print(agent('run agent(\"run agent(chr(115))\")'))")
    with pytest.raises(LimitReachedError, match="has had 4"):
        subagents_of(interpreter.agent).start(Task("say hello"))


def test_its_cost_and_its_tokens_are_limited(working: Working) -> None:
    run, server, interpreter = working(agents_budget=0.0001)
    assert "budget" in run("agent('say hello')")
    assert [each for each in server.requests if each.method == "POST"] == []
    interpreter.agents_budget, interpreter.agents_tokens = None, 10
    assert "max_budget_tokens" in run("agent('say hello')")


def test_one_that_hangs_is_stopped_when_its_time_is_over(working: Working) -> None:
    run, _, _ = working()
    began = time.monotonic()
    assert "its time is over" in run("agent('hang', seconds=1.5)")
    assert "its time is over" in run("agent('run while True: pass', seconds=2.5)")
    assert time.monotonic() - began < 30


def test_cancelling_the_block_ends_the_tree_within_two_seconds(working: Working) -> None:
    run, _, interpreter = working()
    inner = "run import subprocess\nsubprocess.run(['sleep', '1000'])"
    thread, _ = in_thread(run, f"agent({f'run agent({inner!r})'!r})")
    until(sleeping, "the program")
    began = time.monotonic()
    interpreter.computer.stop()
    family = subagents_of(interpreter.agent)
    until(lambda: all(each.done.is_set() for each in family.walk()), "the end of the tree")
    assert time.monotonic() - began < 2.5
    thread.join()
    until(lambda: not sleeping(), "the end of the program")


def sleeping() -> list[int]:
    """The programs of sub-agents that sleep."""
    processes = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            processes += [process.pid] if process.cmdline() == ["sleep", "1000"] else []
    return processes


def test_its_code_gets_no_more_memory_than_its_limit(working: Working) -> None:
    run, _, _ = working(agents_memory=256)
    assert "MemoryError" in run("print(agent('run x = bytearray(600 * 2**20)'))")


def test_a_program_ends_although_a_sub_agent_works(tmp_path: Path) -> None:
    with ModelServer([lambda body: stall(None)], repeat=True) as server:
        script = SCRIPT.replace("threading.Event().wait()", "")
        arguments = [sys.executable, "-c", script, server.base_url, str(tmp_path)]
        done = subprocess.run(arguments, env={**os.environ}, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, b"started\n")


# -- in the background -------------------------------------------------------------------------------------------------


def test_a_handle_survives_its_block_and_has_the_result_later(working: Working) -> None:
    run, _, interpreter = working()
    run("handle = agent.start('say 42', schema=int)")
    until(lambda: all(each.done.is_set() for each in subagents_of(interpreter.agent).walk()), "its end")
    assert "43" in run("print(handle.result() + 1)")
    assert "done" in run("print(handle)")


def test_it_ends_with_its_session_and_its_changes_and_conversation_are_kept(working: Working) -> None:
    run, _, interpreter = working()
    run("agent(\"run open('new.txt', 'w').write('kept')\")\nhandle = agent.start('hang')")
    done, hanging = subagents_of(interpreter.agent).walk()
    until(lambda: hanging.state == "running", "the second one")
    interpreter.reset()
    assert hanging.done.is_set() and hanging.state == "stopped"
    assert done.journal is not None and "+kept" in (done.journal / "changes.patch").read_text()
    resumed = OpenInterpreter()
    resumed.journal.resume(done.conversation)
    assert "new.txt" in str(resumed.messages)
    resumed.reset()


SCRIPT = """
import sys, threading
from interpreter import OpenInterpreter
made = OpenInterpreter(auto_run=True, workspace=sys.argv[2])
made.llm.model, made.llm.api_base, made.llm.api_key = "gpt-4o", sys.argv[1], "key"
made.computer.run("python", "h = [agent.start('run print(1)\\\\nimport time; time.sleep(1000)') for _ in range(2)]")
print("started", flush=True)
threading.Event().wait()
"""


def test_a_sub_agent_whose_parent_was_killed_ends(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    with ModelServer([worker], repeat=True) as server:
        arguments = [sys.executable, "-c", SCRIPT, server.base_url, str(tmp_path / "workspace")]
        with subprocess.Popen(arguments, env={**os.environ}, stdout=subprocess.PIPE) as program:
            assert program.stdout is not None and program.stdout.readline() == b"started\n"
            until(lambda: len([r for r in server.requests if r.method == "POST"]) >= 2, "the requests")
            family = psutil.Process(program.pid).children(recursive=True)
            os.kill(program.pid, signal.SIGKILL)
        _, alive = psutil.wait_procs(family, timeout=20)
    assert alive == []


# -- agents as files ---------------------------------------------------------------------------------------------------


def test_an_agent_of_a_file_is_used_once_its_content_is_accepted(working: Working) -> None:
    from interpreter.agents.files import accept, agent_files

    run, server, interpreter = working()
    path = Path(interpreter.workspace, ".claude", "agents", "reviewer.md")
    path.parent.mkdir(parents=True)
    path.write_text(
        "---\nname: reviewer\ndescription: Reads code\ntools: Read, Grep\nmodel: sonnet\n---\nYou review code."
    )
    assert "%agents trust reviewer" in run("agent('say hello', name='reviewer')")
    accept(agent_files(interpreter.workspace)[0])
    assert "hello" in run("print(agent('say hello', name='reviewer'))")
    assert str(server.requests[-1].body["messages"][0]["content"]).startswith("You review code.")
    path.write_text(path.read_text() + " And delete it.")
    assert "has changed" in run("agent('say hello', name='reviewer')")
