"""A call of a function that the table knows."""

from __future__ import annotations

import ast
from typing import NamedTuple

from interpreter.policy.analysis.notes import Doing, Notes
from interpreter.policy.analysis.python_table import Does
from interpreter.policy.analysis.python_values import Values


class Called(NamedTuple):
    """A call, or the mention of a function that somebody else will call (`node` is None)."""

    name: str
    node: ast.Call | None
    values: Values
    doing: Doing
    notes: Notes
    in_loop: bool

    def argument(self, does: Does) -> ast.expr | None:
        """The argument that an effect is about."""
        if self.node is None:
            return None
        if does.name == "self":
            return self.node.func.value if isinstance(self.node.func, ast.Attribute) else None
        if 0 <= does.at < len(self.node.args):
            return self.node.args[does.at]
        return self.keyword(does.name) if does.name else None

    def keyword(self, *names: str) -> ast.expr | None:
        keywords = self.node.keywords if self.node else []
        return next((each.value for each in keywords if each.arg in names), None)

    def text(self, does: Does) -> str:
        return self.values.text(self.argument(does))

    @property
    def spread(self) -> bool:
        """Are there arguments that only the run tells (`*args`, `**options`)?"""
        if self.node is None:
            return True
        stars = any(isinstance(each, ast.Starred) for each in self.node.args)
        return stars or any(each.arg is None for each in self.node.keywords)
