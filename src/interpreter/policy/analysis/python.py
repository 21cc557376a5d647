"""What a Python block would do, from its syntax tree."""

from __future__ import annotations

import ast
import builtins
import re
import threading
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from interpreter.policy.analysis.effects import Effect
from interpreter.policy.analysis.notes import (
    HOLE,
    Doing,
    Notes,
    analyze_embedded,
    computer_call_effect,
    is_computer_call,
    is_computer_shadowed,
    note_computer_call,
)
from interpreter.policy.analysis.python_calls import Called, apply
from interpreter.policy.analysis.python_values import Values
from interpreter.policy.analysis.tables import Does, is_known_module, python_aliases, python_calls, python_methods

_LINE = re.compile(r"(?P<indent>\s*)(?P<target>[\w., \[\]'\"]+=\s*)?(?P<mark>!!?|%)(?P<rest>[^\n]*)")
# IPython takes these without a mark, too.
_BARE = re.compile(
    r"(?P<indent>)(?P<rest>(pip|conda|mamba|micromamba|uv|cd|ls|ll|cat|cp|mv|rm|mkdir|rmdir|man)\s+[^=(\n][^\n]*)$"
)
_HELP = re.compile(r"\s*\??\??[\w.*%]+\?\??\s*$|\s*\?\??[\w.*%]+\s*$")


class Magic(NamedTuple):
    """A line, or a cell, that is no Python."""

    line: int
    name: str
    """Empty for a shell command; `writefile` and the like otherwise."""
    rest: str
    body: str = ""
    """What stands below a cell's magic."""


def taken_out(code: str) -> tuple[str, list[Magic]]:
    """The Python that is left, with the same lines, and the magics."""
    lines = code.split("\n")
    first = next((at for at, line in enumerate(lines) if line.strip()), 0)
    if lines[first].startswith("%%"):
        return _cell(lines, first)
    found = []
    for at, line in enumerate(lines):
        match = _LINE.fullmatch(line) or _BARE.fullmatch(line)
        if match:
            name, rest = _named(match.groupdict().get("mark") or "%", match["rest"])
            found.append(Magic(at + 1, name, _continued(rest, lines, at)))
            lines[at] = f"{match['indent']}{match.groupdict().get('target') or ''}None"
        elif _HELP.fullmatch(line) and "?" in line:
            lines[at] = "None"
    return "\n".join(lines), found


def _cell(lines: list[str], first: int) -> tuple[str, list[Magic]]:
    name, _, rest = lines[first][2:].partition(" ")
    body = "\n".join(lines[first + 1 :])
    if name in ("time", "timeit", "capture", "prun"):
        inner, found = taken_out("\n" * (first + 1) + body)
        return inner, found
    return "", [Magic(first + 1, f"%{name}", rest.strip(), body)]


def _named(mark: str, rest: str) -> tuple[str, str]:
    if mark != "%":
        return "", rest
    name, _, rest = rest.strip().partition(" ")
    return name, rest.strip()


def _continued(rest: str, lines: list[str], at: int) -> str:
    """A command that goes on after a backslash."""
    while rest.endswith("\\") and at + 1 < len(lines):
        at += 1
        rest = f"{rest[:-1]} {lines[at]}"
        lines[at] = ""
    return rest


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


Known = Mapping[str, tuple[Effect, ...]]

_LONGEST = 100_000
_TELLING = (ast.Name, ast.Attribute, ast.Import, ast.ImportFrom, ast.Subscript)
# The filters of warnings are the whole process's.
_WARNINGS = threading.Lock()
_TRICKS = frozenset(
    "__subclasses__ __globals__ __builtins__ __code__ __getattribute__ __bases__ __mro__ __reduce__ "
    "__loader__ f_globals".split()
)
_NAMESPACES = frozenset({"globals()", "locals()", "vars()", "sys.modules", "__builtins__"})
_BUILTINS = frozenset(dir(builtins)) | {"get_ipython", "display", "In", "Out", "quit", "exit"}
_HARMLESS_MAGICS = frozenset(
    "matplotlib time timeit who whos pwd precision config colors autoreload load_ext reload_ext pylab "
    "lsmagic pinfo pinfo2 psearch history hist page pprint xmode env reset reset_selective memit debug "
    "rehashx alias_magic automagic doctest_mode".split()
)
_SHELL_MAGICS = frozenset("bash sh shell sx system script zsh".split())
_COMMANDS = frozenset("pip conda mamba micromamba uv cd ls ll cat cp mv rm mkdir rmdir".split())


def analyze(code: str, notes: Notes, known: Known) -> dict[str, tuple[Effect, ...]]:
    """Write down what a block would do; returns what the functions would do that it defines."""
    notes.step("python", "the code itself", 1)
    return analyze_part(code, 1, notes, known)


