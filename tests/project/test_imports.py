"""Imports point downwards, and only front ends talk to the user."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from check_imports import problems  # noqa: E402  (a script, not a package)


@pytest.mark.full  # `make check` does the same
def test_the_package_has_no_wrong_imports() -> None:
    assert problems() == []


@pytest.mark.parametrize(
    ("file", "code", "breach"),
    [
        ("messages.py", "from interpreter.api import OpenInterpreter", "points upwards"),
        ("messages.py", "def f():\n    import interpreter.llm.http", "points upwards"),
        ("runtimes/session.py", "from ..api import OpenInterpreter", "points upwards"),
        ("llm/http.py", "from interpreter.runtimes import base", "neighbours"),
        ("api.py", "def f():\n    from interpreter.frontends.terminal import cli", "points upwards"),
        ("session/kernel.py", "if TYPE_CHECKING:\n    from interpreter.api import OpenInterpreter", "points upwards"),
        ("session/kernel.py", "resolve('interpreter.remote.machines:find')", "points upwards"),
        ("api.py", "import importlib\nimportlib.import_module('interpreter.frontends.terminal')", "only frontend.py"),
        ("llm/http.py", "from interpreter.frontend import terminal", "points upwards"),
        ("llm/http.py", "from interpreter import interpreter", "points upwards"),
        ("agent/turn.py", "print('hello')", "below a front end"),
        ("agent/turn.py", "import sys\nsys.exit(1)", "below a front end"),
        ("llm/http.py", "answer = input()", "below a front end"),
        ("utils.py", "", "no floor"),
        ("llm/http.py", "import subprocess", "start programs with"),
        ("frontends/start.py", "def f():\n    from subprocess import run", "start programs with"),
        ("agent/turn.py", "import os\nos.execvp('ls', ['ls'])", "start programs with"),
        ("agent/turn.py", "from os import system", "start programs with"),
        ("agent/turn.py", "import shutil\nmap(shutil.which, names)", "start programs with"),
        (
            "api.py",
            "import asyncio\nasync def f():\n    await asyncio.create_subprocess_exec('ls')",
            "start programs with",
        ),
    ],
)
def test_a_wrong_import_or_call_is_found(tmp_path: Path, file: str, code: str, breach: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(code)
    found = problems(tmp_path)
    assert found and any(breach in each for each in found)
    assert all(each.startswith(f"{file}:") for each in found)


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("api.py", "from interpreter.llm.http import Wire\nfrom interpreter.agent.turn import Turn"),
        ("computer_api/computer.py", "from interpreter.runtimes.base import BaseLanguage"),
        ("computer_api/computer.py", "def f():\n    from interpreter.frontend import terminal"),
        (
            "config/settings.py",  # which has a reason: see TYPES_ONLY
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from interpreter.llm import Llm",
        ),
        ("frontends/cli.py", "from interpreter.api import OpenInterpreter\nprint('hello')"),
        ("runtimes/supervisor.py", "import os\nos._exit(1)"),
    ],
)
def test_allowed_imports_are_not_reported(tmp_path: Path, file: str, code: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(code)
    assert problems(tmp_path) == []


def test_importing_the_package_loads_no_heavy_modules() -> None:
    heavy = ("httpx", "rich", "prompt_toolkit", "IPython", "yaml", "asyncio", "argparse")
    code = (
        "import sys; from interpreter import interpreter, OpenInterpreter, BaseLanguage; "
        f"print(sorted(set(sys.modules) & set({heavy!r})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")
