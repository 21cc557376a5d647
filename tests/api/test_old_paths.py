"""Old import paths of 0.4.3: today's objects with a warning that names the new path, or an ImportError."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import interpreter as package
from interpreter.errors import MissingKeyError
from interpreter.old_paths import _GONE, _TARGETS
from model_server import ModelServer, text


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("old", _TARGETS)
def test_an_old_path_gives_the_current_object_and_a_warning(old: str) -> None:
    module_name, _, name = old.rpartition(".")
    module = importlib.import_module(f"interpreter.{module_name}")
    vars(module).pop(name, None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        first, second = getattr(module, name), getattr(module, name)
    assert first is second
    assert [(each.category, each.filename) for each in caught] == [(DeprecationWarning, __file__)]
    assert _TARGETS[old] in str(caught[0].message)


@pytest.mark.parametrize("old", _GONE)
def test_what_cannot_work_says_what_to_use(old: str) -> None:
    module, _, name = old.rpartition(".")
    with pytest.raises(ImportError, match="is not in this version: ") as caught:
        exec(f"from interpreter.{module} import {name}")
    assert _GONE[old] in str(caught.value)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_and_new_classes_are_the_same() -> None:
    from interpreter.core.computer.computer import Computer
    from interpreter.core.computer.terminal.base_language import BaseLanguage
    from interpreter.core.core import OpenInterpreter

    assert (OpenInterpreter, BaseLanguage) == (package.OpenInterpreter, package.BaseLanguage)
    assert isinstance(package.interpreter.computer, Computer)


@pytest.mark.parametrize(
    "statement",
    [
        "import interpreter.core.nothing",
        "from interpreter.core.core import Nothing",
        "from interpreter.core import nothing",
        "import interpreter.terminal_interface.nothing",
    ],
)
def test_missing_names_raise_an_import_error(statement: str) -> None:
    with pytest.raises(ImportError):
        exec(statement)


def test_a_star_import_gives_the_public_names() -> None:
    names: dict[str, Any] = {}
    exec("from interpreter import *", names)
    assert {"interpreter", "computer", "OpenInterpreter", "BaseLanguage"} <= names.keys()


def test_importing_the_package_does_not_load_the_old_paths() -> None:
    code = "import sys; from interpreter import interpreter; assert 'interpreter.old_paths' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_old_helpers_still_work(tmp_path: Any) -> None:
    from interpreter.core.llm.utils.convert_to_openai_messages import convert_to_openai_messages
    from interpreter.core.utils.lazy_import import lazy_import
    from interpreter.core.utils.telemetry import send_telemetry
    from interpreter.core.utils.truncate_output import truncate_output
    from interpreter.terminal_interface.profiles.profiles import profile
    from interpreter.terminal_interface.utils.count_tokens import count_tokens
    from interpreter.terminal_interface.utils.oi_dir import oi_dir

    assert lazy_import("json") is importlib.import_module("json")
    assert lazy_import("no_such_module") is None
    assert send_telemetry("started_chat") is None
    assert truncate_output("short") == "short"
    assert len(truncate_output("x" * 9000, 1000)) < 1500
    assert 1 < count_tokens("one two three") < 10
    code = {"role": "assistant", "type": "code", "format": "python", "content": "print(1)"}
    output = {"role": "computer", "type": "console", "format": "output", "content": "1"}
    asked = {"role": "user", "type": "message", "content": "Hi"}
    tools = convert_to_openai_messages([asked, code, output], interpreter=package.interpreter)
    assert [message["role"] for message in tools] == ["user", "assistant", "tool"]
    fenced = convert_to_openai_messages([asked, code, output], function_calling=False, interpreter=package.interpreter)
    assert [message["role"] for message in fenced] == ["user", "assistant", "user"]
    assert oi_dir.endswith("open-interpreter")
    file = tmp_path / "mine.yaml"
    file.write_text("auto_run: true\nversion: 0.2.5\n")
    mine = package.OpenInterpreter()
    assert profile(mine, str(file)) is mine
    assert mine.auto_run is True


def run_script(code: str, stdin: str = "", *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *arguments], input=stdin, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_terminal_uses_the_interpreter_that_a_script_gives_it(home: Path) -> None:
    with ModelServer([text("Hello.")]) as server:
        shown = run_script(
            "from interpreter import OpenInterpreter\n"
            "from interpreter.terminal_interface.start_terminal_interface import start_terminal_interface\n"
            "mine = OpenInterpreter(custom_instructions='Be kind.')\n"
            f"mine.llm.model, mine.llm.api_base, mine.llm.api_key = 'gpt-4o', {server.base_url!r}, 'key'\n"
            "start_terminal_interface(mine)\nprint(len(mine.messages), mine.llm.temperature)\n",
            "Hi\n",
            "--temperature",
            "0.3",
        )
        assert "Hello." in shown and "2 0.3" in shown
        assert "Be kind." in server.requests[-1].body["messages"][0]["content"]


def test_a_magic_command_of_a_script(home: Path) -> None:
    shown = run_script(
        "from interpreter import interpreter\n"
        "from interpreter.core.utils.system_debug_info import system_info\nsystem_info(interpreter)\n"
    )
    assert "Open Interpreter" in shown and "gpt-4o" in shown


def test_a_missing_key_is_an_error_without_a_terminal(home: Path) -> None:
    from interpreter.old_functions import validate_llm_settings

    mine = package.OpenInterpreter()
    mine.llm.model = "groq/x"
    with pytest.raises(MissingKeyError, match="GROQ_API_KEY"):
        validate_llm_settings(mine)


def test_a_scan_shows_its_findings(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from interpreter.old_functions import scan_code

    scan_code("print(1)", "python", package.OpenInterpreter(plain_text_display=True))
    assert capfd.readouterr().out.strip()
