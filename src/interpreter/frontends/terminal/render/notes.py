"""The short lines that we add to a conversation: how a block ended, what it did to files, notices, differences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from interpreter.console_text import PROSE, counted, visible, visible_line
from interpreter.frontends.terminal.render.ansi import cells, clip
from interpreter.leaves import leaves

if TYPE_CHECKING:
    from interpreter.frontends.terminal.render.theme import Theme

NO_OUTPUT = "No output."
_ATTACHMENTS = {"image": "Image", "html": "Page", "image/svg+xml": "Drawing", "application/javascript": "Script"}
_LONG_RUN = 3.0  # seconds; the end of a longer block says how long it took
_MAX_FINDINGS = 12


def saved_to(kind: str, path: str) -> str:
    """Write a line with the path of a file that only another program can show."""
    return f"{_ATTACHMENTS.get(kind, 'Shown')}: {path}"


def is_mere_name(text: str) -> bool:
    """Check whether a display's text form says nothing, such as `<IPython.core.display.HTML object>`."""
    return re.fullmatch(r"<[\w.]+ object(?: at 0x[0-9a-f]+)?>\s*", text) is not None


def card(chunk: Mapping[str, Any]) -> str:
    """Write the lines above an approval question: what its code shows it would do, and which rule asks."""
    lines = list(chunk.get("effects", ()))
    if chunk.get("reason"):
        lines.append(f"asked: {chunk['reason']}")
    if chunk.get("widening"):  # paths are resolved: the block's text may not show where they lead
        lines.append(f"wants: {', '.join(map(visible_line, chunk['widening']))}, which the sandbox does not allow")
    return visible("\n".join(filter(None, lines)))


def ending(chunk: dict[str, Any], elapsed: float, silent: bool, explained: bool) -> str:
    """Say how a block ended, if its output does not show it. `explained`: the output of a failed block says why."""
    took = f" after {duration(elapsed)}"
    code = chunk.get("exit_code")
    match chunk.get("ended", "done"):
        case "interrupted":
            return f"Interrupted{took}."
        case "timed_out":
            return f"Stopped at the time limit{took}."
        case "died":
            return f"The session died{took}." if silent else ""  # else its output says how
        case "background":
            return "Moved to the background."
    if code == 1 and chunk.get("ended") == "error" and not silent and explained:
        return ""  # the traceback says it
    if code:
        return f"Exit code {code}{took}." if elapsed >= _LONG_RUN else f"Exit code {code}."
    if elapsed >= _LONG_RUN:
        return f"Done{took}."
    return NO_OUTPUT if silent and chunk.get("ended", "done") == "done" else ""


