"""A type checker knows the name and type of every setting when it is read, set or passed to the constructor."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from interpreter.computer_api.tool import TOOLS

ROOT = Path(__file__).parent.parent.parent

# Mypy must find an error in each line that ends in `# error: CODE`, and in no other line.
SCRIPT = """
from pathlib import Path
from interpreter import OpenInterpreter, computer, interpreter
from interpreter.computer_api import Computer
from interpreter.llm import Llm

oi = OpenInterpreter(max_blocks=3, mode="plan", workspace=Path("/tmp"), loop_breakers=["Done."], messages=[])
OpenInterpreter([], oi.llm, oi.computer, offline=True, skills_path=None)
OpenInterpreter(max_blokcs=3)  # error: call-arg
OpenInterpreter(max_blocks="3")  # error: arg-type
OpenInterpreter(auto_run=None)  # error: arg-type
OpenInterpreter(mode="paln")  # error: arg-type
OpenInterpreter(workspace=3)  # error: arg-type
OpenInterpreter(llm="gpt-4o")  # error: arg-type
OpenInterpreter(model="gpt-4o")  # error: call-arg

blocks: int | None = oi.max_blocks
folder: str = oi.workspace
skills: str | None = oi.skills_path
oi.messages.append({"role": "user", "type": "message", "content": "Hello"})
seconds: int = oi.llm.timeout  # error: assignment
words: str = oi.conversation_filename  # error: assignment
oi.max_blokcs  # error: attr-defined
oi.llm.modle  # error: attr-defined
oi.computer.pyhton  # error: attr-defined
oi.computer.clipbord  # error: attr-defined
interpreter.autorun  # error: attr-defined
computer.offlin  # error: attr-defined

oi.max_blocks = None
oi.llm.temperature = 1
oi.llm.execution_instructions = False
oi.llm.completions = lambda **params: iter([])
oi.llm.completions = None
oi.computer.python = Path("/usr/bin/python3")
oi.computer.skills_path = None
oi.computer.mouse.position()
oi.journal, oi.timeline, oi.pending, oi.responding, oi.computer.languages
oi.llm, oi.computer = Llm(oi, oi), Computer(oi)
oi.max_blocks = "x"  # error: assignment
oi.max_blokcs = 3  # error: attr-defined
oi.safe_mode = "on"  # error: assignment
oi.loop_breakers = [1]  # error: list-item
oi.workspace = None  # error: assignment
oi.llm.modle = "gpt-4o"  # error: attr-defined
oi.llm.max_tokens = "4096"  # error: assignment
oi.llm.execution_instructions = True  # error: assignment
oi.computer.pyhton = "python3"  # error: attr-defined
oi.computer.shell_rc = "yes"  # error: assignment


class Mine(OpenInterpreter):
    colour: str

    def __init__(self) -> None:
        super().__init__(auto_run=True)
        self.colour, self.size = "blue", 3


Mine().max_blocks, Mine().colour, Mine().size, {Mine()}
Mine().max_blokcs  # error: attr-defined
"""


@pytest.mark.full
def test_mypy_finds_exactly_the_marked_errors(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    tools = "\n".join(f"oi.computer.{name}" for name in TOOLS)
    script.write_text(f"{SCRIPT}\n{tools}\n", encoding="utf-8")
    command = [sys.executable, "-m", "mypy", str(script)]  # with the options of pyproject.toml
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110)
    found = re.findall(r"^(.+?):(\d+): error: .*\[(.+)\]$", done.stdout, re.M)
    mistakes = re.findall(r"^(.*)  # error: (.+)$", SCRIPT, re.M)
    lines = script.read_text(encoding="utf-8").splitlines()
    told = [(lines[int(line) - 1].partition("  # error: ")[0], code) for _file, line, code in found]
    assert (told, done.stderr) == (mistakes, ""), done.stdout
