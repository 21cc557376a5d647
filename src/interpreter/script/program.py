"""The conversation as a program: the steps that the results need, in order, under a header with its dependencies."""

from __future__ import annotations

import ast
import builtins
import json
import re
import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from interpreter.errors import ExportError, SandboxUnavailableError
from interpreter.export import Document, ExportedConversation, ExportedProgram
from interpreter.export.notebook import leaves_state, shell_function
from interpreter.runtimes.launch import RuntimeSandbox, Start, run_to_end
from interpreter.script.analysis import names_of
from interpreter.script.steps import (
    Edit,
    ProgramStep,
    edited,
    is_show,
    quoted,
    steps_of,
    throws_result_away,
    without,
)

_ALWAYS_THERE = frozenset(dir(builtins)) | {"display", "get_ipython", "__name__", "__file__", "__doc__"}
_WIDTH = 100


def program(conversation: ExportedConversation) -> Document:
    assert conversation.installed is not None
    installed, everything = conversation.installed(), conversation.everything
    steps = steps_of(conversation.entries, conversation.registry)
    choice = StepChoice(steps.steps, everything)
    if not choice.kept:
        raise ExportError("There is nothing to export: no Python or shell block has produced a result.")
    writing = _ProgramWriter(choice, installed, everything)
    body = writing.body()
    needed, more_notes = dependencies_of(body, installed, steps.installed, conversation.folder)
    notes = [*steps.notes, *choice.notes, *writing.notes, *more_notes]
    text = f"{header(installed, needed, conversation.title, notes)}\n{body}"
    ast.parse(text)
    kept = [one.step for one in choice.kept if one.statements is None]
    pictures = [message for step in kept for message in step.block.outputs if message.get("type") == "image"]
    return Document(text, notes=notes, program=ExportedProgram(text, len(steps.steps), len(kept), pictures))


def header(installed: Installed, dependencies: Sequence[str], title: str, notes: Sequence[str]) -> str:
    """Write inline script metadata (PEP 723), which `uv run` and `pipx run` install, and a docstring.

    Our own table in it is the lock: the Python that ran the blocks, and every package that was installed for them.
    """
    major, minor, micro = installed.python
    lock = [f'#   "{line}",\n' for line in installed.lock(dependencies)]
    locked = f"# locked = [\n{''.join(lock)}# ]\n" if lock else ""
    lines = "".join(f'#   "{line}",\n' for line in dependencies)
    listed = f"# dependencies = [\n{lines}# ]\n" if lines else "# dependencies = []\n"
    text = title if title.endswith((".", "!", "?", "…")) else f"{title}."
    if notes:
        text += "\n\n" + "\n".join(f"- {note}" for note in notes) + "\n"
    text = text.replace("\\", "\\\\").replace('"""', "'''") + (" " if text.endswith('"') else "")
    ours = f'#\n# [tool.open-interpreter]\n# python = "{major}.{minor}.{micro}"\n{locked}'
    return f'# /// script\n# requires-python = ">={major}.{minor}"\n{listed}{ours}# ///\n"""{text}"""\n'


# -- which steps: a walk from the last to the first, by names ----------------------------------------------------------


@dataclass
class KeptStep:
    """A step of the program: the whole step, or from a failed one only some statements."""

    step: ProgramStep
    is_result: bool
    statements: list[ast.stmt] | None = None


