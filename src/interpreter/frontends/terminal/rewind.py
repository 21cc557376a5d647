"""The points that a conversation can return to: a list to look at or to choose from."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from interpreter.frontends.terminal.own_blocks import SIGNS
from interpreter.frontends.terminal.render.ansi import (
    cells,
    clip,
    visible,
)
from interpreter.workspace.items import repository_of

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.session.checkpoints import Point, Timeline

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
    from interpreter.frontends.terminal.picker import Picker

    picker = Picker("Go back to before what?", places.searched(), places.drawn)
    return places.name(places.places[picker.choose(terminal.tty)])


def listed(terminal: Terminal, places: Places) -> None:
    """The same to look at."""
    width = terminal.tty.size()[0] - 1
    rows = [places.drawn(number, width).rstrip() for number in range(len(places.places))]
    terminal.display.line("\n".join([*rows, "%rewind NUMBER goes there: to the moment before that."]))


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}" if count else ""
