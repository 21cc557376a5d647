"""The model that was chosen last, kept for the next start; a flag, a variable or a key in the environment beat it."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from interpreter.errors import ModelError
from interpreter.llm.local import engine, programs, weights

if TYPE_CHECKING:
    from interpreter.core import OpenInterpreter


class Remembered(NamedTuple):
    """What to ask, where, and which program has to run for that."""

    model: str
    api_base: str | None = None
    program: str = ""


def remember(interpreter: OpenInterpreter, program: str = "") -> None:
    """Keep what is chosen now."""
    chosen = Remembered(interpreter.llm.model, interpreter.llm.api_base, program)
    path = _file(interpreter)
    with suppress(OSError):  # a folder that cannot be written costs a question at the next start, no more
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(chosen._asdict()) + "\n", encoding="utf-8")


def recall(interpreter: OpenInterpreter) -> Remembered | None:
    """What was chosen last, if anything."""
    try:
        told = json.loads(_file(interpreter).read_text(encoding="utf-8"))
        return Remembered(**told) if isinstance(told["model"], str) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def problem(chosen: Remembered) -> str:
    """Why what was chosen cannot answer now, as far as a look at this machine tells."""
    if chosen.model.startswith(weights.PREFIX):
        if not engine.is_installed():
            return "llama.cpp, which loads it, is not installed"
        try:
            weights.file_of(chosen.model.removeprefix(weights.PREFIX))
        except ModelError:
            return "its file is gone"
    elif chosen.api_base and not programs.listens(chosen.api_base):
        return f"nothing answers at {urlsplit(chosen.api_base).netloc}"
    return ""


def _file(interpreter: OpenInterpreter) -> Path:
    return Path(interpreter.get_oi_dir()) / "model.json"
