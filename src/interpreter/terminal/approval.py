"""The question before a block runs, and what its answers do."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interpreter.blocks import PendingBlock
    from interpreter.messages import Chunk
    from interpreter.terminal.terminal import Terminal

QUESTION = "Would you like to run this code? (y/n)"
_EXPLANATION = (
    "y runs it, n does not, n and some words tell the model why not, e lets you edit it first, "
    "p shows what it would change."
)
_NO = re.compile(r"no?(?:[\s,:;.]+(?P<words>.*))?", re.IGNORECASE | re.DOTALL)
_EDITORS = ("vim", "nano", "vi")
_SUFFIXES = {"python": ".py", "shell": ".sh", "bash": ".sh", "sh": ".sh", "zsh": ".sh", "javascript": ".js"}


def approve(terminal: Terminal, pending: PendingBlock, preview: Callable[[], bool] | None = None) -> bool:
    """Ask until there is an answer; True if the block is to run. `preview` tries it out, True if that is to be kept."""
    while True:
        answer = _ask(terminal)
        if answer is None:
            pending.decline()
            return False
        word = answer.strip()
        if word.lower() in ("y", "yes"):
            return True
        if (no := _NO.fullmatch(word)) and "\n" not in answer:
            pending.decline((no["words"] or "").strip() or None)
            return False
        if word.lower() in ("p", "preview") and preview is not None:
            if preview() or pending.declined:
                return not pending.declined
            continue
        if word.lower() in ("e", "edit") and edit(terminal, pending):
            return True
        if word.lower() not in ("e", "edit"):
            terminal.display.line(_EXPLANATION)


def _ask(terminal: Terminal) -> str | None:
    """The answer; Ctrl-C and the end of input are a no."""
    try:
        return terminal.ask(QUESTION + " ", guarded=True)
    except KeyboardInterrupt:
        return None


def edit(terminal: Terminal, pending: PendingBlock) -> bool:
    """Let the user change the code; True if it is to run as it is now."""
    try:
        code = edited(pending.code, _SUFFIXES.get(pending.language.lower(), ".txt"))
    except (OSError, subprocess.CalledProcessError) as error:
        words = f"The editor could not be used: {error}. Set EDITOR to one that is installed."
        terminal.display.line(words, "error")
        return False
    if not code.strip():
        terminal.display.line("The edited code is empty, so there is nothing to run.")
        return False
    if code != pending.code:
        pending.edit(code)
        block: Chunk = {"role": "assistant", "type": "code", "format": pending.language}
        terminal.display.show({**block, "content": code})
        terminal.display.show({**block, "end": True})
    return True


def edited(code: str, suffix: str) -> str:
    """The code as it is when the user leaves the editor."""
    with tempfile.NamedTemporaryFile("w", suffix=suffix, delete=False, encoding="utf-8") as file:
        file.write(code)
    try:
        subprocess.run([*editor(), file.name], check=True)
        with open(file.name, encoding="utf-8") as changed:
            text = changed.read()
    finally:
        os.unlink(file.name)
    # Editors end the last line; the model had not.
    return text if code.endswith("\n") else text.removesuffix("\n")


def editor() -> list[str]:
    """$VISUAL or $EDITOR, or the first common one that is installed."""
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if named:
        return shlex.split(named)
    return [next((name for name in _EDITORS if shutil.which(name)), _EDITORS[0])]
