"""Print the size of the code, and fail if it exceeds the budget in size-budget.toml.

A statement is a node of the syntax tree, so the figure doesn't depend on layout or comments. A module with one importer
usually belongs in that importer.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
BUDGET = ROOT / "size-budget.toml"


class Module(NamedTuple):
    tree: ast.Module
    is_package: bool
    lines: int

    @property
    def statements(self) -> int:
        return sum(isinstance(node, ast.stmt) for node in ast.walk(self.tree))


class Size(NamedTuple):
    files: int
    lines: int
    statements: int
    one_importer: int


def read_modules(source: Path) -> dict[str, Module]:
    modules = {}
    for path in sorted(source.rglob("*.py")):
        name = ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        text = path.read_text(encoding="utf-8")
        modules[name] = Module(ast.parse(text), path.name == "__init__.py", text.count("\n"))
    return modules


def imported_names(name: str, module: Module) -> Iterator[tuple[str, str]]:
    """Each import as (module, name in it)."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = name.split(".") if module.is_package else name.split(".")[:-1]
                base = ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [base])])
            yield from ((base, alias.name) for alias in node.names)


def single_importers(modules: dict[str, Module]) -> set[str]:
    """Return the modules that exactly one other module imports. A package that only passes names on doesn't count."""
    importers: Counter[str] = Counter()
    for name, module in modules.items():
        if module.is_package:
            continue
        used = {
            f"{base}.{leaf}" if f"{base}.{leaf}" in modules else base for base, leaf in imported_names(name, module)
        }
        importers.update((used & modules.keys()) - {name})
    return {name for name, module in modules.items() if not module.is_package and importers[name] == 1}


def measure(source: Path) -> tuple[Size, dict[str, Size]]:
    """Measure the total, and each package."""
    modules = read_modules(source)
    single = single_importers(modules)
    packages: dict[str, list[str]] = {}
    for name in modules:
        packages.setdefault(".".join(name.split(".")[1:2]) or "interpreter", []).append(name)

    def total(names: list[str]) -> Size:
        chosen = [modules[name] for name in names]
        statements = sum(module.statements for module in chosen)
        return Size(len(names), sum(module.lines for module in chosen), statements, len(single & set(names)))

    return total(list(modules)), {package: total(names) for package, names in packages.items()}


def main() -> int:
    whole, packages = measure(ROOT / "src")
    if "--packages" in sys.argv:
        for package, size in sorted(packages.items(), key=lambda item: -item[1].statements):
            print(f"{package:16}{size.files:5} files{size.lines:7} lines{size.statements:7} statements")
    print(
        f"{whole.files} files, {whole.lines:,} lines, {whole.statements:,} statements, "
        f"{whole.one_importer} modules with one importer"
    )
    budget = tomllib.loads(BUDGET.read_text(encoding="utf-8"))
    too_large = [
        f"{what.replace('_', ' ')}: {getattr(whole, what):,}, the budget is {allowed:,}"
        for what, allowed in budget.items()
        if getattr(whole, what) > allowed
    ]
    if too_large:
        print("The code has outgrown its budget (size-budget.toml):", *too_large, sep="\n  ")
        print("Remove what your change made obsolete, or raise the budget in the same commit and say why.")
    return bool(too_large)


if __name__ == "__main__":
    sys.exit(main())
