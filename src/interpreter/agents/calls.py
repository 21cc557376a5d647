"""What `agent` in code calls, and the tool with which a model starts sub-agents."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from interpreter.agent.agent import Agent
from interpreter.agents.files import agent_named
from interpreter.agents.subagents import SubAgent, SubAgents, Task, subagents_of
from interpreter.computer_api.computer import CALL
from interpreter.console_text import counted
from interpreter.llm.usage import in_dollars
from interpreter.tools import Tool, ToolContext

PROGRESS_GAP = 0.3  # seconds between two lines
ABOUT = (
    "Have a sub-agent do a task on its own, in a copy of the session, and get its result. It sees this conversation "
    "and has copies of the variables and files. Files that it changes are only changed here once they are accepted: "
    "agent.accept(NUMBER) in Python. In Python, `agent('task')` does the same and "
    "`agent.start('task')` returns a handle, so that several work at once."
)
_LIMITS = {
    "model": {"type": ["string", "null"]},
    "form": {},
    "tools": {"type": ["array", "null"], "items": {"type": "string"}},
    "data": {"type": ["object", "null"]},
    "name": {"type": ["string", "null"]},
    **{name: {"type": ["number", "null"]} for name in ("budget", "seconds", "temperature")},
    "tokens": {"type": ["integer", "null"]},
}
_NUMBER = {"number": {"type": "integer"}}
_SECONDS = {"seconds": {"type": ["number", "null"]}}
_PATHS = {"overwrite": {"type": "array", "items": {"type": "string"}}}


def make_code_tools(agent: Agent) -> Iterator[Tool]:
    """Make what `agent` in code calls. A sub-agent is contained, so starting one asks for no approval."""

    def child(arguments: dict[str, Any]) -> SubAgent:
        return subagents_of(agent).get(arguments["number"])

    def running(arguments: dict[str, Any], context: ToolContext) -> Any:
        made = _start(agent, arguments, context)
        return {"number": made.number, "value": wait_for(made, context), "files": sorted(made.changes.pairs)}

    rows: tuple[tuple[str, Callable[..., Any], dict[str, Any]], ...] = (
        ("run", running, {"task": {"type": "string"}, **_LIMITS}),
        ("start", lambda given, _: _start(agent, given).number, {"task": {"type": "string"}, **_LIMITS}),
        ("wait", lambda given, context: wait_for(child(given), context, given.get("seconds")), {**_NUMBER, **_SECONDS}),
        ("status", lambda given, _: describe(child(given)), _NUMBER),
        ("all", lambda given, _: [each.number for each in subagents_of(agent).walk()], {}),
        ("drop", lambda given, _: child(given).settle_files("dropped"), _NUMBER),
        ("stop", lambda given, _: child(given).stop(), _NUMBER),
    )
    for name, handler, properties in rows:
        required = [each for each in properties if each in ("task", "number")]
        yield Tool(f"agent.{name}", "", _schema(properties, required), handler, "reads")
    yield Tool(
        "agent.accept",
        "",
        _schema({**_NUMBER, **_PATHS}, ["number"]),
        lambda given, _: child(given).accept(given.get("overwrite", ())),
        "acts",
        lambda given: child(given).edits(),
    )


def _schema(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def make_tools(agent: Agent) -> Iterator[Tool]:
    """Make the tool for the model."""

    def run(arguments: dict[str, Any], context: ToolContext) -> str:
        child = _start(agent, arguments, context)
        value = wait_for(child, context)
        files = f"\n\nIt changed {', '.join(sorted(child.changes.pairs))}." if child.changes else ""
        accept = f" agent.accept({child.number}) in Python brings that into the workspace." if files else ""
        return f"{value}{files}{accept}"

    text = {"type": "string"}
    properties = {"task": text, "name": {**text, "description": "an agent of the user's files"}, "model": text}
    yield Tool("agent", ABOUT, _schema(properties, ["task"]), run, "reads", is_parallel=True)


def _start(agent: Agent, arguments: dict[str, Any], context: ToolContext | None = None) -> SubAgent:
    return subagents_of(agent).start(task_of(agent, **arguments), context.ask if context is not None else None)


def task_of(agent: Agent, task: str, form: Any = None, name: str | None = None, **more: Any) -> Task:
    """Make a task; `name` is an agent of the user's files."""
    given = {key: value for key, value in more.items() if value is not None}
    if name:
        role = agent_named(agent.session.workspace(), name)
        own = {"model": role.model or None, "tools": role.tools_of(agent.tools)}
        given = {**own, **given, "instructions": role.prompt, "name": role.name}
    return Task(task, form, **given)


def describe(child: SubAgent) -> dict[str, Any]:
    """Return the sub-agent's state as data."""
    return {
        "task": child.task.title,
        "state": child.state,
        "last": child.last,
        "tokens": child.used.tokens,
        "dollars": child.used.cost,
        "files": sorted(child.changes.pairs),
        "conflicts": child.conflicts(),
        "diff": "\n".join(child.diffs().values()) if child.done.is_set() else "",
        "conversation": child.conversation,
    }


def wait_for(child: SubAgent, context: ToolContext, seconds: float | None = None) -> Any:
    """Wait for its value, and show the state of the tree until then. If the call is cancelled, so is the sub-agent."""

    def stop() -> None:
        child.stop("the call was cancelled")

    context.on_cancel(stop)
    with shown(child.family.root, context):
        value = child.result(seconds)
    if context.cancelled():
        raise KeyboardInterrupt
    return value


@contextmanager
def shown(family: SubAgents, context: ToolContext) -> Iterator[None]:
    """Show how the tree is doing, in one line."""
    call, last = CALL.get(), 0.0

    def show(end: str = "") -> None:
        nonlocal last
        if not end and time.monotonic() - last < PROGRESS_GAP:
            return
        last, line = time.monotonic(), summary(family)
        if call is not None:
            call.tell({"event": "stream", "name": "stdout", "text": f"\r{line[:100].ljust(78)}{end}"})
        elif not end:
            context.progress(line)

    family.watchers.append(show)
    try:
        yield
    finally:
        family.watchers.remove(show)
        show("\n")


def summary(family: SubAgents) -> str:
    """Return the tree in one line: how many are in which state, the cost, and the last line of one that works."""
    everyone = list(family.walk())
    states = [each.state for each in everyone]
    counts = [
        f"{states.count(state)} {state}"
        for state in ("waiting", "running", "asking", "done", "failed", "stopped")
        if state in states
    ]
    cost = sum(each.used.cost for each in family.all.values())
    busy = next((each for each in reversed(everyone) if each.state == "running" and each.last), None)
    parts = [f"{counted(len(everyone), 'agent')}: {', '.join(counts)}", *([in_dollars(cost)] if cost else [])]
    return " · ".join([*parts, *([f"{busy.number}: {busy.last}"] if busy is not None else [])])