def duration(elapsed: float, digits: int = 1) -> str:
    if elapsed < 60:
        return f"{elapsed:.{digits}f} s" if digits else f"{int(elapsed)} s"
    minutes, seconds = divmod(int(elapsed), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s"
    return f"{minutes // 60} h {minutes % 60} min"


def decision(kind: str, content: dict[str, Any]) -> str:
    """Write a line for a decision that the user did not make. A block's output says why it did not run."""
    reason = content.get("reason") or ""
    if kind == "denied" or content.get("by") == "user" or not reason:
        return ""
    return f"{kind.capitalize()}: {reason}"


def status_note(kind: str, content: dict[str, Any]) -> str:
    """Write a status chunk as a line; empty if its kind has none."""
    match kind:
        case "fallback":
            return f"{content.get('from')}: {retry_reason(content)}. {content.get('to')} answers instead."
        case "compacted":
            counts = [(content.get("messages"), "message"), (content.get("images"), "image")]
            what = " and ".join(counted(n, f"older {name}") for n, name in counts if n)
            return f"The conversation is long, so the model gets a short summary of {what}."
        case "notice":
            return str(content.get("text", ""))
        case "redacted":
            what = ", ".join(content.get("what") or ())
            return f"Redacted in the output before sending it to the model: {what}. (redact_secrets)"
        case "scan":
            return _scan_note(content)
        case "control":
            stop = content.get("stop")
            to_stop = f"{stop} or the mouse in a corner stops it." if stop else "Ctrl-C stops it."
            return f"The model is using this screen. {to_stop}"
        case "call" if content.get("acts"):  # code did or tried something on the screen
            what, outcome = str(content.get("told", "")).removeprefix("computer."), content.get("outcome")
            return what if outcome == "ok" else f"{what}: {outcome}"
        case "stopped":
            return f"Stopped by {content.get('by')}. The model no longer uses the screen."
    return ""


def retry_reason(content: dict[str, Any]) -> str:
    return str(content.get("reason") or "the server is busy").rstrip(".")


def _scan_note(content: dict[str, Any]) -> str:
    from interpreter.policy.scan import Finding

    findings, tools = content.get("findings") or [], " and ".join(content.get("tools") or ())
    lines = [f"The scan found {counted(len(findings), 'problem')}:"] if findings else []
    lines += [f"  {Finding(**finding)}" for finding in findings[:_MAX_FINDINGS]]
    if len(findings) > _MAX_FINDINGS:
        lines.append(f"  and {len(findings) - _MAX_FINDINGS} more")
    if content.get("unseen"):
        lines.append(f"Not scanned: no installed scanner supports {'all of ' if tools else ''}this code.")
    elif not findings:
        lines.append(f"Scanned with {tools}: nothing found." if tools else "")
    return "\n".join(filter(None, [*lines, content.get("notice")]))


# -- files -------------------------------------------------------------------------------------------------------

HINT, _SHORT_HINT, _HINT_BESIDE_GIT = " (%undo reverts it)", " (%undo)", " (%undo reverts all but .git)"
_NAMES = (9, 4, 3, 2, 1)  # how many paths of each kind are named, if there is room
_MAX_PATH_LENGTH = 40
_CHANGES = ("created", "changed", "deleted", "renamed", "mode", "touched", "not restorable")
_VERBS = {"mode": "mode of", "not restorable": "not restorable:"}
_CREATED, _DELETED = ("created", "brought back", "created again"), ("deleted", "deleted again")


class Touch(NamedTuple):
    what: str
    path: str
    is_folder: bool = False
    source: str | None = None  # the old path of a renamed file


class Group(NamedTuple):
    """One path, or a folder with the number of paths in it that changed in the same way."""

    what: str
    name: str
    inside: int = 0

    def __str__(self) -> str:
        return f"{self.name} ({self.inside})" if self.inside else self.name


def grouped(touches: Iterable[Touch]) -> list[Group]:
    """Group changes by name. Those to a whole folder are one group, and so are those inside a `.git` folder."""
    listed = _moved_folders(sorted(touches, key=lambda touch: touch.path))
    folders = {(touch.what, touch.path) for touch in listed if touch.is_folder and touch.what in _CREATED + _DELETED}
    counts: dict[tuple[str, str], int] = {}
    for touch in listed:
        what, name, inside = _group_of(touch, folders)
        counts[what, name] = counts.get((what, name), 0) + inside
    return [Group(what, name, inside) for (what, name), inside in counts.items()]


def _moved_folders(touches: list[Touch]) -> list[Touch]:
    """Turn a folder that was deleted here and created there into one rename, with the renames of its files."""
    created = {touch.path for touch in touches if touch.is_folder and touch.what in _CREATED}
    deleted = {touch.path for touch in touches if touch.is_folder and touch.what in _DELETED}
    moved: dict[Touch, tuple[str, str]] = {}
    for touch in touches:
        old, new = (touch.source or "").split("/"), touch.path.split("/")
        while old and new and old[-1] == new[-1]:
            del old[-1], new[-1]
        if touch.source and "/".join(old) in deleted and "/".join(new) in created:
            moved[touch] = "/".join(old), "/".join(new)
    inside = tuple(f"{folder}/" for pair in moved.values() for folder in pair)
    rest = [touch for touch in touches if not (touch.is_folder and f"{touch.path}/".startswith(inside))]
    return [
        Touch(touch.what, moved[touch][1], is_folder=True, source=f"{moved[touch][0]}/") if touch in moved else touch
        for touch in rest
    ]


def _group_of(touch: Touch, folders: set[tuple[str, str]]) -> tuple[str, str, int]:
    """Return what happened, to which name, and whether the change is one inside that name."""
    from interpreter.workspace.tree import repository_of

    parts = touch.path.split("/")
    above = ["/".join(parts[:depth]) for depth in range(1, len(parts))]
    whole = next((folder for folder in above if (touch.what, folder) in folders), None)
    git = repository_of(touch.path)
    if git in above and (whole is None or len(whole) > len(git)):
        return "changed", _shown_path(f"{git}/"), 0
    if whole is not None:
        return touch.what, _shown_path(whole + "/"), not touch.is_folder
    name = _shown_path(touch.path + "/" * touch.is_folder)
    if touch.source is None:
        return touch.what, name, 0
    return touch.what, f"{_shown_path(touch.source)} to {name}", touch.is_folder


def _shown_path(path: str) -> str:
    name = visible_line(path.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    return name if len(name) <= _MAX_PATH_LENGTH else "…" + name[1 - _MAX_PATH_LENGTH :]


def files_note(content: dict[str, Any], width: int, dot: str = "·", hint: str = HINT) -> str:
    """Say what a block did to files, on one line of at most this width; empty if that is nothing."""
    changed = content.get("changed") or ()
    lost = [str(each[0]) for each in content.get("not_covered") or ()]
    touches = []
    for each in changed:
        item = each.get("after") or each.get("before") or {}
        touches.append(Touch(each["what"], each["path"], item.get("kind") == "folder", each.get("from")))
    groups = grouped(touches) + [Group("not restorable", _shown_path(path)) for path in lost]
    if not groups:
        return ""
    left = _left_to_git(changed)
    if left.union(lost).issuperset(each["path"] for each in changed):
        hint = ""  # undo can't restore these
    hints = (hint, _SHORT_HINT) if not left else (_HINT_BESIDE_GIT,)
    tables = {_shown_path(each["path"]): visible_line(str(each["data"])) for each in changed if each.get("data")}
    described = [
        group._replace(name=f"{group.name} ({tables[group.name]})") if group.name in tables else group
        for group in groups
    ]
    best, drafts = next(_drafts(described, dot)), list(_drafts(groups, dot))
    ends = hints if hint else ("",)
    ended = [best + end for end in ends if tables]
    ended += [draft + end for end in ends for draft in drafts[: len(_NAMES)]]
    return next((text for text in [*ended, *drafts] if cells(text) <= width), clip(drafts[-1], width))


def _left_to_git(changed: Sequence[dict[str, Any]]) -> set[str]:
    """Collect the paths in `.git` that undo leaves alone, unless a leaf restores them.

    If the block made or removed the folder as a whole, undo restores it anyway.
    """
    if any(leaf.undo for leaf in leaves()):
        return set()
    from interpreter.workspace.tree import repository_of

    whole = {each["path"] for each in changed if each["what"] in _CREATED + _DELETED}
    return {each["path"] for each in changed if repository_of(each["path"]) not in {None, *whole}}


def _drafts(groups: list[Group], dot: str) -> Iterator[str]:
    """Yield ever shorter lines: fewer names of each kind, then none of the kind that takes the most room."""
    kinds: dict[str, list[str]] = {}
    for group in sorted(groups, key=lambda group: _CHANGES.index(group.what)):
        kinds.setdefault(group.what, []).append(str(group))
    parts: dict[str, str] = {}
    for most in _NAMES:
        for what, names in kinds.items():
            more = [f"{len(names) - most} more"] if len(names) > most else []
            parts[what] = f"{_VERBS.get(what, what)} {', '.join(names[:most] + more)}"
        yield f"files: {f' {dot} '.join(parts.values())}"
    for what in sorted(kinds, key=lambda what: len(parts[what]), reverse=True):
        parts[what] = f"{len(kinds[what])} {what}"
        yield f"files: {f' {dot} '.join(parts.values())}"
    yield f"files: {len(groups)} changes"


# -- differences -------------------------------------------------------------------------------------------------

_DIFF_STYLES = {"+": "string", "-": "error", "@": "number", "\\": "hint"}
CARD_ROWS = 24  # of a difference that is shown with a question
_MORE_ROWS = "{} more lines: d shows them"
_SIDE_BY_SIDE = 110  # columns from which both sides fit
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)")
_DIFF_HEADS = ("--- ", "+++ ", "rename ", "Binary files ")


def diff_rows(text: str, theme: Theme | None, most: int | None = None) -> tuple[list[str], int]:
    """Colour the first lines of a diff, if there is a theme, and count the lines left out."""
    lines = [visible(line, PROSE) for line in text.removesuffix("\n").split("\n")]
    shown = lines[:most]
    if theme:
        for number, line in enumerate(shown):
            is_head = line.startswith(_DIFF_HEADS) and number < 4
            shown[number] = theme.paint(line, "column" if is_head else _DIFF_STYLES.get(line[:1], ""))
    return shown, len(lines) - len(shown)


def card_diff(text: str, width: int, theme: Theme | None = None, most: int | None = CARD_ROWS) -> list[str]:
    """Draw a diff on a card, side by side if there is room."""
    text = visible(text.removesuffix("\n"), PROSE)
    if not text:
        return []
    rows = list(_side_by_side(text, width, theme) if width >= _SIDE_BY_SIDE else _one_column(text, width, theme))
    left = len(rows) - most if most is not None else 0
    return rows if left <= 1 else [*rows[:most], _MORE_ROWS.format(left)]


def _files_of(text: str) -> Iterator[tuple[str, list[str]]]:
    """Split a difference into files: each with a line about it, and the lines of its changes."""
    lines = text.split("\n")
    heads = [at for at, line in enumerate(lines[:-1]) if line.startswith("--- ") and lines[at + 1].startswith("+++ ")]
    if heads[:1] != [0]:
        yield "", lines[: heads[0] if heads else None]  # of tables, modes, binary files
    for at, end in zip(heads, [*heads[1:], len(lines)], strict=False):
        body = [line for line in lines[at + 2 : end] if line]
        counts = [sum(line.startswith(sign) for line in body) for sign in "+-"]
        names = [line[4:].partition("\t")[0] for line in lines[at : at + 2]]
        name = (names[1] if names[1] != "/dev/null" else names[0])[2:]
        what = {names[0]: "new, ", names[1]: "deleted, "}.get("/dev/null", "")
        yield f"{name} ({what}+{counts[0]} -{counts[1]})", body


def _painted(text: str, style: str, theme: Theme | None) -> str:
    return theme.paint(text, style) if theme is not None and style else text


def _one_column(text: str, width: int, theme: Theme | None) -> Iterator[str]:
    for head, lines in _files_of(text):
        if head:
            yield _painted(clip(head, width - 1), "column", theme)
        for line in lines:
            yield _painted(clip(line, width - 1), _DIFF_STYLES.get(line[:1], ""), theme)


def _side_by_side(text: str, width: int, theme: Theme | None) -> Iterator[str]:
    """Draw what was on the left and what would be on the right, with the numbers of their lines."""
    half = (width - 4) // 2

    def cell(sign: str, number: int, line: str | None) -> str:
        if line is None:
            return " " * half
        shown = clip(f"{number:>4} {sign} {line.expandtabs(4)}", half)
        return _painted(shown + " " * (half - cells(shown)), _DIFF_STYLES.get(sign, ""), theme)

    for head, lines in _files_of(text):
        if head:
            yield _painted(clip(head, width - 1), "column", theme)
        old = new = 0
        removed: list[str] = []
        added: list[str] = []
        for line in [*lines, "@@"] if head else ():
            if line[:1] == "-":
                removed.append(line[1:])
                continue
            if line[:1] == "+":
                added.append(line[1:])
                continue
            for at in range(max(len(removed), len(added))):
                before, after = (side[at] if at < len(side) else None for side in (removed, added))
                yield f"{cell('-', old + at, before)} | {cell('+', new + at, after)}".rstrip()
            old, new = old + len(removed), new + len(added)
            removed, added = [], []
            if match := _HUNK.match(line):
                if old:
                    yield _painted("  ...", "hint", theme)
                old, new = int(match[1]), int(match[2])
            elif line[:1] == " ":
                yield f"{cell(' ', old, line[1:])} | {cell(' ', new, line[1:])}".rstrip()
                old, new = old + 1, new + 1
        for line in () if head else lines:
            yield _painted(clip(line, width - 1), _DIFF_STYLES.get(line[:1], ""), theme)
