"""The conversation as a program: the steps that the results need, in order, under a header that says what they need."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from interpreter.errors import ExportError
from interpreter.export import Conversation, Document, Program
from interpreter.export.notebook import leaves_state, shell_function
from interpreter.export.script.analysis import names_of
from interpreter.export.script.dependencies import Imports, Installed, dependencies_of
from interpreter.export.script.steps import Edit, Step, edited, is_show, quoted, steps_of, throws_result_away, without

_ALWAYS_THERE = frozenset(dir(builtins)) | {"display", "get_ipython", "__name__", "__file__", "__doc__"}
_DRAWING = frozenset({"matplotlib", "seaborn", "pandas", "plotnine"})
_SHOWS = re.compile(r"\.show\(")
_WIDTH = 100


def program(conversation: Conversation) -> Document:
    """The conversation as a program that does again what led to its results."""
    assert conversation.installed is not None
    installed, everything = conversation.installed(), conversation.everything
    steps = steps_of(conversation.entries, conversation.registry)
    choice = choose(steps.steps, everything)
    if not choice.kept:
        raise ExportError("There is nothing to make a program of: no block of Python or shell has led to a result.")
    writing = _Writing(choice, installed, everything)
    body = writing.body()
    needs = dependencies_of(body, installed, steps.installed, conversation.folder)
    notes = [*steps.notes, *choice.notes, *writing.notes, *needs.notes]
    text = f"{header(installed.python, needs.lines)}{_docstring(conversation.title, notes)}\n{body}"
    ast.parse(text)
    kept = [one.step for one in choice.kept if one.statements is None]
    pictures = [message for step in kept for message in step.block.outputs if message.get("type") == "image"]
    return Document(text, notes=notes, program=Program(text, len(steps.steps), len(kept), pictures))


def header(python: tuple[int, int], dependencies: Iterable[str]) -> str:
    """Inline script metadata (PEP 723): `uv run` and `pipx run` install what it names."""
    lines = "".join(f'#   "{line}",\n' for line in dependencies)
    listed = f"# dependencies = [\n{lines}# ]\n" if lines else "# dependencies = []\n"
    return f'# /// script\n# requires-python = ">={python[0]}.{python[1]}"\n{listed}# ///\n'


def _docstring(title: str, notes: Sequence[str]) -> str:
    text = title if title.endswith((".", "!", "?", "…")) else f"{title}."
    if notes:
        text += "\n\n" + "\n".join(f"- {note}" for note in notes) + "\n"
    text = text.replace("\\", "\\\\").replace('"""', "'''")
    return f'"""{text}"""\n' if not text.endswith('"') else f'"""{text} """\n'


# -- which steps: a walk from the last to the first, by names ----------------------------------------------------------


@dataclass
class Kept:
    """A step that stays: whole, as a result, or of a failed one only some statements."""

    step: Step
    is_result: bool
    statements: list[ast.stmt] | None = None


@dataclass
class Choice:
    """What is kept, in order, and what should be said about it."""

    kept: list[Kept] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def choose(steps: Sequence[Step], everything: bool = False) -> Choice:
    """Keep the results, and what they need; with `everything`, all that succeeded."""
    successful = [step for step in steps if not step.failed]
    results = {id(step) for step in _results(successful)}
    wanted = {id(step) for step in successful} if everything else results
    walk = _Walk(steps, wanted, results)
    while walk.run():  # functions may need names that were bound after them
        pass
    return walk.choice


def _results(steps: Sequence[Step]) -> Iterable[Step]:
    """Steps that changed a file, drew a figure or did something outside, and the last that printed."""
    found = []
    for step in steps:
        names = step.names
        if names.effects or names.opaque or names.star or step.shows_picture or throws_result_away(step):
            found.append(step)
    printing = [step for step in steps if step.kind == "python" and step.printed]
    if printing and not (found and printing[-1].only_shows_values):
        found.append(printing[-1])
    return found


