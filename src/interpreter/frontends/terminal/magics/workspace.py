"""Commands that tell what blocks did to files."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from interpreter.errors import UndoError
from interpreter.session import APPROVE, KEEP, REFUSE, Answer, Question

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.app.checkpoints import Forks
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.session.checkpoints import Point
    from interpreter.session.journal.reader import BlockRecord
    from interpreter.workspace import Step


_LINES = 200  # of the difference of one file
_CODE = 8  # lines of it that are shown
_REQUEST = 500  # characters of it
_SAID = {
    "user": "{how} by you at {time}",
    "library": "{how} by the program that runs this at {time}",
    "auto_run": "not asked about (auto_run), run at {time}",
}


# -- %diff -------------------------------------------------------------------------------------------------------


def diff(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    try:
        blocks, whole = _blocks(interpreter, argument)
    except UndoError as error:
        terminal.display.line(str(error))
        return
    for point in blocks:
        _show_block(terminal, interpreter, point, None if whole else _LINES)


def _blocks(interpreter: OpenInterpreter, argument: str) -> tuple[list[Point], bool]:
    """The blocks that are meant: one, those of a turn, or the last one that changed anything."""
    words = argument.split()
    numbers = [word for word in words if word != "--all"]
    if len(numbers) > 1 or (numbers and not re.fullmatch("-?[0-9]+", numbers[0])):
        raise UndoError("Write a number, as in %diff 4: %rewind lists them.")
    timeline, whole = interpreter.timeline, "--all" in words
    if not numbers:
        changed = (point for point in reversed(timeline.blocks) if timeline.changes(point.id))
        found = next(changed, None)
        if found is None:
            raise UndoError("No block has changed a file of the workspace.")
        return [found], whole
    place = timeline.place_of(int(numbers[0]))
    if timeline.points[place].kind != "turn":
        return [timeline.points[place]], whole
    rest = timeline.points[place + 1 :]
    end = next((number for number, point in enumerate(rest) if point.begins_turn), len(rest))
    if not rest[:end]:
        raise UndoError("No block ran in that turn.")
    return rest[:end], whole


def _show_block(terminal: Terminal, interpreter: OpenInterpreter, point: Point, most: int | None) -> None:
    from interpreter.frontends.terminal.magics.undo import labelled, show_difference

    found, own = _without_git(interpreter.timeline.diff(point.id))
    terminal.display.line(f"{point.id}  {labelled(point).strip()}")
    if not found and not own:
        terminal.display.line("It changed no files of the workspace.")
    for folder, count in own.items():
        terminal.display.line(f"{folder}: {count} changes of git's own")
    for path, text in found.items():
        if show_difference(terminal, text, most):
            terminal.display.line(f"%diff {point.id} --all shows all of {path}.")


def _without_git(found: dict[str, str]) -> tuple[dict[str, str], Counter[str]]:
    """The differences, and the `.git` folders with how much changed in them: that is not for people."""
    from interpreter.workspace.tree import repository_of

    own = Counter(folder for path in found if (folder := repository_of(path)) is not None)
    return {path: text for path, text in found.items() if repository_of(path) is None}, own


# -- %why --------------------------------------------------------------------------------------------------------


def why(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    typed = argument.strip("\"'")
    if not typed:
        terminal.display.line("Write which file, as in %why out.csv or %why out.csv:12.")
        return
    name, line = _file_and_line(interpreter, typed)
    try:
        point = interpreter.timeline.why(_path(interpreter, name), line)
    except UndoError as error:
        terminal.display.line(str(error))
        return
    if point is None:
        what = f"line {line} of {name}" if line is not None else name
        missing = "" if os.path.lexists(_path(interpreter, name)) else " There is no such file."
        terminal.display.line(f"No block of this conversation made {what} what it is.{missing}")
        return
    terminal.display.line("\n".join(_told(interpreter, point, typed)))


def _file_and_line(interpreter: OpenInterpreter, typed: str) -> tuple[str, int | None]:
    found = re.fullmatch(r"(.+):(\d+)", typed)
    if found is None or os.path.lexists(_path(interpreter, typed)):
        return typed, None
    return found[1], int(found[2])


def _path(interpreter: OpenInterpreter, name: str) -> str:
    """Relative to the folder that the sessions are in."""
    return os.path.join(interpreter.computer.surroundings.cwd, os.path.expanduser(name))


def _told(interpreter: OpenInterpreter, point: Point, what: str) -> Iterator[str]:
    if point.kind == "own":
        yield f"{what}: block {point.id}, which you ran yourself at {_time(point)}"
    else:
        yield f"{what}: block {point.id}, {_approval(interpreter, point)}"
        yield f"in answer to: {_request(interpreter, point)}"
    code = _code(point).rstrip().split("\n")
    yield from (f"    {line}" for line in code[:_CODE])
    if len(code) > _CODE:
        yield f"    and {len(code) - _CODE} more lines"
    yield f"%diff {point.id} shows what it changed, %rewind {point.id} goes back to before it."


def _approval(interpreter: OpenInterpreter, point: Point) -> str:
    block = _block(interpreter, point)
    if block is None or block.by not in _SAID:
        return f"run at {_time(point)}; who approved it is not recorded"
    how = "edited and approved" if block.decision == "edited" else "approved"
    return _SAID[block.by].format(how=how, time=_time(point))


def _block(interpreter: OpenInterpreter, point: Point) -> BlockRecord | None:
    session = interpreter.journal.read() if point.block is not None else None
    return session.proposed.get(point.block or 0) if session is not None else None


def _request(interpreter: OpenInterpreter, point: Point) -> str:
    """What the user had said."""
    before = [each for each in interpreter.timeline.points if each.id < point.id and each.kind == "turn"]
    if not before:
        return "(not known)"
    said = before[-1].anchor
    content = said.get("content") if said is not None else None
    words = " ".join(content.split()) if isinstance(content, str) else before[-1].label
    return words if len(words) <= _REQUEST else f"{words[:_REQUEST]}..."


def _code(point: Point) -> str:
    return point.code or point.label


def _time(point: Point) -> str:
    from interpreter.frontends.terminal.magics.undo import clock_time

    told = clock_time(point.time)
    return told if " " in told else time.strftime("%H:%M:%S", time.localtime(point.time))


_ONLY_ONE = "There is only one way: %fork makes another."
_SHOWN = 10
_VERBS = {"create": "create", "restore": "change", "delete": "delete", "attributes": "set the mode of"}


def fork(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.app.checkpoints import Forks

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


def switch(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
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


def keep(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
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
    terminal.display.line(
        "\n".join([_told_of_forks(merged.paths), *(f"{path}: {why}" for path, why, *_ in merged.kept)])
    )


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


def drop(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
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


def _told_of_forks(paths: list[str]) -> str:
    what = "1 file" if len(paths) == 1 else f"{len(paths)} files"
    return f"Kept: {what} brought into the workspace. %undo takes that back."
