"""Which names a block reads, binds and changes, and what else it does: by reading its code, without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from interpreter.export.script.known import ARGUMENTS_KEPT, FILE_MODULES, OPAQUE, WRITING
from interpreter.export.script.looking import (
    called_name,
    is_open_for_writing,
    is_target,
    only_looks,
    root_name,
    sources_of,
)

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.Match)


@dataclass
class Names:
    """What a piece of code does to the names around it."""

    reads: set[str] = field(default_factory=set)
    """Read before the code itself has bound them."""
    late: set[str] = field(default_factory=set)
    """Read in functions that it defines: whenever those are called."""
    binds: set[str] = field(default_factory=set)
    """Bound for certain, so that their earlier values do not matter."""
    may_bind: set[str] = field(default_factory=set)
    """Bound in a branch or a loop."""
    changes: set[str] = field(default_factory=set)
    """Changed in place: assigned into, or handed to something that may change them."""
    modules: dict[str, str] = field(default_factory=dict)
    """Names bound by imports, with the module of each."""
    alike: set[frozenset[str]] = field(default_factory=set)
    """Groups of names that may stand for parts of one object."""
    functions: dict[str, Names] = field(default_factory=dict)
    """What calling the functions that it defines does."""
    changes_arguments: bool = False
    """Of a function: it may change what it is given."""
    effects: bool = False
    """It changes files or something outside of the program."""
    opaque: bool = False
    """It reads and changes names in ways that cannot be seen."""
    star: bool = False
    awaits: bool = False

    @property
    def only_looks(self) -> bool:
        """Of a function: calling it changes nothing."""
        return not (self.effects or self.changes or self.changes_arguments or self.opaque)

    @property
    def writes(self) -> set[str]:
        return self.binds | self.may_bind | self.changes


class Known(dict[str, Names]):
    """The functions that earlier blocks defined, and the modules that they imported."""

    def __init__(self) -> None:
        super().__init__()
        self.modules: dict[str, str] = {}

    def learn(self, names: Names) -> None:
        self.update(names.functions)
        self.modules.update(names.modules)


def names_of(nodes: Iterable[ast.stmt], known: Known | None = None) -> Names:
    """What statements do to names; `known` tells what the functions of earlier blocks do."""
    reading = _Reading(known or Known())
    for node in nodes:
        reading.visit(node)
    return reading.names


class _Reading(ast.NodeVisitor):
    """Walks statements in the order in which they run."""

    def __init__(self, known: Known, parameters: Iterable[str] = ()) -> None:
        self.names = Names()
        self._known = known
        self._bound = set(parameters)
        self._certain = True

    # -- binding and reading -------------------------------------------------------------------------------------

    def _bind(self, name: str) -> None:
        if self._certain:
            self.names.binds.add(name)
        else:
            self.names.may_bind.add(name)
        self._bound.add(name)

    def _change(self, node: ast.expr) -> None:
        """Something of this object changes."""
        root = root_name(node)
        if root is not None:
            self.names.changes.add(root)
            # os.environ and its like are read by what runs later, without a name.
            self.names.effects |= is_target(node) and self._package(root) in FILE_MODULES

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            if node.id in OPAQUE:
                self.names.opaque = True
            if node.id not in self._bound:
                self.names.reads.add(node.id)
        elif isinstance(node.ctx, ast.Del):
            self.names.reads.add(node.id)
            self._bind(node.id)
        else:
            self._bind(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if not isinstance(node.ctx, ast.Load):
            self._change(node)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load):
            self._change(node)
        self.generic_visit(node)

    # -- statements ----------------------------------------------------------------------------------------------

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)
        self._relate(node.targets, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.annotation)
        if node.value is not None:
            self.visit(node.value)
            self.visit(node.target)
            self._relate([node.target], node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if isinstance(node.target, ast.Name):
            if node.target.id not in self._bound:
                self.names.reads.add(node.target.id)
            self.names.changes.add(node.target.id)  # a list grows in place, and its other names see it
        self.visit(node.target)

    def _relate(self, targets: list[ast.expr], value: ast.expr) -> None:
        """What a name is taken from may change when the name's object does."""
        bound = {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
        sources = {root for part in sources_of(value) if (root := root_name(part)) and not self._is_module(root)}
        if len(bound | sources) > 1:
            self.names.alike.add(frozenset(bound | sources))

    def _is_module(self, name: str) -> bool:
        return name in self._known.modules or name in self.names.modules

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            self._bind(name)
            self.names.modules[name] = alias.name if alias.asname else name

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            if alias.name == "*":
                self.names.star = True
            else:
                self._bind(alias.asname or alias.name)
                self.names.modules[alias.asname or alias.name] = f"{node.module or ''}.{alias.name}"

    def visit_Global(self, node: ast.Global) -> None:
        self.names.changes.update(node.names)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for outside in (*node.decorator_list, node.args, *filter(None, [node.returns])):
            self.visit(outside)
        inside = self._inside(node, node.body)
        self._bind(node.name)
        self.names.functions[node.name] = inside

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.args)
        self._inside(node, [ast.Expr(node.body)])

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for outside in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(outside)
        self._inside(node, node.body)
        self._bind(node.name)

    def visit_arguments(self, node: ast.arguments) -> None:
        for default in (*node.defaults, *filter(None, node.kw_defaults)):
            self.visit(default)

    def _inside(self, node: Function | ast.ClassDef, body: list[ast.stmt]) -> Names:
        """What the body does when it is called; what it reads is needed from then on."""
        parameters = [] if isinstance(node, ast.ClassDef) else [part.arg for part in all_arguments(node.args)]
        reading = _Reading(self._known, parameters)
        for statement in body:
            reading.visit(statement)
        inside, local = reading.names, reading.names.binds | reading.names.may_bind | set(parameters)
        outside = {name for part in body for one in ast.walk(part) if isinstance(one, ast.Global) for name in one.names}
        self.names.late |= (inside.reads | inside.late) - (local - outside)
        self.names.opaque |= inside.opaque
        inside.changes_arguments = bool(inside.changes & set(parameters))
        inside.changes = (inside.changes - (local - outside)) | outside
        return inside

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        self.names.awaits |= isinstance(node, ast.AsyncWith)
        self.generic_visit(node)

    visit_AsyncWith = visit_With

    def generic_visit(self, node: ast.AST) -> None:
        if not isinstance(node, _BRANCHES):
            super().generic_visit(node)
            return
        certain, bound = self._certain, set(self._bound)
        if isinstance(node, ast.For | ast.AsyncFor):
            self.names.awaits |= isinstance(node, ast.AsyncFor)
            self.visit(node.iter)
        self._certain = False
        super().generic_visit(node)
        self._certain, self._bound = certain, bound

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self._bind(node.name)
        self.generic_visit(node)

    # -- expressions ---------------------------------------------------------------------------------------------

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        before = set(self._bound)
        certain, self._certain = self._certain, False
        bound = {name.id for part in node.generators for name in ast.walk(part.target) if isinstance(name, ast.Name)}
        for part in node.generators:
            self.names.awaits |= bool(part.is_async)
            self.visit(part.iter)
            self._bound |= bound
            for condition in part.ifs:
                self.visit(condition)
        for element in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self.visit(element)
        self._bound, self._certain = before, certain

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp

    def visit_Await(self, node: ast.Await) -> None:
        self.names.awaits = True
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        if is_open_for_writing(node):
            self.names.effects = True
        called = self._function(node.func.id) if isinstance(node.func, ast.Name) else None
        if called is not None:
            self.names.changes |= called.changes
            self.names.effects |= called.effects
        if only_looks(node) or (called is not None and not called.changes_arguments):
            return
        self.names.effects |= called_name(node) in WRITING or self._package(root_name(node.func) or "") in FILE_MODULES
        if isinstance(node.func, ast.Attribute):
            self._change(node.func)
        if called_name(node) in ARGUMENTS_KEPT:
            return
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            self._change(argument)

    def _function(self, name: str) -> Names | None:
        return self.names.functions.get(name) or self._known.get(name)

    def _package(self, name: str) -> str:
        """The top-level package that a name was imported from, if it was."""
        module = self.names.modules.get(name) or self._known.modules.get(name, "")
        return module.partition(".")[0]


def all_arguments(arguments: ast.arguments) -> list[ast.arg]:
    starred = [part for part in (arguments.vararg, arguments.kwarg) if part is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *starred]
