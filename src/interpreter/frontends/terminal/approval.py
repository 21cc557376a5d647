"""The question before a block runs, and what its answers do: approve, refuse, edit, scan, preview, save a rule."""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING

from interpreter.console_text import visible, visible_line
from interpreter.errors import InterpreterError
from interpreter.host import processes
from interpreter.session import APPROVE, EDIT, REFUSE, Answer

if TYPE_CHECKING:
    from pathlib import Path

    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.messages import Chunk
    from interpreter.policy.approval import PendingBlock, RuleEditor
    from interpreter.session.preview import Preview

MODES = {
    "ask": "you are asked before code runs",
    "auto": "code runs without asking",
    "auto-in-sandbox": "code runs without asking where a sandbox holds it, and you are asked where there is none",
    "plan": "code can look, in a sandbox without network, and change nothing",
}
QUESTION = "Would you like to run this code? (y/n)"
SCAN_QUESTION = "Would you like to scan this code? (y/n)"
_HELP = (
    "y runs it, n does not, n and some words tell the model why not, e lets you edit it first, s scans it for dangers."
)
_PREVIEW_OFFER = " p shows what it would change."
_RULE_OFFER = " a shows a rule that would always let it run."
_SANDBOX_OFFER = (
    " b runs it, and what comes after it, in a sandbox: it can write to the workspace only, and has no network."
)
_YES = ("y", "yes")
_NO = re.compile(r"no?(?:[\s,:;.]+(?P<words>.*))?", re.IGNORECASE | re.DOTALL)
_EDITORS = ("vim", "nano", "vi")

GRANT_QUESTION = "Run it with that: y this block, s this session, a always, n not?"
SAVE_GRANT = "Save this, and run the code?"
_GRANT_HELP = (
    "y runs it with what it wants, s also gives it to what comes later in this session, a always, in this folder; "
    "n does not run it, n and some words tell the model why not, e lets you edit it first."
)

SAVE_RULE = "Save this rule, and run the code?"
TRUST = "Do you trust these rules?"
_ASKED_BY_RULE = (
    "A rule says that you are asked about this code, and no other rule can change that: interpreter --policy-check"
)
_NO_RULE = "No rule is made of this: its text does not tell all that it does."

PREVIEW_BEGINS = "Preview: nothing that it does lasts, and the network is closed."
PREVIEW_QUESTION = "Apply this? (y/n)"
_PREVIEW_HELP = "y makes it real, n forgets it, e forgets it and lets you edit the code, d shows all differences."
_NOT_RUN = "Nothing was run. What can be told from its text:"
APPLIED = "Applied."
DISCARDED = "Forgotten: nothing has changed."
_DIFF_LINES = 40  # of differences that are shown unasked
_SIGNS = {"created": "+", "deleted": "-", "renamed": ">", "changed": "~", "mode": "~", "touched": "~"}
_STYLES = {"+": "string", "-": "error", "@": "hint"}


def approve(terminal: Terminal, interpreter: OpenInterpreter, pending: PendingBlock) -> Answer:
    """Ask until there is an answer: a yes, a no, or the code as the user has edited it."""
    if interpreter.preview and (answer := _preview(terminal, interpreter, pending)) is not None:
        return answer
    project = pending.rules.untrusted if pending.rules is not None else None
    if pending.rules is not None and project is not None and project.digest not in terminal.shown_rules:
        terminal.shown_rules.add(project.digest)
        shown = visible("\n".join(f"  {line}" for line in project.lines))
        terminal.display.line(f"This project has rules of its own, which do not count yet ({project.path}):\n{shown}")
        if terminal.confirm(TRUST):
            pending.rules.trust(project)
    if pending.offers_scan:
        typed = _ask(terminal, SCAN_QUESTION)
        if typed is None:
            return _no_answer(terminal, pending)
        if typed.strip().lower() in _YES and (refused := _scan(terminal, pending)) is not None:
            return refused
    while True:
        typed = _ask(terminal, GRANT_QUESTION if pending.asks_for_more else QUESTION)
        if typed is None:
            return _no_answer(terminal, pending)
        answer = _answer(terminal, interpreter, pending, typed)
        if answer is not None:
            return answer


