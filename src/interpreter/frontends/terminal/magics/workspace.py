"""Magic commands on the workspace: what blocks did to files (%diff, %why), and forks of it (%fork, %keep, ...)."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator

from interpreter.api import OpenInterpreter
from interpreter.app.checkpoints import Forks
from interpreter.app.forks import plan_keep
from interpreter.console_text import counted
from interpreter.errors import UndoError, UsageError
from interpreter.frontends.terminal.approval import yes_or_no
from interpreter.frontends.terminal.chat import follow
from interpreter.frontends.terminal.magics.undo import clock_time, labelled, show_difference
from interpreter.frontends.terminal.terminal import Terminal
from interpreter.leaves import leaves, load
from interpreter.questions import APPROVE, KEEP, Answer, Question
from interpreter.session.checkpoints import Checkpoint
from interpreter.workspace.diff import is_data_file
from interpreter.workspace.tree import repository_of

_DIFF_LINES = 200  # of one file
_CODE_LINES = 8
_REQUEST = 500  # characters
_APPROVALS = {
    "user": "{how} by you at {time}",
    "library": "{how} by the calling program at {time}",
    "auto_run": "run without asking (auto_run) at {time}",
}
_PLAN_LINES = 10
_VERBS = {"create": "create", "restore": "change", "delete": "delete", "attributes": "set the mode of"}


# -- what blocks did to files --------------------------------------------------------------------------------------


def diff(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    given, display = argument.split(), terminal.display
    if given[:1] == ["session"]:
        points = [point for point in interpreter.timeline.blocks if interpreter.timeline.changes(point.id)]
        for point in points:
            diff(terminal, interpreter, f"{point.id} {' '.join(given[1:])}")
        display.line(f"{counted(len(points), 'block')} changed files in this session.")
        return
    numbers = [each for each in given if each != "--all"]
    most = None if "--all" in given else _DIFF_LINES
    parts = [part for leaf in leaves() for part in leaf.since]
    if len(numbers) > 1 or (numbers and not parts and not re.fullmatch("-?[0-9]+", numbers[0])):
        raise UndoError("Give a number, for example %diff 4. %rewind lists them.")
    if numbers and not re.fullmatch("-?[0-9]+", numbers[0]):
        cut = [show_difference(terminal, text, most) for text in load(parts[0].make)(interpreter, numbers[0])]
        if not cut or any(cut):
            display.line(
                f"For the full diff: %diff {numbers[0]} --all" if cut else f"Nothing differs from {numbers[0]}."
            )
        return
    for point in _blocks(interpreter, int(numbers[0]) if numbers else None):
        diffs = interpreter.timeline.diff(point.id, data="--all" not in given)
        display.line(f"{point.id}  {labelled(point).strip()}")
        if not diffs:
            display.line("It changed no files in the workspace.")
        for path, text in diffs.items():
            if moved := _moved_ref(path, text):
                display.line(moved)
        is_short = False
        for path, text in diffs.items():
            if repository_of(path) is not None:
                continue
            left = show_difference(terminal, text, most)
            is_short |= bool(left or (most and is_data_file(path) and not text.startswith("---")))
        if is_short:
            display.line(f"For the full diff: %diff {point.id} --all")


def _moved_ref(path: str, text: str) -> str:
    """Say where HEAD, a branch or the stash went; empty for git's other files."""
    folder = repository_of(path) or ""
    name = path.removeprefix(f"{folder}/")
    if not folder or not re.fullmatch(r"HEAD|refs/(heads/.+|stash|tags/.+)", name):
        return ""
    sides = [re.search(rf"^[{sign}](?:ref: refs/heads/(.+)|([0-9a-f]{{7}}))", text, re.MULTILINE) for sign in "-+"]
    old, new = ((side[1] or side[2]) if side else "nothing" for side in sides)
    return f"{folder}: {name.removeprefix('refs/').removeprefix('heads/')} went from {old} to {new}"


def _blocks(interpreter: OpenInterpreter, number: int | None) -> list[Checkpoint]:
    """Return the block with this number, those of the turn with this number, or the last one that changed anything."""
    timeline = interpreter.timeline
    if number is None:
        changed = next((point for point in reversed(timeline.blocks) if timeline.changes(point.id)), None)
        if changed is None:
            raise UndoError("No block has changed a file in the workspace.")
        return [changed]
    place = timeline.place_of(number)
    if timeline.checkpoints[place].kind != "turn":
        return [timeline.checkpoints[place]]
    rest = timeline.checkpoints[place + 1 :]
    end = next((at for at, point in enumerate(rest) if point.begins_turn), len(rest))
    if end == 0:
        raise UndoError("No block ran in that turn.")
    return rest[:end]


