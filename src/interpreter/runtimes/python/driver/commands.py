"""Shell commands that a block runs: `!cmd` and the like."""

from __future__ import annotations

import os
import re

from .imports import trusted_import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Match, Optional

VARIABLE = r"\{([^{}]+)\}|\$(\w+)"


def run_command(command: str) -> int:
    """Run a command whose output goes where the block's own goes; its exit code, negative for a signal."""
    return int(trusted_import("subprocess").call(command, shell=True, executable=shell_program()))


def command_output(command: str) -> List[str]:
    """The lines that a command writes, errors included."""
    subprocess = trusted_import("subprocess")
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    ran = subprocess.run(command, shell=True, executable=shell_program(), check=False, **both)
    return str(ran.stdout.decode("utf-8", "replace")).splitlines()


def shell_program() -> Optional[str]:
    """The user's shell where it is bash or zsh, else bash, else what the system has."""
    wanted = os.environ.get("SHELL", "")
    if os.path.basename(wanted) in ("bash", "zsh") and os.path.exists(wanted):
        return wanted
    found: Optional[str] = trusted_import("shutil").which("bash")
    return found


def expand(command: str, namespace: Dict[str, Any]) -> str:
    """Put the values of `{expressions}` and `$names` into a command; what is not one stays as it is."""

    def value(match: Match[str]) -> str:
        expression, name = match.groups()
        if name is not None:
            return str(namespace[name]) if name in namespace else match.group()
        try:
            return str(eval(expression, namespace))
        except Exception:  # noqa: BLE001 -- braces that mean something to the shell or to awk
            return match.group()

    return re.sub(VARIABLE, value, command)
