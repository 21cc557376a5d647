"""Agents as files: `.agents/*.md` and `.claude/agents/*.md`, used once the user has accepted their content."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from interpreter.config.homes import make_folder, our_folder
from interpreter.errors import UsageError
from interpreter.host.files import Folder, write_bytes
from interpreter.tools import Tool

FOLDERS = (".agents", ".claude/agents")  # in the workspace, then in the home folder
ACCEPTED = "agents-accepted.json"
MAX_SIZE = 100_000  # bytes of a file
FRONT_MATTER = re.compile(r"\A---\s*\n(.*?)\n---\s*\n(.*)\Z", re.DOTALL)
INHERIT = ("inherit", "sonnet", "opus", "haiku")  # models of Claude Code, which are no names of ours


@dataclass(frozen=True)
class AgentFile:
    """An agent read from a file. It is used only once the user has accepted the file's digest."""

    name: str
    path: str
    digest: str
    description: str = ""
    model: str = ""
    tools: tuple[str, ...] | None = None
    prompt: str = ""
    is_accepted: bool = False

    def tools_of(self, toolbox: Iterable[Tool]) -> list[str]:
        """List which of these tools it may call, beside those that only read. Unknown names are left out."""
        return [tool.name for tool in toolbox if tool.name in (self.tools or ())]


def agent_files(workspace: str) -> list[AgentFile]:
    """List the agents of the workspace and of the user. A name of the workspace comes first."""
    accepted, listed = _accepted(), dict[str, AgentFile]()
    for root in (Path(workspace), Path.home()):
        for folder in FOLDERS:
            try:
                with Folder(root / folder) as files:
                    markdown = [name for name in sorted(files.listdir()) if name.endswith(".md")]
                    texts = {name: files.read_bytes(name, MAX_SIZE) for name in markdown}
            except OSError:
                continue
            for name, data in texts.items():
                made = parsed(str(root / folder / name), data, accepted)
                if made is not None:
                    listed.setdefault(made.name, made)
    return list(listed.values())


def parsed(path: str, data: bytes, accepted: dict[str, list[str]]) -> AgentFile | None:
    """Read a file: front matter with name, description, model and tools, then the prompt. None if it is no agent."""
    match = FRONT_MATTER.match(data.decode("utf-8", "replace"))
    if match is None:
        return None
    try:
        facts: Any = yaml.safe_load(match[1])
    except yaml.YAMLError:
        return None
    if not isinstance(facts, dict):
        return None
    tools, model = facts.get("tools"), str(facts.get("model") or "")
    if isinstance(tools, str):
        tools = tools.split(",")
    digest = hashlib.sha256(data).hexdigest()
    return AgentFile(
        str(facts.get("name") or Path(path).stem),
        path,
        digest,
        str(facts.get("description") or ""),
        "" if model in INHERIT else model,
        tuple(str(tool).strip() for tool in tools) if isinstance(tools, list) else None,
        match[2].strip(),
        digest in accepted.get(path, ()),
    )


def agent_named(workspace: str, name: str) -> AgentFile:
    """Find an agent by its name; UsageError if its file is not accepted as it is now."""
    known = {each.name: each for each in agent_files(workspace)}
    if name not in known:
        there = f"There are: {', '.join(known)}." if known else "There are none in .agents or .claude/agents."
        raise UsageError(f"There is no agent named {name!r}. {there}")
    if not known[name].is_accepted:
        raise UsageError(
            f"{known[name].path} is new or has changed. Read it, then `%agents trust {name}` in a chat allows its use."
        )
    return known[name]


def accept(agent: AgentFile) -> None:
    """Use a file with this content from now on."""
    answers = _accepted()
    answers[agent.path] = [agent.digest]
    make_folder(our_folder())
    write_bytes(our_folder() / ACCEPTED, f"{json.dumps(answers, indent=1)}\n".encode(), 0o600)


def _accepted() -> dict[str, list[str]]:
    try:
        answers = json.loads((our_folder() / ACCEPTED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return answers if isinstance(answers, dict) else {}
