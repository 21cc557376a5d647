"""Commands that go back, and forward again."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from interpreter.app.own_blocks import SIGNS
from interpreter.errors import UndoError
from interpreter.frontends.terminal.render.ansi import cells, clip, visible
from interpreter.frontends.terminal.render.notes import Touch, grouped
from interpreter.runtimes.states import Restored
from interpreter.session import APPROVE, KEEP, REFUSE, Answer, Question
from interpreter.workspace.tree import repository_of

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.messages import Message
    from interpreter.session.checkpoints import Outlook, Part, Point, Timeline, Undone, Way
    from interpreter.workspace import Plan, Step


OPTIONS = ("--conversation", "--files", "--variables", "--block", "-y")


@dataclass
class Wanted:
    """What was typed after the command."""

    parts: tuple[Part, ...]
    blocks: bool = False
    yes: bool = False
    place: str = ""


def parsed(argument: str) -> Wanted:
    """The words after the command; UndoError if one of them is not known."""
    from interpreter.session.checkpoints import PARTS

    wanted, parts = Wanted(PARTS), []
    for word in argument.lower().split():
        name = word.lstrip("-")
        if word in ("-y", "--yes"):
            wanted.yes = True
        elif word in ("--block", "--blocks"):
            wanted.blocks = True
        elif word.startswith("--") and name in PARTS:
            parts.append(name)
        elif word == "now" or re.fullmatch("-?[0-9]+", word):
            wanted.place = word
        else:
            raise UndoError(f"{word} means nothing here. A number is known, and {', '.join(OPTIONS)}.")
    wanted.parts = tuple(part for part in PARTS if part in parts) or PARTS
    return wanted


def _count(wanted: Wanted) -> int:
    if wanted.place in ("", "now"):
        return 1
    if int(wanted.place) < 1:
        raise UndoError(f"How many? A number from 1 on, not {wanted.place}.")
    return int(wanted.place)


def undo(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    _move(terminal, interpreter, argument, "back")


def redo(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    _move(terminal, interpreter, argument, "forward")


def _move(terminal: Terminal, interpreter: OpenInterpreter, argument: str, way: Way) -> None:
    from interpreter.app.checkpoints import plan_redo, plan_undo

    try:
        wanted = parsed(argument)
        plan = plan_undo if way == "back" else plan_redo
        outlook = plan(interpreter, _count(wanted), wanted.parts, wanted.blocks)
        carry_out(terminal, interpreter, outlook, way, wanted.yes)
    except UndoError as error:
        terminal.display.line(str(error))


def rewind(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.app.checkpoints import plan_restore

    try:
        wanted = parsed(argument)
        name = wanted.place or _chosen(terminal, interpreter)
        if name:
            outlook = plan_restore(interpreter, None if name == NOW else int(name), wanted.parts)
            carry_out(terminal, interpreter, outlook, "there", wanted.yes)
    except UndoError as error:
        terminal.display.line(str(error))


def _chosen(terminal: Terminal, interpreter: OpenInterpreter) -> str:
    """Let the user choose; empty if there is no choice, or they would rather not."""

    places = Places(interpreter)
    if not places.places:
        raise UndoError("There is nothing to go back to yet.")
    if terminal.plain or not terminal.tty.can_type:
        listed(terminal, places)
        return ""
    try:
        return choose(terminal, places)
    except KeyboardInterrupt:
        terminal.display.line("Nothing was changed.")
        return ""


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
    from interpreter.app import checkpoints as undo
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
    listed = not asks and bool(lines(outlook))
    if listed:
        _show(terminal, outlook, done=True)
    told = [*([] if listed else [done(undone)]), *sentences(undone, shown=listed or (asks and not yes))]
    if outlook.back and not outlook.is_empty:
        told.append(_REDO)
    if told:
        terminal.display.line("\n".join(told))


def _show(terminal: Terminal, outlook: Outlook, done: bool) -> None:
    terminal.display.line("\n".join([heading(outlook, done), *lines(outlook)]))


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
    from interpreter.frontends.terminal.terminal import in_notebook

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
    from interpreter.frontends.terminal.render.notes import Touch, grouped

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
    from interpreter.frontends.terminal.render.notes import diff_rows

    theme = getattr(terminal.display, "theme", None)
    shown, left = diff_rows(text, theme, most)
    terminal.display.finish()
    terminal.tty.write("".join(f"{row}\n" for row in shown))
    if left:
        terminal.display.line(f"and {left:,} more lines")
    return left


PREVIEW = 30
_RULED = re.compile("[-=─]{5,} ")  # lines that only divide, as in tracebacks
_MESSAGES, _FILES, _SENTENCES = 6, 10, 8  # so many are named
_BACK = {"create": "brought back", "restore": "restored", "delete": "deleted", "attributes": "restored"}
_AGAIN = {"create": "created again", "restore": "changed again", "delete": "deleted again", "attributes": "set again"}
_ORDER = (*_BACK.values(), *_AGAIN.values(), "renamed back", "renamed", "changed")


def heading(outlook: Outlook, done: bool) -> str:
    """What the lines below it are."""
    verb = "taken back" if outlook.back else "done again"
    return f"{verb.capitalize()}:" if done else f"This would be {verb}:"


def lines(outlook: Outlook) -> list[str]:
    """What it is about, part by part, and what it leaves out."""
    files = list(_file_lines(outlook, outlook.files)) if outlook.files else []
    return [
        *_indented(_some([_preview(message) for message in outlook.messages], _MESSAGES, "messages")),
        *(["Files:", *_indented(files)] if files else ()),
        *_variable_lines(outlook),
        *_some([f"Not covered: {note}" for note in outlook.notes], _SENTENCES, "notes"),
    ]


def _indented(rows: Iterable[str]) -> list[str]:
    return [f"  {row}" for row in rows]


def _preview(message: Message) -> str:
    content = message.get("content")
    text = content if isinstance(content, str) else json.dumps(content, default=str)
    text = _RULED.sub("", " ".join(text.split()))
    text = text if len(text) <= PREVIEW else text[:PREVIEW] + "..."
    return f"{message.get('role', '')} {message.get('type', '')}: {text}"


def _some(rows: Sequence[str], most: int, what: str) -> list[str]:
    """The first of them; one that would only say that there is one more is no shorter."""
    if len(rows) <= most + 1:
        return list(rows)
    return [*rows[:most], f"and {len(rows) - most} more {what}"]


# -- files -------------------------------------------------------------------------------------------------------


def _file_lines(outlook: Outlook, plan: Plan) -> Iterator[str]:
    verbs = _BACK if plan.direction == "undo" else _AGAIN
    groups = grouped(_touches(outlook.certain, verbs))
    groups.sort(key=lambda group: _ORDER.index(group.what))
    yield from _some([f"{group.what} {group}" for group in groups], _FILES, "files")
    changed = grouped(Touch("", step.path) for step in outlook.drifted)
    yield from _some([f"changed by somebody else since: {group}" for group in changed], _FILES, "files")
    left = {step.repository for step in plan.steps if step.repository} - {step.repository for step in outlook.certain}
    yield from (f"{folder} stays as it is: its commits and its index are git's own" for folder in sorted(left))


def _touches(steps: Iterable[Step], verbs: dict[str, str]) -> Iterator[Touch]:
    steps = list(steps)
    moved = {step.source for step in steps}
    for step in steps:
        stands = step.want or step.now
        if step.source is not None:
            yield Touch("renamed" if verbs is _AGAIN else "renamed back", step.path, source=step.source)
        elif step.path not in moved:
            is_folder = stands is not None and stands.kind == "folder"
            yield Touch(verbs[step.verb], step.path or ".", is_folder)


# -- variables ---------------------------------------------------------------------------------------------------


def _variable_lines(outlook: Outlook) -> Iterator[str]:
    if names := [each.language for each in outlook.variables if each.obstacle is None]:
        yield f"Variables: {', '.join(names)}"
    for each in outlook.variables:
        if each.obstacle is not None:
            offer = f" (%rerun {each.language.lower()})" if outlook.back else ""
            yield f"Not the variables of {each.language}: {each.obstacle}{offer}"


# -- afterwards --------------------------------------------------------------------------------------------------


def done(undone: Undone) -> str:
    """What was done, in one line."""
    outlook = undone.outlook
    count = len(outlook.messages)
    parts = [f"{count} message{'' if count == 1 else 's'}"] if count else []
    if files := _file_count(undone):
        parts.append(f"{files} file{'' if files == 1 else 's'}")
    elif undone.restored:
        parts.append("folders")
    if names := [name for name, how in undone.variables.items() if isinstance(how, Restored)]:
        parts.append(f"the variables of {' and '.join(names)}")
    if not parts:
        return "Nothing was to be restored."
    return f"{'Taken back' if outlook.back else 'Done again'}: {', '.join(parts)}."


def _file_count(undone: Undone) -> int:
    """How many files that is; one that was renamed is one."""
    plan = undone.outlook.files
    steps = [step for step in plan.steps if step.path in undone.restored] if plan is not None else []
    return sum(not touch.is_folder for touch in _touches(steps, _BACK))


def sentences(undone: Undone, shown: bool = True) -> list[str]:
    """What did not go as one might think, as far as it was not `shown` before."""
    outlook = undone.outlook
    obstacles = [each for each in outlook.variables if each.obstacle]
    others = tuple(each for each in obstacles if each.language not in undone.variables)
    twice = {each.sentence for each in others}
    if not shown:
        lines = _variable_lines(replace(outlook, variables=others))
        more = [words for words in undone.sentences if words not in twice]
        return _some([*lines, *more], _SENTENCES, "of these")
    before = {*twice, *(f"{each.language}: " for each in obstacles)}
    before |= {f"{each.folder} is left" for each in (outlook.files.repositories if outlook.files else ())}
    told = [words for words in undone.sentences if words not in outlook.notes]
    return _some([words for words in told if not words.startswith(tuple(before))], _SENTENCES, "of these")


NOW = "now"
_WIDE, _NARROW, _LABEL = 70, 50, 72  # columns


class Places:
    """The places of a timeline, the latest first, and what going there would restore."""

    def __init__(self, interpreter: OpenInterpreter) -> None:
        interpreter.timeline.adopt()
        self._timeline: Timeline = interpreter.timeline
        self._computer = interpreter.computer
        self._count = len(interpreter.messages)
        self._paths: dict[int, frozenset[str]] = {}
        present = self._timeline.present
        taken_back = min(self._timeline.places.values()) < present
        self.places = list(reversed(range(present + taken_back)))
        times = [clock_time(point.time) for point in self._timeline.points]
        self._times = [text.rjust(max(map(len, times))) for text in [*times, ""]] if times else []

    def searched(self) -> list[str]:
        """The words that each row can be found by."""
        return [f"{self.name(place)} {self._label(place)} {self._gist(place)}" for place in self.places]

    def drawn(self, number: int, width: int) -> str:
        """A row of the list: number, time, what came next, and what would be restored."""
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
        """The number of its point, or `now`."""
        return NOW if place == self._timeline.present else str(self._timeline.points[place].id)

    def _label(self, place: int) -> str:
        return "as it was last" if place == self._timeline.present else labelled(self._timeline.points[place])

    def _gist(self, place: int) -> str:
        """In few words, without looking at the disk."""
        if all(here == place for here in self._timeline.places.values()):
            return "here"
        parts = [_counted(abs(self._count - self._timeline.at(place)), "message")]
        parts += [_counted(len(self._changed(place)), "file"), "variables" if self._has_variables(place) else ""]
        return ", ".join(part for part in parts if part) or "nothing"

    def _changed(self, place: int) -> set[str]:
        first, last = sorted((place, self._timeline.places["files"]))
        return {path for point in self._timeline.points[first:last] for path in self._paths_of(point)}

    def _paths_of(self, point: Point) -> frozenset[str]:
        if point.id not in self._paths:
            changes = self._timeline.changes(point.id) if point.kind != "turn" else None
            pairs = changes.pairs if changes is not None else {}
            files = [
                path for path, pair in pairs.items() if not all(item is None or item.kind == "folder" for item in pair)
            ]
            self._paths[point.id] = frozenset(repository_of(path) or path for path in files)
        return self._paths[point.id]

    def _has_variables(self, place: int) -> bool:
        """Whether a block between here and there ran in a session that can be rewound."""
        first, last = sorted((place, self._timeline.places["variables"]))
        ran = ((point.language, point.mark) for point in self._timeline.points[first:last])
        return any(mark and language and self._language(language) in mark.states for language, mark in ran)

    def _language(self, name: str) -> str:
        found = self._computer.get_language(name)
        return found.name if found is not None else name


def labelled(point: Point) -> str:
    """A point by what came next: the request, or the code."""
    if point.kind == "turn":
        return point.label or "(a turn)"
    own = point.kind == "own"
    sign = SIGNS.get((point.language or "").lower(), "") if own else f"  {point.language}: "
    return f"{sign}{point.label}"


def clock_time(moment: float) -> str:
    """Today's by the clock, older ones with the day."""
    now = time.time()
    same_day = time.strftime("%F", time.localtime(moment)) == time.strftime("%F", time.localtime(now))
    return time.strftime("%H:%M" if same_day else "%d %b %H:%M", time.localtime(moment))


def choose(terminal: Terminal, places: Places) -> str:
    """Let the user choose a place with the arrow keys: its name. KeyboardInterrupt if they would rather not."""
    from interpreter.frontends.terminal.lists import Picker

    picker = Picker("Go back to before what?", places.searched(), places.drawn)
    return places.name(places.places[picker.choose(terminal.tty)])


def listed(terminal: Terminal, places: Places) -> None:
    """The same to look at."""
    width = terminal.tty.size()[0] - 1
    rows = [places.drawn(number, width).rstrip() for number in range(len(places.places))]
    terminal.display.line("\n".join([*rows, "%rewind NUMBER goes there: to the moment before that."]))


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}" if count else ""
