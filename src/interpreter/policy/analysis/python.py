"""What a Python block would do, from its syntax tree."""

from __future__ import annotations

import ast
import os
import re
import shlex
import threading
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from interpreter.leaves import code_names
from interpreter.policy.analysis.effects import Effect
from interpreter.policy.analysis.notes import (
    HOLE,
    Notes,
    StepEffects,
    analyze_embedded,
    computer_call_effect,
    is_computer_shadowed,
    note_computer_call,
    note_registered_call,
)
from interpreter.policy.analysis.programs import note_environment
from interpreter.policy.analysis.python_calls import Called, apply
from interpreter.policy.analysis.python_values import PythonValues
from interpreter.policy.analysis.sql import ATTACHED
from interpreter.policy.analysis.tables import (
    Does,
    is_harmless,
    is_known_module,
    is_module,
    listed,
    python_aliases,
    python_calls,
    python_methods,
)

_LINE = re.compile(r"(?P<indent>\s*)(?P<target>[\w., \[\]'\"]+=\s*)?(?P<mark>!!?|%)(?P<rest>[^\n]*)")
# IPython takes these without a mark, too.
_BARE = re.compile(
    r"(?P<indent>)(?P<target>)(?P<mark>)(?P<rest>(pip|conda|mamba|micromamba|uv|cd|ls|ll|cat|cp|mv|rm|mkdir|rmdir|man)\s+[^=(\n][^\n]*)$"
)
_HELP = re.compile(r"\s*\??\??[\w.*%]+\?\??\s*$|\s*\?\??[\w.*%]+\s*$")


class Magic(NamedTuple):
    """A magic: a line or a cell that is not Python."""

    line: int
    name: str  # empty for a shell command; `writefile` and the like otherwise
    rest: str
    body: str = ""  # what stands below a cell's magic


def taken_out(code: str) -> tuple[str, list[Magic]]:
    """Separate the magics from the Python code, which keeps its line numbers."""
    lines = code.split("\n")
    first = next((at for at, line in enumerate(lines) if line.strip()), 0)
    if lines[first].startswith("%%"):
        name, _, rest = lines[first][2:].partition(" ")
        body = "\n".join(lines[first + 1 :])
        if name == "capture" or name in listed("python.txt", "@magic_timed"):
            inner, magics = taken_out("\n" * (first + 1) + body)
            return inner, [Magic(first + 1, name, rest.strip()), *magics]
        return "", [Magic(first + 1, f"%{name}", rest.strip(), body)]
    magics = []
    for at, line in enumerate(lines):
        match = _LINE.fullmatch(line) or _BARE.fullmatch(line)
        if match:
            name, rest, end = "", match["rest"], at
            if match["mark"] in ("%", ""):
                name, _, rest = rest.strip().partition(" ")
                rest = rest.lstrip()
            while rest.endswith("\\") and end + 1 < len(lines):  # a backslash continues the line
                end += 1
                rest = f"{rest[:-1]} {lines[end]}"
                lines[end] = ""
            magics.append(Magic(at + 1, name, rest))
            lines[at] = f"{match['indent']}{match['target'] or ''}None"
        elif _HELP.fullmatch(line) and "?" in line:
            lines[at] = "None"
    return "\n".join(lines), magics


Known = Mapping[str, tuple[Effect, ...]]

_MAX_LENGTH = 100_000
# Warning filters apply to the whole process.
_WARNINGS = threading.Lock()
_ELSEWHERE = ("dir_fd", "src_dir_fd", "dst_dir_fd", "opener")
_MOVING = ("os.chdir", "os.fchdir", "contextlib.chdir")
# The modules that `df.plot(backend=...)` and the like may load.
_BACKENDS = frozenset("matplotlib plotly agg Agg loky threading multiprocessing numba python scipy".split())
_MAGICS = tuple(f"@magic_{kind}" for kind in "command timed python shell env write save shown harmless".split())
_TIMING = re.compile(r"\s*((-[nrpt]\s*\d+|-[qoct])\s+)*")


