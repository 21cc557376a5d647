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
from interpreter.session import APPROVE, EDIT, REFUSE, Answer

if TYPE_CHECKING:
    from interpreter.agent.blocks import PendingBlock
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.messages import Chunk
    from interpreter.policy.approval import RuleEditor
    from interpreter.session.preview import Preview
    from interpreter.workspace import Change


MODES = {
    "ask": "you are asked before code runs",
    "auto": "code runs without asking",
    "auto-in-sandbox": "code runs without asking where a sandbox holds it, and you are asked where there is none",
    "plan": "code can look, in a sandbox without network, and change nothing",
}
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
        typed = _ask(terminal, GRANT_QUESTION if pending.asks_for_more else QUESTION)
        if typed is None:
            return _no_answer(terminal, pending)
        word = typed.strip()
        given = _granted(terminal, pending, word.lower()) if pending.asks_for_more else None
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
        terminal.display.line(_GRANT_EXPLANATION)
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
    if pending.only_sandbox_request:
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


SAVE_RULE = "Save this rule, and run the code?"
TRUST = "Do you trust these rules?"
_ASKED = "A rule says that you are asked about this code, and no other rule can change that: interpreter --policy-check"
_NONE = "No rule is made of this: its text does not tell all that it does."


def always(terminal: Terminal, pending: PendingBlock, rules: RuleEditor) -> bool:
    """Show the rule that would allow the block, and save it if that is wanted; True if the block is to run."""
    from interpreter.policy.policy_file import rule_text

    rule = rules.proposed(pending)
    if rule is None or pending.asked_by_rule:
        terminal.display.line(_ASKED if pending.asked_by_rule else _NONE)
        return False
    terminal.display.line(rule_text(rule).rstrip())
    if not terminal.confirm(SAVE_RULE):
        return False
    try:
        path = rules.save(rule)
    except (InterpreterError, OSError) as error:
        terminal.display.line(str(error), "error")
        return False
    terminal.display.line(f"Saved in {path}.")
    return True


def offer_trust(terminal: Terminal, rules: RuleEditor) -> None:
    """Ask whether the project's own rules are to count, once."""
    project = rules.untrusted
    if project is None or project.digest in terminal.shown_rules:
        return
    terminal.shown_rules.add(project.digest)
    shown = "\n".join(f"  {line}" for line in project.lines)
    terminal.display.line(f"This project has rules of its own, which do not count yet ({project.path}):\n{shown}")
    if terminal.confirm(TRUST):
        rules.trust(project)


GRANT_QUESTION = "Run it with that: y this block, s this session, a always, n not?"
SAVE_GRANT = "Save this, and run the code?"
_GRANT_EXPLANATION = (
    "y runs it with what it wants, s also gives it to what comes later in this session, a always, in this folder; "
    "n does not run it, n and some words tell the model why not, e lets you edit it first."
)
_SCOPES = {"y": "block", "yes": "block", "s": "session", "session": "session"}


def _granted(terminal: Terminal, pending: PendingBlock, word: str) -> bool | None:
    """Whether an answer gives what the block wants, so that it runs; None if it says nothing of that."""
    if word in _SCOPES:
        pending.grant(_SCOPES[word])  # type: ignore[arg-type]
        return True
    if word in ("a", "always"):
        return _grant_always(terminal, pending)
    return None


def _grant_always(terminal: Terminal, pending: PendingBlock) -> bool:
    """Show what would be saved, and save it if that is wanted."""
    from interpreter.policy.files import user_file

    assert pending.sandbox_request is not None and pending.rules is not None
    terminal.display.line("\n".join(pending.rules.grant_lines(pending.sandbox_request)))
    if not terminal.confirm(SAVE_GRANT):
        return False
    try:
        pending.grant("always")
    except (InterpreterError, OSError) as error:
        terminal.display.line(str(error), "error")
        return False
    terminal.display.line(f"Saved in {user_file()}.")
    return True


PREVIEW_BEGINS = "Preview: nothing that it does lasts, and the network is closed."
PREVIEW_QUESTION = "Apply this? (y/n)"
_PREVIEW_HELP = "y makes it real, n forgets it, e forgets it and lets you edit the code, d shows all differences."
DRY = "Nothing was run. What can be told from its text:"
APPLIED = "Applied."
DISCARDED = "Forgotten: nothing has changed."
MOST_LINES = 40  # of differences that are shown unasked
SIGNS = {"created": "+", "deleted": "-", "renamed": ">", "changed": "~", "mode": "~", "touched": "~"}
STYLES = {"+": "string", "-": "error", "@": "hint"}


