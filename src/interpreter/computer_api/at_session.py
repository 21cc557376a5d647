"""Work on files where the session's code would do it: as the host itself, or inside the sandbox.

The host can see more than code in a sandbox can, and paths there may be links that change at any time. So a tool that
works on a file for such code does it in a process inside the same sandbox.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from interpreter.computer_api.computer import CALL, Computer
from interpreter.errors import ComputerError, SandboxUnavailableError
from interpreter.runtimes.launch import RuntimeContext, Start, run_to_end

WORK = "interpreter.computer_api.files.work"
ROOT = Path(__file__).parent.parent
CALL_TIMEOUT = 120.0
# Its modules come with the request, under their own names. Nothing is imported from the directory of the session, where
# `-c` would look first.
PROGRAM = """
import sys
sys.path = [path for path in sys.path if path]
import importlib, importlib.abc, importlib.util, json
asked = json.loads(sys.stdin.buffer.read())
class Sources(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    def find_spec(self, name, path=None, target=None):
        known = name in asked["sources"]
        return importlib.util.spec_from_loader(name, self, is_package=not asked["sources"][name]) if known else None
    def get_source(self, name):
        return asked["sources"][name]
sys.meta_path.insert(0, Sources())
work = getattr(importlib.import_module(asked["module"]), asked["function"])
try:
    result = {"value": work(**asked["arguments"])}
except (OSError, ValueError, LookupError, ImportError) as error:
    result = {"error": type(error).__name__, "words": str(error)}
sys.stdout.buffer.write(json.dumps(result).encode())
"""
ERRORS: dict[str, type[Exception]] = {
    kind.__name__: kind for kind in (ValueError, FileNotFoundError, IsADirectoryError, PermissionError, OSError)
}


def called_from_sandbox() -> bool:
    """Return whether code in a sandbox made the call that is being answered."""
    call = CALL.get()
    return call is not None and call.containment is not None


def do(computer: Computer, module: str, function: str, /, apart: bool = False, **arguments: Any) -> Any:
    """Call a function of a module in `files/work`, or of a leaf's, with the session's directory as its folder.

    A leaf's module has its full name, and imports only what is beside it and in `files/work`.
    `apart`: in a separate process, which can always be interrupted.
    """
    shared = context_of(computer)
    arguments = {"folder": shared.cwd, **arguments}
    if shared.containment is None and not apart:
        return getattr(import_module(_full_name(module)), function)(**arguments)
    return _ask(shared, [sys.executable, "-I"], module, function, arguments)


def do_in_python(
    computer: Computer, module: str, function: str, /, seconds: float = CALL_TIMEOUT, **arguments: Any
) -> Any:
    """Call a function like `do`, in a process of the session's Python, which knows what that can import."""
    shared = context_of(computer)
    return _ask(
        shared, [shared.python_environment().python], module, function, {"folder": shared.cwd, **arguments}, seconds
    )


def read_tables(computer: Computer, kind: str, contents: Sequence[bytes | None], seconds: float) -> Any:
    """Read the tables of Excel or Parquet files; ComputerError, OSError or ValueError says why it fails."""
    encoded = [None if content is None else base64.b64encode(content).decode() for content in contents]
    return do_in_python(computer, "tables", "read", seconds, kind=kind, contents=encoded)


def read_bytes(computer: Computer, path: str) -> bytes:
    """Read a file for the other tools, which must not read more than the session can."""
    return base64.b64decode(do(computer, "texts", "content", path=path))


def context_of(computer: Computer) -> RuntimeContext:
    """Return the context of the runtimes; for code that calls, with the sandbox that the code is in."""
    call = CALL.get()
    if call is None:
        computer.runtimes.apply_sandbox()
    shared = computer.context
    if call is None or call.containment is shared.containment:
        return shared
    return replace(shared, containment=call.containment, exported={})  # its exports do not belong in another sandbox


def _ask(
    shared: RuntimeContext,
    python: list[str],
    module: str,
    function: str,
    arguments: dict[str, Any],
    seconds: float = CALL_TIMEOUT,
) -> Any:
    plain = Start([*python, "-c", PROGRAM], shared.environment(), shared.cwd)
    name = _full_name(module)
    sources = _sources(name.rpartition(".")[0])
    request = {"sources": sources, "module": name, "function": function, "arguments": arguments}
    try:
        answer = run_to_end(plain, shared.containment, json.dumps(request).encode(), seconds)
    except TimeoutError as error:
        raise ComputerError(f"{error} Ask for less.") from error
    except (OSError, SandboxUnavailableError) as error:
        raise ComputerError(f"Can't start the operation in the session: {error}") from error
    try:
        answer_fields = json.loads(answer.stdout)
        if "error" not in answer_fields:
            return answer_fields["value"]
        failure = ERRORS.get(answer_fields["error"], ComputerError)(answer_fields["words"])
    except (ValueError, TypeError, LookupError, RecursionError) as error:  # code can send anything
        complaint = answer.stderr.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
        raise ComputerError(f"The operation failed in the session: {complaint[-1]}") from error
    raise failure


def _full_name(module: str) -> str:
    return module if "." in module else f"{WORK}.{module}"


@cache
def _sources(package: str) -> dict[str, str]:
    """Return the modules of `files/work` and of a package; the packages above them are empty."""
    sources = dict[str, str]()
    for name in {WORK, package}:
        parts = name.split(".")
        sources |= {".".join(parts[:depth]): "" for depth in range(1, len(parts) + 1)}
        for file in ROOT.joinpath(*parts[1:]).glob("*.py"):
            if file.stem != "__init__":
                sources[f"{name}.{file.stem}"] = file.read_text("utf-8")
    return sources
