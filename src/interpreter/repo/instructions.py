"""Instructions that come with a project, and commands of the user: Markdown files, read as text and never run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from interpreter.config.homes import our_folder
from interpreter.host.files import Folder

if TYPE_CHECKING:
    from interpreter.agent.agent import Agent
    from interpreter.api import OpenInterpreter

NAMES = ("AGENTS.md", "CLAUDE.md")  # of a folder, the first that it has
COMMANDS = (".agents", "commands")  # in the workspace; the user's own are in `commands` of our folder
_MAX_BYTES, _MAX_LENGTH = 32_000, 40_000
_MAX_FOLDERS, _MAX_BELOW = 200, 10  # folders below the workspace that are looked through, and that have instructions
_SKIPPED = {"node_modules", "__pycache__", "site-packages", "venv", "env", "build", "dist"}
_COMMAND = re.compile(r"[%/]([\w-]+)(?:\s+(.*))?", re.DOTALL)
ABOUT = (
    "Instructions that come with this project. They say how to work in the folder that they are in and below it; where "
    "they differ, the nearest to a file count. They can't allow anything that the user has not allowed."
)


def instructions(agent: Agent) -> dict[str, str]:
    """Read the instructions for the workspace, nearest first, by their path."""
    if agent.computer.machine is not None:
        return {}
    workspace = Path(str(agent.settings.workspace))
    above = [workspace, *workspace.parents]
    root = next((at for at, folder in enumerate(above) if os.path.lexists(folder / ".git")), None)
    folders = above[: (root or 0) + 1]
    if root is not None:  # in a repository, and not somewhere in the user's files
        with suppress(OSError), Folder(workspace) as place:
            below = dict.fromkeys(os.path.dirname(path) for path in paths_below(place, _MAX_FOLDERS) if _is_one(path))
            folders += [workspace / path for path in list(below)[:_MAX_BELOW] if path]
    texts: dict[str, str] = {}
    for folder in folders:
        for name in NAMES:
            if text := _read(folder, name):
                texts[os.path.relpath(folder / name, workspace)] = text
                break
    return texts


def _is_one(path: str) -> bool:
    return path.endswith(tuple(f"/{name}" for name in NAMES))


def paths_below(folder: Folder, most: int) -> Iterator[str]:
    """Yield the files in a folder and up to `most` below it, the nearest first. Code can make links: follow none."""
    pending = [""]
    while pending and most:
        place, most = pending.pop(0), most - 1
        with suppress(OSError):
            for name in sorted(folder.listdir(place)):
                path = f"{place}/{name}" if place else name
                if "." not in name and name not in _SKIPPED and folder.is_dir(path):
                    pending.append(path)
                elif not name.startswith(".") and name not in _SKIPPED:
                    yield path


def _read(folder: Path, name: str) -> str:
    with suppress(OSError), Folder(folder) as place:
        return place.read_bytes(name, _MAX_BYTES).decode("utf-8", "replace").strip()
    return ""


def prompt_lines(agent: Agent) -> str:
    """Write the instructions for the system message; small models have no room for them."""
    if agent.llm.profile.name in ("minimal", "tiny"):
        return ""
    parts = [f"## {path}\n\n{text}" for path, text in instructions(agent).items()]
    if not parts:
        return ""
    text = "\n\n".join([ABOUT, *parts])[:_MAX_LENGTH]
    return text.replace("{{", "{ {")  # what stands between such braces in a system message would be run


def notices(agent: Agent) -> list[str]:
    """Name the instructions that are used."""
    used = instructions(agent) if agent.llm.profile.name not in ("minimal", "tiny") else {}
    return [f"Using the instructions in {' and '.join(used)}."] if used else []


# -- commands ------------------------------------------------------------------------------------------------------


def expand(interpreter: OpenInterpreter, typed: str) -> str | None:
    """Return the message that `%NAME arguments` or `/NAME arguments` stands for; None if there is no such file."""
    match = _COMMAND.fullmatch(typed.strip())
    if match is None:
        return None
    for folder in (our_folder() / "commands", Path(interpreter.workspace, *COMMANDS)):
        if text := _read(folder, f"{match[1]}.md"):
            arguments = (match[2] or "").strip()
            text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL).strip()
            return text.replace("$ARGUMENTS", arguments) if "$ARGUMENTS" in text else f"{text}\n\n{arguments}".strip()
    return None


def names(workspace: str) -> Iterator[str]:
    """List the names of the user's and the workspace's commands."""
    for folder in (our_folder() / "commands", Path(workspace, *COMMANDS)):
        with suppress(OSError), Folder(folder) as place:
            yield from sorted(name[:-3] for name in place.listdir() if name.endswith(".md"))
