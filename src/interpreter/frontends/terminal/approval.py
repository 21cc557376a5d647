"""The question before a block runs, and what its answers do: approve, refuse, edit, scan, preview, save a rule."""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from interpreter.console_text import visible, visible_line
from interpreter.errors import InterpreterError
from interpreter.frontends.terminal.render.ansi import cells, wrapped
from interpreter.frontends.terminal.render.notes import card, card_diff
from interpreter.host import processes
from interpreter.policy.review import CONTAIN, GRANT, SCAN
from interpreter.questions import APPROVE, EDIT, REFUSE, Answer, Question

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.messages import Chunk
    from interpreter.policy.rule_editor import RuleEditor
    from interpreter.preview.preview import Preview

MODES = {
    "ask": "I'll ask before running any code",
    "auto": "code runs without asking",
    "auto-in-sandbox": "code in a sandbox runs without asking; I'll ask before anything leaves it",
    "plan": "code can read but not change anything, and has no network",
}
QUESTION = "Run? [y]es  [n]o"
OR_SAY = "Or say what to change:"
SCAN_QUESTION = "Scan this code first? (y/n)"
GRANT_QUESTION = "Allow it? [y]es, for this block  for this [s]ession  [a]lways  [n]o  [e]dit"
SAVE_GRANT = "Save this and run the code?"
_OPTIONS = {
    "[p]review": "see what it would change, in a dry run",
    "[e]dit": "change the code, then decide again",
    "[s]can": "scan the code for security problems",
    "[a]lways": "see a rule that would always allow this, and save it if you like",
    "[b]ox": "run this and later code in a sandbox: writes only here, no network",
}
_YES = ("y", "yes")
_NO = re.compile(r"no?(?:[\s,:;.]+(?P<words>.*))?", re.IGNORECASE | re.DOTALL)

SAVE_RULE = "Save this rule and run the code? [y]es  [n]o  [r]ule as YAML"
WIDER = "  [w]ider"
TRUST = "Do you trust these rules?"

PREVIEW_BEGINS = "Dry run: nothing is saved, network off."
PREVIEW_QUESTION = "Apply these changes? [y]es  [n]o  [e]dit  [d]iff"
APPLIED = "Applied."
DISCARDED = "Discarded. Nothing changed."
_DIFF_LINES = 40  # of differences that are shown unasked
_SIGNS = {"created": "+", "deleted": "-", "renamed": ">", "changed": "~", "mode": "~", "touched": "~"}
_STYLES = {"+": "string", "-": "error", "@": "hint"}


def approve(terminal: Terminal, interpreter: OpenInterpreter, question: Question) -> Answer:
    """Ask until there is an answer: a yes, a no, or the code as the user has edited it."""
    if interpreter.preview and (answer := _preview(terminal, interpreter, question)) is not None:
        return answer
    rules = interpreter.approver.rules
    project = rules.policy.untrusted
    if project is not None and project.digest not in terminal.shown_rules:
        terminal.shown_rules.add(project.digest)
        shown = visible("\n".join(f"  {line}" for line in project.lines))
        terminal.display.line(f"This project has rules that aren't active yet ({project.path}):\n{shown}")
        if terminal.confirm(TRUST):
            rules.trust(project)
    if interpreter.safe_mode == "ask" and SCAN in question.choices:
        typed = _ask(terminal, SCAN_QUESTION)
        if typed is None:
            return _no_answer(terminal, question)
        if typed.strip().lower() in _YES:
            return Answer(SCAN)
    options = GRANT_QUESTION if GRANT in question.choices else "  ".join([QUESTION, *_options(interpreter, question)])
    prompt = f"{options}\n{OR_SAY}"
    if above := _lines_above(terminal, question, prompt):
        subject = "1 line of this code is" if above == 1 else f"{above} lines of this code are"
        terminal.display.line(f"{subject} above this screen. Scroll up to read all of it.")
    while True:
        typed = _ask(terminal, prompt)
        if typed is None:
            return _no_answer(terminal, question)
        answer = _answer(terminal, interpreter, question, typed.strip())
        if answer is not None:
            return answer