def why(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    typed = argument.strip("\"'")
    if not typed:
        raise UsageError("Say which file, for example %why out.csv or %why out.csv:12.")
    folder, name, line = interpreter.computer.context.cwd, typed, None
    numbered = re.fullmatch(r"(.+):(\d+)", typed)
    if numbered is not None and not os.path.lexists(os.path.join(folder, os.path.expanduser(typed))):
        name, line = numbered[1], int(numbered[2])
    path = os.path.join(folder, os.path.expanduser(name))
    point = interpreter.timeline.why(path, line)
    if point is None:
        what = f"line {line} of {name}" if line is not None else name
        missing = "" if os.path.lexists(path) else " There is no such file."
        terminal.display.line(f"No block in this conversation changed {what}.{missing}")
    else:
        terminal.display.line("\n".join(_origin(interpreter, point, typed)))


def _origin(interpreter: OpenInterpreter, point: Checkpoint, what: str) -> Iterator[str]:
    """Describe which block last changed something, who approved it, and why it ran."""
    when = clock_time(point.time)
    when = when if " " in when else time.strftime("%H:%M:%S", time.localtime(point.time))
    if point.kind == "own":
        yield f"{what}: block {point.id}, which you ran yourself at {when}"
    else:
        session = interpreter.journal.read() if point.block is not None else None
        block = session.proposed.get(point.block or 0) if session is not None else None
        if block is None or block.by not in _APPROVALS:
            approval = f"run at {when}; who approved it is not recorded"
        else:
            verb = "edited and approved" if block.decision == "edited" else "approved"
            approval = _APPROVALS[block.by].format(how=verb, time=when)
        yield f"{what}: block {point.id}, {approval}"
        before = [each for each in interpreter.timeline.checkpoints if each.id < point.id and each.kind == "turn"]
        content = (before[-1].anchor or {}).get("content") if before else "(unknown)"
        request = " ".join(content.split()) if isinstance(content, str) else before[-1].label
        request = request if len(request) <= _REQUEST else f"{request[:_REQUEST]}..."
        yield f"in reply to: {request}"
    code = (point.code or point.label).rstrip().split("\n")
    yield from (f"    {line}" for line in code[:_CODE_LINES])
    if len(code) > _CODE_LINES:
        yield f"    and {len(code) - _CODE_LINES} more lines"
    yield f"%diff {point.id} shows what it changed, %rewind {point.id} goes back to just before it."


# -- forks ---------------------------------------------------------------------------------------------------------


def fork(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    child = _forks(terminal, interpreter).fork()
    assert child.forked is not None
    lines = [
        f"Working in a fork, in a copy of the workspace: {child.workspace}",
        "%switch goes to the other fork and back, %keep keeps this one, %drop discards it.",
        *child.forked.sentences,
    ]
    terminal.display.line("\n".join(lines))


def _forks(terminal: Terminal, interpreter: OpenInterpreter) -> Forks:
    if terminal.forks is None:
        terminal.forks = Forks(interpreter)
    return terminal.forks


def switch(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    forks = _forks(terminal, interpreter)
    there = forks.switch(argument or None)
    terminal.display.line(f"Fork {forks.number} of {len(forks.all)}, in {there.workspace}.")


def keep(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    forks = _forks(terminal, interpreter)
    if interpreter.forked is None:
        dropped = follow(interpreter, forks.drop_others(), lambda asked: yes_or_no(terminal, asked.text))
        terminal.display.line("Dropped. You are back to one workspace." if dropped else "Nothing changed.")
        return
    lines = [
        f"  {_VERBS[step.verb]} {step.path}" + ("  (also changed there)" if step.drift else "")
        for step in plan_keep(interpreter)
    ]
    more = [f"  and {len(lines) - _PLAN_LINES} more"] if len(lines) > _PLAN_LINES else []
    shown = lines[:_PLAN_LINES] or ["  no file changes"]
    terminal.display.line("\n".join([f"In {interpreter.forked.parent.workspace}:", *shown, *more]))

    def answer(question: Question) -> Answer:
        if question.kind == "overwrite":
            drifted = ", ".join(question.subject.paths[:3])
            overwrite = terminal.confirm(f"Overwrite files that were also changed there ({drifted})?")
            return Answer(APPROVE if overwrite else KEEP)
        return yes_or_no(terminal, "Make these changes and drop the other fork?")

    merged = follow(interpreter, forks.keep(), answer)
    if merged is None:
        terminal.display.line("Nothing changed.")
        return
    what = counted(len(merged.paths), "file")
    kept = [f"{path}: {reason}" for path, reason, *_ in merged.kept]
    terminal.display.line("\n".join([f"Kept: {what} changed in the workspace. %undo reverts this.", *kept]))


def drop(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    forks = _forks(terminal, interpreter)
    dropped = follow(interpreter, forks.drop(), lambda asked: yes_or_no(terminal, asked.text))
    terminal.display.line(f"Dropped. Back in {forks.current.workspace}." if dropped else "Nothing changed.")