class StepChoice:
    """Chooses the steps to keep, in order, and collects notes about them.

    It keeps the results and what they need; with `everything`, all steps that succeeded. A pass goes from the last step
    to the first. It is repeated until nothing new is needed, since functions may need names that were bound after them.
    """

    def __init__(self, steps: Sequence[ProgramStep], everything: bool) -> None:
        successful = [step for step in steps if not step.failed]
        self._steps, self._results = steps, _results(successful)
        self._wanted = {id(step) for step in successful} if everything else self._results
        self._alias_groups = _alias_groups(steps)
        self._late: set[str] = set()
        self._first: dict[str, int] = {}  # the first successful step that binds a name
        for at, step in enumerate(steps):
            for name in () if step.failed else step.names.binds | step.names.may_bind:
                self._first.setdefault(name, at)
        known = None
        while known != self._late:
            known = set(self._late)
            self._walk()

    def _walk(self) -> None:
        self.kept: list[KeptStep] = []
        self.notes: list[str] = []
        needed: set[str] = set()
        everything = False
        for at, step in reversed(list(enumerate(self._steps))):
            names = step.names
            if step.failed:
                self._look_at_failed(at, needed)
                continue
            changed = names.changes.union(*(self._alias_groups.get(name, ()) for name in names.changes))
            is_needed = (names.binds | names.may_bind | changed) & (needed | self._late)
            if id(step) in self._wanted or everything or is_needed:
                self.kept.insert(0, KeptStep(step, id(step) in self._results))
                needed -= names.binds
                needed |= names.reads | names.changes
                self._late |= names.late
                everything |= names.opaque
        kept = [one.step.names for one in self.kept]
        bound = {name for names in kept for name in names.binds | names.may_bind}
        missing = (needed | self._late) - bound - _ALWAYS_THERE
        if missing and not any(names.star or names.opaque for names in kept):
            self.notes.append(f"Not defined by any included block: {_listed(missing)}.")

    def _look_at_failed(self, at: int, needed: set[str]) -> None:
        """Keep the statements of a failed step that bind names which later steps need and no other step binds."""
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
            self.kept.insert(0, KeptStep(step, False, statements))
        doubtful = (step.names.writes - step.names.modules.keys()) & needed & earlier
        if doubtful:
            self.notes.insert(0, f"A block that failed, and is left out here, may have changed {_listed(doubtful)}.")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def _results(steps: Sequence[ProgramStep]) -> set[int]:
    """Collect the ids of steps that are results: they have effects or drew a figure, or are the last that printed."""
    results = set()
    for step in steps:
        names = step.names
        if names.effects or names.opaque or names.star or step.shows_picture or throws_result_away(step):
            results.add(id(step))
    printing = [step for step in steps if step.kind == "python" and step.printed]
    if printing:
        last, shown = printing[-1], printing[-1].inspections
        only_values = shown == last.body and all(isinstance(node, ast.Expr) and not is_show(node) for node in shown)
        if not (results and only_values):
            results.add(id(last))
    return results


def _alias_groups(steps: Sequence[ProgramStep]) -> dict[str, set[str]]:
    """Map each name to all names that may share an object with it, since changing one may change the others."""
    packages: dict[str, set[str]] = {}
    for step in steps:
        for name, module in step.names.modules.items():
            packages.setdefault(module.partition(".")[0], set()).add(name)
    groups: dict[str, set[str]] = {}
    for names in (*(alike for step in steps for alike in step.names.alike), *packages.values()):
        whole = set(names).union(*(groups.get(name, ()) for name in names))
        groups.update(dict.fromkeys(whole, whole))
    return groups


# -- writing them ------------------------------------------------------------------------------------------------------


class _ProgramWriter:
    def __init__(self, choice: StepChoice, installed: Installed, everything: bool) -> None:
        self._installed = installed.modules
        self._added: set[str] = set()  # import lines that code added by us needs
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
        """Join the imports, the function for shell commands if there is one, and the steps."""
        pieces, heading = [], ""
        for one in self._kept:
            code = self._code(one).strip("\n")
            if code.strip() and one.step.heading != heading:
                heading = one.step.heading
                short = heading if len(heading) <= _WIDTH else heading[: _WIDTH - 1].rstrip() + "…"
                code = f"# {short}\n{code}"
            if code.strip():
                pieces.append(code)
        code = "\n\n".join(pieces)
        imports = top_imports(code, self._installed)
        code = re.sub(r"\n{3,}", "\n\n\n", without(code, imports)).strip("\n")
        names = names_of(ast.parse(code).body)
        if names.awaits:
            self._added.add("import asyncio")
            code = _in_event_loop(code, sorted(names.binds | names.may_bind))
        tops = [
            import_lines(imports, self._added, code),
            shell_function(self._shell_name).strip("\n") if self._keeps_shell else "",
        ]
        return "\n\n\n".join([*filter(None, tops), code]) + "\n"

    def _code(self, one: KeptStep) -> str:
        step = one.step
        self._added |= {f"import {module}" for module in step.imports}
        if step.kind == "shell" and self._keeps_shell:
            return f"{self._shell_name}({quoted(step.code)})"
        if step.kind == "shell":
            self._added.add("import subprocess")
            return f'subprocess.run(["bash", "-c", {quoted(step.code)}], check=True)'
        if one.statements is not None:
            parts = [ast.get_source_segment(step.code, node) or ast.unparse(node) for node in one.statements]
            only_imports = all(isinstance(node, ast.Import | ast.ImportFrom) for node in one.statements)
            return "\n".join(parts if only_imports else ["# From a block that failed later on:", *parts])
        return self._python(one)

    def _python(self, one: KeptStep) -> str:
        step, code = one.step, one.step.code
        value = step.body[-1] if step.body and isinstance(step.body[-1], ast.Expr) else None
        printing = self._everything or one is self._last_printing
        if value is not None and printing and _shows_its_value(step, value):
            shown = ast.get_source_segment(code, value.value) or ast.unparse(value.value)
            code = edited(code, [Edit.of(value, f"print({shown})")])
            # They come before the last one, so the edit above has not moved them.
            gone = [node for node in step.inspections if node is not value and not is_show(node)]
        else:
            keeps_prints = one.is_result or self._everything
            gone = [
                node
                for node in step.inspections
                if not (keeps_prints and (is_show(node) or not isinstance(node, ast.Expr)))
                and not names_of([node]).may_bind & self._read  # a loop may leave a name behind
            ]
        return self._with_figures(step, without(code, gone))

    def _with_figures(self, step: ProgramStep, code: str) -> str:
        """Add a call that shows figures, which the session showed at the end of the block without one."""
        if not step.shows_picture or re.search(r"\.show\(", code):
            return code
        packages = {module.partition(".")[0] for module in self._modules.values()}
        if not packages & {"matplotlib", "seaborn", "pandas", "plotnine"}:
            self.notes.append("The program does not show an image that a block returned as its value.")
            return code
        pyplot = next((name for name, module in self._modules.items() if module == "matplotlib.pyplot"), None)
        if pyplot is None:
            pyplot = "plt"
            self._added.add("import matplotlib.pyplot as plt")
        return f"{code}\n{pyplot}.show()"


