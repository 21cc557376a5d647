"""Imports point downwards, and only front ends talk to the user."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from check_imports import problems  # noqa: E402  (a script, not a package)


def test_the_package_keeps_the_direction() -> None:
    assert problems() == []


@pytest.mark.parametrize(
    ("file", "code", "breach"),
    [
        ("messages.py", "from interpreter.core import OpenInterpreter", "points upwards"),
        ("messages.py", "def f():\n    import interpreter.llm.wire", "points upwards"),
        ("languages/session.py", "from ..core import OpenInterpreter", "points upwards"),
        ("llm/wire.py", "from interpreter.languages import base", "neighbours"),
        ("core.py", "def f():\n    from interpreter.terminal import cli", "points upwards"),
        ("core.py", "import importlib\nimportlib.import_module('interpreter.terminal')", "only frontend.py"),
        ("llm/wire.py", "from interpreter.frontend import show_chat", "points upwards"),
        ("llm/wire.py", "from interpreter import interpreter", "points upwards"),
        ("loop.py", "print('hello')", "below a front end"),
        ("loop.py", "import sys\nsys.exit(1)", "below a front end"),
        ("llm/wire.py", "answer = input()", "below a front end"),
        ("utils.py", "", "no floor"),
    ],
)
def test_a_breach_is_found(tmp_path: Path, file: str, code: str, breach: str) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(code)
    found = problems(tmp_path)
    assert len(found) == 1
    assert breach in found[0]
    assert found[0].startswith(f"{file}:")


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("core.py", "from interpreter.llm.wire import Wire\nfrom interpreter.loop import Turn"),
        ("computer_api/computer.py", "from interpreter.languages.base import BaseLanguage"),
        ("computer_api/computer.py", "def f():\n    from interpreter.frontend import show_chunks"),
        (
            "messages.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from interpreter.core import X",
        ),
        ("terminal/cli.py", "from interpreter.core import OpenInterpreter\nprint('hello')"),
        ("languages/supervisor.py", "import os\nos._exit(1)"),
    ],
)
def test_what_is_allowed_is_not_reported(tmp_path: Path, file: str, code: str) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(code)
    assert problems(tmp_path) == []


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = ("httpx", "rich", "prompt_toolkit", "IPython", "yaml", "asyncio", "argparse")
    code = (
        "import sys; from interpreter import interpreter, OpenInterpreter, BaseLanguage; "
        f"print(sorted(set(sys.modules) & set({heavy!r})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")
