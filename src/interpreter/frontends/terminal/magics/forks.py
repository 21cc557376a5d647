"""Commands on forks: try two ways from one point, and keep one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from interpreter.frontends.terminal.magics.command import Command
from interpreter.session import APPROVE, KEEP, REFUSE, Answer, Question

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.app.forks import Forks
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.workspace import Step

_ONLY_ONE = "There is only one way: %fork makes another."
_SHOWN = 10
_VERBS = {"create": "create", "restore": "change", "delete": "delete", "attributes": "set the mode of"}


def _fork(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.app.forks import Forks

    if terminal.forks is None:
        terminal.forks = Forks(interpreter)
    child = terminal.forks.fork()
    assert child.forked is not None
    lines = [
        f"You are on a way of your own now, in a copy of the workspace: {child.workspace}",
        "%switch goes to the other way and back, %keep keeps the one you are on, %drop leaves it.",
        *child.forked.sentences,
    ]
    terminal.display.line("\n".join(lines))


def _switch(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    forks = terminal.forks
    if not forks:
        terminal.display.line(_ONLY_ONE)
        return
    count = len(forks.all)
    if argument and not (argument.isdigit() and 0 < int(argument) <= count):
        terminal.display.line(f"%switch takes a number from 1 to {count}.")
        return
    there = forks.switch(int(argument) if argument else None)
    terminal.display.line(f"Way {forks.number} of {count}, in {there.workspace}.")


def _keep(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.frontends.terminal.turn import follow

    forks = terminal.forks
    if not forks:
        terminal.display.line(_ONLY_ONE)
        return
    if interpreter.forked is None:
        _keep_first(terminal, forks)
        return
    _show_plan(terminal, interpreter.forked.parent.workspace, forks.plan_keep())
    merged = follow(interpreter, forks.keep(), partial(_answer, terminal))
    if merged is None:
        terminal.display.line("Nothing was done.")
        return
    terminal.display.line("\n".join([_told(merged.paths), *(f"{path}: {why}" for path, why, *_ in merged.kept)]))


def _show_plan(terminal: Terminal, origin: str, steps: list[Step]) -> None:
    lines = [
        f"  {_VERBS[step.verb]} {step.path}" + ("  (changed there as well)" if step.drift else "") for step in steps
    ]
    more = [f"  and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    terminal.display.line("\n".join([f"In {origin}:", *(lines[:_SHOWN] or ["  no file changes"]), *more]))


def _answer(terminal: Terminal, question: Question) -> Answer:
    """What the person says to the plan that they see, and to files that were changed in both."""
    if question.kind == "overwrite":
        drifted = [step.path for step in question.subject if step.drift]
        yes = terminal.confirm(f"Overwrite what was changed there as well ({', '.join(drifted[:3])})?")
        return Answer(APPROVE if yes else KEEP)
    return Answer(APPROVE if terminal.confirm("Bring this there, and drop the other way?") else REFUSE)


def _keep_first(terminal: Terminal, forks: Forks) -> None:
    from interpreter.frontends.terminal.turn import follow

    def answer(question: Question) -> Answer:
        yes = terminal.confirm(f"Drop the other way, and what was done in {question.subject.workspace}?")
        return Answer(APPROVE if yes else REFUSE)

    dropped = follow(forks.current, forks.drop_others(), answer)
    terminal.display.line("The other way is dropped." if dropped else "Nothing was done.")


def _drop(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.frontends.terminal.turn import follow

    forks = terminal.forks
    if not forks:
        terminal.display.line(_ONLY_ONE)
        return
    if interpreter.forked is None:
        terminal.display.line("This is where you came from: %switch to the way that you want to drop.")
        return
    if others := forks.made_from(interpreter):
        number = forks.all.index(others[0]) + 1
        terminal.display.line(f"Way {number} came from this one: %switch {number}, and keep or drop that one first.")
        return

    def answer(question: Question) -> Answer:
        yes = terminal.confirm(f"Drop this way, and what was done in {question.subject.workspace}?")
        return Answer(APPROVE if yes else REFUSE)

    if follow(interpreter, forks.drop(), answer):
        terminal.display.line(f"Dropped. You are in {forks.current.workspace} again.")
    else:
        terminal.display.line("Nothing was done.")


def _told(paths: list[str]) -> str:
    what = "1 file" if len(paths) == 1 else f"{len(paths)} files"
    return f"Kept: {what} brought into the workspace. %undo takes that back."


COMMANDS = (
    Command("fork", "", "go on in a copy of everything, to try another way", _fork),
    Command("switch", "[number]", "go to the other way and back", _switch),
    Command("keep", "", "keep the way you are on, and drop the other", _keep),
    Command("drop", "", "drop the way you are on", _drop),
)
