"""Shell blocks outside of their session: which of them leave something behind that others may need."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

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


def shell_function(name: str = "shell") -> str:
    """The source of a Python function that keeps folder and variables from one shell block to the next."""
    source = (Path(__file__).parent / "templates" / "shell_function.txt").read_text(encoding="utf-8")
    return source.replace("def shell(", f"def {name}(", 1)
