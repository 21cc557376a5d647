"""The blocks of a conversation as steps of a program: their code in plain Python, and the effects of each."""

from __future__ import annotations

import ast
import os
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from interpreter.export.notebook import leaves_state
from interpreter.policy.analysis import analyze
from interpreter.runtimes import BUILT_IN, Registry, resolve
from interpreter.script.analysis import (
    KnownNames,
    Names,
    is_inspection,
    names_of,
    only_looks,
    root_name,
)
from interpreter.session.journal.reader import Entry, RecordedBlock, Said

_JUST_RUN = frozenset({"time", "timeit", "capture", "prun"})
_SHELLS = frozenset({"bash", "sh", "shell", "system", "sx", "!"})
_INSTALLING = re.compile(r"^\s*(?:[\w./-]*python[\d.]*\s+-m\s+)?(?:uv\s+)?pip3?\s+install\s+(?P<what>.*)$")
_GONE = "\0"  # cannot occur in source code


@dataclass
class ProgramStep:
    """A block that ran, for StepChoice to keep or leave out."""

    block: RecordedBlock
    code: str
    kind: str
    heading: str = ""
    body: list[ast.stmt] = field(default_factory=list)
    names: Names = field(default_factory=Names)
    imports: set[str] = field(default_factory=set)
    functions: dict[str, Names] = field(default_factory=dict)  # those that it uses, defined here or in earlier steps
    modules: dict[str, str] = field(default_factory=dict)  # those that it uses, imported here or in earlier steps

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
        return [node for node in self.body if is_inspection(node, self.functions)]


@dataclass
class ProgramSteps:
    """The steps of a conversation, what it installed, and notes about what a program cannot repeat."""

    steps: list[ProgramStep] = field(default_factory=list)
    installed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def steps_of(entries: Sequence[Entry], registry: Registry = BUILT_IN) -> ProgramSteps:
    """Turn the blocks that ran into steps, in order."""
    program_steps, known, heading, number = ProgramSteps(), KnownNames(), "", 0
    for entry in entries:
        if isinstance(entry, Said) and entry.role == "user" and entry.text.strip():
            heading = entry.text.strip().splitlines()[0]
        number += isinstance(entry, RecordedBlock)
        if not isinstance(entry, RecordedBlock) or not entry.ran:
            continue
        language = registry.describe(entry.language)
        if language.script is not None:
            resolve(language.script)(program_steps, known, entry, number, heading)
        elif entry.succeeded:
            program_steps.notes.append(
                f"Block {number} ({language.name.lower()}) is not included: the program is in Python."
            )
    return program_steps


def add_python(program_steps: ProgramSteps, known: KnownNames, block: RecordedBlock, number: int, heading: str) -> None:
    plain = plain_python(block.code)
    if plain is None:
        if block.succeeded:
            program_steps.notes.append(f"Block {number} is not valid Python and is not included.")
        return
    program_steps.installed += plain.installed
    if block.succeeded:
        program_steps.notes += [f"Block {number}: `{what}` is not included." for what in plain.dropped]
    step = ProgramStep(block, plain.code, "python", heading, imports=plain.imports)
    step.body = ast.parse(plain.code).body
    known.modules.update({module: module for module in plain.imports})
    step.names = names_of(step.body, known)
    step.names.reads -= plain.imports
    step.names.changes -= plain.imports
    known.update(step.names.functions)
    known.modules.update(step.names.modules)
    named = step.names.reads | step.names.late | step.names.binds | step.names.may_bind | plain.imports
    step.functions = {name: known[name] for name in named if name in known}
    step.modules = {name: known.modules[name] for name in named if name in known.modules}
    program_steps.steps.append(step)


def add_shell(program_steps: ProgramSteps, known: KnownNames, block: RecordedBlock, number: int, heading: str) -> None:
    """Add a shell block as a step; the packages that it installs become dependencies."""
    if not block.succeeded:
        return
    kept = []
    for line in block.code.splitlines():
        if installing := _INSTALLING.fullmatch(line):
            program_steps.installed += packages_in(installing["what"])
        else:
            kept.append(line)
    code = "\n".join(kept).strip()
    if code:
        step = ProgramStep(block, code, "shell", heading)
        effects = {effect.kind for effect in analyze("shell", code, os.getcwd()).all}
        step.names.effects = leaves_state(code) or not effects <= {"program", "read"}
        program_steps.steps.append(step)


