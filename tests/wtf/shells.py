"""A user at a real shell with the hook installed and `wtf` on the PATH."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect

TIMEOUT = 40
SHELLS = ("bash", "zsh")
PROMPT = "ready% "
PROGRAM = '#!/bin/sh\nexec "{}" -c "import sys; from interpreter.frontends.{} import main; sys.exit(main())" "$@"\n'
DOCUMENTATION = Path(__file__).parent.parent.parent / "docs" / "wtf.md"


class Shell:
    """Types a line, waits for the next prompt, and returns what was shown in between."""

    def __init__(self, child: pexpect.spawn[str]) -> None:
        self.child = child

    def types(self, line: str) -> str:
        self.child.sendline(line)
        return self.waits_for(PROMPT)

    def waits_for(self, text: str) -> str:
        self.child.expect_exact(text)
        return str(self.child.before)


def documented_line(name: str) -> str:
    """Return the line that the docs recommend for the rc file."""
    lines = DOCUMENTATION.read_text("utf-8").splitlines()
    return next(line for line in lines if line.startswith("eval ") and name in line)


@contextmanager
def shell_with_hook(name: str, folder: Path, record: bool = False, **variables: str) -> Iterator[Shell]:
    programs = folder / "programs"
    programs.mkdir()
    for program, module in {"wtf": "wtf", "interpreter": "cli"}.items():
        (programs / program).write_text(PROGRAM.format(sys.executable, module))
        (programs / program).chmod(0o755)
    rc = folder / "rc"
    rc.mkdir()
    setup = "PS1='ready'\"% \"\nHISTCONTROL=ignoreboth\nbind 'set enable-bracketed-paste off' 2>/dev/null\n"
    if name == "zsh":
        setup = "PROMPT='ready'\"%% \"\nunsetopt zle prompt_cr prompt_sp\n"
    for file in (".zshrc", "bashrc"):
        (rc / file).write_text(setup + documented_line(name) + "\n")
    command = ["bash", "--noprofile", "--rcfile", str(rc / "bashrc"), "-i"] if name == "bash" else ["zsh", "-i"]
    if record:
        command = [str(programs / "wtf"), "--record", *command]
    work = folder / "work"
    work.mkdir()
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    more = {"PATH": path, "ZDOTDIR": str(rc), "TERM": "xterm", "OPENAI_API_KEY": "key", "TMUX": "", **variables}
    child = pexpect.spawn(
        command[0],
        command[1:],
        env={**os.environ, **more},
        cwd=str(work),
        encoding="utf-8",
        timeout=TIMEOUT,
        dimensions=(40, 200),
    )
    child.delaybeforesend = None
    try:
        shell = Shell(child)
        shell.waits_for(PROMPT)
        yield shell
    finally:
        child.close(force=True)
