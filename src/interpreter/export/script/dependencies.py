"""What a program must have installed, with the versions that the session had."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from interpreter.export.script.environment import Installed

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
    found.lines = sorted((_pinned(name, installed) for name in names), key=str.lower)
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


def _pinned(name: str, installed: Installed) -> str:
    version = installed.versions.get(name)
    return f"{_normal(name)}=={version.partition('+')[0]}" if version else _normal(name)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