def _answer(terminal: Terminal, interpreter: OpenInterpreter, pending: PendingBlock, typed: str) -> Answer | None:
    """What the typed words mean; None if the question is still open."""
    word = typed.strip().lower()
    if (no := _NO.fullmatch(typed.strip())) and "\n" not in typed:
        return Answer(REFUSE, (no["words"] or "").strip() or None)
    if pending.asks_for_more and word in (*_YES, "s", "session", "a", "always"):
        return _grant(terminal, pending, word)
    if word in _YES:
        return Answer(APPROVE)
    if word in ("p", "preview"):
        return _preview(terminal, interpreter, pending)
    if word in ("s", "scan"):
        return _scan(terminal, pending)
    if word in ("e", "edit"):
        return _edit(terminal, pending)
    if word in ("a", "always") and pending.rules is not None:
        return _always_allow(terminal, pending, pending.rules)
    if word in ("b", "box") and pending.contain is not None:
        return _contain(terminal, pending.contain)
    if pending.asks_for_more:
        terminal.display.line(_GRANT_HELP)
        return None
    # Not in a sandbox, and not in a language whose variables cannot be copied.
    can_preview = interpreter.sandbox_now() is None and interpreter.computer.runtimes.can_dry_run(pending.language)
    offers = ((_PREVIEW_OFFER, can_preview), (_RULE_OFFER, pending.rules), (_SANDBOX_OFFER, pending.contain))
    terminal.display.line(_HELP + "".join(words for words, offered in offers if offered))
    return None


def allow_call(terminal: Terminal, words: str) -> Answer:
    """Ask whether a block's code may call a tool."""
    typed = _ask(terminal, f"{words} (y/n)")
    if typed is None:
        return Answer(REFUSE, by="nobody" if terminal.unanswered else "user")
    return Answer(APPROVE if typed.strip().lower() in _YES else REFUSE)


def _ask(terminal: Terminal, question: str) -> str | None:
    """What the user types; None for Ctrl-C and at the end of input."""
    try:
        return terminal.ask(question + " ", guarded=True)
    except KeyboardInterrupt:
        return None


def _no_answer(terminal: Terminal, pending: PendingBlock) -> Answer:
    if not terminal.unanswered:
        return Answer(REFUSE)
    if pending.only_sandbox_request:
        terminal.unanswered = False  # the model hears of it, and continues without it
    return Answer(REFUSE, by="nobody")


def _scan(terminal: Terminal, pending: PendingBlock) -> Answer | None:
    """Scan the code and show the findings; a no if the scan was cancelled."""
    terminal.display.show({"role": "computer", "type": "status", "format": "scanning"})
    scanned = pending.scan()
    if scanned.cancelled:
        return Answer(REFUSE)
    terminal.display.show({"role": "computer", "type": "status", "format": "scan", "content": scanned.as_data()})
    return None


def _contain(terminal: Terminal, contain: Callable[[], None]) -> Answer | None:
    """Turn the sandbox on and approve; None if there is no sandbox here."""
    try:
        contain()
    except InterpreterError as error:
        terminal.display.line(str(error), "error")
        return None
    terminal.display.line("The sandbox is on; %sandbox off turns it off.")
    return Answer(APPROVE)


# -- editing -------------------------------------------------------------------------------------------------------


def _edit(terminal: Terminal, pending: PendingBlock) -> Answer | None:
    """Let the user edit the code, and show the result; None if it stays the same.

    The editor is $VISUAL, $EDITOR, or the first common one that is installed.
    """
    extension = terminal.display.languages.describe(pending.language).file_extension or "txt"
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    installed = [name for name in _EDITORS if processes.which(name)] or _EDITORS
    editor = shlex.split(named) if named else [installed[0]]
    with tempfile.NamedTemporaryFile("w", suffix=f".{extension}", delete=False, encoding="utf-8") as file:
        file.write(pending.code)
    try:
        with terminal.suspended():
            if failed := processes.start([*editor, file.name], interactive=True).wait():
                raise OSError(f"{editor[0]} ended with exit code {failed}")
        with open(file.name, encoding="utf-8") as changed:
            code = changed.read()
    except OSError as error:
        words = f"The editor could not be used: {error}. Set EDITOR to one that is installed."
        terminal.display.line(words, "error")
        return None
    finally:
        os.unlink(file.name)
    if not pending.code.endswith("\n"):  # editors end the last line
        code = code.removesuffix("\n")
    if not code.strip():
        terminal.display.line("The edited code is empty, so there is nothing to run.")
        return None
    if code == pending.code:
        return None
    block: Chunk = {"role": "assistant", "type": "code", "format": pending.language}
    terminal.display.show({**block, "content": code})
    terminal.display.show({**block, "end": True})
    return Answer(EDIT, code)


# -- rules and grants ----------------------------------------------------------------------------------------------


def _always_allow(terminal: Terminal, pending: PendingBlock, rules: RuleEditor) -> Answer | None:
    """Show the rule that would allow the block; if the user wants it, save it and approve."""
    from interpreter.policy.policy_file import rule_text

    rule = rules.proposed(pending)
    if rule is None or pending.asked_by_rule:
        terminal.display.line(_ASKED_BY_RULE if pending.asked_by_rule else _NO_RULE)
        return None
    return _save(terminal, rule_text(rule).rstrip(), SAVE_RULE, lambda: rules.save(rule))