def analyze(code: str, notes: Notes, known: Known, line: int = 1) -> dict[str, tuple[Effect, ...]]:
    """Record what the code would do; return the effects of calling each function that it defines.

    `line` is that of its first line in the block.
    """
    if not notes.steps:
        notes.step("python", "the code itself", 1)
    if notes.too_deep or len(code) > _MAX_LENGTH:
        notes.not_known("python", "very long or deeply nested code", line, "unparsed")
        return {}
    tree = _tree(code)
    magics: list[Magic] = []
    if tree is None:
        plain, magics = taken_out(code)
        tree = _tree(plain)
    if tree is None:
        notes.not_known("python", "Python code that cannot be parsed", line, "unparsed")
        return {}
    notes.depth += 1
    notes.attached = known.get(ATTACHED, notes.attached)
    start = len(notes.steps)
    for magic in magics:
        _magic(magic, line - 1, notes)
    if [magic.line for magic in magics if magic.name == "cd"] not in ([], [1]):
        notes.location.move(None)  # the Python code in between may run here or there
    look = _Look(tree, line - 1, notes, known)
    look.walk()
    notes.depth -= 1
    return look.defines(notes.steps[start:])


def _tree(code: str) -> ast.Module | None:
    with _WARNINGS, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(code)
        except (SyntaxError, ValueError):
            return None