class _Walk:
    """One pass is from the last step to the first; passes are repeated until nothing new is needed."""

    def __init__(self, steps: Sequence[Step], wanted: set[int], results: set[int]) -> None:
        self.choice = Choice()
        self._steps, self._wanted, self._results = steps, wanted, results
        self._groups = _Groups(steps)
        self._late: set[str] = set()
        self._first: dict[str, int] = {}  # the first successful step that binds a name
        for at, step in enumerate(steps):
            for name in () if step.failed else step.names.binds | step.names.may_bind:
                self._first.setdefault(name, at)

    def run(self) -> bool:
        """Walk once; True if the walk found names that steps behind it may have bound."""
        self.choice, before = Choice(), set(self._late)
        needed: set[str] = set()
        everything = False
        for at in range(len(self._steps) - 1, -1, -1):
            step = self._steps[at]
            if step.failed:
                self._look_at_failed(at, needed)
            elif id(step) in self._wanted or everything or self._is_needed(step, needed):
                self.choice.kept.insert(0, Kept(step, id(step) in self._results))
                needed -= step.names.binds
                needed |= step.names.reads | step.names.changes
                self._late |= step.names.late
                everything |= step.names.opaque
        self._name_missing(needed)
        return self._late != before

    def _is_needed(self, step: Step, needed: set[str]) -> bool:
        names = step.names
        changed = self._groups.with_relatives(names.changes)
        return bool((names.binds | names.may_bind | changed) & (needed | self._late))

    def _look_at_failed(self, at: int, needed: set[str]) -> None:
        """A failed step may have bound names that later ones read: those that no other step can have bound."""
        step = self._steps[at]
        earlier = {name for name in step.names.writes | step.names.reads if self._first.get(name, at) < at}
        missing = ((step.names.binds | step.names.may_bind) & (needed | self._late)) - earlier
        statements: list[ast.stmt] = []
        for node in reversed(step.body):
            names = names_of([node])
            if (names.binds | names.may_bind) & missing:
                statements.insert(0, node)
                missing -= names.binds
                needed -= names.binds
                needed |= names.reads
                missing |= (names.reads & (step.names.binds | step.names.may_bind)) - earlier
                self._late |= names.late
        if statements:
            self.choice.kept.insert(0, Kept(step, False, statements))
        modules = set(step.names.modules)
        doubtful = sorted((step.names.writes - modules) & needed & earlier)
        if doubtful:
            told = ", ".join(f"`{name}`" for name in doubtful)
            self.choice.notes.insert(0, f"A block that failed may have changed {told} before; that is not carried.")

    def _name_missing(self, needed: set[str]) -> None:
        bound = {name for kept in self.choice.kept for name in kept.step.names.binds | kept.step.names.may_bind}
        star = any(kept.step.names.star or kept.step.names.opaque for kept in self.choice.kept)
        missing = sorted(((needed | self._late) - bound - _ALWAYS_THERE) if not star else ())
        if missing:
            told = ", ".join(f"`{name}`" for name in missing)
            self.choice.notes.append(f"Not defined by any block that is carried: {told}.")


