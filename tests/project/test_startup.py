"""The program starts fast: --version and --help load only what they need."""

from __future__ import annotations

import subprocess
import sys

import pytest

from interpreter.frontends.cli import version_line
from interpreter.frontends.flags import help_text

HEAVY = {"httpx", "rich", "prompt_toolkit", "IPython", "yaml", "asyncio", "argparse", "dataclasses", "interpreter.api"}


@pytest.mark.parametrize(("flag", "output"), [("--version", version_line()), ("--help", help_text())])
def test_version_and_help_load_no_heavy_modules(flag: str, output: str) -> None:
    code = (
        "import sys; from interpreter.frontends.cli import main; code = main(sys.argv[1:]); "
        f"print(sorted({HEAVY!r} & set(sys.modules)), file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code, flag], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, output + "\n", "[]\n")


@pytest.mark.parametrize(
    "code", ["import interpreter", "from interpreter.frontends.cli import main; main(['--version'])"]
)
def test_import_and_version_do_not_load_the_settings(code: str) -> None:
    heavy = HEAVY | {"interpreter.config.settings"}
    code = f"import sys; {code}; print(sorted({heavy!r} & set(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_a_wrong_command_line_exits_with_2() -> None:
    code = "import sys; from interpreter.frontends.cli import main; sys.exit(main(['--moddel', 'x']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "--model" in done.stderr
    assert done.stdout == ""
