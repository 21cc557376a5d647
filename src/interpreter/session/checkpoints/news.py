"""What the model cannot know: what blocks did that it sees in the conversation, taken back without that."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from interpreter.messages import Message
from interpreter.session.checkpoints.conversation import last_beginning
from interpreter.session.checkpoints.point import Part, Point

if TYPE_CHECKING:
    from interpreter.workspace import FileRecord

_NAMED = 10  # files


def news(points: list[Point], places: dict[Part, int], record: FileRecord | None) -> str:
    """The same in words, empty if there is none."""
    here = places["conversation"]
    files = sorted(_changed(points[places["files"] : here], record))
    languages = sorted(_rewound(points[places["variables"] : here]))
    said = []
    if files:
        more = f" and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
        named = ", ".join(files[:_NAMED])
        said.append(f"what {_blocks(points, places['files'], here)} did to files ({named}{more})")
    if languages:
        said.append(f"the {' and '.join(languages)} variables of {_blocks(points, places['variables'], here)}")
    if not said:
        return ""
    return f"The user has taken back {', and '.join(said)}: they are as they were before. The conversation stays."


def give(messages: list[Message], words: str) -> None:
    """Say it before what the user has just said."""
    at = last_beginning(messages)
    if any(message.get("role") != "user" for message in messages[at:]):
        at = len(messages)
    messages.insert(at, {"role": "computer", "type": "message", "content": words})


def _blocks(points: list[Point], start: int, end: int) -> str:
    count = sum(point.kind != "turn" for point in points[start:end])
    return "the last block" if count == 1 else f"the last {count} blocks"


def _changed(points: Iterable[Point], record: FileRecord | None) -> set[str]:
    if record is None:
        return set()
    from interpreter.workspace.items import repository_of

    found = (record.changes(point.id) for point in points if point.kind != "turn")
    return {repository_of(path) or path for changes in found if changes is not None for path in changes.pairs}


def _rewound(points: Iterable[Point]) -> set[str]:
    """The languages of these blocks that have a return."""
    names = ((point.language or "", point.mark.states) for point in points if point.mark is not None)
    return {known for name, states in names for known in states if known.lower() == name.lower()}
