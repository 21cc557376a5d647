"""Magic commands that go back and forward: %undo, %redo, %rewind.

A plan is shown, the user is asked before files change, and then what was done is shown.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from interpreter.api import OpenInterpreter
from interpreter.app import result_of
from interpreter.app.checkpoints import carry_out, interrupted_progress, plan_restore, plan_undo
from interpreter.app.own_blocks import SIGNS
from interpreter.console_text import counted, visible
from interpreter.errors import UndoError
from interpreter.frontends.terminal.approval import yes_or_no
from interpreter.frontends.terminal.chat import follow
from interpreter.frontends.terminal.render.ansi import cells, clip
from interpreter.frontends.terminal.render.notes import Touch, diff_rows, grouped
from interpreter.frontends.terminal.terminal import Terminal
from interpreter.frontends.terminal.widgets import search_row
from interpreter.questions import APPROVE, KEEP, REFUSE, Answer, Question
from interpreter.runtimes.state import Restored
from interpreter.session.checkpoints import PARTS, Checkpoint, Part, UndoKind, UndoPlan, UndoResult
from interpreter.workspace import Step
from interpreter.workspace.tree import repository_of

OPTIONS = ("--conversation", "--files", "--variables", "--block", "-y")
QUESTION = "Change these files? [y/N] "
_INTERRUPTED = {
    "files": "Interrupted halfway. Run the command again to finish, or the next block restores the rest first.",
    "parts": "Interrupted before it was finished. Run the command again to finish.",
    "nothing": "Nothing was changed.",
}

PREVIEW = 30  # characters of a message
_DRIFT_LINES = 20  # of a difference that is shown with a question
_MESSAGES, _FILES, _SENTENCES = 6, 10, 8  # how many are listed
_DIVIDER = re.compile("[-=─]{5,} ")  # lines that only divide, as in tracebacks
_UNDO_VERBS = {"create": "brought back", "restore": "restored", "delete": "deleted", "attributes": "restored"}
_REDO_VERBS = {
    "create": "created again",
    "restore": "changed again",
    "delete": "deleted again",
    "attributes": "set again",
}
_ORDER = (*_UNDO_VERBS.values(), *_REDO_VERBS.values(), "renamed back", "renamed", "changed")

NOW = "now"
_WIDE, _NARROW, _LABEL = 70, 50, 72  # columns


# -- the commands --------------------------------------------------------------------------------------------------


class UndoOptions(NamedTuple):
    parts: tuple[Part, ...]
    blocks: bool
    yes: bool
    place: str


def parse(argument: str) -> UndoOptions:
    """Parse the words after the command; UndoError if one of them is unknown."""
    given = argument.lower().split()
    places = [each for each in given if each == NOW or re.fullmatch("-?[0-9]+", each)]
    known = {*places, *OPTIONS, "--yes", "--blocks"}
    if unknown := [each for each in given if each not in known]:
        raise UndoError(f"Unknown option: {unknown[0]}. Use a number, or {', '.join(OPTIONS)}.")
    parts = tuple(part for part in PARTS if f"--{part}" in given) or PARTS
    blocks, yes = ("--block" in given or "--blocks" in given), ("-y" in given or "--yes" in given)
    return UndoOptions(parts, blocks, yes, places[-1] if places else "")


def move(kind: Literal["undo", "redo"], terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    wanted = parse(argument)
    count = 1 if wanted.place in ("", NOW) else int(wanted.place)
    if count < 1:
        raise UndoError(f"Use a number of 1 or more, not {wanted.place}.")
    reset = terminal.reset
    has_begun = interpreter.messages or any(interpreter.timeline.places.values())
    if kind == "undo" and reset is not None and reset.interpreter is interpreter and not has_begun:
        terminal.reset = None
        result_of(reset.undo())
        terminal.display.line(f"Reset undone: {len(interpreter.messages)} messages and the variables are back.")
        return
    plan = plan_undo(interpreter, count, wanted.parts, wanted.blocks, kind)
    _perform(terminal, interpreter, plan, kind, wanted.yes)


def rewind(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    wanted = parse(argument)
    name = wanted.place
    if not name:
        checkpoints = CheckpointList(interpreter)
        if not checkpoints.places:
            raise UndoError("There is nothing to go back to yet.")
        if terminal.plain or not terminal.tty.can_type:
            width = terminal.tty.size()[0] - 1
            listed = [checkpoints.drawn(number, width).rstrip() for number in range(len(checkpoints.places))]
            terminal.display.line("\n".join([*listed, "%rewind NUMBER goes back to just before it."]))
            return
        try:
            chosen = search_row(terminal.tty, "Go back to just before:", checkpoints.searched(), checkpoints.drawn)
        except KeyboardInterrupt:
            terminal.display.line("Nothing was changed.")
            return
        name = checkpoints.name(checkpoints.places[chosen])
    plan = plan_restore(interpreter, None if name == NOW else int(name), wanted.parts)
    _perform(terminal, interpreter, plan, "restore", wanted.yes)


# -- carrying out a plan -------------------------------------------------------------------------------------------


def _perform(terminal: Terminal, interpreter: OpenInterpreter, plan: UndoPlan, kind: UndoKind, yes: bool) -> None:
    """Carry out a plan, after asking if files would change; `yes` is the answer given in advance."""
    is_shown, is_unattended = yes, False  # a yes in advance makes showing the plan unnecessary

    def answer(question: Question) -> Answer:
        nonlocal is_shown, is_unattended
        asked = question.subject.details
        if asked is None:  # about the work of another actor
            return yes_or_no(terminal, question.text)
        if not is_shown:
            is_shown = True
            _show(terminal, asked, done=False)
        if not terminal.tty.can_type:
            is_unattended = not (yes or interpreter.auto_run)
            return Answer(REFUSE if is_unattended else APPROVE if question.kind == "confirm" else KEEP, by="nobody")
        try:
            if question.kind == "confirm":
                typed = terminal.ask(QUESTION, guarded=True) or ""
                return Answer(APPROVE if typed.strip().lower() in ("y", "yes") else REFUSE)
            overwrite = _overwritten(terminal, interpreter, asked)
            return Answer(APPROVE, paths=tuple(overwrite)) if overwrite else Answer(KEEP)
        except (KeyboardInterrupt, EOFError):
            return Answer(REFUSE)

    try:
        undone = follow(interpreter, carry_out(interpreter, plan, kind, "drift" if yes else "files"), answer)
    except KeyboardInterrupt:
        terminal.display.line(_INTERRUPTED[interrupted_progress(interpreter, plan)])
        return
    if undone is None:
        why = ": this would change files, and there is no terminal to ask at. Use -y to go ahead."
        terminal.display.line(f"Nothing was changed{why if is_unattended else '.'}")
        return
    asks = plan.changes_files
    listed = not asks and bool(lines(plan))
    if listed:
        _show(terminal, plan, done=True)
    report = [] if listed else [summary(undone)]
    report += sentences(undone, shown=listed or (asks and not yes))
    if plan.back and not plan.is_empty:
        report.append("To bring it back, use %redo before running anything else.")
    if report:
        terminal.display.line("\n".join(report))


def _show(terminal: Terminal, plan: UndoPlan, done: bool) -> None:
    verb = "undone" if plan.back else "redone"
    heading = f"{verb.capitalize()}:" if done else f"This would be {verb}:"
    terminal.display.line("\n".join([heading, *lines(plan)]))


def _overwritten(terminal: Terminal, interpreter: OpenInterpreter, plan: UndoPlan) -> set[str]:
    """Ask about each file that was changed since the blocks ran; return the paths to restore."""
    overwrite: set[str] = set()
    for number, step in enumerate(plan.drifted):
        left = [each.path for each in plan.drifted[number:]]
        name = grouped([Touch("", step.path)])[0]
        terminal.display.line(
            f"{name} has been changed since, outside this session. Restoring it would make these changes:"
        )
        show_difference(terminal, interpreter.timeline.drift_diff(plan, step.path), _DRIFT_LINES)
        verb = "delete" if step.want is None else "restore"
        more = f", a: restore all {len(left)}, n: keep all {len(left)}" if len(left) > 1 else ""
        known = ("k", "keep", "r", "restore", *(("a", "all", "n", "none") if more else ()))
        word = ""
        while word not in known:
            answer = terminal.ask(f"k: keep it as it is, r: {verb} it{more} [k] ", guarded=True)
            if answer is None:
                raise EOFError
            word = answer.strip().lower() or "k"
        if word[0] == "r":
            overwrite.add(step.path)
        elif word[0] in "an":
            return overwrite | set(left if word[0] == "a" else ())
    return overwrite


def show_difference(terminal: Terminal, text: str, most: int | None = None) -> int:
    """Show a diff and return how many of its lines were left out."""
    shown, left = diff_rows(text, getattr(terminal.display, "theme", None), most)
    terminal.display.finish()
    terminal.tty.write("".join(f"{row}\n" for row in shown))
    if left:
        terminal.display.line(f"and {left:,} more lines")
    return left


# -- a plan as text ------------------------------------------------------------------------------------------------


def lines(plan: UndoPlan) -> list[str]:
    """Describe what a plan would change, part by part, and what it leaves out."""
    messages = []
    for message in plan.messages:
        if (message.get("role"), message.get("format")) == ("computer", "html"):
            messages.append("computer table or page")
            continue
        content = message.get("content")
        text = content if isinstance(content, str) else json.dumps(content, default=str)
        text = _DIVIDER.sub("", " ".join(text.split()))
        text = text if len(text) <= PREVIEW else text[:PREVIEW] + "..."
        messages.append(f"{message.get('role', '')} {message.get('type', '')}: {text}")
    files: list[str] = []
    if plan.files is not None:
        groups = grouped(_touches(plan.certain, _UNDO_VERBS if plan.files.direction == "undo" else _REDO_VERBS))
        groups.sort(key=lambda group: _ORDER.index(group.what))
        files += _some([f"{group.what} {group}" for group in groups], _FILES, "files")
        changed = grouped(Touch("", step.path) for step in plan.drifted)
        files += _some([f"changed since, outside this session: {group}" for group in changed], _FILES, "files")
        left = {step.repository for step in plan.files.steps if step.repository}
        left -= {step.repository for step in plan.certain}
        files += plan.repositories.lines if plan.repositories is not None else ()
        files += [f"{folder} is left alone: git manages its commits and its index" for folder in sorted(left)]
    return [
        *(f"  {row}" for row in _some(messages, _MESSAGES, "messages")),
        *(["Files:"] if files else ()),
        *(f"  {row}" for row in files),
        *_variable_lines(plan),
        *_some([f"Not covered: {note}" for note in plan.notes], _SENTENCES, "notes"),
    ]


def _some(rows: Sequence[str], most: int, what: str) -> list[str]:
    """Keep the first rows, and count the others. A row that says there is one more would be no shorter."""
    if len(rows) <= most + 1:
        return list(rows)
    return [*rows[:most], f"and {len(rows) - most} more {what}"]


def _touches(steps: Iterable[Step], verbs: dict[str, str]) -> Iterator[Touch]:
    steps = list(steps)
    moved = {step.source for step in steps}
    for step in steps:
        item = step.want or step.now
        if step.source is not None:
            yield Touch("renamed" if verbs is _REDO_VERBS else "renamed back", step.path, source=step.source)
        elif step.path not in moved:
            yield Touch(verbs[step.verb], step.path or ".", item is not None and item.kind == "folder")


def _variable_lines(plan: UndoPlan) -> Iterator[str]:
    if names := [each.language for each in plan.variables if each.obstacle is None]:
        yield f"Variables: {', '.join(names)}"
    for each in plan.variables:
        if each.obstacle is not None:
            offer = f" (%rerun {each.language.lower()})" if plan.back else ""
            yield f"Can't restore the {each.language} variables: {each.obstacle}{offer}"


def summary(undone: UndoResult) -> str:
    plan = undone.plan
    steps = [step for step in plan.files.steps if step.path in undone.restored] if plan.files is not None else []
    files = sum(not touch.is_folder for touch in _touches(steps, _UNDO_VERBS))  # a renamed file counts once
    names = [name for name, outcome in undone.variables.items() if isinstance(outcome, Restored)]
    parts = [counted(count, what) for count, what in ((len(plan.messages), "message"), (files, "file")) if count]
    if undone.restored and not files:
        parts.append("folders")
    if names:
        parts.append(f"the {' and '.join(names)} variables")
    if not parts:
        return "There was nothing to restore."
    return f"{'Undone' if plan.back else 'Redone'}: {', '.join(parts)}."


def sentences(undone: UndoResult, shown: bool = True) -> list[str]:
    """List what did not go as expected and was not `shown` before."""
    plan = undone.plan
    obstacles = [each for each in plan.variables if each.obstacle]
    others = tuple(each for each in obstacles if each.language not in undone.variables)
    twice = {each.sentence for each in others}
    if not shown:
        more = [sentence for sentence in undone.sentences if sentence not in twice]
        return _some([*_variable_lines(replace(plan, variables=others)), *more], _SENTENCES, "of these")
    before = {*twice, *(f"{each.language}: " for each in obstacles)}
    before |= {f"{each.folder} is left" for each in (plan.files.repositories if plan.files else ())}
    new = [each for each in undone.sentences if each not in plan.notes and not each.startswith(tuple(before))]
    return _some(new, _SENTENCES, "of these")


# -- checkpoints to choose from ------------------------------------------------------------------------------------


class CheckpointList:
    """The checkpoints of a session, the latest first, and what a return to each would restore."""

    def __init__(self, interpreter: OpenInterpreter) -> None:
        self._timeline, self._computer = interpreter.timeline, interpreter.computer
        self._timeline.adopt()
        self._message_count = len(interpreter.messages)
        self._paths = [self._paths_of(point) for point in self._timeline.checkpoints]
        present = self._timeline.present
        can_redo = min(self._timeline.places.values()) < present
        self.places = list(reversed(range(present + can_redo)))
        times = [clock_time(point.time) for point in self._timeline.checkpoints]
        self._times = [text.rjust(max(map(len, times))) for text in [*times, ""]] if times else []

    def searched(self) -> list[str]:
        """Return the text that each row can be found by."""
        return [f"{self.name(place)} {self._label(place)} {self._gist(place)}" for place in self.places]

    def drawn(self, number: int, width: int) -> str:
        """Draw a row of the list: number, time, what came next, and what would be restored."""
        place = self.places[number]
        head = f"{self.name(place):>4}  " + (f"{self._times[place]}  " if width >= _NARROW else "")
        gist = self._gist(place)
        if width < _WIDE:
            gist = gist.replace("message", "msg").replace(", variables", "" if width < _NARROW else ", vars")
        room = min(width - cells(head) - cells(gist) - 2, _LABEL)
        label = visible(self._label(place))
        if room < 8:
            return clip(f"{head}{label}", width)
        label = label if cells(label) <= room else clip(label, room - 1) + "…"
        return f"{head}{label}{' ' * (room - cells(label))}  {gist}"

    def name(self, place: int) -> str:
        """Return the number of its checkpoint, or `now`."""
        return NOW if place == self._timeline.present else str(self._timeline.checkpoints[place].id)

    def _label(self, place: int) -> str:
        return "the latest state" if place == self._timeline.present else labelled(self._timeline.checkpoints[place])

    def _gist(self, place: int) -> str:
        """Summarize what would be restored, without reading the disk."""
        timeline, variables = self._timeline, False
        if all(here == place for here in timeline.places.values()):
            return "here"
        first, last = sorted((place, timeline.places["files"]))
        files = set[str]().union(*self._paths[first:last])
        first, last = sorted((place, timeline.places["variables"]))
        for point in timeline.checkpoints[first:last]:
            if point.mark and point.language:  # and its block ran in a runtime that can be rewound
                language = self._computer.get_language(point.language)
                name = language.name if language is not None else point.language
                variables = variables or name in point.mark.states
        counts = (abs(self._message_count - timeline.at(place)), "message"), (len(files), "file")
        parts = [counted(count, what) for count, what in counts if count]
        return ", ".join([*parts, *(["variables"] if variables else [])]) or "nothing"

    def _paths_of(self, point: Checkpoint) -> set[str]:
        """Collect the files that the block after a checkpoint changed; those of a repository count as one."""
        changes = self._timeline.changes(point.id) if point.kind != "turn" else None
        pairs = changes.pairs if changes is not None else {}
        files = [path for path, pair in pairs.items() if any(item and item.kind != "folder" for item in pair)]
        return {repository_of(path) or path for path in files}


def labelled(point: Checkpoint) -> str:
    """Label a checkpoint with what came next: the request, or the code."""
    if point.kind == "turn":
        return point.label or "(a turn)"
    sign = SIGNS.get((point.language or "").lower(), "") if point.kind == "own" else f"  {point.language}: "
    return f"{sign}{point.label}"


def clock_time(moment: float) -> str:
    """Format a time: today's by the clock, older ones with the day."""
    then, now = time.localtime(moment), time.localtime()
    return time.strftime("%H:%M" if then[:3] == now[:3] else "%d %b %H:%M", then)
