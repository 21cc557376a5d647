"""Commands on forks: try two ways from one point, and keep one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interpreter.terminal.magics.command import Command

if TYPE_CHECKING:
    from interpreter.core import OpenInterpreter
    from interpreter.terminal.terminal import Terminal

_SHOWN = 10
_VERBS = {"create": "create", "restore": "change", "delete": "delete", "attributes": "set the mode of"}


def _fork(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    child = interpreter.fork()
    if not terminal.ways:
        terminal.ways.append(interpreter)
    terminal.ways.append(child)
    terminal.way = child
    assert child.forked is not None
    lines = [
        f"You are on a way of your own now, in a copy of the workspace: {child.workspace}",
        "%switch goes to the other way and back, %keep keeps the one you are on, %drop leaves it.",
        *child.forked.sentences,
    ]
    terminal.display.line("\n".join(lines))


def _switch(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    if not terminal.ways:
        terminal.display.line("There is only one way: %fork makes another.")
        return
    if argument and not (argument.isdigit() and 0 < int(argument) <= len(terminal.ways)):
        terminal.display.line(f"%switch takes a number from 1 to {len(terminal.ways)}.")
        return
    here = terminal.ways.index(interpreter)
    there = int(argument) - 1 if argument else (here + 1) % len(terminal.ways)
    terminal.way = terminal.ways[there]
    terminal.display.line(f"Way {there + 1} of {len(terminal.ways)}, in {terminal.way.workspace}.")


def _keep(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    if interpreter.forked is None:
        _keep_first(terminal, interpreter)
        return
    from interpreter.undo.fork import plan_keep

    steps = plan_keep(interpreter)
    parent = interpreter.forked.parent
    lines = [
        f"  {_VERBS[step.verb]} {step.path}" + ("  (changed there as well)" if step.drift else "") for step in steps
    ]
    more = [f"  and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    terminal.display.line("\n".join([f"In {parent.workspace}:", *(lines[:_SHOWN] or ["  no file changes"]), *more]))
    overwrite: list[str] = []
    drifted = [step.path for step in steps if step.drift]
    if steps and not terminal.confirm("Bring this there, and drop the other way?"):
        terminal.display.line("Nothing was done.")
        return
    if drifted and terminal.confirm(f"Overwrite what was changed there as well ({', '.join(drifted[:3])})?"):
        overwrite = drifted
    merged = interpreter.keep(overwrite)
    terminal.ways.remove(parent)
    for way in _from(terminal, parent):
        assert way.forked is not None
        way.forked.parent = interpreter  # which is in its place now
    _one_way_left(terminal)
    terminal.display.line("\n".join([_told(merged.paths), *(f"{path}: {why}" for path, why, *_ in merged.kept)]))


def _keep_first(terminal: Terminal, interpreter: OpenInterpreter) -> None:
    others = [way for way in terminal.ways if way is not interpreter]
    if not others:
        terminal.display.line("There is only one way: %fork makes another.")
        return
    if not terminal.confirm(f"Drop the other way, and what was done in {others[-1].workspace}?"):
        terminal.display.line("Nothing was done.")
        return
    for way in reversed(others):
        way.drop()
    terminal.ways.clear()
    terminal.display.line("The other way is dropped.")


def _drop(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    if not terminal.ways:
        terminal.display.line("There is only one way: %fork makes another.")
        return
    if interpreter.forked is None:
        terminal.display.line("This is where you came from: %switch to the way that you want to drop.")
        return
    if others := _from(terminal, interpreter):
        number = terminal.ways.index(others[0]) + 1
        terminal.display.line(f"Way {number} came from this one: %switch {number}, and keep or drop that one first.")
        return
    if not terminal.confirm(f"Drop this way, and what was done in {interpreter.workspace}?"):
        terminal.display.line("Nothing was done.")
        return
    terminal.way = interpreter.forked.parent
    terminal.ways.remove(interpreter)
    interpreter.drop()
    _one_way_left(terminal)
    terminal.display.line(f"Dropped. You are in {terminal.way.workspace} again.")


def _from(terminal: Terminal, interpreter: OpenInterpreter) -> list[OpenInterpreter]:
    """The ways that began on this one."""
    return [way for way in terminal.ways if way.forked is not None and way.forked.parent is interpreter]


def _one_way_left(terminal: Terminal) -> None:
    if len(terminal.ways) == 1:
        terminal.ways.clear()


def _told(paths: list[str]) -> str:
    what = "1 file" if len(paths) == 1 else f"{len(paths)} files"
    return f"Kept: {what} brought into the workspace. %undo takes that back."


COMMANDS = (
    Command("fork", "", "go on in a copy of everything, to try another way", _fork),
    Command("switch", "[number]", "go to the other way and back", _switch),
    Command("keep", "", "keep the way you are on, and drop the other", _keep),
    Command("drop", "", "drop the way you are on", _drop),
)
