"""A Python block in plain Python: what only IPython understands is translated, or named as not carried."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

from interpreter.export.script.edits import Edit, edited

_SILENT = frozenset({"matplotlib", "load_ext", "autoreload", "config", "colors", "pinfo", "pinfo2", "precision"})
_INSTALLERS = frozenset({"pip", "conda", "mamba", "uv"})
_JUST_RUN = frozenset({"time", "timeit", "capture", "prun"})
_SHELLS = frozenset({"bash", "sh", "shell", "system", "sx", "!"})
_INSTALLING = re.compile(r"^\s*(?:[\w./-]*python[\d.]*\s+-m\s+)?(?:uv\s+)?pip3?\s+install\s+(?P<what>.*)$")


@dataclass
class Plain:
    """A block as a program can hold it."""

    code: str
    imports: set[str] = field(default_factory=set)
    """Modules that the translation needs."""
    installed: list[str] = field(default_factory=list)
    """What the block installed with pip, as it was written."""
    dropped: list[str] = field(default_factory=list)
    """What could not be carried."""


def plain_python(code: str) -> Plain | None:
    """The block in plain Python; None if it cannot be read at all."""
    tree = parsed(code)
    if tree is None:
        from IPython.core.inputtransformer2 import TransformerManager

        code = TransformerManager().transform_cell(code).rstrip("\n")
        tree = parsed(code)
    if tree is None:
        return None
    plain = Plain(code)
    edits = list(_translations(tree, plain))
    plain.code = edited(code, edits)
    return plain


def parsed(code: str) -> ast.Module | None:
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError):
        return None


def _translations(tree: ast.Module, plain: Plain) -> Iterator[Edit]:
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Attribute(value=ast.Call(func=ast.Name(id="get_ipython")), attr=way):
                words = [part.value for part in node.args if isinstance(part, ast.Constant)]
                yield Edit.of(node, _translated(way, [str(word) for word in words], plain, id(node) in statements))
            case ast.Name(id="display"):
                yield Edit.of(node.func, "print")


def _translated(way: str, words: list[str], plain: Plain, whole: bool) -> str:
    """The same in plain Python; `whole` if it may be any statements, not only an expression."""
    match way, words:
        case "system" | "getoutput", [command]:
            return _shell(command, plain, captured=way == "getoutput")
        case "run_line_magic", [name, argument]:
            return _line_magic(name, argument, plain, whole)
        case "run_cell_magic", [name, argument, body]:
            return _cell_magic(name, argument, body, plain)
    plain.dropped.append(" ".join([way, *words]).strip())
    return "None"


def _shell(command: str, plain: Plain, captured: bool = False) -> str:
    if installing := _INSTALLING.match(command):
        plain.installed += packages_in(installing["what"])
        return "None"
    plain.imports.add("subprocess")
    if captured:
        return f"subprocess.run({literal(command)}, shell=True, capture_output=True, text=True).stdout.splitlines()"
    return f"subprocess.run({literal(command)}, shell=True)"


def literal(command: str) -> str:
    """The command as a string, as an f-string where IPython would have put Python values into it."""
    if re.search(r"\{[^{}]+\}", command):
        formatted = "f" + quoted(command)
        if parsed(formatted) is not None:
            return formatted
    return quoted(command)


def quoted(text: str) -> str:
    """A string literal; of several lines where the text has several."""
    if "\n" in text and '"""' not in text and "\\" not in text and not text.endswith('"'):
        return f'"""{text}"""'
    return repr(text)


def _line_magic(name: str, argument: str, plain: Plain, whole: bool) -> str:
    if name in _SILENT:
        return "None"
    if name in _INSTALLERS:
        plain.installed += packages_in(argument.partition("install")[2])
        return "None"
    if name == "cd":
        plain.imports.add("os")
        return f"os.chdir(os.path.expanduser({literal(argument.strip() or '~')}))"
    if name in ("env", "set_env") and (pair := re.fullmatch(r"(\w+)[= ](.*)", argument.strip())):
        plain.imports.add("os")
        return f"os.environ.__setitem__({pair[1]!r}, {literal(pair[2])})"
    if name == "run" and argument.strip():
        plain.imports.add("runpy")
        return f'globals().update(runpy.run_path({argument.split()[0]!r}, run_name="__main__"))'
    if name in _SHELLS:
        return _shell(argument, plain)
    if name in _JUST_RUN and (tree := parsed(argument)) and tree.body and (whole or isinstance(tree.body[0], ast.Expr)):
        return argument
    plain.dropped.append(f"%{name} {argument}".strip())
    return "None"


def _cell_magic(name: str, argument: str, body: str, plain: Plain) -> str:
    if name in _JUST_RUN and (inner := plain_python(body)) is not None:
        plain.imports |= inner.imports
        plain.installed += inner.installed
        plain.dropped += inner.dropped
        return inner.code.rstrip("\n")
    if name in _SHELLS:
        return _shell(body, plain)
    if name in ("writefile", "file"):
        appending, path = argument.strip().startswith("-a"), argument.split()[-1]
        return f"open({path!r}, {'a' if appending else 'w'!r}).write({quoted(body)})"
    plain.dropped.append(f"%%{name}")
    return "None"


def packages_in(words: str) -> list[str]:
    """What a `pip install` line names, without its options."""
    try:
        parts = shlex.split(words)
    except ValueError:
        parts = words.split()
    return [part for part in parts if re.match(r"[A-Za-z0-9]", part) and not part.endswith((".txt", ".whl"))]