def analyze_part(code: str, line: int, notes: Notes, known: Known | None = None) -> dict[str, tuple[Effect, ...]]:
    """Write down what the code would do; returns what the functions would do that it defines."""
    if notes.too_deep or len(code) > _LONGEST:
        notes.not_known("python", "very long or deeply nested code", line, "unparsed")
        return {}
    tree, magics = _parsed(code)
    if tree is None:
        notes.not_known("python", "Python code that cannot be parsed", line, "unparsed")
        return {}
    notes.depth += 1
    start = len(notes.steps)
    for magic in magics:
        _magic(magic, line - 1, notes)
    look = _Look(tree, line - 1, notes, known or {})
    look.walk()
    notes.depth -= 1
    return look.defines(notes.steps[start:])


def _parsed(code: str) -> tuple[ast.Module | None, list[Magic]]:
    tree = _tree(code)
    if tree is not None:
        return tree, []
    plain, magics = taken_out(code)
    return (_tree(plain), magics) if magics or plain != code else (None, [])


def _tree(code: str) -> ast.Module | None:
    with _WARNINGS, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(code)
        except (SyntaxError, ValueError):
            return None


class _Look:
    """A walk over one tree, in the order of the text."""

    def __init__(self, tree: ast.Module, offset: int, notes: Notes, known: Known) -> None:
        self.tree, self.offset, self.notes, self.known = tree, offset, notes, known
        nodes = everything(tree)
        self.values = Values(nodes, notes.places)
        # within loops that have no known end
        self.loops = {id(node) for loop in nodes if isinstance(loop, ast.While) for node in everything(loop)}
        self.modules: dict[str, tuple[Effect, ...]] = {}
        self.asked = {id(part) for node in nodes for part in _asked(node)}

    def walk(self) -> None:
        left: list[ast.AST] = [self.tree]
        while left:
            node = left.pop()
            if isinstance(node, ast.Call):
                left += self._call(node)
                continue
            if isinstance(node, _TELLING):
                self._tell(node)
            left += reversed(children(node))

    def _tell(self, node: ast.Name | ast.Attribute | ast.Import | ast.ImportFrom | ast.Subscript) -> None:
        match node:
            case ast.Import(names=names):
                for alias in names:
                    self._import(alias.name, alias.asname or alias.name.partition(".")[0], node.lineno)
            case ast.ImportFrom(module=module, level=level, names=names):
                for alias in names:
                    self._import("." * level + (module or ""), alias.asname or alias.name, node.lineno)
            case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()):
                self._mention(node)
            case ast.Subscript(value=value) if self.values.name(value) in _NAMESPACES or _is_dict(value):
                self._step(node, "a name looked up at run time").unknown("a name that is looked up at run time")

    def defines(self, steps: list[Doing]) -> dict[str, tuple[Effect, ...]]:
        """The functions of the block, and the modules that it does not know."""
        found = dict(self.modules)
        for node in self.tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                first, last = node.lineno + self.offset, (node.end_lineno or node.lineno) + self.offset
                effects = [effect for step in steps for effect in step.effects if first <= effect.line <= last]
                found[node.name] = tuple(effects)
        return found

    def _call(self, node: ast.Call) -> Iterator[ast.AST]:
        """What a call does; yields the parts that are still to be seen."""
        name = self.values.name(node.func)
        effects = python_calls().get(name)
        if self._is_the_computers(name):
            doing = self._step(node, name, node)
            if effects is None:
                note_computer_call(doing, name)
            else:
                doing.note("computer", name, known=True, how="looks")
                apply(effects, Called(name, node, self.values, doing, self.notes, id(node) in self.loops))
            return reversed([*node.args, *node.keywords])
        if effects is None and isinstance(node.func, ast.Attribute):
            effects = self._by_method(node.func, node, name)
        if effects:
            doing = self._step(node, name or _spelled(node.func), node)
            apply(effects, Called(name, node, self.values, doing, self.notes, id(node) in self.loops))
            if not doing.effects:
                doing.dropped = True
        elif name == "os.chdir":
            self.notes.places.move(self.values.text(node.args[0]) if node.args else None)
        elif effects is None:
            self._earlier(node)
        rest: list[ast.AST] = [*node.args, *node.keywords]
        if effects is None or isinstance(node.func, ast.Attribute):
            rest.insert(0, node.func if effects is None else node.func.value)  # type: ignore[attr-defined]
        return reversed(rest)

    def _by_method(self, func: ast.Attribute, node: ast.Call, name: str) -> tuple[Does, ...] | None:
        """An object of unknown kind: the method's name, and what it is given, must tell."""
        base = name.rpartition(".")[0]
        root = base.partition(".")[0]
        if root in self.known and not self.values.bound(root):
            return None
        if func.attr in python_methods() and ("()" in base or not base or not is_known_module(root)):
            return python_methods()[func.attr]
        first = self.values.text(node.args[0]) if node.args else ""
        if func.attr in ("get", "head", "put", "delete", "request") and re.match(r"https?://", first):
            return (Does("get" if func.attr in ("get", "head") else "send", 0),)
        if func.attr in ("get", "put", "delete") and re.search(
            r"session|client|requests|http|api", _spelled(func.value)
        ):
            return (Does("get" if func.attr == "get" else "send", 0),)
        if func.attr == "open" and node.args and re.fullmatch(r"[rbtU]*[wax+][rwaxbt+]*", first):
            return (Does("openedpath"),)
        if (
            func.attr in ("rename", "replace")
            and len(node.args) == 1
            and not node.keywords
            and _may_be_path(node.args[0])
        ):
            return (Does("delete", -1, "self"), Does("write", 0))
        if func.attr == "connect" and node.args and isinstance(node.args[0], ast.Tuple):
            return (Does("sendto", 0),)
        return None

    def _earlier(self, node: ast.Call) -> None:
        """A function that another block has defined."""
        root = node.func
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name) or self.values.bound(root.id):
            return
        if root.id in self.known:
            doing = self._step(node, root.id)
            doing.effects += [replace(effect, line=doing.line) for effect in self.known[root.id]]
        elif root is node.func and root.id not in _BUILTINS and root.id not in python_aliases():
            self._step(node, root.id).unknown(f"what {root.id}() does, which another block defined")

    def _mention(self, node: ast.Name | ast.Attribute) -> None:
        """A dangerous function that is handed on, to be called with who knows what."""
        if isinstance(node, ast.Attribute) and node.attr in _TRICKS:
            self._step(node, node.attr).unknown(f"{node.attr}: a way around names")
            return
        name = self.values.name(node)
        if self._is_the_computers(name) and computer_call_effect(name) in ("acts", "sends"):
            note_computer_call(self._step(node, name), name)
            return
        if name == "os.environ" and id(node) not in self.asked:
            self._step(node, name).note("secret", "the environment")
        effects = python_calls().get(name)
        if effects and (
            isinstance(node, ast.Attribute) or node.id in self.values.imports or node.id in ("eval", "exec", "open")
        ):
            apply(effects, Called(name, None, self.values, self._step(node, name), self.notes, in_loop=False))

    def _is_the_computers(self, name: str) -> bool:
        """Whether it is a tool of the computer that code finds, and not something of the user's own."""
        return is_computer_call(name) and "computer" not in self.known and not is_computer_shadowed(self.notes)

    def _import(self, module: str, name: str, line: int) -> None:
        if module.partition(".")[0] == "computer" and not is_computer_shadowed(self.notes):
            return
        if is_known_module(module) and not module.startswith("."):
            return
        doing = self.notes.step("python", f"import {module}", line + self.offset, ["import", module])
        doing.unknown(f"what the module {module} does")
        self.modules[name] = tuple(doing.effects)

    def _step(self, node: ast.AST, name: str, call: ast.Call | None = None) -> Doing:
        texts = [self.values.text(each) for each in call.args] if call else []
        text = f"{name}({', '.join(texts)})" if call else name
        return self.notes.step("python", text, getattr(node, "lineno", 1) + self.offset, [name, *texts])


