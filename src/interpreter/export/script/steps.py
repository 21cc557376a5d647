"""The blocks of a conversation as steps of a program: their code in plain Python, and what each one does."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

from interpreter.export.script.known import SHELL_LOOKING
from interpreter.export.script.looking import is_inspection, only_looks, root_name
from interpreter.export.script.names import Known, Names, names_of
from interpreter.export.script.plain import packages_in, plain_python
from interpreter.export.shell_state import leaves_state
from interpreter.runtimes import (
    BUILT_IN,
    Registry,
    resolve,
)
from interpreter.session.journal.entries import (
    Block,
    Entry,
    Said,
)

_GIT_LOOKING = frozenset({"status", "log", "diff", "show", "branch", "remote", "rev-parse", "blame"})
_INSTALL = re.compile(r"(?:[\w./-]*python[\d.]*\s+-m\s+)?(?:uv\s+)?pip3?\s+install\s+(.*)")


@dataclass
class Step:
    """One block that ran, ready to be chosen or left out."""

    block: Block
    code: str
    kind: str
    heading: str = ""
    body: list[ast.stmt] = field(default_factory=list)
    names: Names = field(default_factory=Names)
    imports: set[str] = field(default_factory=set)
    functions: dict[str, Names] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)
    """Those that it names, of its own and of the steps before, like the functions."""

    @property
    def failed(self) -> bool:
        return not self.block.succeeded

    @property
    def shows_picture(self) -> bool:
        return any(message.get("type") == "image" for message in self.block.outputs)

    @property
    def printed(self) -> bool:
        return any(
            message.get("type") == "console" and str(message.get("content", "")).strip()
            for message in self.block.outputs
        )

    @property
    def inspections(self) -> list[ast.stmt]:
        """Its statements that only show something."""
        return [node for node in self.body if is_inspection(node, self.functions)]

    @property
    def only_shows_values(self) -> bool:
        """Nothing but bare expressions that only look."""
        return all(isinstance(node, ast.Expr) and not is_show(node) for node in self.inspections) and (
            len(self.inspections) == len(self.body)
        )


@dataclass
class Steps:
    """What the conversation did, and what of it a program cannot do."""

    steps: list[Step] = field(default_factory=list)
    installed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def steps_of(entries: Sequence[Entry], registry: Registry = BUILT_IN) -> Steps:
    """The steps in order; blocks that did not run are none."""
    found, known, heading, number = Steps(), Known(), "", 0
    for entry in entries:
        if isinstance(entry, Said) and entry.role == "user" and entry.text.strip():
            heading = entry.text.strip().splitlines()[0]
        if not isinstance(entry, Block):
            continue
        number += 1
        if not entry.ran:
            continue
        language = registry.describe(entry.language)
        if language.script is not None:
            resolve(language.script)(found, known, entry, number, heading)
        elif entry.succeeded:
            name = language.name.lower()
            found.notes.append(f"Block {number} ({name}) is not carried: the program is in Python.")
    return found


def add_python(found: Steps, known: Known, block: Block, number: int, heading: str) -> None:
    """A Python block as a step."""
    plain = plain_python(block.code)
    if plain is None:
        if block.succeeded:
            found.notes.append(f"Block {number} could not be read as Python and is not carried.")
        return
    found.installed += plain.installed
    if block.succeeded:
        found.notes += [f"Block {number}: `{what}` is not carried." for what in plain.dropped]
    step = Step(block, plain.code, "python", heading, imports=plain.imports)
    step.body = ast.parse(plain.code).body
    known.modules.update({module: module for module in plain.imports})
    step.names = names_of(step.body, known)
    step.names.reads -= plain.imports
    step.names.changes -= plain.imports
    known.learn(step.names)
    named = step.names.reads | step.names.late | step.names.binds | step.names.may_bind | plain.imports
    step.functions = {name: known[name] for name in named if name in known}
    step.modules = {name: known.modules[name] for name in named if name in known.modules}
    found.steps.append(step)


def add_shell(found: Steps, known: Known, block: Block, number: int, heading: str) -> None:
    """A shell block as a step; what it installs becomes a dependency."""
    if not block.succeeded:
        return
    kept = []
    for line in block.code.splitlines():
        installing = _INSTALL.fullmatch(line.strip())
        if installing:
            found.installed += packages_in(installing[1])
        else:
            kept.append(line)
    code = "\n".join(kept).strip()
    if code:
        step = Step(block, code, "shell", heading)
        step.names.effects = leaves_state(code) or not shell_only_looks(code)
        found.steps.append(step)


def shell_only_looks(code: str) -> bool:
    """Whether every command of a shell block is known to look and not to touch."""
    if re.search(r"[`<]|\$\(|>(?!\s*/dev/null|&)", code):
        return False
    commands = re.split(r"[\n;|]|&&|\|\||2?>\s*/dev/null|2?>&\d", code)
    return all(_looks(command) for command in commands if command.strip() and not command.strip().startswith("#"))


def _looks(command: str) -> bool:
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    if words[:1] == ["git"]:
        return words[1:2] != [] and words[1] in _GIT_LOOKING
    if words[:1] == ["find"]:
        return not {"-delete", "-exec", "-execdir", "-ok"} & set(words)
    return bool(words) and (words[0] in SHELL_LOOKING or words[1:] in (["--version"], ["-V"], ["--help"]))


def is_show(node: ast.stmt) -> bool:
    """Whether a statement is a call of print, or of what stands for it."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and root_name(node.value) == "print"


def throws_result_away(step: Step) -> bool:
    """Whether it calls something for what it does: a function of a module, or one that nobody knows."""
    for node in (part for statement in step.body for part in ast.walk(statement)):
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            continue
        root = root_name(node.value)
        if only_looks(node.value, step.functions) or root is None:
            continue
        known_function = isinstance(node.value.func, ast.Name) and root in step.functions
        if root in step.modules or (isinstance(node.value.func, ast.Name) and not known_function):
            return True
    return False