def _options(interpreter: OpenInterpreter, question: Question) -> dict[str, str]:
    """Return the answers besides yes and no that this block has, and what they do."""
    missing = {
        "[b]ox": CONTAIN not in question.choices,
        "[s]can": SCAN not in question.choices,
        "[p]review": not interpreter.can_dry_run(question.subject.language),
    }
    return {option: meaning for option, meaning in _OPTIONS.items() if not missing.get(option)}


def _lines_above(terminal: Terminal, question: Question, prompt: str) -> int:
    """Count the lines of code that have scrolled out of view above the question."""
    if not terminal.tty.can_show:
        return 0
    columns, rows = terminal.tty.size()
    difference = card_diff(question.subject.diff, columns)
    below = "\n".join(filter(None, [card(question.chunk), *difference, prompt]))
    left = rows - len(wrapped(below, columns - 1)) - 2  # the rule below the code, and the note about this
    lines = visible(question.subject.code).rstrip("\n").split("\n")
    for number, line in enumerate(reversed(lines)):
        left -= max(1, -(-cells(line) // columns))
        if left < 0:
            return len(lines) - number
    return 0


def _answer(terminal: Terminal, interpreter: OpenInterpreter, question: Question, typed: str) -> Answer | None:
    """Interpret what was typed; return None if the question is still open.

    A sentence goes to the model. A single unknown word, a paste of several lines or a command does not.
    """
    word = typed.lower()
    is_line = "\n" not in typed
    if (no := _NO.fullmatch(typed)) and is_line:
        return Answer(REFUSE, (no["words"] or "").strip() or None)
    match word:
        case "y" | "yes" | "s" | "session" | "a" | "always" if GRANT in question.choices:
            return _grant(terminal, interpreter, question, word)
        case "y" | "yes":
            return Answer(APPROVE)
        case "p" | "preview" if GRANT not in question.choices:
            return _preview(terminal, interpreter, question)
        case "s" | "scan" if SCAN in question.choices:
            return Answer(SCAN)
        case "e" | "edit":
            return _edit(terminal, question)
        case "a" | "always":
            return _always_allow(terminal, question, interpreter.approver.rules)
        case "d" | "diff" if question.subject.diff:
            theme, width = getattr(terminal.display, "theme", None), terminal.tty.size()[0]
            terminal.display.finish()
            terminal.tty.write("".join(f"{row}\n" for row in card_diff(question.subject.diff, width, theme, None)))
            return None
        case "b" | "box" if CONTAIN in question.choices and interpreter.agent.actor.contain is not None:
            try:
                interpreter.agent.actor.contain()
            except InterpreterError as error:  # there is no sandbox here
                terminal.display.line(str(error), "error")
                return None
            terminal.display.line("The sandbox is on; %sandbox off turns it off.")
            return Answer(APPROVE)
        case "?" | "help" if GRANT not in question.choices:
            rows = _options(interpreter, question).items()
            terminal.display.line("\n".join(f"{option:<10} {meaning}" for option, meaning in rows))
            return None
    sentence = word.replace(",", " ").split()
    if len(sentence) > 1 and is_line and sentence[0] not in _YES and not word.startswith(("%", "!", "/", ">>>")):
        return Answer(REFUSE, typed)
    terminal.display.line("Type one of the letters in brackets, a sentence for the model, or ? for help.")
    return None


def yes_or_no(terminal: Terminal, words: str, for_session: bool = False) -> Answer:
    """Ask a question that a yes approves; raise KeyboardInterrupt for Ctrl-C."""
    typed = terminal.ask(f"{words} ({'y/n, s: yes for this session' if for_session else 'y/n'}) ", guarded=True)
    if typed is None:
        return Answer(REFUSE, by="nobody" if terminal.unanswered else "user")
    if for_session and typed.strip().lower() in ("s", "session"):
        return Answer(APPROVE, scope="session")
    return Answer(APPROVE if typed.strip().lower() in _YES else REFUSE)


def _ask(terminal: Terminal, question: str) -> str | None:
    """Return what the user types; None for Ctrl-C and at the end of input."""
    try:
        return terminal.ask(question + " ", guarded=True)
    except KeyboardInterrupt:
        return None


def _no_answer(terminal: Terminal, question: Question) -> Answer:
    by = "nobody" if terminal.unanswered else "user"
    if question.subject.only_sandbox_request:
        terminal.unanswered = False  # the model is informed and continues without it
    return Answer(REFUSE, by=by)


# -- editing -------------------------------------------------------------------------------------------------------


def _edit(terminal: Terminal, question: Question) -> Answer | None:
    """Let the user edit the code, and show the result; None if it stays the same."""
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not named and (terminal.plain or not terminal.tty.can_type):
        terminal.display.line(
            "This terminal can't edit in place. Set EDITOR to your editor (export EDITOR=nano) and start again."
        )
        return None
    try:
        code = _edit_in_program(terminal, question, shlex.split(named)) if named else _edit_in_place(terminal, question)
    except FileNotFoundError as error:
        terminal.display.line(f"Can't find the editor {error.filename}. Set EDITOR to one that is installed.", "error")
        return None
    except (OSError, ValueError) as error:
        terminal.display.line(f"Not edited: {error}", "error")
        return None
    if not question.subject.code.endswith("\n"):  # editors end the last line
        code = code.removesuffix("\n")
    if not code.strip() or code == question.subject.code:
        terminal.display.line(
            "The code is unchanged." if code.strip() else "The edited code is empty, so it was discarded."
        )
        return None
    block: Chunk = {"role": "assistant", "type": "code", "format": question.subject.language}
    terminal.display.show({**block, "content": code})
    terminal.display.show({**block, "end": True})
    return Answer(EDIT, code)


def _edit_in_program(terminal: Terminal, question: Question, editor: list[str]) -> str:
    """Open the code in the user's editor and return the result; OSError if the editor fails."""
    extension = terminal.display.languages.describe(question.subject.language).file_extension or "txt"
    with tempfile.NamedTemporaryFile("w", suffix=f".{extension}", delete=False, encoding="utf-8") as file:
        file.write(question.subject.code)
    try:
        with terminal.suspended():
            failed = processes.start([*editor, file.name], interactive=True).wait()
        if failed:
            ending = f"exited with code {failed}" if failed > 0 else f"was stopped by signal {-failed}"
            raise OSError(f"{editor[0]} {ending}.")
        return Path(file.name).read_text(encoding="utf-8")
    finally:
        os.unlink(file.name)


def _edit_in_place(terminal: Terminal, question: Question) -> str:
    """Let the user edit the code in the terminal; return it unchanged if they cancel."""
    from interpreter.frontends.terminal.prompt import edit_text

    terminal.display.line("Edit the code. Ctrl-S when done, Ctrl-C to cancel.")
    try:
        with terminal.suspended():
            return edit_text(terminal.tty, question.subject.code)
    except (KeyboardInterrupt, EOFError):
        return str(question.subject.code)


# -- rules and grants ----------------------------------------------------------------------------------------------


def _always_allow(terminal: Terminal, question: Question, rules: RuleEditor) -> Answer | None:
    """Say what the rule would allow; if the user wants it, save it and approve."""
    from interpreter.policy.policy_file import rule_text

    try:
        rule, *wider = rules.proposed(question.subject.details)
    except InterpreterError as error:
        terminal.display.line(str(error))
        return None
    terminal.display.line(visible(rule.sentence))
    while True:
        typed = (_ask(terminal, f"{SAVE_RULE}{WIDER if wider else ''}") or "n").strip().lower()
        match typed:
            case "r" | "rule":
                terminal.display.line(visible(rule_text(rule).rstrip()))
            case "w" | "wider" if wider:
                rule, *wider = wider
                terminal.display.line(visible(rule.sentence))
            case _:
                return _save(terminal, partial(rules.save, rule)) if typed in _YES else None


def _grant(terminal: Terminal, interpreter: OpenInterpreter, question: Question, word: str) -> Answer | None:
    """Grant what the block asks for to the sandbox: for this block, this session, or always."""
    if word not in ("a", "always"):
        return Answer(GRANT, scope="session" if word in ("s", "session") else "block")
    rules, request = interpreter.approver.rules, question.subject.details.sandbox_request
    terminal.display.line(visible("\n".join(rules.grant_lines(request))))
    return Answer(GRANT, scope="always") if terminal.confirm(SAVE_GRANT) else None


def _save(terminal: Terminal, save: Callable[[], Path]) -> Answer | None:
    """Save the rule and approve the block; None if the rule cannot be saved."""
    try:
        path = save()
    except (InterpreterError, OSError) as error:
        terminal.display.line(str(error), "error")
        return None
    terminal.display.line(f"Saved in {path}.")
    return Answer(APPROVE)


# -- preview -------------------------------------------------------------------------------------------------------


def _preview(terminal: Terminal, interpreter: OpenInterpreter, question: Question) -> Answer | None:
    """Do a dry run of the block, show what it would change, and ask whether to apply that.

    None if the question about the block itself is still open.
    """
    display, busy = terminal.display, terminal.busy
    try:
        preview = interpreter.computer.preview(question.subject.language, question.subject.code)
    except InterpreterError as error:
        display.line(str(error), "error")
        if named := getattr(error, "named", ()):
            display.line("\n".join(["The code was not run. Reading it shows:", *(f"  {line}" for line in named)]))
        return None
    try:
        display.line(PREVIEW_BEGINS)
        display.running()
        for chunk in busy.interrupts.passing(iter(preview)) if busy is not None else preview:
            display.show({**chunk, "role": "computer"})  # type: ignore[typeddict-item]
        if interpreter.cancelled:  # Ctrl-C is for the whole turn
            preview.discard()
            return Answer(REFUSE)
        chosen = _ask_to_apply(terminal, preview)
    except BaseException:
        preview.discard()
        raise
    if chosen == "y":
        return Answer(APPROVE, preview=preview)
    preview.discard()
    display.line(DISCARDED)
    return _edit(terminal, question) if chosen == "e" else None


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
    if preview.read_only:
        display.line(visible_line(f"Read-only in a dry run, but not in a real run: {listed(preview.read_only)}."))
    if preview.lost:
        display.line(f"Would be lost: {listed(preview.lost)}.", "error")
    if not preview.can_apply:
        display.line("Can't apply this: the process it ran in has ended.")
        return "n"
    if preview.only_failed:
        display.line("It failed, so there is nothing to apply.")
        return "n"
    while True:
        word = (_ask(terminal, PREVIEW_QUESTION) or "n").strip().lower()[:1]
        match word:
            case "y" | "n" | "e":
                return word
            case "d":
                _show_differences(terminal, preview, None)
            case _:
                display.line("Type one of the letters in brackets.")


def _show_differences(terminal: Terminal, preview: Preview, most: int | None) -> None:
    """Show the first differences in the workspace, or all if `most` is None."""
    diffs = preview.diffs if most is None else preview.data_diffs
    texts = [text for path, text in diffs.items() if most is None or not path.startswith("/")]
    lines = [line for text in texts for line in text.removesuffix("\n").split("\n")]
    for line in lines[:most]:
        terminal.display.line(visible(line), _STYLES.get(line[:1], "quote"))
    if most is not None and len(lines) > most:
        terminal.display.line(f"{len(lines) - most} more lines: d shows them.")


def shown_in_preview(terminal: Terminal, chunk: Chunk) -> bool:
    """Check whether the user saw this chunk in a preview that is now applied; note that at the end of the block."""
    if chunk["type"] in ("status", "confirmation") or not chunk.get("previewed"):
        return False
    if "ended" in chunk:
        terminal.display.line(APPLIED)
        terminal.display.show_file_changes()
    return True