def _magic(magic: Magic, offset: int, notes: Notes) -> None:
    line = magic.line + offset
    name = magic.name.removeprefix("%")
    if not name:
        analyze_embedded("shell", re.sub(r"\{[^}]*\}", "${_}", magic.rest), line, notes)
    elif name in _COMMANDS and not magic.name.startswith("%"):
        analyze_embedded("shell", f"{name} {magic.rest}", line, notes)
    elif name in _SHELL_MAGICS:
        analyze_embedded("shell", magic.body or magic.rest, line + bool(magic.body), notes)
    elif name in ("writefile", "save", "logstart", "notebook"):
        target = magic.rest.split()[-1] if magic.rest.split() else HOLE
        notes.step("python", f"%{name} {magic.rest}", line, [f"%{name}", target]).write(target)
    elif name in ("javascript", "html", "latex", "markdown", "svg", "js", "HTML"):
        notes.step("python", f"%%{name}: shown, not run", line)
    elif name not in _HARMLESS_MAGICS:
        notes.step("python", f"%{name} {magic.rest}", line, [f"%{name}"]).unknown(f"what %{name} does")


def _asked(node: ast.AST) -> list[ast.expr]:
    """Whose single items are asked for, or what is handed to a program: of the environment, that is no secret."""
    match node:
        case ast.Subscript(value=value) | ast.keyword(arg="env", value=value):
            return [value]
        case ast.Attribute(value=value, attr=attr) if attr not in ("items", "values"):
            return [value]
        case ast.Compare(comparators=values) | ast.Dict(values=values):
            return values
    return []


def _is_dict(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "__dict__"


def _may_be_path(node: ast.expr) -> bool:
    return not isinstance(node, ast.Dict | ast.Lambda | ast.DictComp)


def _spelled(node: ast.AST) -> str:
    """The names in an expression, as they are written."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    return ".".join(reversed(parts))