def _shows_its_value(step: ProgramStep, node: ast.Expr) -> bool:
    """Check whether the session showed the block's last expression because it has a value."""
    if is_show(node) or (isinstance(node.value, ast.Constant) and node.value.value is None):
        return False
    return step.printed and not step.shows_picture and not step.code.rstrip().endswith(";")


def _in_event_loop(code: str, bound: Sequence[str]) -> str:
    """Put the steps into one coroutine; their names stay global, as they were in the session."""
    inside: set[int] = set()  # lines inside strings are not indented
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno and node.end_lineno > node.lineno:
            inside |= set(range(node.lineno + 1, node.end_lineno + 1))
    lines = enumerate(code.split("\n"), 1)
    indented = "\n".join(line if at in inside or not line.strip() else f"    {line}" for at, line in lines)
    declared = f"    global {', '.join(bound)}\n" if bound else ""
    name = "main" if "main" not in bound else "whole_program"
    return f"async def {name}():\n{declared}{indented}\n\n\nasyncio.run({name}())"


# -- what it imports and must have installed ---------------------------------------------------------------------------


_LIST_PACKAGES_SCRIPT = """
import json, re, sys
from importlib import metadata
modules, versions, needs = {}, {}, {}
for one in metadata.distributions():
    name = one.metadata["Name"]
    if not name:
        continue
    versions.setdefault(name, one.version)
    needed = [each for each in one.requires or [] if "extra ==" not in each]
    needs.setdefault(name, [re.match(r"[\\w.-]*", each).group() for each in needed])
    tops = (one.read_text("top_level.txt") or "").split()
    if not tops:
        paths = [path.parts for path in one.files or []]
        tops = {parts[0] for parts in paths if len(parts) > 1 and parts[-1].endswith(".py")}
        tops |= {parts[0][:-3] for parts in paths if len(parts) == 1 and parts[0].endswith(".py")}
    for top in tops:
        modules.setdefault(top, []).append(name)
print(json.dumps({"python": list(sys.version_info[:3]), "modules": modules, "versions": versions, "needs": needs}))
"""
_TIMEOUT = 120.0
_NAME = re.compile(r"[\w.!+-]+")
_BAD_ANSWERS = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
# After code that matches one of these, an import may load a different module than before it.
_BEFORE_IMPORTS = re.compile(r"\bsys\.path\b|\bos\.environ\b|\bputenv\(|\bmatplotlib\.use\(")
# Modules that pandas imports only when these functions are called.
_LAZY_IMPORTS = {
    "read_excel": "openpyxl",
    "to_excel": "openpyxl",
    "read_parquet": "pyarrow",
    "to_parquet": "pyarrow",
    "read_feather": "pyarrow",
    "to_feather": "pyarrow",
    "read_html": "lxml",
    "to_markdown": "tabulate",
    "plot": "matplotlib",
}


@dataclass(frozen=True)
class Installed:
    """A Python installation with its packages."""

    python: tuple[int, int, int]
    modules: Mapping[str, list[str]] = field(default_factory=dict)  # by import name, the packages that provide it
    versions: Mapping[str, str] = field(default_factory=dict)
    needs: Mapping[str, list[str]] = field(default_factory=dict)  # by package, the names of its dependencies

    def lock(self, needed: Iterable[str]) -> list[str]:
        """Pin these packages, given as `name==version`, and all that they depend on, to the installed versions."""
        have = {_normalized(name): name for name in self.versions}
        locked, todo = set[str](), [line.partition("==")[0] for line in needed]
        while todo:
            name = todo.pop()
            if name in have and name not in locked:
                locked.add(name)
                todo += map(_normalized, self.needs.get(have[name], ()))
        return sorted(f"{name}=={self.versions[have[name]]}" for name in locked)


