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
from interpreter.frontends.terminal import widening
from interpreter.frontends.terminal.always import always, offer_trust
from interpreter.session import APPROVE, EDIT, REFUSE, Answer

if TYPE_CHECKING:
    from interpreter.agent.blocks import PendingBlock
    from interpreter.frontends.terminal.preview import Trying
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.messages import Chunk

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


def approve(terminal: Terminal, pending: PendingBlock, trying: Trying | None = None) -> Answer:
    """Ask until there is an answer: a yes, a no, or the code as the user has edited it."""
    if pending.rules is not None:
        offer_trust(terminal, pending.rules)
    if pending.offers_scan and (refused := _offer_scan(terminal, pending)) is not None:
        return refused
    while True:
        typed = _ask(terminal, widening.QUESTION if pending.asks_for_more else QUESTION)
        if typed is None:
            return _no_answer(terminal, pending)
        word = typed.strip()
        given = widening.given(terminal, pending, word.lower()) if pending.asks_for_more else None
        if given is False:
            continue
        if given or word.lower() in ("y", "yes"):
            return Answer(APPROVE)
        if (no := _NO.fullmatch(word)) and "\n" not in typed:
            return Answer(REFUSE, (no["words"] or "").strip() or None)
        answer = _other(terminal, pending, trying, word.lower())
        if answer is not None:
            return answer


def _other(terminal: Terminal, pending: PendingBlock, trying: Trying | None, word: str) -> Answer | None:
    """What the other letters do; None if the question is still open."""
    if word in ("p", "preview") and trying is not None:
        return trying.look()
    if word in ("s", "scan"):
        return _scan(terminal, pending)
    if word in ("e", "edit"):
        return edit(terminal, pending)
    if word in ("a", "always") and pending.rules is not None:
        return Answer(APPROVE) if always(terminal, pending, pending.rules) else None
    if word in ("b", "box") and pending.contain is not None:
        return Answer(APPROVE) if _contain(terminal, pending.contain) else None
    if pending.asks_for_more:
        terminal.display.line(widening.EXPLANATION)
        return None
    tries = trying is not None and trying.may_work
    offers = ((_TRY, tries), (_ALWAYS, pending.rules), (_BOX, pending.contain))
    terminal.display.line(_EXPLANATION + "".join(words for words, offered in offers if offered))
    return None


def allow_call(terminal: Terminal, words: str) -> Answer:
    """Ask whether a block's code may call a tool."""
    typed = _ask(terminal, f"{words} (y/n)")
    if typed is None:
        return Answer(REFUSE, by="nobody" if terminal.unanswered else "user")
    return Answer(APPROVE if typed.strip().lower() in ("y", "yes") else REFUSE)


def _ask(terminal: Terminal, question: str) -> str | None:
    """The answer; Ctrl-C and the end of input are a no."""
    try:
        return terminal.ask(question + " ", guarded=True)
    except KeyboardInterrupt:
        return None


def _no_answer(terminal: Terminal, pending: PendingBlock) -> Answer:
    if not terminal.unanswered:
        return Answer(REFUSE)
    if pending.only_widening:
        terminal.unanswered = False  # the model is told, and goes on without it
    return Answer(REFUSE, by="nobody")


def _offer_scan(terminal: Terminal, pending: PendingBlock) -> Answer | None:
    """Ask whether to scan, and do it; a no if that was the end of it."""
    typed = _ask(terminal, SCAN_QUESTION)
    if typed is None:
        return _no_answer(terminal, pending)
    return _scan(terminal, pending) if typed.strip().lower() in ("y", "yes") else None


def _scan(terminal: Terminal, pending: PendingBlock) -> Answer | None:
    """Scan the code and show what was found; a no if it was cancelled."""
    terminal.display.show({"role": "computer", "type": "status", "format": "scanning"})
    scanned = pending.scan()
    if scanned.cancelled:
        return Answer(REFUSE)
    terminal.display.show({"role": "computer", "type": "status", "format": "scan", "content": scanned.as_data()})
    return None


def _contain(terminal: Terminal, contain: Callable[[], None]) -> bool:
    """Turn the sandbox on; False if there is none to be had."""
    try:
        contain()
    except InterpreterError as error:
        terminal.display.line(str(error), "error")
        return False
    terminal.display.line("The sandbox is on; %sandbox off turns it off.")
    return True


def edit(terminal: Terminal, pending: PendingBlock) -> Answer | None:
    """Let the user change the code, and show it; None if it stays as it is, and so does the question."""
    try:
        with terminal.lent():
            extension = terminal.display.languages.describe(pending.language).file_extension or "txt"
            code = edited(pending.code, f".{extension}")
    except (OSError, subprocess.CalledProcessError) as error:
        words = f"The editor could not be used: {error}. Set EDITOR to one that is installed."
        terminal.display.line(words, "error")
        return None
    if not code.strip():
        terminal.display.line("The edited code is empty, so there is nothing to run.")
        return None
    if code == pending.code:
        return None
    block: Chunk = {"role": "assistant", "type": "code", "format": pending.language}
    terminal.display.show({**block, "content": code})
    terminal.display.show({**block, "end": True})
    return Answer(EDIT, code)


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