class _Look:
    """Walks over one tree, in the order of the text."""

    def __init__(self, tree: ast.Module, offset: int, notes: Notes, known: Known) -> None:
        self.tree, self.offset, self.notes = tree, offset, notes
        nodes = list(ast.walk(tree))
        renamed = {name: effects[0].what for name, effects in known.items() if effects and effects[0].how == "import"}
        self.known = {name: effects for name, effects in known.items() if name not in renamed}
        self.values = PythonValues(nodes, notes.location, renamed)
        # inside loops whose end is unknown
        self.loops = {id(node) for loop in nodes if isinstance(loop, ast.While) for node in ast.walk(loop)}
        # statements that run for sure, and in the order of the text: not in functions, loops and branches
        self.once = {id(statement.value) for statement in tree.body if isinstance(statement, ast.Expr)}
        self.modules: dict[str, tuple[Effect, ...]] = {}
        self.asked = {id(part) for node in nodes for part in _asked(node)}
        self.bases = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
        showing = {name for name in listed("python.txt", "@showing") if not self.values.bound(name)}
        self.bases |= {
            id(part)
            for node in nodes
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in showing
            for part in node.args
        }

    def walk(self) -> None:
        left: list[ast.AST] = [self.tree]
        while left:
            node = left.pop()
            match node:
                case ast.Call():
                    left += self._call(node)
                    continue
                case ast.Import(names=names):
                    for alias in names:
                        self._import(alias.name, alias.asname or alias.name.partition(".")[0], node.lineno)
                case ast.ImportFrom(module=module, level=level, names=names):
                    for alias in names:
                        self._import("." * level + (module or ""), alias.asname or alias.name, node.lineno)
                case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()):
                    self._mention(node)
                case ast.MatchClass(kwd_attrs=attributes) if not python_methods().keys().isdisjoint(attributes):
                    self._step(node, "case").unknown("a method is passed on")
                case ast.Attribute(attr="backend"):
                    self._step(node, "backend").unknown("a module chosen at run time")
                case ast.Attribute(value=value, attr=attr) if is_module(self.values.name(value)):
                    self._step(node, attr).unknown(f"{_spelled(node)} is changed")
                case ast.Subscript(value=value) if self.values.name(value) in listed("python.txt", "@namespace"):
                    self._step(node, "a name looked up at run time").unknown("a name looked up at run time")
                case ast.Subscript(value=value, slice=key, ctx=ast.Store() | ast.Del()):
                    if _spelled(value).endswith("rcParams") and self.values.text(key) in ("backend", HOLE):
                        self._step(node, "rcParams").unknown("a module chosen at run time")
                    if self.values.name(value) == "os.environ":
                        note_environment(self.values.text(key), self._step(node, "os.environ[]"))
            left += reversed(list(ast.iter_child_nodes(node)))

    def defines(self, steps: list[StepEffects]) -> dict[str, tuple[Effect, ...]]:
        """Return the functions of the block, the modules that it does not know, and what it has given other names."""
        definitions = dict(self.modules)
        own = (step for step in steps if re.match(r"duckdb\.\w+\(", step.text))  # DuckDB's own connection lasts
        if attached := tuple(effect for step in own for effect in step.effects if effect.kind == "database"):
            definitions[ATTACHED] = attached
        definitions |= {
            name: (Effect("unknown", full, 1, known=False, how="import"),)
            for name, full in self.values.imports.items()
            if full and name not in definitions and full != python_aliases().get(name, name)
        }
        for node in self.tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                first, last = node.lineno + self.offset, (node.end_lineno or node.lineno) + self.offset
                effects = [effect for step in steps for effect in step.effects if first <= effect.line <= last]
                definitions[node.name] = tuple(effects)
        return definitions

    def _call(self, node: ast.Call) -> Iterator[ast.AST]:
        """Record what a call does; return its parts that remain to be visited."""
        match node.func:
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, ast.Constant(value=str() as attribute), *_]):
                func = ast.copy_location(ast.Attribute(owner, attribute, ast.Load()), node)
                node = ast.copy_location(ast.Call(func, node.args, node.keywords), node)
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
        if self._is_registered(name, node.func):
            note_registered_call(self._step(node, name, node), name)
            return reversed([*node.args, *node.keywords])
        if effects is None and isinstance(node.func, ast.Attribute):
            effects = self._by_method(node.func, node, name)
        if effects:
            doing = self._step(node, name or _spelled(node.func), node)
            apply(effects, Called(name, node, self.values, doing, self.notes, id(node) in self.loops))
            if not doing.effects:
                doing.dropped = True
        elif name in _MOVING:
            sure = name == "os.chdir" and node.args and id(node) in self.once
            self.notes.location.move(self.values.text(node.args[0]) if sure else None)
        elif effects is None:
            self._unlisted(node, name)
        for keyword in node.keywords:
            spread = self.values.value(keyword.value.id) if isinstance(keyword.value, ast.Name) else keyword.value
            hidden = keyword.arg is None and any(
                isinstance(part, ast.Constant) and part.value == "backend" for part in ast.walk(spread or keyword.value)
            )
            if keyword.arg in _ELSEWHERE and not (
                isinstance(keyword.value, ast.Constant) and keyword.value.value is None
            ):
                self._step(node, name).unknown(f"a path that {keyword.arg} leads elsewhere")
            if hidden or (keyword.arg == "backend" and self.values.text(keyword.value) not in _BACKENDS):
                self._step(node, name or "backend").unknown("a module chosen at run time")
        rest: list[ast.AST] = [*node.args, *node.keywords]
        if isinstance(node.func, ast.Attribute):
            self._private(node.func)
            rest.insert(0, node.func.value)
        elif not isinstance(node.func, ast.Name):
            rest.insert(0, node.func)
        return reversed(rest)

    def _by_method(self, func: ast.Attribute, node: ast.Call, name: str) -> tuple[Does, ...] | None:
        """Find the effects of a method on an object of unknown type, by its name and arguments; None if none fit."""
        base = name.rpartition(".")[0]
        root = base.partition(".")[0]
        if root in self.known and not self.values.bound(root):
            return None
        if func.attr in python_methods() and ("()" in base or not base or not is_known_module(root)):
            return python_methods()[func.attr]
        first = self.values.text(node.args[0]) if node.args else ""
        has_url = func.attr in ("get", "head", "put", "delete", "request") and re.match(r"https?://", first)
        is_client = re.search(r"session|client|requests|http|api", _spelled(func.value))
        if has_url or (func.attr in ("get", "put", "delete") and is_client):
            return (Does("get" if func.attr in ("get", "head") else "send", 0),)
        keywords = {keyword.arg for keyword in node.keywords}
        is_one = len(node.args) == 1 and not isinstance(node.args[0], ast.Dict | ast.Lambda | ast.DictComp)
        if func.attr in ("rename", "replace") and ((is_one and not keywords) or keywords & {"target", None}):
            return (Does("delete", -1, "self"), Does("write", 0, "target"))
        if func.attr in ("copy", "move") and node.args and self.values.text(node.args[0]) != HOLE:
            return (Does("write", 0),)
        if func.attr == "connect" and node.args and isinstance(node.args[0], ast.Tuple):
            return (Does("sendto", 0),)
        return None

    def _unlisted(self, node: ast.Call, name: str) -> None:
        """Record a call that no table lists: it is harmless, comes from an earlier block, or is unknown."""
        root = func = node.func
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id in self.known and not self.values.bound(root.id):
            doing = self._step(node, root.id)
            doing.effects += [replace(effect, line=doing.line) for effect in self.known[root.id]]
            return
        match func:
            case ast.Name(id=called):
                is_other = called in self.values.imports or called in self.values.captured
                if (name and not is_harmless(name)) or (not name and is_other):
                    self._step(node, called).unknown(f"what {called}() does")
            case ast.Attribute(value=value, attr=attr):
                below = f"{getattr(value, 'attr', '')}.{attr}"
                is_plain = not {attr, below}.isdisjoint(listed("python.txt", "@harmless"))
                is_object = "()" in name or not is_known_module(name.partition(".")[0] or "?")
                is_own = not name and attr in self.values.defined
                if not is_harmless(name) and not is_own and not (is_plain and is_object):
                    self._step(node, name or _spelled(func)).unknown(f"what {_spelled(func) or attr}() does")
            case ast.Call(func=ast.Name(id=maker)) if maker in self.values.defined:
                pass
            case ast.Call(func=made_by):
                maker = self.values.name(made_by)
                if maker == "type" or not is_harmless(maker):
                    self._step(node, maker).unknown("a call of a returned function")

    def _private(self, node: ast.Attribute) -> None:
        """Record the use of `x.__globals__` and the like, which lead to anything; the code's own are exempt."""
        own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        is_private = node.attr.startswith("_") or node.attr.endswith(("_frame", "_globals", "_builtins", "_locals"))
        if is_private and node.attr not in listed("python.txt", "@private") and not own:
            self._step(node, node.attr).unknown(f"{node.attr}: dynamic lookup")

    def _mention(self, node: ast.Name | ast.Attribute) -> None:
        """Record a function that is passed on, because other code may call it with any arguments."""
        if isinstance(node, ast.Attribute):
            self._private(node)
        name = self.values.name(node)
        if self._is_the_computers(name) and computer_call_effect(name) in ("acts", "sends"):
            note_computer_call(self._step(node, name), name)
            return
        if name == "os.environ" and id(node) not in self.asked:
            self._step(node, name).note("secret", "the environment")
        if name in _MOVING:
            self.notes.location.move(None)
        is_named = isinstance(node, ast.Attribute) or node.id in self.values.imports
        effects = python_calls().get(name)
        if id(node) in self.bases:
            return
        if effects and (isinstance(node, ast.Attribute) or is_named or not self.values.bound(node.id)):
            apply(effects, Called(name, None, self.values, self._step(node, name), self.notes, in_loop=False))
        elif (not name or "()" in name) and getattr(node, "attr", "output") in python_methods().keys() - {"output"}:
            self._step(node, name).unknown(f"the method {_spelled(node).rpartition('.')[2]} is passed on")
        elif is_module(name) and (is_named or name in listed("python.txt", "@guarded")):
            self._step(node, name).unknown(f"the module {name} is passed on")
        elif is_named and "()" not in name and is_known_module(name.partition(".")[0] or "?") and not is_harmless(name):
            self._step(node, name).unknown(f"what {name} does")

    def _is_the_computers(self, name: str) -> bool:
        """Return whether the name is one of our `computer` tools and isn't redefined by the user's code or files."""
        root = name.partition(".")[0]
        if root in self.known or "()" in name:
            return False
        return root in code_names() or (name.startswith("computer.") and not is_computer_shadowed(self.notes))

    def _is_registered(self, name: str, function: ast.expr) -> bool:
        """Return whether this is a registered tool such as `tools.note`, and `tools` isn't the user's own."""
        if not name.startswith("tools.") or "()" in name or "tools" in self.known or self.values.bound("tools"):
            return False
        return ast.unparse(function) == name and "tools" not in self.values.imports

    def _import(self, module: str, name: str, line: int) -> None:
        root = module.partition(".")[0]
        if root == "computer" and not is_computer_shadowed(self.notes):
            return
        # A file of that name comes before the module that is meant.
        file = os.path.join(self.notes.location.cwd or self.notes.location.workspace, root)
        is_local = os.path.isfile(f"{file}.py") or os.path.isfile(f"{file}/__init__.py")
        if not is_known_module(module) or module.startswith(".") or is_local:
            doing = self.notes.step("python", f"import {module}", line + self.offset, ["import", module])
            doing.unknown(f"what the module {module} does")
            self.modules[name] = tuple(doing.effects)

    def _step(self, node: ast.AST, name: str, call: ast.Call | None = None) -> StepEffects:
        texts = [self.values.text(each) for each in call.args] if call else []
        text = f"{name}({', '.join(texts)})" if call else name
        return self.notes.step("python", text, getattr(node, "lineno", 1) + self.offset, [name, *texts])


