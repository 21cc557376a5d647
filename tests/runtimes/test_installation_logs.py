"""The log of pip is one line, wherever it runs; the block's whole output is kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interpreter import OpenInterpreter
from interpreter.runtimes.block import InstallLog
from model_server import ModelServer, text, tool_call
from terminal.person import someone
from tiny_package import write_wheel

OFFLINE = "--no-index --disable-pip-version-check"


@pytest.fixture
def interpreter() -> Iterator[OpenInterpreter]:
    made = OpenInterpreter()
    yield made
    made.reset()


def shown(interpreter: OpenInterpreter, language: str, code: str) -> str:
    chunks: list[Any] = list(interpreter.computer.run(language, code, stream=True))
    return "".join(chunk["content"] for chunk in chunks if chunk.get("format") == "output").replace("\r", "")


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", "%pip install {} {}\nprint('after')"),
        ("python", "!pip install {} {}\nprint('after')"),
        (
            "python",
            "import subprocess, sys\nsubprocess.call([sys.executable, '-m', 'pip', 'install', *'{} {}'.split()])\nprint('after')",
        ),
        ("shell", "pip install {} {}; echo after"),
    ],
)
def test_an_installation_is_one_line(interpreter: OpenInterpreter, tmp_path: Path, language: str, code: str) -> None:
    wheels = " ".join(str(write_wheel(tmp_path, f"tiny_{number}")) for number in range(7))
    line, after = shown(interpreter, language, code.format(OFFLINE, wheels)).splitlines()
    assert after == "after"
    assert line == "Successfully installed tiny-0-1.0, tiny-1-1.0, tiny-2-1.0, tiny-3-1.0 and 3 more"
    again = shown(interpreter, language, code.format(OFFLINE, "tiny_0 tiny_1"))
    assert again.splitlines() == ["Already installed: tiny_0, tiny_1", "after"]


def test_a_failed_installation_says_why(interpreter: OpenInterpreter) -> None:
    output = shown(interpreter, "python", f"%pip install {OFFLINE} there_is_no_such_package")
    assert output.startswith("ERROR: Could not find a version that satisfies")


def test_other_output_of_the_block_passes(interpreter: OpenInterpreter, tmp_path: Path) -> None:
    code = "print('Processing row 5\\n\\nDownloading data')\n%pip install {} {}\nprint('Installing hope\\n')"
    output = shown(interpreter, "python", code.format(OFFLINE, write_wheel(tmp_path)))
    assert output == "Processing row 5\n\nDownloading data\nSuccessfully installed tiny-thing-1.0\nInstalling hope\n\n"
    assert shown(interpreter, "python", "print('Collecting data')") == "Collecting data\n"


PIP_ON_A_TERMINAL = (
    "Collecting numpy\r\n  Downloading numpy-2.4.0-cp311-cp311-manylinux_2_27_x86_64.whl.metadata (6.6 kB)\r\n"
    "Downloading numpy-2.4.0-cp311.whl (16.6 MB)\r\n\x1b[?25l   \x1b[38;5;237m━━━━\x1b[0m \x1b[32m0.0/16.6 MB\x1b[0m "
    "\x1b[31m?\x1b[0m eta \x1b[36m-:--:--\x1b[0m\r\x1b[2K   \x1b[38;5;197m━━━━\x1b[0m \x1b[32m8.1/16.6 MB\x1b[0m\r\x1b[2K"
    "   ━━━━ 16.6/16.6 MB 40.1 MB/s  0:00:00\r\n\x1b[?25hInstalling collected packages: numpy\r\n"
    "Successfully installed numpy-2.4.0\r\n\r\n\x1b[1m[\x1b[0m\x1b[34;49mnotice\x1b[0m\x1b[1;39;49m]\x1b[0m A new release\r\n"
)
UV = "Using Python 3.11.2 environment at: x\nResolved 2 packages in 35ms\nPrepared 1 package in 2ms\nInstalled 2 packages in 9ms\n + six==1.17\n + tzdata==2026.1\n"


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
@pytest.mark.parametrize(
    ("log", "line"),
    [(PIP_ON_A_TERMINAL, "Successfully installed numpy-2.4.0\r\n"), (UV, "Installed 2 packages in 9ms\n")],
)
def test_logs_that_arrive_in_pieces(log: str, line: str, size: int) -> None:
    installation = InstallLog()
    shown, steps = "", set()
    for at in range(0, len(log), size):
        shown += installation.feed(log[at : at + size])
        steps.add(installation.step)
    assert shown + installation.end() == line
    assert installation.step == "" and (
        size > 100 or steps & {"Installing collected packages: numpy", "Prepared 1 package in 2ms"}
    )


def test_what_was_asked_for_comes_first() -> None:
    log = InstallLog()
    line = log.feed(
        "Collecting Pandas>=2\nCollecting numpy>=1.26 (from Pandas>=2)\nInstalling collected packages: six, pandas\n"
        "Successfully installed a-1 b-2 c-3 numpy-2.4.0 pandas-3.0.1\n"
    )
    assert line == "Successfully installed pandas-3.0.1, a-1, b-2, c-3 and 1 more\n"


@pytest.mark.usefixtures("no_strays")
def test_the_line_is_above_the_figure(tmp_path: Path) -> None:
    wheels = " ".join(str(write_wheel(tmp_path, f"tiny_{number}")) for number in range(12))
    code = f"%pip install {OFFLINE} {wheels}\nimport matplotlib.pyplot as plt\nplt.bar(['North', 'South'], [1, 2])"
    replies = [tool_call("python", code), text("Done.")]
    with ModelServer(replies) as server, someone("-y", "--terminal_images", "blocks", server=server) as person:
        person.says("draw it")
        person.sees("Done.")
        rows = person.emulator.everything
        line = next(number for number, row in enumerate(rows) if row.startswith("Successfully installed"))
        chart = next(number for number, row in enumerate(rows) if row.startswith("North "))
        assert line < chart and not any("Processing" in row for row in rows)
        person.says("%output")
        person.sees("Installing collected packages")
        person.types("q")
        assert person.leaves() == 0


@pytest.mark.usefixtures("no_strays")
def test_the_present_step_is_on_the_status_line(home: Path) -> None:
    steps = "echo 'Collecting numpy'; while [ ! -e go ]; do sleep 0.05; done; echo 'Successfully installed numpy-2.4.0'"
    replies = [tool_call("shell", f"# pip install numpy\n{steps}"), text("Done.")]
    with ModelServer(replies) as server, someone("-y", server=server) as person:
        person.says("install it")
        person.glimpses("s · Collecting numpy")
        (Path.cwd() / "go").touch()
        person.sees("Done.")
        assert "Successfully installed numpy-2.4.0" in person.emulator.everything
        assert person.leaves() == 0
