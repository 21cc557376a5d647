"""An undo at the terminal: what it would do is shown, files are asked about, and what was done is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interpreter.terminal import outlook_words as words

if TYPE_CHECKING:
    from interpreter.core import OpenInterpreter
    from interpreter.safety import Step
    from interpreter.terminal.terminal import Terminal
    from interpreter.undo import Outlook

QUESTION = "Change these files? [y/N] "
_DIFFERENCE = 20  # lines of it that are shown with a question
_REDO = "%redo brings it back, until something else is run."
_HALF_WAY = (
    "Interrupted half way. The same command goes on with it; before the next block, the files are finished anyway."
)
_IN_PART = "Interrupted: not all of it is done. The same command goes on with it."
_NOBODY = "Nothing was changed: files would be, and nobody is here to say yes. -y says it beforehand."


def carry_out(terminal: Terminal, interpreter: OpenInterpreter, outlook: Outlook, yes: bool = False) -> None:
    """Do it, after asking if files would change."""
    overwrite: set[str] = set()
    if asks := outlook.changes_files:
        if not yes:
            _show(terminal, outlook, done=False)
        agreed = _agreed(terminal, interpreter, outlook, yes)
        if agreed is None:
            return
        overwrite = agreed
    try:
        undone = interpreter.timeline.go(outlook, overwrite)
    except KeyboardInterrupt:
        terminal.display.line(_cut_off(interpreter, outlook))
        return
    listed = not asks and bool(words.lines(outlook))
    if listed:
        _show(terminal, outlook, done=True)
    told = [*([] if listed else [words.done(undone)]), *words.sentences(undone, shown=listed or (asks and not yes))]
    if outlook.back and not outlook.is_empty:
        told.append(_REDO)
    if told:
        terminal.display.line("\n".join(told))


def _cut_off(interpreter: OpenInterpreter, outlook: Outlook) -> str:
    """How far it has come, after Ctrl-C in the middle of it."""
    timeline = interpreter.timeline
    record = timeline.record()
    if record is not None and record.unfinished:
        return _HALF_WAY
    moved = any(timeline.places[part] == outlook.to for part in outlook.parts)
    return _IN_PART if moved else "Nothing was changed."


def _show(terminal: Terminal, outlook: Outlook, done: bool) -> None:
    terminal.display.line("\n".join([words.heading(outlook, done), *words.lines(outlook)]))


def _agreed(terminal: Terminal, interpreter: OpenInterpreter, outlook: Outlook, yes: bool) -> set[str] | None:
    """What somebody else changed and may be overwritten; None if nothing is to be done at all."""
    assert outlook.files is not None
    if not somebody_there(terminal):
        if yes or interpreter.auto_run:
            return set()
        terminal.display.line(_NOBODY)
        return None
    try:
        if not yes and words.certain(outlook.files) and not _says_yes(terminal):
            terminal.display.line("Nothing was changed.")
            return None
        return _overwritten(terminal, interpreter, outlook, words.doubtful(outlook.files))
    except (KeyboardInterrupt, EOFError):
        terminal.display.line("Nothing was changed.")
        return None


def somebody_there(terminal: Terminal) -> bool:
    """Whether a person can be asked."""
    from interpreter.terminal.ask import in_notebook

    return terminal.tty.can_type or in_notebook()


def _says_yes(terminal: Terminal) -> bool:
    answer = terminal.ask(QUESTION, guarded=True)
    return answer is not None and answer.strip().lower() in ("y", "yes")


# -- what somebody else changed ------------------------------------------------------------------------------------


def _overwritten(terminal: Terminal, interpreter: OpenInterpreter, outlook: Outlook, doubtful: list[Step]) -> set[str]:
    """Ask about each file that is not as the blocks left it."""
    overwrite: set[str] = set()
    for number, step in enumerate(doubtful):
        left = [each.path for each in doubtful[number:]]
        _show_drift(terminal, interpreter, outlook, step.path)
        match _choice(terminal, "deletes" if step.want is None else "restores", len(left)):
            case "r":
                overwrite.add(step.path)
            case "a":
                return overwrite | set(left)
            case "n":
                return overwrite
    return overwrite


def _show_drift(terminal: Terminal, interpreter: OpenInterpreter, outlook: Outlook, path: str) -> None:
    from interpreter.terminal.render.files import Touch, grouped

    name = str(grouped([Touch("", path)])[0])
    terminal.display.line(f"{name} was changed by somebody else since. From what is there to what would be restored:")
    show_difference(terminal, interpreter.timeline.drift_diff(outlook, path), _DIFFERENCE)


def _choice(terminal: Terminal, verb: str, left: int) -> str:
    more = f", a restores all {left}, n keeps all {left}" if left > 1 else ""
    question = f"k keeps it as it is, r {verb} it{more}. [k] "
    while True:
        answer = terminal.ask(question, guarded=True)
        if answer is None:
            raise EOFError
        word = answer.strip().lower() or "k"
        if word in ("k", "keep", "r", "restore") or (left > 1 and word in ("a", "all", "n", "none")):
            return word[0]


def show_difference(terminal: Terminal, text: str, most: int | None = None) -> int:
    """Show a difference of lines; how many lines of it were left out."""
    from interpreter.terminal.render.differences import rows

    theme = getattr(terminal.display, "theme", None)
    shown, left = rows(text, theme, most)
    terminal.display.finish()
    terminal.tty.write("".join(f"{row}\n" for row in shown))
    if left:
        terminal.display.line(f"and {left:,} more lines")
    return left
