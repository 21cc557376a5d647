"""What the model has in a repository: the tool `commit`, and how it is described."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from interpreter.errors import InterpreterError
from interpreter.repo.commit import Plan, make_commit, plan_commit, refused
from interpreter.session import Block
from interpreter.tools import Tool, ToolContext

if TYPE_CHECKING:
    from interpreter.agent.agent import Agent

IN_BLOCK = "commit has to be called after the block that changes the files, not in it."


def prompt_lines(agent: Agent) -> str:
    """Describe how to edit and commit, for the system message; a small model gets nothing."""
    if agent.llm.profile.name in ("minimal", "tiny"):
        return ""
    return (
        "The workspace is a git repository. To change a file, use `computer.files.replace(path, old, new)`: `old` must "
        "occur once. To commit, call the tool `commit`: it takes exactly what this session changed."
    )


def make_tools(agent: Agent) -> Iterator[Tool]:
    """Make the tool `commit`."""
    parameters = {
        "type": "object",
        "properties": {"message": {"type": "string", "description": "Subject, and a body after an empty line."}},
        "required": ["message"],
        "additionalProperties": False,
    }

    def commit(arguments: dict[str, Any], context: ToolContext) -> str:
        if any(isinstance(each, Block) for each in context.action.ancestors()):
            raise InterpreterError(IN_BLOCK)
        try:
            made = make_commit(agent, arguments["message"], plan_commit(agent))
        except InterpreterError as error:
            refused[agent] = str(error)
            raise
        refused.pop(agent, None)
        return str(made)

    def effects(arguments: dict[str, Any]) -> list[str]:
        try:
            plan: Plan = plan_commit(agent)
        except InterpreterError as error:
            return [str(error)]
        return [plan.diff, *plan.sentences(), f"Message: {arguments.get('message', '')}"]

    yield Tool(
        "commit",
        "Commit exactly what this session changed in the git repository. The user's own changes stay uncommitted. "
        "Nothing is pushed.",
        parameters,
        commit,
        effects=effects,
    )
