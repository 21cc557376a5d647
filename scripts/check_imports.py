"""Check three rules: imports point downwards, only front ends print, read or exit, one module starts programs."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parent.parent / "src" / "interpreter"

# From the ground up. A part may use the parts below its own floor; a part inside a package may have its own floor.
FLOORS: tuple[tuple[str, ...], ...] = (
    (
        "errors",
        "version",
        "messages",
        "questions",
        "console_text",
        "config",
        "sigint",
        "tools",
        "host",
        "leaves",
        "packages",
    ),
    ("runtimes", "llm"),
    ("session",),
    ("runtimes.pool",),
    ("computer_api",),
    ("workspace", "policy", "sandbox"),
    (
        *("agent", "session.journal", "session.checkpoints"),
        *(
            "policy.approval",
            "policy.call_approval",
            "policy.review",
            "policy.pending",
            "policy.rule_editor",
        ),
    ),
    ("export",),
    ("api", "app", "config.profiles", "frontend", "__init__"),
    ("frontends.interrupts", "frontends.exit_codes"),
    # These don't import each other.
    ("frontends.terminal", "frontends.headless", "frontends.notebook"),
    ("frontends",),
    # Leaves: only rows name them.
    ("frontends.pictures", "frontends.viewer", "preview", "sandbox.container", "table_diffs"),
    ("computer_api.screen", "computer_api.people", "computer_api.browser"),
    (
        "languages",
        "local_models",
        "remote",
        "repo",
        "scanners",
        "script",
        "mcp",
        "agents",
        "batch",
        "frontends.server",
        "frontends.wtf",
    ),
    ("__main__", "old_functions", "old_paths"),
    ("computer_use", "core", "terminal_interface"),
)
FLOOR = {part: number for number, floor in enumerate(FLOORS) for part in floor}
FRONT_ENDS = ("frontends", "__main__")
# A front end's part of a leaf: its subcommands and magic commands.
FRONT_END_PARTS = (
    "agents/commands.py",
    "batch/commands.py",
    "local_models/setup.py",
    "mcp/commands.py",
    "repo/commands.py",
)
# On these floors, parts may import each other; elsewhere, neighbours may not.
OPEN_FLOORS = (0, 6, 8)
# Any part may import this one inside a function: it loads the terminal lazily.
SEAM = "frontend"
# Names of things above, as text, which are looked up when someone asks for them: rows of a registry, with the reason.
REGISTRIES = {
    "runtimes/**/*.py": "a language names its analysis, its exporter and its preview",
    "frontends/viewer.py": "the clipboard of the screen",
    "frontends/terminal/terminal.py": "pictures",
    "frontends/terminal/render/plain.py": "charts as text",
    "api.py": "the scanner of safe mode, the preview, and the best of several tries",
    "app/exports.py": "the export as a program",
    "export/__init__.py": "the exporters",
    "computer_api/computer.py": "the settings may name machines, which `remote` knows",
    "leaves.py": "the leaves",
    "config/profiles/load.py": "languages that a profile describes",
    "frontend.py": "the display in notebooks",
    "sandbox/containment.py": "the sandbox in a container",
    "workspace/diff.py": "the comparison of tables",
    "old_paths.py": "the old import paths",
}
# Imports upwards for type checkers alone, with the reason.
TYPES_ONLY = {
    ("config", "llm"): "the types of an interpreter's arguments",
    ("config", "computer_api"): "the types of an interpreter's arguments",
    ("computer_api", "computer_api.screen"): "the types of the tools",
    ("computer_api", "computer_api.people"): "the types of the tools",
    ("computer_api", "computer_api.browser"): "the types of the tools",
    ("runtimes.pool", "computer_api"): "the computer whose runtimes they are",
    ("app", "script"): "what a row leads to",
    ("api", "preview"): "what a row leads to",
    ("policy.review", "preview"): "what a row leads to",
    ("repo", "preview"): "what a row leads to",
    ("runtimes.pool", "preview"): "what a row leads to",
    ("frontends.terminal", "preview"): "what a row leads to",
    ("export", "script"): "what a row leads to",
    ("frontends.terminal", "script"): "what a row leads to",
    ("llm", "runtimes"): "the registry of languages, which is handed in",
}
# Separate programs, which run in another process than the library.
PROGRAMS = (
    "languages/bridge.py",
    "languages/custom/kernel.py",
    "languages/sql/driver.py",
    "runtimes/supervisor.py",
    "runtimes/warm.py",
    "runtimes/snapshot_store.py",
    "runtimes/python/driver/*.py",
    "local_models/engine_program.py",
    "remote/askpass.py",
    "remote/keeper.py",
    "sandbox/enter.py",
    "agents/code_*.py",
    "preview/driver.py",
)
# Executed with their own interpreter, not imported.
DATA = ("config/profiles/builtin/*.py",)
# Runs the user's code in this process with captured streams, so prints there are output.
CAPTURED = ("languages/in_process.py",)

FORBIDDEN_CALLS = frozenset(
    {"print", "input", "exit", "quit", "breakpoint", "sys.exit", "os._exit", "getpass.getpass"}
    | {f"sys.{stream}.write" for stream in ("stdout", "stderr")}
    | {f"sys.stdin.{way}" for way in ("read", "readline", "readlines")}
)

# Where programs are started: ours in one module, those of a session in the runtimes.
STARTS_PROGRAMS = ("host.processes", "runtimes", "languages")
PROCESS_MODULES = ("subprocess", "multiprocessing", "webbrowser")
PROCESS_CALL = re.compile(
    r"(os|posix|asyncio|pty|shutil)\.(exec\w+|spawn\w*|posix_spawnp?|system|popen|create_subprocess_\w+|which)"
)


NAME_IN_TEXT = re.compile(r"interpreter(\.\w+)+(:\w+)?")


class Import(NamedTuple):
    line: int
    part: str
    lazy: bool
    typed: bool = False  # for type checkers alone
    text: bool = False  # a name in a string


def problems(package: Path = PACKAGE) -> list[str]:
    """Every breach, as `file:line: what`."""
    found: list[str] = []
    for file in sorted(package.rglob("*.py")):
        place = file.relative_to(package)
        part = _part(".".join(place.with_suffix("").parts))
        if any(place.match(pattern) for pattern in DATA):
            continue
        if part == "__init__" and place.name != "__init__.py":
            found.append(f"{place}:1: it has no floor yet: give it one in scripts/check_imports.py")
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        found += [f"{place}:{line}: {what}" for line, what in _breaches(part, place, tree)]
    return found


def _breaches(part: str, place: Path, tree: ast.Module) -> Iterator[tuple[int, str]]:
    module = ".".join(place.with_suffix("").parts)
    if not module.startswith(STARTS_PROGRAMS) and not any(place.match(pattern) for pattern in PROGRAMS):
        for line, name in _process_uses(tree):
            yield line, f"uses {name}: start programs with host/processes.py"
    for used in _imports(tree, place):
        if not _is_registered(place, used) and (reason := _refusal(part, used)):
            yield used.line, f"{part} imports {used.part}: {reason}"
    if part.partition(".")[0] in FRONT_ENDS or any(
        place.match(pattern) for pattern in PROGRAMS + CAPTURED + FRONT_END_PARTS
    ):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (name := ast.unparse(node.func)) in FORBIDDEN_CALLS:
            yield node.lineno, f"{name}() below a front end: yield a chunk or raise an error instead"
        if isinstance(node, ast.Constant) and part != SEAM and _is_terminal(node.value):
            yield node.lineno, f"names {node.value}: only {SEAM}.py loads the terminal"


def _process_uses(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node, _ in _walk(tree, lazy=False, typed=False):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute):
            names = [ast.unparse(node)]
        else:
            continue
        for name in names:
            if name.partition(".")[0] in PROCESS_MODULES or PROCESS_CALL.fullmatch(name):
                yield node.lineno, name


def _refusal(part: str, used: Import) -> str | None:
    if used.part == part:
        return None
    if (used.part == SEAM and used.lazy) or (used.typed and (part, used.part) in TYPES_ONLY):
        return None
    mine, theirs = FLOOR[part], FLOOR[used.part]
    if theirs > mine:
        return "that points upwards"
    if theirs == mine and mine not in OPEN_FLOORS:
        return "neighbours do not import each other"
    return None


def _imports(tree: ast.Module, place: Path) -> Iterator[Import]:
    """The file's imports from this package: in functions, for type checkers and by names in strings, too."""
    typed = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for inner in ast.walk(node)
    }
    for node, lazy in _walk(tree, lazy=False):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{_base(node, place)}.{alias.name}" for alias in node.names]
        elif is_text and NAME_IN_TEXT.fullmatch(node.value):
            names = [node.value.partition(":")[0]]
        else:
            continue
        for name in names:
            package, _, rest = name.partition(".")
            if package == "interpreter":
                yield Import(node.lineno, _part(rest), lazy, id(node) in typed, is_text)


def _is_registered(place: Path, used: Import) -> bool:
    return used.text and any(place.match(pattern) or place.match(pattern.replace("**/", "")) for pattern in REGISTRIES)


def _walk(node: ast.AST, lazy: bool, typed: bool = True) -> Iterator[tuple[ast.AST, bool]]:
    for child in ast.iter_child_nodes(node):
        if not typed and isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            continue
        inside = lazy or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield child, inside
        yield from _walk(child, inside, typed)


def _base(node: ast.ImportFrom, place: Path) -> str:
    if node.level == 0:
        return node.module or ""
    folder = ("interpreter", *place.parts[:-1])
    return ".".join([*folder[: len(folder) + 1 - node.level], *filter(None, [node.module])])


def _part(name: str) -> str:
    """The part that contains a dotted name; other names are public names of the package itself."""
    while name and name not in FLOOR:
        name = name.rpartition(".")[0]
    return name or "__init__"


def _is_terminal(value: object) -> bool:
    return isinstance(value, str) and value.startswith("interpreter.frontends.terminal")


if __name__ == "__main__":
    breaches = problems()
    print("\n".join(breaches) or "Imports point downwards.")
    sys.exit(bool(breaches))