class Trying:
    """Tries out the block that waits, as often as it is asked to."""

    def __init__(self, terminal: Terminal, interpreter: OpenInterpreter, pending: PendingBlock) -> None:
        self._terminal, self._interpreter, self._pending = terminal, interpreter, pending

    @property
    def may_work(self) -> bool:
        """Whether there is a way: none in a sandbox, and none for a language whose variables cannot be copied."""
        return self._interpreter.sandbox_now() is None and self._interpreter.computer.copies(self._pending.language)

    def look(self) -> Answer | None:
        """Run it where nothing lasts and ask what then; None if the question about the block is still open."""
        pending = self._pending
        try:
            preview = self._interpreter.computer.preview(pending.language, pending.code)
        except InterpreterError as error:
            self._dry_look(error)
            return None
        try:
            self._run(preview)
            if self._interpreter.cancelled:  # Ctrl-C is for the whole turn
                preview.discard()
                return Answer(REFUSE)
            self._show(preview)
            chosen = self._choose(preview)
        except BaseException:
            preview.discard()
            raise
        return self._settle(preview, chosen)

    def _run(self, preview: Preview) -> None:
        display = self._terminal.display
        display.line(PREVIEW_BEGINS)
        display.running()
        busy = self._terminal.busy
        for chunk in busy.interrupts.passing(iter(preview)) if busy is not None else preview:
            display.show({**chunk, "role": "computer"})

    def _show(self, preview: Preview) -> None:
        from interpreter.runtimes.state import listed

        display = self._terminal.display
        for change in preview.changes:
            display.line(line_of(change))
        if not preview.changes:
            display.line("It changes no files.")
        self._show_differences(preview, MOST_LINES)
        if preview.denied:
            display.line(f"Denied: {listed([str(each) for each in preview.denied])}.", "error")
        if preview.lost:
            display.line(f"Would be lost: {listed(preview.lost)}.", "error")

    def _choose(self, preview: Preview) -> str:
        if not preview.can_apply:
            self._terminal.display.line("This cannot be applied: the process that it ran in has ended.")
            return "n"
        while True:
            try:
                answer = self._terminal.ask(PREVIEW_QUESTION + " ", guarded=True)
            except KeyboardInterrupt:
                answer = None
            word = (answer or "n").strip().lower()[:1]
            if answer is None or word in ("y", "n", "e"):
                return word
            if word == "d":
                self._show_differences(preview, None)
            else:
                self._terminal.display.line(_PREVIEW_HELP)

    def _settle(self, preview: Preview, chosen: str) -> Answer | None:
        if chosen == "y":
            return Answer(APPROVE, details={"preview": preview})
        preview.discard()
        self._terminal.display.line(DISCARDED)
        return edit(self._terminal, self._pending) if chosen == "e" else None

    def _show_differences(self, preview: Preview, most: int | None) -> None:
        """Those of the workspace, as many as that; or all there are."""
        texts = [text for path, text in preview.diffs.items() if most is None or not path.startswith("/")]
        lines = [line for text in texts for line in text.splitlines()]
        for line in lines[:most]:
            self._terminal.display.line(line, STYLES.get(line[:1], "quote"))
        if most is not None and len(lines) > most:
            self._terminal.display.line(f"{len(lines) - most} more lines: d shows them.")

    def _dry_look(self, error: InterpreterError) -> None:
        """There is no preview here: say so, and what the code names."""
        self._terminal.display.line(str(error), "error")
        if named := getattr(error, "named", ()):
            self._terminal.display.line("\n".join([DRY, *(f"  {line}" for line in named)]))


class Seen:
    """Knows which chunks of a turn have been on the screen: those of a preview that is made real."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def before(self, chunk: Chunk) -> bool:
        """Whether the user has seen it before; at the end of the block it says that it is real now."""
        if chunk["type"] in ("status", "confirmation"):
            return False
        if chunk.get("previewed"):
            if "ended" in chunk:
                self._terminal.display.line(APPLIED)
                self._terminal.display.tell_files()
            return True
        return False


def line_of(change: Change) -> str:
    """One change in a line."""
    kind = "" if change.what != "created" and change.what != "deleted" else kind_of(change)
    source = f"{change.source} -> " if change.source else ""
    return f"  {SIGNS[change.what]} {change.what:<8} {source}{change.path}{kind}"


def kind_of(change: Change) -> str:
    item = change.after or change.before
    return "/" if item is not None and item.kind == "folder" else ""
