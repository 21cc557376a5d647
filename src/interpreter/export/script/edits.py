"""Changes to source code at the places of its nodes, so that comments and layout stay as they were."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import NamedTuple

_GONE = "\0"  # cannot stand in source code


class Edit(NamedTuple):
    """Replace what stands between two places, each a line (from 1) and a column in bytes of UTF-8."""

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
    """The code with the changes made; of edits inside each other, the outermost counts."""
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
    """The code without these top-level statements; a line that held nothing else goes with them."""
    marked = edited(code, [Edit.of(node, _GONE) for node in nodes]).split("\n")
    kept = [line for line in marked if _GONE not in line or _rest(line)]
    return "\n".join(_rest(line) if _GONE in line else line for line in kept)


def _rest(line: str) -> str:
    """What else stands on a line with a statement that is gone: other statements, not its comment."""
    rest = re.sub(rf"{_GONE}[ \t]*;[ \t]*|[ \t]*;[ \t]*{_GONE}|{_GONE}", "", line).strip("; \t")
    return "" if rest.startswith("#") else rest
