"""Search the documentation that is in source code; the code is read and not run."""

from __future__ import annotations

import ast
import inspect
import math
import os
import re
import sys
import time
from collections import Counter
from importlib import import_module
from importlib.machinery import PathFinder
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from .texts import full, shown

MAX_FILES = 5_000
MAX_FILE_BYTES = 2 * 1024 * 1024
MAX_DOCSTRING_LENGTH = 1_500  # characters of a docstring
TIMEOUT = 20.0
TESTS = ("tests", "test", "testing", "__pycache__", "node_modules", "site-packages")
K, B = 1.4, 0.7  # the usual parameters of BM25: term saturation and length normalisation
NAME_WEIGHT = 1.5  # added for a word in a name
SUMMARY_LENGTH = 600  # characters of a docstring: what follows are parameters and examples
STOP_WORDS = frozenset(
    "a an and are as at be by do for from get how i in is it of on or that the this to use what with".split()
)
_ENDING = re.compile(r"(?<=...)(?:ing|ies|es|ed|s|e|y)$")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
NO_MODULE = f"The session's Python ({sys.executable}) has no module {{!r}}."
Function = (ast.FunctionDef, ast.AsyncFunctionDef)


def search(
    folder: str, query: str, module: Optional[str], paths: Union[str, List[str], None], most: int
) -> List[Dict[str, Any]]:
    """Return the definitions in a module, or below these paths, that match the query best."""
    wanted = words_of(query)
    if not wanted:
        raise ValueError("The query has no words.")
    until = time.monotonic() + TIMEOUT
    sources: Dict[str, str] = {}  # the name of the module in each file
    base = name = ""  # the module, and the name that is searched for in it: `os.path` and `join`
    if module is not None:
        base, sources = _of_module(folder, module)
        name = module[len(base) + 1 :]
    for path in ([paths] if isinstance(paths, str) else paths or ["."]) if module is None else ():
        root = full(folder, path)
        if not os.path.exists(root):
            raise FileNotFoundError(f"There is no {path!r} in {folder}.")
        stem = os.path.splitext(os.path.basename(root))[0]
        sources.update(_python_files(root, "") if os.path.isdir(root) else {root: stem.replace("__init__", "")})
    definitions = defined_without_source(base) if base and not sources else []
    cut = ""
    for source, text in _promising(sources, wanted + words_of(name)):
        if time.monotonic() > until:
            cut = "Not all files were searched. Name a smaller module or path."
            break
        definitions += defined_in(text, source, sources[source])
    if name:
        definitions = [each for each in definitions if f".{name}." in f".{each.name}."]
        if not definitions and not cut:
            raise ValueError(f"{NO_MODULE.format(module)} The source of {base} defines no public {name!r}.")
    rows = []
    for each in (ranked(definitions, query) or (definitions if name else []))[:most]:
        doc = each.doc if len(each.doc) <= MAX_DOCSTRING_LENGTH else each.doc[:MAX_DOCSTRING_LENGTH] + "..."
        file = shown(folder, each.file) if each.file else ""
        rows.append({"name": each.name, "signature": each.signature, "doc": doc, "file": file, "line": each.line})
    if rows and cut:
        rows[-1]["cut"] = cut
    return rows


# -- which files -----------------------------------------------------------------------------------------------------


def _of_module(folder: str, module: str) -> Tuple[str, Dict[str, str]]:
    """Return the name of the module, without what it defines, and its source files, each with its module's name.

    A module in C has none. Nothing is imported: a parent package is looked through, not run.
    """
    parts = module.split(".")
    for count in range(len(parts), 0, -1):
        base = ".".join(parts[:count])
        located = _located(folder, base)
        if located is not None:
            break
    else:
        raise ValueError(f"{NO_MODULE.format(module)} Is it installed?")
    folders, origin = located
    if folders is not None:
        return base, {
            file: name for package_folder in folders for file, name in _python_files(str(package_folder), base)
        }
    # Python's own modules in C are built in, or in this folder.
    own = os.path.join(os.path.dirname(os.path.abspath(os.__file__)), "lib-dynload")
    if origin and not origin.endswith(".py") and not origin.startswith(own):
        raise ValueError(f"{base} has no Python source to search.")
    return base, {origin: base} if origin.endswith(".py") else {}


def _located(folder: str, module: str) -> Optional[Tuple[Any, str]]:
    """Return a package's folders (None for a module) and the module's file; None if there is no such module."""
    loaded = sys.modules.get(module) if "." in module else None
    if loaded is not None:  # `os.path` is the file of another module
        return getattr(loaded, "__path__", None), getattr(loaded, "__file__", None) or ""
    search: Any = [folder, *sys.path]
    spec = None
    for part in module.split("."):
        spec = PathFinder.find_spec(part, search) if search is not None else None
        if spec is None:
            return (None, "") if module in sys.builtin_module_names else None
        search = spec.submodule_search_locations
    return search, str(spec.origin or "") if spec is not None else ""


