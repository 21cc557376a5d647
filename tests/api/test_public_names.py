"""What `import interpreter` exports, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import interpreter as package

WATCH = """
import sys
touched = []
def watch(event, args):
    if event == "open" and args[1] and any(flag in str(args[1]) for flag in "wax+"):
        touched.append(args[0])
    if event.startswith("socket.") or event in ("subprocess.Popen", "os.mkdir"):
        touched.append((event, args))
sys.addaudithook(watch)
from interpreter import interpreter, OpenInterpreter, BaseLanguage, computer
assert not touched, touched
heavy = {"httpx", "rich", "prompt_toolkit", "IPython", "asyncio", "yaml"} & set(sys.modules)
assert not heavy, heavy
"""


def test_importing_writes_no_files_and_loads_nothing_heavy() -> None:
    subprocess.run([sys.executable, "-B", "-c", WATCH], check=True)


def test_the_public_names_are_the_documented_ones() -> None:
    assert set(package.__all__) - {"__version__"} == {
        "BaseLanguage", "OpenInterpreter", "computer", "connect", "interpreter",
    }  # fmt: skip
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert package.computer is package.interpreter.computer


def test_an_unknown_name_raises_an_attribute_error() -> None:
    with pytest.raises(AttributeError):
        _ = package.nonsense