def _grant(terminal: Terminal, pending: PendingBlock, word: str) -> Answer | None:
    """Give the sandbox what the block asks for: for this block, this session, or always."""
    if word not in ("a", "always"):
        pending.grant("session" if word in ("s", "session") else "block")
        return Answer(APPROVE)
    from interpreter.policy.files import user_file

    assert pending.sandbox_request is not None and pending.rules is not None

    def save() -> Path:
        pending.grant("always")
        return user_file()

    return _save(terminal, "\n".join(pending.rules.grant_lines(pending.sandbox_request)), SAVE_GRANT, save)


def _save(terminal: Terminal, text: str, question: str, save: Callable[[], Path]) -> Answer | None:
    """Show what would be saved; if the user wants it, save it and approve."""
    terminal.display.line(visible(text))
    if not terminal.confirm(question):
        return None
    try:
        path = save()
    except (InterpreterError, OSError) as error:
        terminal.display.line(str(error), "error")
        return None
    terminal.display.line(f"Saved in {path}.")
    return Answer(APPROVE)


# -- preview -------------------------------------------------------------------------------------------------------


def _preview(terminal: Terminal, interpreter: OpenInterpreter, pending: PendingBlock) -> Answer | None:
    """Run the block where nothing lasts, show what it would change, and ask whether to apply that.

    None if the question about the block itself is still open.
    """
    display, busy = terminal.display, terminal.busy
    try:
        preview = interpreter.computer.preview(pending.language, pending.code)
    except InterpreterError as error:
        display.line(str(error), "error")
        if named := getattr(error, "named", ()):
            display.line("\n".join([_NOT_RUN, *(f"  {line}" for line in named)]))
        return None
    try:
        display.line(PREVIEW_BEGINS)
        display.running()
        for chunk in busy.interrupts.passing(iter(preview)) if busy is not None else preview:
            display.show({**chunk, "role": "computer"})
        if interpreter.cancelled:  # Ctrl-C is for the whole turn
            preview.discard()
            return Answer(REFUSE)
        chosen = _ask_to_apply(terminal, preview)
    except BaseException:
        preview.discard()
        raise
    if chosen == "y":
        return Answer(APPROVE, details={"preview": preview})
    preview.discard()
    display.line(DISCARDED)
    return _edit(terminal, pending) if chosen == "e" else None


def _ask_to_apply(terminal: Terminal, preview: Preview) -> str:
    """Show what it would change, and ask: y, n, or e to edit the code."""
    from interpreter.runtimes.state import listed

    display = terminal.display
    for change in preview.changes:
        item = change.after or change.before
        is_folder = item is not None and item.kind == "folder" and change.what in ("created", "deleted")
        source = f"{change.source} -> " if change.source else ""
        path = f"{source}{change.path}{'/' if is_folder else ''}"
        display.line(visible_line(f"  {_SIGNS[change.what]} {change.what:<8} {path}"))
    if not preview.changes:
        display.line("It changes no files.")
    _show_differences(terminal, preview, _DIFF_LINES)
    if preview.denied:
        display.line(visible_line(f"Denied: {listed([str(each) for each in preview.denied])}."), "error")
    if preview.lost:
        display.line(f"Would be lost: {listed(preview.lost)}.", "error")
    if not preview.can_apply:
        display.line("This cannot be applied: the process that it ran in has ended.")
        return "n"
    while True:
        word = (_ask(terminal, PREVIEW_QUESTION) or "n").strip().lower()[:1]
        if word in ("y", "n", "e"):
            return word
        if word == "d":
            _show_differences(terminal, preview, None)
        else:
            display.line(_PREVIEW_HELP)


def _show_differences(terminal: Terminal, preview: Preview, most: int | None) -> None:
    """The first differences in the workspace; or, if `most` is None, all there are."""
    texts = [text for path, text in preview.diffs.items() if most is None or not path.startswith("/")]
    lines = [line for text in texts for line in text.removesuffix("\n").split("\n")]
    for line in lines[:most]:
        terminal.display.line(visible(line), _STYLES.get(line[:1], "quote"))
    if most is not None and len(lines) > most:
        terminal.display.line(f"{len(lines) - most} more lines: d shows them.")


def shown_in_preview(terminal: Terminal, chunk: Chunk) -> bool:
    """Whether the user saw this chunk in a preview that is now applied. The end of the block says so."""
    if chunk["type"] in ("status", "confirmation") or not chunk.get("previewed"):
        return False
    if "ended" in chunk:
        terminal.display.line(APPLIED)
        terminal.display.tell_files()
    return True
