"""A block that defines a function or class of a file anew is an edit of that file: it is offered and saved there."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.at_session import do
from interpreter.computer_api.files.work import texts
from interpreter.console_text import first_few
from interpreter.host.files import Folder
from interpreter.repo.edits import with_lines
from interpreter.repo.instructions import paths_below
from interpreter.session import ToolCall
from interpreter.tools import Tool
from interpreter.tools.tool import FileEdit

if TYPE_CHECKING:
    from interpreter.agent.agent import Agent
    from interpreter.session import Block

_MAX_FOLDERS, _MAX_FILES, _MAX_BYTES = 2_000, 2_000, 500_000
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Saving:
    """A planned change to a file: a block's definitions replace those in the file."""

    path: str
    names: tuple[str, ...]
    before: bytes
    after: bytes

    @property
    def question(self) -> str:
        names = first_few([f"`{name}`" for name in self.names], 3)
        return f"{names} {'is' if len(self.names) == 1 else 'are'} in {self.path}. Save it there?"


def offer_to_save(agent: Agent, block: Block) -> Iterator[ToolCall]:
    """Yield a call that saves what a block defines, for each file that has another version of it."""
    if block.language.lower() != "python" or agent.computer.machine is not None:
        return
    for saving in savings(agent, block.code):
        yield ToolCall(_tool(agent, saving), {"path": saving.path, "names": list(saving.names)})


def _tool(agent: Agent, saving: Saving) -> Tool:
    before, after = (data.decode("utf-8", "replace") for data in (saving.before, saving.after))

    def save(arguments: dict[str, Any]) -> str:
        content, expected = (data.decode("latin-1") for data in (saving.after, saving.before))
        place = os.path.join(str(agent.settings.workspace), saving.path)
        do(agent.computer, "interpreter.repo.edits", "overwrite", path=place, expected=expected, content=content)
        return f"Saved {first_few([f'`{name}`' for name in saving.names], 3)} in {saving.path}."

    return Tool(
        "save_definition",
        "",
        {"type": "object"},
        save,
        effects=lambda arguments: [FileEdit(saving.path, before, after)],
        question=saving.question,
    )


def savings(agent: Agent, code: str) -> Iterator[Saving]:
    """Find the files that define what a block defines, each at most once among the files of the workspace."""
    new = _definitions(code)
    known = "\n".join(str(message.get("content", "")) for message in agent.messages if message.get("content") != code)
    new = {name: node for name, node in new.items() if re.search(rf"\b{re.escape(name)}\b", known)}
    if not new:
        return
    written = _written_by_last_block(agent)
    places: dict[str, list[tuple[str, bytes]]] = {}
    for path, data in _python_files(str(agent.settings.workspace), "|".join(map(re.escape, new))):
        with suppress(ValueError):
            for name in _definitions(texts.decoded(data, path)[0]).keys() & new.keys():
                places.setdefault(name, []).append((path, data))
    by_file: dict[str, tuple[bytes, list[str]]] = {}
    for name, found in places.items():
        if len(found) == 1 and found[0][0] not in written:
            by_file.setdefault(found[0][0], (found[0][1], []))[1].append(name)
    for path, (data, names) in by_file.items():
        text, mark, encoding = texts.decoded(data, path)
        changed = _with_definitions(text, code, names)
        with suppress(ValueError):
            if changed != text and ast.parse(changed):
                yield Saving(path, tuple(sorted(names)), data, texts.encoded(changed, mark, encoding, path))


def _definitions(code: str) -> dict[str, Definition]:
    try:
        body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError):
        return {}
    return {node.name: node for node in body if isinstance(node, Definition)}


def _written_by_last_block(agent: Agent) -> set[str]:
    blocks = agent.timeline.blocks
    changes = agent.timeline.changes(blocks[-1].id) if blocks else None
    return set(changes.pairs) if changes is not None else set()


def _python_files(root: str, names: str) -> Iterator[tuple[str, bytes]]:
    """Read the Python files that may define one of the names; code may have made links, which are not followed."""
    pattern = re.compile(rb"^(?:async )?(?:def|class) (?:" + names.encode() + rb")\b", re.MULTILINE)
    with Folder(root) as folder:
        paths = (path for path in paths_below(folder, _MAX_FOLDERS) if path.endswith(".py"))
        for path in islice(paths, _MAX_FILES):
            with suppress(OSError):
                data = folder.read_bytes(path, _MAX_BYTES)
                if len(data) < _MAX_BYTES and pattern.search(data):
                    yield path, data


def _span(node: Definition) -> tuple[int, int]:
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    return first - 1, node.end_lineno or node.lineno


def _with_definitions(text: str, code: str, names: list[str]) -> str:
    """Replace definitions of a file by those of a block, with the imports that they need and the file lacks."""
    lines, new = code.split("\n"), _definitions(code)
    used: set[str] = set()
    for name in names:
        first, last = _span(_definitions(text)[name])
        start, end = _span(new[name])
        text = with_lines(text, first, last, "\n".join(lines[start:end]) + "\n")
        used |= {node.id for node in ast.walk(new[name]) if isinstance(node, ast.Name)}
    body = ast.parse(text).body
    bound = {name for node in body for name in _bound(node)}
    imports = [node for node in ast.parse(code).body if isinstance(node, ast.Import | ast.ImportFrom)]
    missing = [ast.unparse(node) for node in imports if (set(_bound(node)) & used) - bound]
    if missing:
        at = max((node.end_lineno or 0 for node in body if isinstance(node, ast.Import | ast.ImportFrom)), default=-1)
        if at < 0:
            has_doc = body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
            at = (body[0].end_lineno or 0) if has_doc else 0
        text = with_lines(text, at, at, "\n".join(missing) + "\n")
    return text


def _bound(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from ((each.asname or each.name).partition(".")[0] for each in node.names)
    elif isinstance(node, Definition):
        yield node.name
    elif isinstance(node, ast.Assign):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))
