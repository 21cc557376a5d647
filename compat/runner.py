"""Run rows in one Python: import `interpreter` once, then fork a child for each row.

    python compat/runner.py < request.json

This file and `helpers.py` also run where only 0.4.3 is installed, so they use only the standard library. The request
is `{"rows": [{"name", "file", "line", "source"}], "limit": seconds}`; each row is answered with one line of JSON:
`{"name", "passes", "why", "output", "seconds"}`.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import ipaddress
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import types
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def main() -> None:
    request = json.load(sys.stdin)
    answers = os.fdopen(os.dup(1), "w")
    folder = Path(tempfile.mkdtemp(prefix="compat-"))
    try:
        _isolate(folder)
        import helpers  # next to this file

        import interpreter  # noqa: F401 - imported once, for every row

        _preload_chat_modules(helpers)
        for row in request["rows"]:
            _empty(folder)
            answers.write(json.dumps(run_row(row, request["limit"], helpers)) + "\n")
            answers.flush()
    finally:
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)


def _isolate(folder: Path) -> None:
    """Remove access to the home folder, keys and network, and adopt all processes that rows start, to end them."""
    for name in list(os.environ):
        if name.startswith(("INTERPRETER_", "OPENAI_", "ANTHROPIC_", "OLLAMA_", "XDG_")) or name.endswith("_API_KEY"):
            del os.environ[name]
    nowhere = "http://127.0.0.1:9"
    os.environ.update(
        {"HOME": str(folder / "home"), "DISABLE_TELEMETRY": "true", "SHELL": "/bin/bash", "TERM": "dumb"}
        | {"MPLBACKEND": "agg", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "NO_COLOR": "1", "TMPDIR": str(folder / "tmp")}
        | {"http_proxy": nowhere, "https_proxy": nowhere, "no_proxy": "127.0.0.1,localhost"}
    )
    _empty(folder)
    tempfile.tempdir = None
    sys.addaudithook(_refuse_foreign_address)
    sys.argv = ["script.py"]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def _preload_chat_modules(helpers: types.ModuleType) -> None:
    """Import what a chat imports lazily before the rows fork, so that each row doesn't import it again."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        try:
            helpers.short_chat()
            os.write(writer, "\n".join(sys.modules).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as names:
        for name in names.read().splitlines():
            if name not in sys.modules:
                with contextlib.suppress(Exception):
                    importlib.import_module(name)
    _end_children()


def _refuse_foreign_address(event: str, args: tuple[Any, ...]) -> None:
    if event != "socket.connect" or not isinstance(args[1], tuple) or not isinstance(args[1][0], str):
        return
    try:
        near = args[1][0] == "localhost" or ipaddress.ip_address(args[1][0]).is_loopback
    except ValueError:
        near = False
    if not near:
        raise PermissionError(f"a row tried to reach {args[1][0]}")


def _empty(folder: Path) -> None:
    """Empty the folder; every row uses the same paths, because 0.4.3 determines its folders at import."""
    os.chdir("/")
    for name in ("home", "work", "tmp"):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir(parents=True)
    os.chdir(folder / "work")


def run_row(row: dict[str, Any], limit: float, helpers: types.ModuleType) -> dict[str, Any]:
    """Run one row in a child."""
    began = time.monotonic()
    reader, writer = os.pipe()
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            os.close(reader)
            os.setpgid(0, 0)
            _execute_row(row, helpers, writer, output.fileno())
        os.close(writer)
        verdict = b""
        while select.select([reader], [], [], max(0, began + limit - time.monotonic()))[0]:
            part = os.read(reader, 65536)
            verdict += part
            if not part:
                break
        else:
            verdict = b"did not end within %d s" % limit
        os.close(reader)
        _end_children()
        output.seek(0)
        text = output.read().decode(errors="replace")
    why = verdict.decode(errors="replace")
    passes = why == "passes"
    taken = round(time.monotonic() - began, 1)
    why = "" if passes else why or "the process died"
    return {"name": row["name"], "passes": passes, "why": why, "output": text[-4000:], "seconds": taken}


def _execute_row(row: dict[str, Any], helpers: types.ModuleType, writer: int, output: int) -> None:
    """In the child: run the row's source as a script, and write how it ended."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    script = types.ModuleType("__main__")
    sys.modules["__main__"] = script
    vars(script).update({name: getattr(helpers, name) for name in helpers.__all__})
    why = "passes"
    try:
        exec(compile("\n" * (row["line"] - 1) + row["source"], row["file"], "exec"), vars(script))
    except BaseException as error:  # noqa: BLE001 - also SystemExit, which a library must not raise
        traceback.print_exc()
        lines = [entry for entry in traceback.extract_tb(error.__traceback__) if entry.filename == row["file"]]
        # The row's source is not a separate file, so look up the line.
        all_lines = ("\n" * (row["line"] - 1) + row["source"]).splitlines()
        at = all_lines[lines[-1].lineno - 1].strip() if lines and lines[-1].lineno else ""
        message = (str(error).strip().splitlines() or [""])[0].replace(os.environ["HOME"], "~")
        why = f"{type(error).__name__}: {message[:160]}".rstrip(": ") + (f"  [{at[:120]}]" if at else "")
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    os.write(writer, why.encode())
    os._exit(0)


def _end_children() -> None:
    """End everything that the row started, including background processes."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        for pid in _descendants():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            time.sleep(0.005)
        except ChildProcessError:
            return


def _descendants() -> list[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
    pids = [os.getpid()]
    for pid in pids:
        pids += [child for child, parent in parents.items() if parent == pid]
    return pids[1:]


if __name__ == "__main__":
    main()