def _python_files(root: str, package: str) -> Iterator[Tuple[str, str]]:
    """Yield the Python files below the folder of a package, each with the name of its module."""
    count = 0
    for folder, below, names in os.walk(root):
        below[:] = sorted(name for name in below if name not in TESTS and not name.startswith("."))
        for name in sorted(names):
            if name.endswith(".py") and not name.startswith("test_") and count < MAX_FILES:
                count += 1
                file = os.path.join(folder, name)
                parts = [package, *os.path.relpath(file, root)[: -len(".py")].split(os.sep)]
                yield file, ".".join(part for part in parts if part and part != "__init__")


def _promising(sources: Dict[str, str], wanted: List[str]) -> List[Tuple[str, str]]:
    """Return the files that contain any of the words, with their text; those with most of the words come first."""
    rated_files = []
    for file in sources:
        try:
            if not os.path.isfile(file) or os.path.getsize(file) > MAX_FILE_BYTES:  # reading a pipe would wait
                continue
            with open(file, encoding="utf-8", errors="replace") as opened:
                text = opened.read()
        except OSError:
            continue
        lowered = text.lower()
        count = sum(word in lowered for word in set(wanted))
        if count:
            rated_files.append((-count, file, text))
    return [(file, text) for _, file, text in sorted(rated_files, key=lambda each: each[:2])]


# -- what they define ------------------------------------------------------------------------------------------------


class Definition(NamedTuple):
    name: str
    signature: str
    doc: str
    file: str  # empty where there is no source
    line: int


def defined_in(text: str, file: str, module: str) -> List[Definition]:
    """Return the public definitions in a source file; none if this Python cannot parse it."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    definitions = list(_defined(tree.body, file, module))
    doc = ast.get_docstring(tree)
    return [Definition(module, "", doc, file, 1), *definitions] if doc and module else definitions


def _defined(body: List[ast.stmt], file: str, above: str) -> Iterator[Definition]:
    for node in body:
        if isinstance(node, (ast.If, ast.Try)):
            yield from _defined(node.body, file, above)
        if not isinstance(node, (*Function, ast.ClassDef)) or node.name.startswith("_"):
            continue
        name = f"{above}.{node.name}" if above else node.name
        yield Definition(name, _signature(node), ast.get_docstring(node) or "", file, node.lineno)
        if isinstance(node, ast.ClassDef):
            yield from _defined(node.body, file, name)


def _signature(node: Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef]) -> str:
    if isinstance(node, ast.ClassDef):
        made = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
        return f"class {node.name}{f'({_source(made[0].args)})' if made else ''}"
    kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {_source(node.returns)}" if node.returns is not None else ""
    return f"{kind} {node.name}({_source(node.args)}){returns}"


def _source(node: ast.AST) -> str:
    if hasattr(ast, "unparse"):
        return ast.unparse(node)
    if isinstance(node, ast.arguments):  # Python 3.8
        return ", ".join(each.arg for each in [*node.posonlyargs, *node.args, *node.kwonlyargs])
    return "..."


def defined_without_source(module: str) -> List[Definition]:
    """Return what a module written in C defines, from its own docstrings."""
    loaded = import_module(module)
    definitions = []
    for name in dir(loaded):
        value = getattr(loaded, name)
        if name.startswith("_") or not callable(value):
            continue
        try:
            signature = f"def {name}{inspect.signature(value)}"
        except (TypeError, ValueError):
            signature = name
        definitions.append(Definition(f"{module}.{name}", signature, inspect.getdoc(value) or "", "", 0))
    return definitions


# -- the best matches ------------------------------------------------------------------------------------------------


def words_of(text: str) -> List[str]:
    """Return the stems of the words in a text or a name; stop words only if there are no others."""
    # Stripped of common endings, so that `parses`, `parsing` and `parse` match.
    stems = [_ENDING.sub("", word.lower()) for word in _WORD.findall(text)]
    return [word for word in stems if word not in STOP_WORDS] or stems


def ranked(definitions: Sequence[Definition], query: str) -> List[Definition]:
    """Return the definitions that relate to a query, the best first: by BM25, with more weight on names."""
    wanted, asked = set(words_of(query)), query.strip().lower()
    names = [set(words_of(each.name.rpartition(".")[2])) for each in definitions]
    texts = [Counter(words_of(each.doc[:SUMMARY_LENGTH])) for each in definitions]
    usual = max(1.0, sum(sum(text.values()) for text in texts) / max(1, len(definitions)))
    holding = Counter(word for name, text in zip(names, texts) for word in wanted & (name | text.keys()))
    scored = []
    for each, name, text in zip(definitions, names, texts):
        met, score = wanted & (name | text.keys()), 0.0
        length = K * (1 - B + B * sum(text.values()) / usual)
        for word in met:
            rare = math.log(1 + (len(definitions) - holding[word] + 0.5) / (holding[word] + 0.5))
            score += rare * (text[word] * (K + 1) / (text[word] + length) + NAME_WEIGHT * (word in name))
        is_named = f".{each.name.lower()}".endswith("." + asked)
        scored.append((score * len(met) / len(wanted) * (2 if is_named else 1), -len(each.name), each))
    return [each for score, _, each in sorted(scored, key=lambda row: row[:2], reverse=True) if score > 0]
