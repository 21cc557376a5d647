"""Shell blocks outside of their session: which of them leave something behind that others may need."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from interpreter.export.notebook import Setup

# At the beginning of a command: what lasts beyond it.
_LASTING = re.compile(
    r"(?:^|[;&|({]|\b(?:then|do|else)\b)\s*"
    r"(?:(?:cd|pushd|popd|export|unset|source|\.|alias|set|shopt|umask)(?=\s|$|;)|[A-Za-z_]\w*=\S*\s*(?:$|;|&&)"
    r"|(?:function\s+)?[\w-]+\s*\(\)\s*\{)",
    re.MULTILINE,
)


def leaves_state(commands: str) -> bool:
    """Whether the block changes its shell: folder, variables, functions, options."""
    return bool(_LASTING.search(commands))


def any_leaves_state(blocks: Iterable[str]) -> bool:
    return any(leaves_state(commands) for commands in blocks)


def notebook_setup(blocks: Sequence[str]) -> Setup | None:
    """What a notebook needs so that its shell cells share one shell; None if no block leaves anything behind."""
    if not any_leaves_state(blocks):
        return None
    register = 'get_ipython().register_magic_function(lambda line, cell: shell(cell), "cell", "shell")'
    note = "The shell blocks below run in this function, which keeps their folder and variables."
    return Setup(note, f"{shell_function()}\n\n{register}", "%%shell")


def shell_function(name: str = "shell") -> str:
    """The source of a Python function that keeps folder and variables from one shell block to the next."""
    source = (Path(__file__).parent / "templates" / "shell_function.txt").read_text(encoding="utf-8")
    return source.replace("def shell(", f"def {name}(", 1)
