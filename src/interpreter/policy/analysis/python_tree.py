"""A quick way over a syntax tree: operators and the marks of loading and storing are no nodes to look at."""

from __future__ import annotations

import ast

_MARKS = frozenset({"ctx", "op", "ops", "kind", "type_comment", "type_ignores"})
_LEAVES = (ast.Name, ast.Constant, ast.Pass, ast.Break, ast.Continue)
_fields: dict[type[ast.AST], tuple[str, ...]] = dict.fromkeys(_LEAVES, ())


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right below one, in the order of the text."""
    kind = type(node)
    names = _fields.get(kind)
    if names is None:
        names = _fields[kind] = tuple(name for name in kind._fields if name not in _MARKS)
    found: list[ast.AST] = []
    for name in names:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [each for each in value if isinstance(each, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def everything(tree: ast.AST) -> list[ast.AST]:
    """All nodes, the upper ones first, as `ast.walk` gives them."""
    found = [tree]
    for node in found:
        found += children(node)
    return found