def is_show(node: ast.stmt) -> bool:
    """Check whether a statement is a call of print or an alias of it."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and root_name(node.value) == "print"


def throws_result_away(step: ProgramStep) -> bool:
    """Check whether a step calls something only for its effect: a function of a module, or an unknown one."""
    for node in (part for statement in step.body for part in ast.walk(statement)):
        match node:
            case ast.Expr(value=ast.Call() as call) if not only_looks(call, step.functions):
                root = root_name(call)
                if root in step.modules or (isinstance(call.func, ast.Name) and root not in step.functions):
                    return True
    return False


# -- IPython's syntax in plain Python ----------------------------------------------------------------------------------


@dataclass
class Plain:
    """A block translated to plain Python."""

    code: str
    imports: set[str] = field(default_factory=set)  # modules that the translation needs
    installed: list[str] = field(default_factory=list)  # what the block installed with pip, as written in the block
    dropped: list[str] = field(default_factory=list)  # what could not be translated


def plain_python(code: str) -> Plain | None:
    """Translate a block to plain Python; None if it cannot be parsed at all."""
    tree = parsed(code)
    if tree is None:
        from IPython.core.inputtransformer2 import TransformerManager

        code = TransformerManager().transform_cell(code).rstrip("\n")
        tree = parsed(code)
    if tree is None:
        return None
    plain = Plain(code)
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    edits = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="get_ipython")), attr=method)):
                arguments = [str(part.value) for part in node.args if isinstance(part, ast.Constant)]
                match method, arguments:
                    case "system" | "getoutput", [command]:
                        text = _shell(command, plain, captured=method == "getoutput")
                    case "run_line_magic", [name, argument]:
                        text = _line_magic(name, argument, plain, whole=id(node) in statements)
                    case "run_cell_magic", [name, argument, body]:
                        text = _cell_magic(name, argument, body, plain)
                    case _:
                        plain.dropped.append(" ".join([method, *arguments]).strip())
                        text = "None"
                edits.append(Edit.of(node, text))
            case ast.Call(func=ast.Name(id="display")):
                edits.append(Edit.of(node.func, "print"))
    plain.code = edited(code, edits)
    return plain


def parsed(code: str) -> ast.Module | None:
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError):
        return None


def _shell(command: str, plain: Plain, captured: bool = False) -> str:
    if installing := _INSTALLING.match(command):
        plain.installed += packages_in(installing["what"])
        return "None"
    plain.imports.add("subprocess")
    if captured:
        return f"subprocess.run({literal(command)}, shell=True, capture_output=True, text=True).stdout.splitlines()"
    return f"subprocess.run({literal(command)}, shell=True)"


def literal(command: str) -> str:
    """Quote a command as a string; as an f-string if IPython would have inserted Python values into it."""
    if re.search(r"\{[^{}]+\}", command):
        formatted = "f" + quoted(command)
        if parsed(formatted) is not None:
            return formatted
    return quoted(command)


def quoted(text: str) -> str:
    """Write a string literal, with several lines if the text has several."""
    if "\n" in text and '"""' not in text and "\\" not in text and not text.endswith('"'):
        return f'"""{text}"""'
    return repr(text)


def _line_magic(name: str, argument: str, plain: Plain, whole: bool) -> str:
    """Translate a line magic to plain Python; `whole` allows statements instead of only an expression."""
    match name:
        case "matplotlib" | "load_ext" | "autoreload" | "config" | "colors" | "pinfo" | "pinfo2" | "precision":
            return "None"
        case "pip" | "conda" | "mamba" | "uv":
            plain.installed += packages_in(argument.partition("install")[2])
            return "None"
        case "cd":
            plain.imports.add("os")
            return f"os.chdir(os.path.expanduser({literal(argument.strip() or '~')}))"
        case "env" | "set_env" if pair := re.fullmatch(r"(\w+)[= ](.*)", argument.strip()):
            plain.imports.add("os")
            return f"os.environ.__setitem__({pair[1]!r}, {literal(pair[2])})"
        case "run" if argument.strip():
            plain.imports.add("runpy")
            return f'globals().update(runpy.run_path({argument.split()[0]!r}, run_name="__main__"))'
        case _ if name in _SHELLS:
            return _shell(argument, plain)
        case _ if name in _JUST_RUN and (tree := parsed(argument)) and tree.body:
            if whole or isinstance(tree.body[0], ast.Expr):
                return argument
    plain.dropped.append(f"%{name} {argument}".strip())
    return "None"


def _cell_magic(name: str, argument: str, body: str, plain: Plain) -> str:
    match name:
        case _ if name in _JUST_RUN and (inner := plain_python(body)) is not None:
            plain.imports |= inner.imports
            plain.installed += inner.installed
            plain.dropped += inner.dropped
            return inner.code.rstrip("\n")
        case _ if name in _SHELLS:
            return _shell(body, plain)
        case "writefile" | "file":
            appending, path = argument.strip().startswith("-a"), argument.split()[-1]
            return f"open({path!r}, {'a' if appending else 'w'!r}).write({quoted(body)})"
    plain.dropped.append(f"%%{name}")
    return "None"


def packages_in(arguments: str) -> list[str]:
    """List what a `pip install` line installs, without options and files."""
    try:
        parts = shlex.split(arguments)
    except ValueError:
        parts = arguments.split()
    return [part for part in parts if re.match(r"[A-Za-z0-9]", part) and not part.endswith((".txt", ".whl"))]


# -- edits at the places of nodes, so that comments and layout stay as they were ---------------------------------------


class Edit(NamedTuple):
    """Replace the text between two positions, each a line (from 1) and a column in UTF-8 bytes."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str

    @classmethod
    def of(cls, node: ast.expr | ast.stmt, text: str) -> Edit:
        begins = node.lineno
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.decorator_list:
            begins = node.decorator_list[0].lineno
        return cls((begins, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0), text)


def edited(code: str, edits: Iterable[Edit]) -> str:
    """Apply edits to code; if they are nested, only the outermost one."""
    whole, last = code.encode(), 0
    starts = [0, *(place.end() for place in re.finditer(rb"\n", whole))]
    parts: list[bytes] = []
    for edit in sorted(edits, key=lambda edit: (edit.start, (-edit.end[0], -edit.end[1]))):
        start, end = (starts[line - 1] + column for line, column in (edit.start, edit.end))
        if start < last:
            continue
        parts += [whole[last:start], edit.text.encode()]
        last = end
    return b"".join([*parts, whole[last:]]).decode()


def without(code: str, nodes: Iterable[ast.stmt]) -> str:
    """Remove top-level statements from code. Lines that held nothing else go with them."""
    kept = []
    for line in edited(code, [Edit.of(node, _GONE) for node in nodes]).split("\n"):
        # Other statements on the line are kept, but not its comment.
        rest = re.sub(rf"{_GONE}[ \t]*;[ \t]*|[ \t]*;[ \t]*{_GONE}|{_GONE}", "", line).strip("; \t")
        if _GONE not in line:
            kept.append(line)
        elif rest and not rest.startswith("#"):
            kept.append(rest)
    return "\n".join(kept)
