"""Finds out what names and expressions in a Python block stand for, from its text alone."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterable, Mapping
from itertools import count, repeat

from interpreter.config.homes import home
from interpreter.policy.analysis.notes import HOLE, CodeLocation
from interpreter.policy.analysis.tables import (
    is_harmless,
    is_module,
    is_open_module,
    listed,
    python_aliases,
    python_calls,
)

_MAX_DEPTH = 12
_TEXTS = tuple(f"@text_{kind}" for kind in "home temporary here joined below beside same parent".split())
_BUILTIN = ("builtins", "__builtins__")
_ONLY_READ = frozenset({"len", "print", "sorted", "list", "reversed", "enumerate", "zip"})
_MAX_ROUNDS = 50
# Methods that return a text without a slash if neither the text nor the arguments have one.
_NAME_METHODS = frozenset(
    "lower upper title capitalize casefold swapcase strip lstrip rstrip replace zfill removeprefix removesuffix "
    "split rsplit partition rpartition format".split()
)
_OF_NAMES = frozenset({"str", "os.path.splitext", "pathlib.Path"})
_SAME_MODULE = {"posix": "os", "nt": "os"}
_NAMING = (
    ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.withitem, ast.For, ast.AsyncFor, ast.comprehension,
    ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.arg,
    ast.MatchAs, ast.MatchStar, ast.MatchMapping,
)  # fmt: skip


class PythonValues:
    """The names in a block: imports, and variables that are set once."""

    def __init__(self, nodes: Iterable[ast.AST], location: CodeLocation, imported: Mapping[str, str]) -> None:
        """Take the aliases under which earlier blocks imported something as `imported`."""
        self.location = location
        self.imports: dict[str, str] = {}
        self.stars: set[str] = set()  # modules of which everything was imported
        # Each value that is assigned to a name; None: an assignment that isn't followed.
        self.assigned: dict[str, list[ast.expr | None]] = {}
        self._followed: set[str] = set()
        self.iterated: dict[str, ast.expr] = {}
        self.defined: set[str] = set()
        self.captured: set[str] = set()  # names that a pattern of `match` sets: `case object(unlink=f)`
        self.round: Mapping[str, ast.expr] = {}  # the loop variables' values in the present round
        # For each loop variable: all variables of the loop, and the expression that it goes over.
        self._loops: dict[str, list[tuple[ast.expr, ast.expr]]] = {}
        self.calls: list[ast.Call] = []
        loaded: list[ast.Name] = []
        only_read: set[int] = set()
        for node in nodes:
            if isinstance(node, ast.Call):
                self.calls.append(node)
            if isinstance(node, _NAMING):
                self._enter(node)
            if isinstance(node, ast.For | ast.comprehension):
                only_read.add(id(node.iter))
                for part in ast.walk(node.target):
                    if isinstance(part, ast.Name):
                        self._loops.setdefault(part.id, []).append((node.target, node.iter))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _ONLY_READ:
                only_read |= set(map(id, node.args))
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                loaded.append(node)
        self._exposed = {node.id for node in loaded if id(node) not in only_read}  # they may be changed after being set
        self.imports |= {name: full for name, full in imported.items() if not self.bound(name)}

    def bound(self, name: str) -> bool:
        """Return whether the block itself defines the name."""
        return name in self.imports or name in self.assigned or name in self.defined

    def name(self, node: ast.AST, depth: int = 0) -> str:
        """Return an expression's full name, such as `pathlib.Path().unlink`; empty if unknown."""
        if depth > _MAX_DEPTH:
            return ""
        match node:
            case ast.Name(id=name):
                return self._name_of(name, depth)
            case ast.Attribute(value=value, attr=attr):
                base = self.name(value, depth + 1)
                full = f"{_SAME_MODULE.get(base, base)}.{attr}"
                if base in _BUILTIN or attr in listed("python.txt", "@guarded"):
                    return attr if full not in python_calls() else full
                # A module that another has imported: `pathlib.os` is `os`.
                is_imported = attr in sys.stdlib_module_names and is_module(base.partition(".")[0]) and "()" not in base
                if is_imported and full not in python_calls() and not is_module(full):
                    return attr
                return full if base else ""
            case ast.Call(func=func):
                base = self.name(func, depth + 1)
                if base in ("__import__", "importlib.import_module"):
                    return self.text(node.args[0]) if node.args and HOLE not in self.text(node.args[0]) else ""
                if not base and isinstance(func, ast.Attribute) and func.attr == "open":
                    return "open()"
                if base == "getattr":  # `getattr(os, "remove")` is `os.remove`
                    owner = self.name(node.args[0], depth + 1) if len(node.args) > 1 else ""
                    attr = self.text(node.args[1]) if owner else HOLE
                    return "" if HOLE in attr else f"{owner}.{attr}"
                # The type of a call's result.
                owner, _, method = base.rpartition(".")
                is_path = owner == "pathlib.Path()" and method in listed("python.txt", "@path_method")
                if is_path or base in listed("python.txt", "@path_class"):
                    return "pathlib.Path()"
                return f"{base}()" if base else ""
            case ast.BinOp(left=left, op=ast.Div()):
                return "pathlib.Path()" if self.name(left, depth + 1) == "pathlib.Path()" else ""
            case ast.Await(value=value) | ast.NamedExpr(value=value):
                return self.name(value, depth + 1)
        return ""

    def text(self, node: ast.AST | None, depth: int = 0) -> str:
        """Evaluate an expression to a text or path, with holes for what is unknown."""
        if node is None or depth > _MAX_DEPTH:
            return HOLE
        match node:
            case ast.Constant(value=str() as value):
                return value
            case ast.Constant(value=bytes() as value):
                return value.decode("utf-8", "replace")
            case ast.Constant(value=int() | float() as value):
                return str(value)
            case ast.JoinedStr(values=values):
                return "".join(self.text(part, depth + 1) for part in values)
            case ast.FormattedValue(value=value):
                return self.text(value, depth + 1)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self.text(left, depth + 1) + self.text(right, depth + 1)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return joined(self.text(left, depth + 1), self.text(right, depth + 1))
            case ast.BinOp(left=left, op=ast.Mod()):
                return self.text(left, depth + 1).split("%")[0] + HOLE
            case ast.Name(id=name):
                if name in self.round:
                    return self.text(self.round[name], depth + 1)
                if name in self.iterated:
                    return self._one_of(self.iterated[name], depth)
                return self.text(self.value(name), depth + 1)
            case ast.Attribute(value=value, attr="parent"):
                return self.text(value, depth + 1).rpartition("/")[0] or HOLE
            case ast.Subscript(value=ast.Call(func=func, args=[given]), slice=ast.Constant(value=int() as at)) if (
                self.name(func) == "os.path.splitext"
            ):
                text = self.text(given, depth + 1)
                parts = os.path.splitext(text) if HOLE not in text else (text, HOLE)
                return parts[at] if at in (0, 1) else HOLE
            case ast.Subscript(value=value, slice=ast.Constant(value="HOME")) if self.name(value) == "os.environ":
                return home()
            case ast.Call():
                return self._text_of_call(node, depth)
        return HOLE

    def path(self, node: ast.AST | None) -> str:
        """Evaluate an expression to a path; an unknown bare name is in the folder where the code is."""
        text = self.text(node)
        return f"./{text}" if text.startswith(HOLE) and node is not None and self._is_mere_name(node) else text

    def rounds(self, node: ast.AST | None) -> list[dict[str, ast.expr]]:
        """Return the loop variables' values for each round, if the call uses them and the loop runs over literals."""
        left = [node] if node is not None else []
        names: set[str] = set()
        while left:
            fresh = {part.id for part in ast.walk(left.pop()) if isinstance(part, ast.Name)} - names
            names |= fresh
            left += [value for name in fresh if (value := self.value(name)) is not None]
        for name in sorted(names & self._loops.keys()):
            target, over = self._loops[name][0]
            variables = target.elts if isinstance(target, ast.Tuple) else [target]
            items = self._items(over) if len(self.assigned.get(name, ())) == 1 else []
            rounds: list[dict[str, ast.expr]] = []
            for item in items[:_MAX_ROUNDS]:
                values = (
                    item.elts if isinstance(target, ast.Tuple) and isinstance(item, ast.Tuple | ast.List) else [item]
                )
                if len(values) == len(variables):
                    rounds.append(
                        {each.id: v for each, v in zip(variables, values, strict=True) if isinstance(each, ast.Name)}
                    )
            if rounds and len(rounds) == len(items):
                return rounds
        return [{}]

    def _items(self, node: ast.expr, depth: int = 0) -> list[ast.expr]:
        """Return the items of a literal list, dictionary or similar; empty if they are unknown."""
        if isinstance(node, ast.Name) and node.id not in self._exposed:
            node = self.value(node.id) or node
        if depth > _MAX_DEPTH:
            return []
        match node:
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                return [] if any(isinstance(item, ast.Starred) for item in items) else items
            case ast.Dict(keys=keys):
                return [key for key in keys if key is not None] if None not in keys else []
            case ast.Call(func=ast.Attribute(value=owner, attr="items"), args=[]):
                if isinstance(owner, ast.Name):
                    owner = self.value(owner.id) or owner
                pairs = zip(owner.keys, owner.values, strict=True) if isinstance(owner, ast.Dict) else ()
                return [ast.Tuple([key or value, value]) for key, value in pairs]
            case ast.Call(func=ast.Name(id="enumerate"), args=[over, *_]):
                numbers = count() if len(node.args) == 1 and not node.keywords else repeat(None)
                return [
                    ast.Tuple([ast.Constant(n), item])
                    for n, item in zip(numbers, self._items(over, depth + 1), strict=False)
                ]
            case ast.Call(func=ast.Name(id="zip"), args=parts):
                lists = [self._items(part, depth + 1) for part in parts]
                return [ast.Tuple(list(items)) for items in zip(*lists, strict=False)]
            case ast.Call(func=ast.Name(id="sorted" | "list" | "reversed"), args=[over]):
                return self._items(over, depth + 1)
        return []

    def _is_mere_name(self, node: ast.AST, depth: int = 0) -> bool:
        """Return whether this is certainly a file's name without a folder, or part of one."""

        def are(*nodes: ast.AST) -> bool:
            return depth < _MAX_DEPTH and all(self._is_mere_name(each, depth + 1) for each in nodes)

        match node:
            case ast.Constant(value=value):
                return not isinstance(value, str) or not (value in (".", "..") or re.search(r"[/\\]", value))
            case ast.JoinedStr(values=parts):
                return are(*parts)
            case ast.FormattedValue(value=value) | ast.Subscript(value=value):
                return are(value)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return are(left, right)
            case ast.Name(id=name):
                value = self.round.get(name) or self.value(name)
                return are(value) if value is not None else self._is_listed(name, depth)
            case ast.Attribute(value=value, attr="name" | "stem" | "suffix"):
                return self.name(value) == "pathlib.Path()"
            case ast.Call(func=ast.Attribute(value=owner, attr=method), args=given) if method in _NAME_METHODS:
                return are(owner, *given) and not node.keywords
            case ast.Call(func=func, args=[given]):
                name = self.name(func)
                return name in ("os.path.basename", "len", "int") or (name in _OF_NAMES and are(given))
        return False

    def _is_listed(self, name: str, depth: int) -> bool:
        """Return whether only loops set this variable, and only to bare names or numbers."""
        loops = self._loops.get(name, [])
        for target, over in loops:
            is_second = False
            if isinstance(target, ast.Tuple) and isinstance(over, ast.Call) and self.name(over.func) == "enumerate":
                if isinstance(target.elts[0], ast.Name) and target.elts[0].id == name:
                    continue
                is_second, over = True, over.args[0] if over.args else over
            if (isinstance(target, ast.Tuple) and not is_second) or not self._gives_names(over, depth + 1):
                return False
        return bool(loops) and len(loops) == len(self.assigned.get(name, ()))

    def _gives_names(self, node: ast.expr, depth: int) -> bool:
        """Return whether this is a list of bare names, such as a folder's content."""
        if isinstance(node, ast.Name) and node.id not in self._exposed:
            node = self.value(node.id) or node
        if depth > _MAX_DEPTH:
            return False
        if isinstance(node, ast.ListComp | ast.GeneratorExp):
            same = ast.dump(node.elt).replace("Load", "Store") == ast.dump(node.generators[0].target)
            return (
                self._gives_names(node.generators[0].iter, depth) if same else self._is_mere_name(node.elt, depth + 1)
            )
        name = self.name(node.func) if isinstance(node, ast.Call) else ""
        if name in ("sorted", "list", "reversed", "set") and isinstance(node, ast.Call) and node.args:
            return self._gives_names(node.args[0], depth + 1)
        items = self._items(node)
        are_names = bool(items) and all(self._is_mere_name(item, depth + 1) for item in items)
        return are_names or name in ("os.listdir", "range")

    def words(self, node: ast.AST | None) -> list[str] | None:
        """Return the strings in a list, in a tuple, or in a text that the code splits; otherwise None."""
        if isinstance(node, ast.Name):
            node = self.value(node.id)
        if isinstance(node, ast.Call):
            if self.name(node.func) == "shlex.split" and node.args:
                return self.text(node.args[0]).split()
            is_split = isinstance(node.func, ast.Attribute) and node.func.attr == "split" and not node.args
            return self._owner(node).split() or None if is_split else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self.words(node.left), self.words(node.right)
            return None if left is None and right is None else (left or [HOLE]) + (right or [HOLE])
        if not isinstance(node, ast.List | ast.Tuple):
            return None
        return ["python" if self.name(item) == "sys.executable" else self.text(item) for item in node.elts]

    def _name_of(self, name: str, depth: int) -> str:
        if name in self.imports:
            return self.imports[name]
        if name in self.iterated:
            return (
                "pathlib.Path()"
                if self.name(self.iterated[name], depth + 1) in listed("python.txt", "@paths_from")
                else ""
            )
        if name in self.assigned:
            if name in self._followed:
                return ""
            self._followed.add(name)
            kinds = {self.name(value, depth + 1) if value is not None else "" for value in self.assigned[name]}
            self._followed.discard(name)
            return kinds.pop() if len(kinds) == 1 else ""
        if name in self.defined:
            return ""
        everything = (f"{module}.{name}" for module in self.stars)
        full_names = (full for full in everything if full in python_calls() or is_harmless(full) or is_other(full))
        return next(full_names, python_aliases().get(name, name))

    def value(self, name: str) -> ast.expr | None:
        """Return the expression assigned to a name that is set exactly once; otherwise None."""
        values = self.assigned.get(name, [])
        return values[0] if len(values) == 1 else None

    def _one_of(self, node: ast.expr, depth: int) -> str:
        """Return the text of an item that a loop goes over: an entry of a folder, or an item of a list."""
        if isinstance(node, ast.List | ast.Tuple) and len(node.elts) == 1:
            return self.text(node.elts[0], depth + 1)
        if not isinstance(node, ast.Call) or depth > _MAX_DEPTH:
            return HOLE
        name = self.name(node.func, depth + 1)
        pattern = self.text(node.args[0], depth + 1) if node.args and name.startswith("pathlib.") else ""
        if (
            pattern == HOLE
            or ".." in pattern
            or not {"root_dir", "followlinks"}.isdisjoint(keyword.arg for keyword in node.keywords)
        ):
            return HOLE  # it leads elsewhere
        match name:
            case "os.walk" if node.args:
                return joined(self.text(node.args[0], depth + 1), "*")
            case "glob.glob" | "glob.iglob" if node.args:
                return self.text(node.args[0], depth + 1)
            case "sorted" | "list" | "reversed" if node.args:
                return self._one_of(node.args[0], depth + 1)
            case _ if f"{name}()" in listed("python.txt", "@paths_from"):
                return joined(self._owner(node, depth), "*")
        return HOLE

    def _owner(self, node: ast.Call, depth: int = 0) -> str:
        """Return the text of the object whose method is called."""
        return self.text(node.func.value, depth + 1) if isinstance(node.func, ast.Attribute) else HOLE

    def _text_of_call(self, node: ast.Call, depth: int) -> str:
        name = self.name(node.func)
        parts = [self.text(each, depth + 1) for each in node.args]
        owner = self._owner(node, depth)
        kind = next((kind for kind in _TEXTS if name in listed("python.txt", kind)), "")
        match kind or getattr(node.func, "attr", ""):
            case "@text_home":
                return home()
            case "@text_temporary":
                return f"/tmp/{HOLE}"
            case "@text_here":
                return self.location.cwd or HOLE
            case "@text_joined":
                return joined(*parts) if parts else "."
            case "@text_below":
                return joined(owner, *parts)
            case "@text_beside":
                return joined(owner.rpartition("/")[0], "*")
            case "@text_same":
                return parts[0] if parts else owner
            case "@text_parent" if parts:
                return parts[0].rpartition("/")[0] or HOLE
            case "format":
                return owner.split("{")[0] + HOLE
            case "join" if node.args:
                return owner.join(self.words(node.args[0]) or [HOLE])
        return HOLE

    def _enter(self, node: ast.AST) -> None:
        match node:
            case ast.Import(names=names):
                for alias in names:
                    root = alias.name.partition(".")[0]
                    self._import(alias.asname or root, alias.name if alias.asname else root)
            case ast.ImportFrom(module=module, names=names, level=level):
                self.stars |= {_SAME_MODULE.get(module or "", module or "") for alias in names if alias.name == "*"}
                owner = "." * level + (module or "")
                for alias in names:
                    full = alias.name if owner in _BUILTIN else f"{_SAME_MODULE.get(owner, owner)}.{alias.name}"
                    self._import(alias.asname or alias.name, full)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                self.defined.add(name)
            case (
                ast.MatchAs(name=str() as name)
                | ast.MatchStar(name=str() as name)
                | ast.MatchMapping(rest=str() as name)
            ):
                self.captured.add(name)
                self._assign(name, None)
            case ast.arg(arg=name):
                self._assign(name, None)
            case ast.For(target=ast.Name(id=name), iter=over) | ast.comprehension(target=ast.Name(id=name), iter=over):
                fresh = name not in self.assigned
                self._assign(name, None)
                if fresh:
                    self.iterated[name] = over
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.NamedExpr(target=ast.Name(id=name), value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                | ast.withitem(context_expr=value, optional_vars=ast.Name(id=name))
            ):
                self._assign(name, value)  # only simple assignments are followed
            case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Call() as value):
                self._assign_all(node)
                if self.name(value.func) == "os.path.splitext":
                    for at, part in enumerate(parts):
                        if isinstance(part, ast.Name):
                            self.assigned[part.id][-1] = ast.Subscript(value, ast.Constant(at))
            case ast.For(target=ast.Tuple(elts=[ast.Name(id=name), *_]), iter=ast.Call() as over):
                fresh = name not in self.assigned
                self._assign_all(node)
                if fresh and self.name(over.func) == "os.walk":
                    self.iterated[name] = over
            case _:
                self._assign_all(node)

    def _assign_all(self, node: ast.AST) -> None:
        """Mark the names that a statement sets as having unknown values; names in its body are not included."""
        targets = getattr(node, "targets", None) or [
            getattr(node, "target", None) or getattr(node, "optional_vars", None)
        ]
        for part in (part for target in filter(None, targets) for part in ast.walk(target)):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                self._assign(part.id, None)

    def _import(self, name: str, full: str) -> None:
        self.imports[name] = full if self.imports.get(name, full) == full else ""

    def _assign(self, name: str, value: ast.expr | None) -> None:
        self.assigned.setdefault(name, []).append(value)
        self.iterated.pop(name, None)


def is_other(name: str) -> bool:
    """Return whether `from module import *` may bring an `open` other than the builtin."""
    module, _, last = name.rpartition(".")
    return last == "open" and module != "pathlib" and not is_open_module(module)


def joined(*parts: str) -> str:
    path = ""
    for part in parts:
        path = part if part.startswith(("/", "~")) or not path else f"{path.rstrip('/')}/{part}"
    return path or HOLE