def installed_for(python: str, environment: Mapping[str, str], containment: RuntimeSandbox | None = None) -> Installed:
    """List the Python and packages of the session, in its sandbox. Code can forge the answer, so it is checked."""
    try:
        done = run_to_end(
            Start([python, "-c", _LIST_PACKAGES_SCRIPT], dict(environment), "/"), containment, b"", _TIMEOUT
        )
        if done.returncode:
            raise OSError(done.complaint)
        answer = json.loads(done.stdout)
        major, minor, micro = map(int, answer["python"])
        modules = {
            str(name): list(filter(_NAME.fullmatch, map(str, names))) for name, names in answer["modules"].items()
        }
        versions = {name: str(version) for name, version in answer["versions"].items()}
        needs = {str(name): list(map(str, names)) for name, names in answer["needs"].items()}
    except (OSError, SandboxUnavailableError, *_BAD_ANSWERS) as error:
        raise ExportError(f"Can't list the packages of {python}: {error}") from error
    known = {name: version for name, version in versions.items() if _NAME.fullmatch(name) and _NAME.fullmatch(version)}
    return Installed((major, minor, micro), modules, known, needs)


def dependencies_of(code: str, installed: Installed, asked: Iterable[str], folder: str) -> tuple[list[str], list[str]]:
    """Find the packages that the code imports or that the session installed by name.

    Returns them with notes about them.
    """
    tree, names, notes = ast.parse(code), set[str](), []
    imported: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                imported |= {alias.name.partition(".")[0] for alias in aliases}
            case ast.ImportFrom(level=0, module=str(module)):
                imported.add(module.partition(".")[0])
    for module in sorted(imported - sys.stdlib_module_names):
        if packages := installed.modules.get(module):
            names.add(packages[0])
        elif (Path(folder) / f"{module}.py").exists() or (Path(folder) / module).is_dir():
            notes.append(f"It imports `{module}` from the folder it was created in.")
        else:
            names.add(module)
            notes.append(f"`{module}` is not installed here, so its package name and version are a guess.")
    if "pandas" in imported:
        called = {_LAZY_IMPORTS.get(node.attr, "") for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        names |= {packages[0] for module in called if (packages := installed.modules.get(module))}
    have = {_normalized(name): name for name in installed.versions}
    wanted = (_normalized(re.split(r"[\[<>=!~;@ ]", spec, maxsplit=1)[0]) for spec in asked)
    names |= {have[name] for name in wanted if name in have}
    versions = {name: installed.versions.get(name, "").partition("+")[0] for name in names}
    lines = [_normalized(name) + (f"=={version}" if version else "") for name, version in versions.items()]
    return sorted(lines, key=str.lower), notes


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def top_imports(code: str, installed: Container[str]) -> list[ast.Import | ast.ImportFrom]:
    """List the imports that can move to the top of the program, because nothing that runs before changes their meaning.

    Modules in the folder stay in place: an earlier step may have created them.
    """
    settled = _BEFORE_IMPORTS.search(code) is None
    imports = []
    for node in ast.parse(code).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            named = [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
            others = {name.partition(".")[0] for name in named} - sys.stdlib_module_names
            if not others or (settled and all(module in installed for module in others)):
                imports.append(node)
    return imports


def import_lines(nodes: Iterable[ast.Import | ast.ImportFrom], added: set[str], code: str) -> str:
    """List the import lines that the code needs, each once: the standard library's first, then the others."""
    used = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    lines = {line for node in nodes for line in _lines(node, used)} | added
    ordered = sorted(lines, key=lambda line: (_rank(line), line.startswith("from"), line))
    return "\n\n".join("\n".join(group) for _, group in groupby(ordered, _rank))


def _lines(node: ast.Import | ast.ImportFrom, used: set[str]) -> list[str]:
    if isinstance(node, ast.Import):
        # Keep `import a.b` even if its name isn't used: it may be imported for what it registers.
        kept = [alias for alias in node.names if "." in alias.name or (alias.asname or alias.name) in used]
        return [ast.unparse(ast.Import([alias])) for alias in kept]
    if node.module == "__future__":
        return [ast.unparse(node)]
    names = [alias for alias in node.names if alias.name == "*" or (alias.asname or alias.name) in used]
    return [ast.unparse(ast.ImportFrom(node.module, names, node.level))] if names else []


def _rank(line: str) -> int:
    module = line.split()[1].partition(".")[0]
    return 0 if module == "__future__" else 1 if module in sys.stdlib_module_names else 2
