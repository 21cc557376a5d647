"""The imports of a program: at its top, each once, only those that it uses."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Container

from interpreter.export.script.edits import without

# Where one of these happens first, an import after it may mean something else than before it.
_BEFORE_IMPORTS = re.compile(r"\bsys\.path\b|\bos\.environ\b|\bputenv\(|\bmatplotlib\.use\(")


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