def _magic(magic: Magic, offset: int, notes: Notes) -> None:
    line = magic.line + offset
    name, is_cell = magic.name.removeprefix("%"), magic.name.startswith("%")
    kind = next((kind for kind in _MAGICS if name in listed("python.txt", kind)), "")
    if name == "script" and magic.rest in listed("python.txt", "@magic_shell"):
        kind = "@magic_shell"
    match kind:
        case "" if not name:
            for expression in re.finditer(r"\{([^{}]*)\}", magic.rest):
                if _tree(expression[1].strip()) is not None:
                    analyze_embedded("python", expression[1].strip(), line, notes)
            analyze_embedded("shell", re.sub(r"\{[^}]*\}", "${_}", magic.rest), line, notes)
        case "@magic_command" if not is_cell:
            analyze_embedded("shell", f"{name} {magic.rest}", line, notes)
        case "@magic_timed":
            analyze_embedded("python", _TIMING.sub("", f"{magic.rest} ", count=1).strip(), line, notes)
        case "@magic_python":
            analyze_embedded("python", magic.rest, line, notes)
        case "@magic_shell":
            analyze_embedded("shell", magic.body or magic.rest, line + bool(magic.body), notes)
        case "@magic_env" if magic.rest:
            doing = notes.step("python", f"%{name} {magic.rest}", line, [f"%{name}"])
            if "=" in magic.rest or name == "set_env":
                note_environment(magic.rest.partition("=")[0].split()[0], doing)
        case "@magic_save":
            named = [word for word in _words(magic.rest) if not word.startswith("-")]
            path = named[0] if named else HOLE
            path += ".py" * (name == "save" and not path.endswith((".py", ".ipy", HOLE)))
            doing = notes.step("python", f"%{name} {magic.rest}", line, [f"%{name}", path])
            doing.write(path, operation="edit" if "-a" in magic.rest.split() else "")
        case "@magic_write":
            target = _words(magic.rest)[-1] if magic.rest.split() else HOLE
            notes.step("python", f"%{name} {magic.rest}", line, [f"%{name}", target]).write(target)
        case "@magic_shown":
            notes.step("python", f"%%{name}: shown, not run", line)
        case _ if kind != "@magic_harmless" or ":" in magic.rest:
            notes.step("python", f"%{name} {magic.rest}", line, [f"%{name}"]).unknown(f"what %{name} does")


def _words(text: str) -> list[str]:
    """Split a magic's line as IPython does."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _asked(node: ast.AST) -> list[ast.expr]:
    """List the accesses to the environment that read single items or pass it to a program; these reveal no secret."""
    match node:
        case ast.Subscript(value=value) | ast.keyword(arg="env", value=value):
            return [value]
        case ast.Attribute(value=value, attr=attr) if attr not in ("items", "values"):
            return [value]
        case ast.Compare(comparators=values) | ast.Dict(values=values):
            return values
    return []


def _spelled(node: ast.AST) -> str:
    """Return the names in an expression as they are written."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    return ".".join(reversed(parts))
