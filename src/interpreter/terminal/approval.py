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

from interpreter.errors import InterpreterError
from interpreter.terminal import widening
from interpreter.terminal.always import always, offer_trust

if TYPE_CHECKING:
    from interpreter.blocks import PendingBlock
    from interpreter.messages import Chunk
    from interpreter.terminal.preview import Trying
    from interpreter.terminal.terminal import Terminal

QUESTION = "Would you like to run this code? (y/n)"
SCAN_QUESTION = "Would you like to scan this code? (y/n)"
_EXPLANATION = (
    "y runs it, n does not, n and some words tell the model why not, e lets you edit it first, s scans it for dangers."
)
_TRY = " p shows what it would change."
_ALWAYS = " a shows a rule that would always let it run."
_BOX = " b runs it, and what comes after it, in a sandbox: it can write to the workspace only, and has no network."
_NO = re.compile(r"no?(?:[\s,:;.]+(?P<words>.*))?", re.IGNORECASE | re.DOTALL)
_EDITORS = ("vim", "nano", "vi")
_SUFFIXES = {"python": ".py", "shell": ".sh", "bash": ".sh", "sh": ".sh", "zsh": ".sh", "javascript": ".js"}


def approve(terminal: Terminal, pending: PendingBlock, trying: Trying | None = None) -> bool:
    """Ask until there is an answer; True if the block is to run, or was tried out and that is to be kept."""
    if pending.rules is not None:
        offer_trust(terminal, pending.rules)
    if pending.offers_scan and not _offer_scan(terminal, pending):
        return False
    while True:
        answer = _ask(terminal, widening.QUESTION if pending.asks_for_more else QUESTION)
        if answer is None:
            _no_answer(terminal, pending)
            return False
        word = answer.strip()
        given = widening.given(terminal, pending, word.lower()) if pending.asks_for_more else None
        if given is False:
            continue
        if given:
            return True
        if word.lower() in ("y", "yes"):
            return True
        if (no := _NO.fullmatch(word)) and "\n" not in answer:
            pending.decline((no["words"] or "").strip() or None)
            return False
        if word.lower() in ("p", "preview") and trying is not None:
            if trying.look() or pending.declined:
                return not pending.declined
        elif word.lower() in ("s", "scan"):
            if not _scan(terminal, pending):
                return False
        elif word.lower() in ("e", "edit"):
            if edit(terminal, pending) and not pending.asks_for_more:
                return True
        elif word.lower() in ("a", "always") and pending.rules is not None:
            if always(terminal, pending, pending.rules):
                return True
        elif word.lower() in ("b", "box") and pending.contain is not None:
            if _contain(terminal, pending.contain):
                return True
        elif pending.asks_for_more:
            terminal.display.line(widening.EXPLANATION)
        else:
            tries = trying is not None and trying.may_work
            offers = ((_TRY, tries), (_ALWAYS, pending.rules), (_BOX, pending.contain))
            terminal.display.line(_EXPLANATION + "".join(words for words, offered in offers if offered))


def _ask(terminal: Terminal, question: str) -> str | None:
    """The answer; Ctrl-C and the end of input are a no."""
    try:
        return terminal.ask(question + " ", guarded=True)
    except KeyboardInterrupt:
        return None


def _no_answer(terminal: Terminal, pending: PendingBlock) -> None:
    pending.nobody_there() if terminal.unanswered else pending.decline()
    if pending.nobody and pending.only_widening:
        terminal.unanswered = False  # the model is told, and goes on without it


def _offer_scan(terminal: Terminal, pending: PendingBlock) -> bool:
    """Ask whether to scan, and do it; False if that was the end of it."""
    answer = _ask(terminal, SCAN_QUESTION)
    if answer is None:
        _no_answer(terminal, pending)
        return False
    return _scan(terminal, pending) if answer.strip().lower() in ("y", "yes") else True


def _scan(terminal: Terminal, pending: PendingBlock) -> bool:
    """Scan the code and show what was found; False if it was cancelled, which is a no."""
    terminal.display.show({"role": "computer", "type": "status", "format": "scanning"})
    scanned = pending.scan()
    if scanned.cancelled:
        pending.decline()
        return False
    terminal.display.show({"role": "computer", "type": "status", "format": "scan", "content": scanned.as_data()})
    return True


def _contain(terminal: Terminal, contain: Callable[[], None]) -> bool:
    """Turn the sandbox on; False if there is none to be had."""
    try:
        contain()
    except InterpreterError as error:
        terminal.display.line(str(error), "error")
        return False
    terminal.display.line("The sandbox is on; %sandbox off turns it off.")
    return True


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
