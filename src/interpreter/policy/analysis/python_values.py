"""What names and expressions of a Python block stand for, as far as its text tells."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping

from interpreter.config.homes import home
from interpreter.policy.analysis.notes import HOLE, Places
from interpreter.policy.analysis.tables import is_harmless, is_module, listed, python_aliases, python_calls

_DEEPEST = 12
_JOINING = ("os.path.join", "pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath")
_SAME = (
    "os.path.expanduser", "os.path.abspath", "os.path.realpath", "os.path.normpath", "os.fspath", "str",
    "os.path.expandvars", "pathlib.Path().expanduser", "pathlib.Path().resolve", "pathlib.Path().absolute",
    "pathlib.Path().as_posix",
)  # fmt: skip
_UNDER = ("pathlib.Path().glob", "pathlib.Path().rglob", "pathlib.Path().iterdir", "glob.glob", "glob.iglob")
_PATHS_FROM = frozenset(f"{name}()" for name in _UNDER[:3])
_PATHS_TOO = frozenset(
    "expanduser resolve absolute joinpath with_suffix with_name with_stem relative_to rename".split()
)
_BUILTIN = ("builtins", "__builtins__")
_SAME_MODULE = {"posix": "os", "nt": "os"}
_FIXED = ("os.getcwd", "pathlib.Path.cwd", "pathlib.Path.home", "tempfile.gettempdir", "tempfile.mkdtemp")
_SETTING = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.withitem, ast.For, ast.comprehension)

_NAMING = (*_SETTING, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.arg)


class Values:
    """The names of a block: what was imported, and what was set once."""

    def __init__(self, nodes: Iterable[ast.AST], places: Places, imported: Mapping[str, str]) -> None:
        """`imported`: what blocks before this one have imported under another name."""
        self.places = places
        self.imports: dict[str, str] = {}
        self.stars: set[str] = set()
        """Modules of which everything was imported."""
        self.assigned: dict[str, list[ast.expr | None]] = {}
        """Each value that a name is given; None: by something that is not followed."""
        self._followed: set[str] = set()
        self.iterated: dict[str, ast.expr] = {}
        self.defined: set[str] = set()
        for node in nodes:
            if isinstance(node, _NAMING):
                self._enter(node)
        for name, full in imported.items():
            if not self.bound(name):
                self.imports[name] = full

    def bound(self, name: str) -> bool:
        """Does the block itself give the name a meaning?"""
        return name in self.imports or name in self.assigned or name in self.defined

    def name(self, node: ast.AST, depth: int = 0) -> str:
        """The whole name of what an expression is, such as `pathlib.Path().unlink`; empty if it cannot be told."""
        if depth > _DEEPEST:
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
                return self._attribute(node.args, depth) if base == "getattr" else _result(base)
            case ast.BinOp(left=left, op=ast.Div()):
                return "pathlib.Path()" if self.name(left, depth + 1) == "pathlib.Path()" else ""
            case ast.Await(value=value) | ast.NamedExpr(value=value):
                return self.name(value, depth + 1)
        return ""

    def text(self, node: ast.AST | None, depth: int = 0) -> str:
        """The text or path that an expression gives, with holes."""
        if node is None or depth > _DEEPEST:
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
                return self._text_of(name, depth)
            case ast.Attribute(value=value, attr="parent"):
                return self.text(value, depth + 1).rpartition("/")[0] or HOLE
            case ast.Subscript(value=value, slice=ast.Constant(value="HOME")) if self.name(value) == "os.environ":
                return home()
            case ast.Call():
                return self._text_of_call(node, depth)
        return HOLE

    def _attribute(self, args: list[ast.expr], depth: int) -> str:
        """`getattr(os, "remove")` is `os.remove`."""
        owner, name = (self.name(args[0], depth + 1), self.text(args[1])) if len(args) > 1 else ("", HOLE)
        return f"{owner}.{name}" if owner and HOLE not in name else ""

    def words(self, node: ast.AST | None) -> list[str] | None:
        """The words of a list or tuple, or of a text that is split; None if it is something else."""
        if isinstance(node, ast.Name):
            node = self.value(node.id)
        if isinstance(node, ast.Call):
            return self._split(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self.words(node.left), self.words(node.right)
            return None if left is None and right is None else (left or [HOLE]) + (right or [HOLE])
        if not isinstance(node, ast.List | ast.Tuple):
            return None
        return [self._word(item) for item in node.elts]

    def _split(self, node: ast.Call) -> list[str] | None:
        if self.name(node.func) == "shlex.split" and node.args:
            return self.text(node.args[0]).split()
        if isinstance(node.func, ast.Attribute) and node.func.attr == "split" and not node.args:
            return self.text(node.func.value).split() or None
        return None

    def _word(self, node: ast.expr) -> str:
        return "python" if self.name(node) == "sys.executable" else self.text(node)

    def _name_of(self, name: str, depth: int) -> str:
        if name in self.imports:
            return self.imports[name]
        if name in self.iterated:
            return "pathlib.Path()" if self.name(self.iterated[name], depth + 1) in _PATHS_FROM else ""
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
        found = (full for full in everything if full in python_calls() or is_harmless(full))
        return next(found, python_aliases().get(name, name))

    def value(self, name: str) -> ast.expr | None:
        """What a name stands for that is set once."""
        values = self.assigned.get(name, [])
        return values[0] if len(values) == 1 else None

    def _text_of(self, name: str, depth: int) -> str:
        if name in self.iterated:
            return self._one_of(self.iterated[name], depth)
        value = self.value(name)
        return self.text(value, depth + 1) if value is not None else HOLE

    def _one_of(self, node: ast.expr, depth: int) -> str:
        """An item of what a loop goes over: of a folder's content, or of a list."""
        if isinstance(node, ast.List | ast.Tuple) and len(node.elts) == 1:
            return self.text(node.elts[0], depth + 1)
        if not isinstance(node, ast.Call) or depth > _DEEPEST:
            return HOLE
        name = self.name(node.func, depth + 1)
        if name in ("glob.glob", "glob.iglob") and node.args:
            return self.text(node.args[0], depth + 1)
        if name == "os.walk" and node.args:
            return joined(self.text(node.args[0], depth + 1), "*")
        if name in _UNDER and isinstance(node.func, ast.Attribute):
            return joined(self.text(node.func.value, depth + 1), "*")
        if name in ("sorted", "list", "reversed") and node.args:
            return self._one_of(node.args[0], depth + 1)
        return HOLE

    def _text_of_call(self, node: ast.Call, depth: int) -> str:
        name = self.name(node.func)
        parts = [self.text(each, depth + 1) for each in node.args]
        if name in _FIXED:
            return self._fixed(name)
        owner = self.text(node.func.value, depth + 1) if isinstance(node.func, ast.Attribute) else HOLE
        if name in _JOINING:
            return joined(*parts) if parts else "."
        if name == "pathlib.Path().joinpath":
            return joined(owner, *parts)
        if name in ("pathlib.Path().with_suffix", "pathlib.Path().with_stem", "pathlib.Path().with_name"):
            return joined(owner.rpartition("/")[0], "*")
        if name in _SAME:
            return parts[0] if parts else owner
        if name == "os.path.dirname" and parts:
            return parts[0].rpartition("/")[0] or HOLE
        if isinstance(node.func, ast.Attribute) and node.func.attr == "format":
            return owner.split("{")[0] + HOLE
        if isinstance(node.func, ast.Attribute) and node.func.attr == "join" and node.args:
            return owner.join(self.words(node.args[0]) or [HOLE])
        return HOLE

    def _fixed(self, name: str) -> str:
        if name == "pathlib.Path.home":
            return home()
        return f"/tmp/{HOLE}" if name.startswith("tempfile.") else self.places.cwd or HOLE

    def _enter(self, node: ast.AST) -> None:
        match node:
            case ast.Import(names=names):
                for alias in names:
                    root = alias.name.partition(".")[0]
                    self._import(alias.asname or root, alias.name if alias.asname else root)
            case ast.ImportFrom(module=module, names=names, level=level):
                self.stars |= {module or "" for alias in names if alias.name == "*"}
                owner = "." * level + (module or "")
                for alias in names:
                    full = alias.name if owner in _BUILTIN else f"{_SAME_MODULE.get(owner, owner)}.{alias.name}"
                    self._import(alias.asname or alias.name, full)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                self.defined.add(name)
            case ast.arg(arg=name):
                self._assign(name, None)
            case ast.For(target=ast.Name(id=name), iter=over) | ast.comprehension(target=ast.Name(id=name), iter=over):
                self._iterate(name, over)
            case ast.For(target=ast.Tuple(elts=[ast.Name(id=name), *_]), iter=ast.Call() as over):
                fresh = name not in self.assigned
                self._set(node)
                if fresh and self.name(over.func) == "os.walk":
                    self.iterated[name] = over
            case _ if isinstance(node, _SETTING):
                self._set(node)

    def _set(self, node: ast.AST) -> None:
        """A statement that gives names a value; only what is simple is followed."""
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.NamedExpr(target=ast.Name(id=name), value=value)
            ):
                self._assign(name, value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._assign(name, value)
            case ast.withitem(context_expr=value, optional_vars=ast.Name(id=name)):
                self._assign(name, value)
            case _:
                for name in _stored(node):
                    self._assign(name, None)

    def _import(self, name: str, full: str) -> None:
        self.imports[name] = full if self.imports.get(name, full) == full else ""

    def _assign(self, name: str, value: ast.expr | None) -> None:
        self.assigned.setdefault(name, []).append(value)
        self.iterated.pop(name, None)

    def _iterate(self, name: str, over: ast.expr) -> None:
        if name not in self.assigned:
            self.iterated[name] = over
        else:
            self.iterated.pop(name, None)
        self.assigned.setdefault(name, []).append(None)


def joined(*parts: str) -> str:
    """As `os.path.join` does."""
    path = ""
    for part in parts:
        path = part if part.startswith(("/", "~")) or not path else f"{path.rstrip('/')}/{part}"
    return path or HOLE


def _result(name: str) -> str:
    """The kind of thing that a call gives."""
    if not name:
        return ""
    if name in ("pathlib.Path.home", "pathlib.Path.cwd", "pathlib.PosixPath", "pathlib.PurePath"):
        return "pathlib.Path()"
    base, _, method = name.rpartition(".")
    return base if base == "pathlib.Path()" and method in _PATHS_TOO else f"{name}()"


def _stored(node: ast.AST) -> Iterator[str]:
    """The names that a statement sets, not those inside of it."""
    targets = getattr(node, "targets", None) or [getattr(node, "target", None) or getattr(node, "optional_vars", None)]
    for target in filter(None, targets):
        for part in ast.walk(target):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                yield part.id
