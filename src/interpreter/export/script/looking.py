"""Single calls, expressions and statements: what they begin with, and whether they only look at things."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING

from interpreter.export.script.known import PURE_FUNCTIONS, PURE_METHODS, SHOWING

if TYPE_CHECKING:
    from interpreter.export.script.names import Names


def root_name(node: ast.expr) -> str | None:
    """The name that `name.attribute[index].method()` begins with."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred | ast.Await):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return None
    return node.id


def is_target(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load)


def sources_of(value: ast.expr) -> list[ast.expr]:
    """The expressions that the value may share an object with: not those that make a new one."""
    match value:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [source for part in parts for source in sources_of(part)]
        case ast.Call() if only_looks(value):
            return []
        case ast.Call(func=ast.Attribute()) | ast.Name() | ast.Attribute() | ast.Subscript() | ast.Starred():
            return [value]
        case ast.IfExp(body=body, orelse=orelse):
            return [*sources_of(body), *sources_of(orelse)]
    return []


def called_name(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def only_looks(call: ast.Call, functions: Mapping[str, Names] | None = None) -> bool:
    """Whether a call is known to change nothing; `functions` are those that the conversation defined."""
    if any(keyword.arg == "inplace" for keyword in call.keywords):
        return False
    match call.func:
        case ast.Name(id=name) if functions and name in functions:
            return functions[name].only_looks
        case ast.Name(id=name):
            return name in PURE_FUNCTIONS | SHOWING or (name == "open" and not is_open_for_writing(call))
        case ast.Attribute(attr="sample"):
            return any(keyword.arg == "random_state" for keyword in call.keywords)
        case ast.Attribute(attr=name):
            return name in PURE_METHODS
    return False


def is_open_for_writing(call: ast.Call) -> bool:
    name = called_name(call)
    if name != "open":
        return False
    position = 1 if isinstance(call.func, ast.Name) else 0
    given = [keyword.value for keyword in call.keywords if keyword.arg == "mode"] or call.args[position : position + 1]
    if not given:
        return False
    mode = given[0]
    return not isinstance(mode, ast.Constant) or bool(set(str(mode.value)) & set("wax+"))


def is_inspection(node: ast.stmt, functions: Mapping[str, Names]) -> bool:
    """Whether a statement only shows something, so that nothing later can depend on it."""

    def look(value: ast.expr) -> bool:
        return expression_only_looks(value, functions)

    match node:
        case ast.Pass():
            return True
        case ast.Expr(value=value):
            return look(value)
        case ast.For(iter=value, body=body, orelse=orelse) | ast.If(test=value, body=body, orelse=orelse):
            return look(value) and all(is_inspection(part, functions) for part in [*body, *orelse])
    return False


def expression_only_looks(node: ast.expr, functions: Mapping[str, Names]) -> bool:
    for part in ast.walk(node):
        if isinstance(part, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr):
            return False
        if isinstance(part, ast.Call) and not only_looks(part, functions):
            return False
    return True
