"""What a source file defines: functions, classes and methods, with their signatures and docstrings."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from typing import Iterator, List, NamedTuple, Union

Function = (ast.FunctionDef, ast.AsyncFunctionDef)


class Definition(NamedTuple):
    """One of them; without a file where there is no source."""

    name: str
    signature: str
    doc: str
    file: str
    line: int


def defined_in(text: str, file: str, module: str) -> List[Definition]:
    """All that a source defines for others; nothing if it is not the Python that reads it."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    found = list(_defined(tree.body, file, module))
    doc = ast.get_docstring(tree)
    return [Definition(module, "", doc, file, 1), *found] if doc and module else found


def _defined(body: List[ast.stmt], file: str, above: str) -> Iterator[Definition]:
    for node in body:
        if isinstance(node, (ast.If, ast.Try)):
            yield from _defined(node.body, file, above)
        if not isinstance(node, (*Function, ast.ClassDef)) or node.name.startswith("_"):
            continue
        name = f"{above}.{node.name}" if above else node.name
        yield Definition(name, _signature(node), ast.get_docstring(node) or "", file, node.lineno)
        if isinstance(node, ast.ClassDef):
            yield from _defined(node.body, file, name)


def _signature(node: Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef]) -> str:
    if isinstance(node, ast.ClassDef):
        made = (each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__")
        first = next(made, None)
        return f"class {node.name}{_arguments(first) if first else ''}"
    kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {_source(node.returns)}" if node.returns is not None else ""
    return f"{kind} {node.name}{_arguments(node)}{returns}"


def _arguments(node: Union[ast.FunctionDef, ast.AsyncFunctionDef]) -> str:
    return f"({_source(node.args)})"


def _source(node: ast.AST) -> str:
    if hasattr(ast, "unparse"):
        return ast.unparse(node)
    if isinstance(node, ast.arguments):  # Python 3.8
        return ", ".join(each.arg for each in [*node.posonlyargs, *node.args, *node.kwonlyargs])
    return "..."


def defined_without_source(module: str) -> List[Definition]:
    """What a module of Python's own tells of itself, which was written in C."""
    loaded = import_module(module)
    found = []
    for name in dir(loaded):
        value = getattr(loaded, name)
        if name.startswith("_") or not callable(value):
            continue
        try:
            signature = f"def {name}{inspect.signature(value)}"
        except (TypeError, ValueError):
            signature = name
        found.append(Definition(f"{module}.{name}", signature, inspect.getdoc(value) or "", "", 0))
    return found
