"""What blocks did to files, and what an undo would do to them, in few words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from interpreter.frontends.terminal.render.ansi import (
    cells,
    clip,
    visible,
)

HINT, _SHORT_HINT = " (%undo takes it back)", " (%undo)"
_NAMES = (9, 4, 3, 2, 1)  # so many of each kind are named, as far as there is room
_LONGEST = 40
_KINDS = ("created", "changed", "deleted", "renamed", "mode", "touched", "not restorable")
_VERBS = {"mode": "mode of", "not restorable": "not restorable:"}
_COMING, _GOING = ("created", "brought back", "created again"), ("deleted", "deleted again")


class Touch(NamedTuple):
    """One path, and what happens to it."""

    what: str
    path: str
    is_folder: bool = False
    source: str | None = None


class Group(NamedTuple):
    """One path, or a folder with so many paths in it to which the same happens."""

    what: str
    name: str
    inside: int = 0

    def __str__(self) -> str:
        return f"{self.name} ({self.inside})" if self.inside else self.name


def grouped(touches: Iterable[Touch]) -> list[Group]:
    """Each with its name; what happens to a whole folder is one, and so is what happens in a `.git` folder."""
    listed = _moved_folders(sorted(touches, key=lambda touch: touch.path))
    folders = {(touch.what, touch.path) for touch in listed if touch.is_folder and touch.what in _COMING + _GOING}
    found: dict[tuple[str, str], int] = {}
    for touch in listed:
        what, name, inside = _place(touch, folders)
        found[what, name] = found.get((what, name), 0) + inside
    return [Group(what, name, inside) for (what, name), inside in found.items()]


def _moved_folders(touches: list[Touch]) -> list[Touch]:
    """A folder that was renamed is not one that came and one that went: each file in it tells of the folder."""
    came = {touch.path for touch in touches if touch.is_folder and touch.what in _COMING}
    gone = {touch.path for touch in touches if touch.is_folder and touch.what in _GOING}
    heads = {touch: _heads(touch) for touch in touches if touch.source}
    moved = {touch: (old, new) for touch, (old, new) in heads.items() if old in gone and new in came}
    old, new = ({f"{each[side]}/" for each in moved.values()} for side in (0, 1))
    rest = [touch for touch in touches if not (touch.is_folder and f"{touch.path}/".startswith((*old, *new)))]
    return [_of_folder(touch, *moved[touch]) if touch in moved else touch for touch in rest]


def _heads(touch: Touch) -> tuple[str, str]:
    """Where the ways to a file's old place and to its new one part."""
    old, new = str(touch.source).split("/"), touch.path.split("/")
    while old and new and old[-1] == new[-1]:
        del old[-1], new[-1]
    return "/".join(old), "/".join(new)


def _of_folder(touch: Touch, old: str, new: str) -> Touch:
    return Touch(touch.what, new, is_folder=True, source=f"{old}/")


def _place(touch: Touch, folders: set[tuple[str, str]]) -> tuple[str, str, int]:
    from interpreter.workspace.items import repository_of

    parts = touch.path.split("/")
    above = ["/".join(parts[:depth]) for depth in range(1, len(parts))]
    whole = next((folder for folder in above if (touch.what, folder) in folders), None)
    git = repository_of(touch.path)
    if git in above and (whole is None or len(whole) > len(git)):
        return "changed", _shown(f"{git}/"), 0
    if whole is not None:
        return touch.what, _shown(whole + "/"), not touch.is_folder
    name = _shown(touch.path + "/" * touch.is_folder)
    if touch.source is None:
        return touch.what, name, 0
    return touch.what, f"{_shown(touch.source)} to {name}", touch.is_folder


def _shown(path: str) -> str:
    name = visible(path.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    return name if len(name) <= _LONGEST else "…" + name[1 - _LONGEST :]


# -- after a block -----------------------------------------------------------------------------------------------


def line(content: dict[str, Any], width: int, dot: str = "·", hint: str = HINT) -> str:
    """What a block changed, on one line of at most this width; empty if that is nothing."""
    groups = grouped(_touches(content.get("changed") or ()))
    lost = [Group("not restorable", _shown(str(each[0]))) for each in content.get("not_covered") or ()]
    if not groups and not lost:
        return ""
    gone = {str(each[0]) for each in content.get("not_covered") or ()}
    if all(each["path"] in gone for each in content.get("changed") or ()):
        hint = ""  # nothing of it comes back
    drafts = list(_drafts([*groups, *lost], dot))
    ended = [draft + end for end in (hint, _SHORT_HINT) for draft in drafts[: len(_NAMES)]] if hint else []
    return next((text for text in [*ended, *drafts] if cells(text) <= width), clip(drafts[-1], width))


def _touches(changed: Sequence[dict[str, Any]]) -> Iterator[Touch]:
    for each in changed:
        stands = each.get("after") or each.get("before") or {}
        yield Touch(each["what"], each["path"], stands.get("kind") == "folder", each.get("from"))


def _drafts(groups: list[Group], dot: str) -> Iterator[str]:
    """The line, shorter and shorter: fewer names of each kind, then none of the kind that takes most room."""
    kinds: dict[str, list[str]] = {}
    for group in sorted(groups, key=lambda group: _KINDS.index(group.what)):
        kinds.setdefault(group.what, []).append(str(group))
    for most in _NAMES:
        parts = {what: f"{_VERBS.get(what, what)} {_some(names, most)}" for what, names in kinds.items()}
        yield _joined(parts, dot)
    for what in sorted(kinds, key=lambda what: len(parts[what]), reverse=True):
        parts[what] = f"{len(kinds[what])} {what}"
        yield _joined(parts, dot)
    yield f"files: {len(groups)} changes"


def _joined(parts: dict[str, str], dot: str) -> str:
    return f"files: {f' {dot} '.join(parts.values())}"


def _some(names: list[str], most: int) -> str:
    more = [f"{len(names) - most} more"] if len(names) > most else []
    return ", ".join(names[:most] + more)