class _Groups:
    """Names that may stand for parts of one object: changing one may change the others."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._group: dict[str, set[str]] = {}
        packages: dict[str, set[str]] = {}
        for step in steps:
            for name, module in step.names.modules.items():
                packages.setdefault(module.partition(".")[0], set()).add(name)
            for alike in step.names.alike:
                self._join(alike)
        for names in packages.values():
            self._join(names)

    def _join(self, names: Iterable[str]) -> None:
        names = set(names)
        whole = names.union(*(self._group.get(name, set()) for name in names))
        for name in whole:
            self._group[name] = whole

    def with_relatives(self, names: set[str]) -> set[str]:
        return names.union(*(self._group.get(name, set()) for name in names))


# -- writing them ------------------------------------------------------------------------------------------------------


class _Writing:
    """Writes the kept steps one after the other."""

    def __init__(self, choice: Choice, installed: Installed, everything: bool) -> None:
        self._imports = Imports(installed.modules)
        self._kept = choice.kept
        self._everything = everything
        self.notes: list[str] = []
        shell = [one.step.code for one in self._kept if one.step.kind == "shell"]
        self._keeps_shell = any(map(leaves_state, shell))
        self._modules = {name: module for one in self._kept for name, module in one.step.names.modules.items()}
        self._read = set[str]().union(*(one.step.names.reads | one.step.names.late for one in self._kept))
        bound = {name for one in self._kept for name in one.step.names.binds | one.step.names.may_bind}
        self._shell_name = "shell" if "shell" not in bound else "in_shell"
        self._last_printing = next((one for one in reversed(self._kept) if one.step.printed and one.is_result), None)

    def body(self) -> str:
        """Imports, the function for shell commands if there is one, and the steps."""
        code = self._imports.taken_from("\n\n".join(self._pieces()))
        if names_of(ast.parse(code).body).awaits:
            self._imports.add("import asyncio")
            code = _in_event_loop(code)
        tops = [self._imports.text(code), shell_function(self._shell_name).strip("\n") if self._keeps_shell else ""]
        return "\n\n\n".join([*filter(None, tops), code]) + "\n"

    def _pieces(self) -> Iterator[str]:
        heading = ""
        for one in self._kept:
            code = self._code(one).strip("\n")
            if code.strip() and one.step.heading != heading:
                heading = one.step.heading
                short = heading if len(heading) <= _WIDTH else heading[: _WIDTH - 1].rstrip() + "…"
                code = f"# {short}\n{code}"
            if code.strip():
                yield code

    def _code(self, one: Kept) -> str:
        step = one.step
        for module in step.imports:
            self._imports.add(f"import {module}")
        if step.kind == "shell":
            return self._shell(step)
        if one.statements is not None:
            parts = [ast.get_source_segment(step.code, node) or ast.unparse(node) for node in one.statements]
            only_imports = all(isinstance(node, ast.Import | ast.ImportFrom) for node in one.statements)
            return "\n".join(parts if only_imports else ["# From a block that failed further on:", *parts])
        return self._python(one)

    def _shell(self, step: Step) -> str:
        if self._keeps_shell:
            return f"{self._shell_name}({quoted(step.code)})"
        self._imports.add("import subprocess")
        return f'subprocess.run(["bash", "-c", {quoted(step.code)}], check=True)'

    def _python(self, one: Kept) -> str:
        step = one.step
        code = step.code
        value = step.body[-1] if step.body and isinstance(step.body[-1], ast.Expr) else None
        printing = self._everything or one is self._last_printing
        if value is not None and printing and _shows_its_value(step, value):
            shown = ast.get_source_segment(code, value.value) or ast.unparse(value.value)
            code = edited(code, [Edit.of(value, f"print({shown})")])
            gone = [node for node in step.inspections if node is not value and not is_show(node)]
            # They stand before the last one, so that the edit there has not moved them.
            return self._with_figures(step, without(code, gone))
        keeps_prints = one.is_result or self._everything

        def prints(node: ast.stmt) -> bool:
            return is_show(node) or not isinstance(node, ast.Expr)

        gone = [node for node in step.inspections if not (keeps_prints and prints(node)) and not self._binds(node)]
        return self._with_figures(step, without(code, gone))

    def _binds(self, node: ast.stmt) -> bool:
        """Whether a loop leaves a name behind that something reads."""
        return bool(names_of([node]).may_bind & self._read)

    def _with_figures(self, step: Step, code: str) -> str:
        """Figures were shown at the end of a block; a program has to show them itself."""
        if not step.shows_picture or _SHOWS.search(code):
            return code
        packages = {module.partition(".")[0] for module in self._modules.values()}
        if not packages & _DRAWING:
            self.notes.append("An image that a block showed as its value is not shown by the program.")
            return code
        pyplot = next((name for name, module in self._modules.items() if module == "matplotlib.pyplot"), None)
        if pyplot is None:
            pyplot = "plt"
            self._imports.add("import matplotlib.pyplot as plt")
        return f"{code}\n{pyplot}.show()"


def _shows_its_value(step: Step, node: ast.Expr) -> bool:
    """Whether the block's last expression was shown because it has a value."""
    if is_show(node) or (isinstance(node.value, ast.Constant) and node.value.value is None):
        return False
    return step.printed and not step.shows_picture and not step.code.rstrip().endswith(";")


def _in_event_loop(code: str) -> str:
    """The steps in one coroutine; their names stay global, as they were in the session."""
    names = names_of(ast.parse(code).body)
    bound = sorted(names.binds | names.may_bind)
    declared = f"    global {', '.join(bound)}\n" if bound else ""
    name = "main" if "main" not in bound else "whole_program"
    return f"async def {name}():\n{declared}{_indented(code)}\n\n\nasyncio.run({name}())"


def _indented(code: str) -> str:
    """The code one level deeper; the inner lines of its strings stay as they are."""
    inside: set[int] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno and node.end_lineno > node.lineno:
            inside |= set(range(node.lineno + 1, node.end_lineno + 1))
    lines = code.split("\n")
    return "\n".join(
        line if number in inside or not line.strip() else f"    {line}" for number, line in enumerate(lines, 1)
    )
