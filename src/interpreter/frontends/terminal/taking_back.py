"""An undo at the terminal: what it would do is shown, files are asked about, and what was done is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interpreter.frontends.terminal import outlook_words as words
from interpreter.session import APPROVE, KEEP, REFUSE, Answer, Question

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.session.checkpoints import Outlook, Way

QUESTION = "Change these files? [y/N] "
_DIFFERENCE = 20  # lines of it that are shown with a question
_REDO = "%redo brings it back, until something else is run."
_CUT_OFF = {
    "files": "Interrupted half way. The same command goes on with it; before the next block, the files are finished "
    "anyway.",
    "parts": "Interrupted: not all of it is done. The same command goes on with it.",
    "nothing": "Nothing was changed.",
}
_NOBODY = "Nothing was changed: files would be, and nobody is here to say yes. -y says it beforehand."


def carry_out(terminal: Terminal, interpreter: OpenInterpreter, outlook: Outlook, way: Way, yes: bool = False) -> None:
    """Do it, after asking if files would change; `yes` is the answer beforehand."""
    from interpreter.app import undo
    from interpreter.frontends.terminal.turn import follow

    asking = _Asking(terminal, interpreter, yes)
    events = undo.carry_out(interpreter, outlook, way, "drift" if yes else "files")
    try:
        undone = follow(interpreter, events, asking.answer)
    except KeyboardInterrupt:
        terminal.display.line(_CUT_OFF[undo.how_far(interpreter, outlook)])
        return
    if undone is None:
        terminal.display.line(_NOBODY if asking.nobody else "Nothing was changed.")
        return
    asks = outlook.changes_files
    listed = not asks and bool(words.lines(outlook))
    if listed:
        _show(terminal, outlook, done=True)
    told = [*([] if listed else [words.done(undone)]), *words.sentences(undone, shown=listed or (asks and not yes))]
    if outlook.back and not outlook.is_empty:
        told.append(_REDO)
    if told:
        terminal.display.line("\n".join(told))


def _show(terminal: Terminal, outlook: Outlook, done: bool) -> None:
    terminal.display.line("\n".join([words.heading(outlook, done), *words.lines(outlook)]))


class _Asking:
    """Asks the person at this terminal about the files that an undo would change."""

    def __init__(self, terminal: Terminal, interpreter: OpenInterpreter, yes: bool) -> None:
        self._terminal, self._interpreter, self._yes = terminal, interpreter, yes
        self._shown = yes  # whoever has said yes beforehand need not see it
        self.nobody = False  # there was nobody to ask

    def answer(self, question: Question) -> Answer:
        plan = question.subject
        if isinstance(plan, str):  # about what others did
            return Answer(APPROVE if self._terminal.confirm(plan) else REFUSE)
        if not self._shown:
            self._shown = True
            _show(self._terminal, plan, done=False)
        if not somebody_there(self._terminal):
            self.nobody = not (self._yes or self._interpreter.auto_run)
            return Answer(REFUSE if self.nobody else APPROVE if question.kind == "confirm" else KEEP, by="nobody")
        try:
            if question.kind == "confirm":
                return Answer(APPROVE if _says_yes(self._terminal) else REFUSE)
            overwrite = _overwritten(self._terminal, self._interpreter, plan)
            return Answer(APPROVE, details={"paths": overwrite}) if overwrite else Answer(KEEP)
        except (KeyboardInterrupt, EOFError):
            return Answer(REFUSE)


def somebody_there(terminal: Terminal) -> bool:
    """Whether a person can be asked."""
    from interpreter.frontends.terminal.ask import in_notebook

    return terminal.tty.can_type or in_notebook()


def _says_yes(terminal: Terminal) -> bool:
    answer = terminal.ask(QUESTION, guarded=True)
    return answer is not None and answer.strip().lower() in ("y", "yes")


# -- what somebody else changed ------------------------------------------------------------------------------------


def _overwritten(terminal: Terminal, interpreter: OpenInterpreter, outlook: Outlook) -> set[str]:
    """Ask about each file that is not as the blocks left it."""
    overwrite: set[str] = set()
    for number, step in enumerate(outlook.drifted):
        left = [each.path for each in outlook.drifted[number:]]
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
    from interpreter.frontends.terminal.render.files import Touch, grouped

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
    from interpreter.frontends.terminal.render.differences import rows

    theme = getattr(terminal.display, "theme", None)
    shown, left = rows(text, theme, most)
    terminal.display.finish()
    terminal.tty.write("".join(f"{row}\n" for row in shown))
    if left:
        terminal.display.line(f"and {left:,} more lines")
    return left
