"""What an undo would do, and what it has done, in words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from interpreter.frontends.terminal.render.files import Touch, grouped
from interpreter.runtimes.states import Restored

if TYPE_CHECKING:
    from interpreter.messages import Message
    from interpreter.session.checkpoints import Outlook, Undone
    from interpreter.workspace import Plan, Step

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
    if files := _count(undone):
        parts.append(f"{files} file{'' if files == 1 else 's'}")
    elif undone.restored:
        parts.append("folders")
    if names := [name for name, how in undone.variables.items() if isinstance(how, Restored)]:
        parts.append(f"the variables of {' and '.join(names)}")
    if not parts:
        return "Nothing was to be restored."
    return f"{'Taken back' if outlook.back else 'Done again'}: {', '.join(parts)}."


def _count(undone: Undone) -> int:
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
