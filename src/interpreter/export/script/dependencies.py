"""What a program imports and must have installed, with the versions that the session had."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from interpreter.errors import ExportError, SandboxUnavailableError
from interpreter.export.script.steps import without
from interpreter.runtimes.launch import Containment, Start, run_to_end

_ASK = """
import json, sys
from importlib import metadata
modules, versions = {}, {}
for one in metadata.distributions():
    name = one.metadata["Name"]
    if not name:
        continue
    versions.setdefault(name, one.version)
    tops = (one.read_text("top_level.txt") or "").split()
    if not tops:
        paths = [path.parts for path in one.files or []]
        tops = {parts[0] for parts in paths if len(parts) > 1 and parts[-1].endswith(".py")}
        tops |= {parts[0][:-3] for parts in paths if len(parts) == 1 and parts[0].endswith(".py")}
    for top in tops:
        modules.setdefault(top, []).append(name)
print(json.dumps({"python": list(sys.version_info[:2]), "modules": modules, "versions": versions}))
"""
_TIMEOUT = 120.0
_NAME = re.compile(r"[\w.!+-]+")
# Where one of these happens first, an import after it may mean something else than before it.
_BEFORE_IMPORTS = re.compile(r"\bsys\.path\b|\bos\.environ\b|\bputenv\(|\bmatplotlib\.use\(")
# What some functions import only when they are called, as it is imported.
_BEHIND = {
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
    """A Python with its packages."""

    python: tuple[int, int]
    modules: Mapping[str, list[str]] = field(default_factory=dict)
    """By what they are imported as, the packages that bring them."""
    versions: Mapping[str, str] = field(default_factory=dict)


def installed_for(python: str, environment: Mapping[str, str], containment: Containment | None = None) -> Installed:
    """Ask the session's Python what it has, in the session's sandbox. Code can have changed what it answers."""
    try:
        done = run_to_end(Start([python, "-c", _ASK], dict(environment), "/"), containment, b"", _TIMEOUT)
        if done.returncode:
            raise OSError(done.complaint)
        answer = json.loads(done.stdout)
        major, minor = map(int, answer["python"])
        modules = {
            str(name): list(filter(_NAME.fullmatch, map(str, names))) for name, names in answer["modules"].items()
        }
        versions = {name: str(version) for name, version in answer["versions"].items()}
    except (OSError, SandboxUnavailableError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ExportError(f"{python} could not be asked which packages it has: {error}") from error
    known = {name: version for name, version in versions.items() if _NAME.fullmatch(name) and _NAME.fullmatch(version)}
    return Installed((major, minor), modules, known)


@dataclass
class Dependencies:
    """Lines for the PEP 723 header, and what should be said about them."""

    lines: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def dependencies_of(code: str, installed: Installed, asked: Iterable[str], folder: str) -> Dependencies:
    """The packages behind the code's imports and those that the session installed by name."""
    found, names = Dependencies(), set[str]()
    tree = ast.parse(code)
    for module in sorted(_imported(tree)):
        if module in sys.stdlib_module_names:
            continue
        packages = installed.modules.get(module, [])
        if packages:
            names.add(packages[0])
        elif (Path(folder) / f"{module}.py").exists() or (Path(folder) / module).is_dir():
            found.notes.append(f"It imports `{module}` from the folder it was made in.")
        else:
            names.add(module)
            found.notes.append(f"`{module}` is not installed here: its package's name and version are a guess.")
    names |= _called_for(tree, installed) | _installed_by_name(asked, installed)
    for name in names:
        version = installed.versions.get(name, "").partition("+")[0]
        found.lines.append(f"{_normal(name)}=={version}" if version else _normal(name))
    found.lines.sort(key=str.lower)
    return found


def _imported(tree: ast.Module) -> set[str]:
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            modules.add(node.module.partition(".")[0])
    return modules


def _called_for(tree: ast.Module, installed: Installed) -> set[str]:
    if "pandas" not in _imported(tree):
        return set()
    called = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    modules = {_BEHIND[name] for name in called & _BEHIND.keys()}
    return {installed.modules[module][0] for module in modules if installed.modules.get(module)}


def _installed_by_name(asked: Iterable[str], installed: Installed) -> set[str]:
    have = {_normal(name): name for name in installed.versions}
    names = (_normal(re.split(r"[\[<>=!~;@ ]", words, maxsplit=1)[0]) for words in asked)
    return {have[name] for name in names if name in have}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


# -- imports: at the top, each once, only those that are used ----------------------------------------------------------


class Imports:
    """Collected from the steps, written in one place."""

    def __init__(self, installed: Container[str]) -> None:
        self._installed = installed
        self._nodes: list[ast.Import | ast.ImportFrom] = []
        self._added: set[str] = set()

    def add(self, line: str) -> None:
        """An import that our own lines need."""
        self._added.add(line)

    def taken_from(self, code: str) -> str:
        """The code without its imports, unless they depend on what was done before them."""
        settled = _BEFORE_IMPORTS.search(code) is None
        found = [
            node
            for node in ast.parse(code).body
            if isinstance(node, ast.Import | ast.ImportFrom) and self._may_move(node, settled)
        ]
        self._nodes += found
        return re.sub(r"\n{3,}", "\n\n\n", without(code, found)).strip("\n")

    def _may_move(self, node: ast.Import | ast.ImportFrom, settled: bool) -> bool:
        """Not a module of the folder, which an earlier step may have made; not before what it depends on."""
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            return True
        named = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        tops = [name.partition(".")[0] for name in named]
        known = all(top in sys.stdlib_module_names or top in self._installed for top in tops)
        return known and (settled or all(top in sys.stdlib_module_names for top in tops))

    def text(self, code: str) -> str:
        """The import lines that the code needs: the standard library's first, then the others."""
        used = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
        lines = {line for node in self._nodes for line in _lines(node, used)} | self._added
        groups: dict[int, list[str]] = {}
        for line in sorted(lines, key=lambda line: (line.startswith("from"), line)):
            groups.setdefault(_rank(line), []).append(line)
        return "\n\n".join("\n".join(groups[rank]) for rank in sorted(groups))


def _lines(node: ast.Import | ast.ImportFrom, used: set[str]) -> list[str]:
    if isinstance(node, ast.Import):
        # `import a.b` may be there for what it registers, whether its name is used or not.
        kept = [alias for alias in node.names if "." in alias.name or (alias.asname or alias.name) in used]
        return [ast.unparse(ast.Import([alias])) for alias in kept]
    if node.module == "__future__":
        return [ast.unparse(node)]
    names = [alias for alias in node.names if alias.name == "*" or (alias.asname or alias.name) in used]
    return [ast.unparse(ast.ImportFrom(node.module, names, node.level))] if names else []


def _rank(line: str) -> int:
    module = line.split()[1].partition(".")[0]
    if module == "__future__":
        return 0
    return 1 if module in sys.stdlib_module_names else 2
