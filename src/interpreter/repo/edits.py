"""Change text files so that exactly the meant lines change: a text that occurs once, anchors of lines, or a patch.

Every byte outside the replaced lines stays as it is, line ends included.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

from interpreter.computer_api.files.work import texts

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|\Z)")
_ANCHOR = r"(\d+):([0-9a-f]{3})"
_ANCHORS = re.compile(rf"{_ANCHOR}(?:\.\.{_ANCHOR})?")
_INDENT = re.compile(r"[ \t]*")
_CONTEXT = 2  # lines shown around a place
_PLACES = 4  # shown in a refusal
_HEAD = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")
READ_IT = "Nothing was changed. Read the file again and give a text that occurs once."


class Line(NamedTuple):
    text: str
    end: str  # as it is in the file; empty at the end of a file without one

    @property
    def indent(self) -> str:
        return str(_INDENT.match(self.text)[0])  # type: ignore[index]


def lines_of(text: str) -> list[Line]:
    """Split at every line end, whichever it is."""
    lines = []
    for match in _LINE.finditer(text):
        if whole := match[0]:
            content = whole.rstrip("\r\n")
            lines.append(Line(content, whole[len(content) :]))
    return lines


def anchor(number: int, text: str) -> str:
    """Return the name of a line: its number, and a short hash of its text, which shows a later change."""
    return f"{number}:{blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=2).hexdigest()[:3]}"


# -- a text --------------------------------------------------------------------------------------------------------


def replaced(text: str, old: str, new: str, path: str) -> tuple[str, dict[str, Any]]:
    """Replace a text that occurs once; return the new text, and where and how it was found.

    ValueError with the nearest lines and their numbers if it does not occur, or occurs more than once.
    """
    if not old.strip():
        raise ValueError("`old` is empty. Give the text to replace, or an anchor of read(anchors=True).")
    lines = lines_of(text)
    if match := _ANCHORS.fullmatch(old.strip()):
        first, last = _anchored(lines, match, path)
        return _with_lines(lines, first, last, new), {"line": first + 1}
    if not re.search(r"[\r\n]", old) and (span := _inside_line(lines, old, path)) is not None:
        at, start = span
        line = lines[at]
        usual = line.end or next((each.end for each in lines if each.end), "\n")
        inserted = re.sub(r"\r\n|\r|\n", usual, new)  # what was one line may become several, which end like it
        lines[at] = Line(line.text[:start] + inserted + line.text[start + len(old) :], line.end)
        return _joined(lines), {"line": at + 1}
    wanted = [each.text for each in lines_of(old)]
    at, note = find_lines(lines, wanted, path)
    if note:
        new = _indented_like(new, wanted, lines[at : at + len(wanted)])
    return _with_lines(lines, at, at + len(wanted), new), {"line": at + 1, **({"note": note} if note else {})}


def _inside_line(lines: Sequence[Line], old: str, path: str) -> tuple[int, int] | None:
    """Find a text of one line where it is, as (line, column); None if it occurs only with other white space."""
    places = [
        (number, match.start())
        for number, line in enumerate(lines)
        for match in re.finditer(f"(?={re.escape(old)})", line.text)
    ]
    bare = old.lstrip()
    if len(places) == 1 and places[0][1] == 0 and bare != old:  # elsewhere it may only be indented otherwise
        alike = [(at, 0) for at, line in enumerate(lines) if line.text.lstrip().startswith(bare)]
        places = alike if len(alike) > 1 else places
    if len(places) > 1:
        raise ValueError(_ambiguous(lines, [(at, at + 1) for at, _ in places], path))
    return places[0] if places else None


def find_lines(lines: Sequence[Line], wanted: Sequence[str], path: str, start: int = 0) -> tuple[int, str]:
    """Find whole lines that occur once, indentation aside, and what to say if their white space is different."""
    forms: tuple[tuple[Callable[[str], str], str], ...] = (
        (str.lstrip, "The indentation was different: the new text got that of the file."),
        (lambda text: " ".join(text.split()), "The white space was different; everything else was the same."),
    )
    for form, note in forms:
        sought, present = [form(text) for text in wanted], [form(line.text) for line in lines]
        places = [at for at in range(start, len(lines) - len(wanted) + 1) if present[at : at + len(wanted)] == sought]
        if len(places) > 1:
            raise ValueError(_ambiguous(lines, [(at, at + len(wanted)) for at in places], path))
        if places:
            is_same = all(line.text == text for line, text in zip(lines[places[0] :], wanted, strict=False))
            return places[0], "" if is_same else note
    raise ValueError(_missing(lines, wanted, path))


def _indented_like(new: str, wanted: Sequence[str], present: Sequence[Line]) -> str:
    """Give a text the indentation that the file has where the wanted lines had theirs."""
    pairs = {str(_INDENT.match(text)[0]): line.indent for text, line in zip(wanted, present, strict=True)}  # type: ignore[index]
    first = next(iter(pairs.items()), ("", ""))

    def indented(text: str) -> str:
        own = str(_INDENT.match(text)[0])  # type: ignore[index]
        if not text.strip():
            return text
        if own in pairs:
            return pairs[own] + text[len(own) :]
        if own.startswith(first[0]):
            return first[1] + text[len(first[0]) :]
        return text

    return "\n".join(indented(line) for line in new.split("\n"))


def _with_lines(lines: Sequence[Line], first: int, last: int, new: str) -> str:
    """Replace lines by a text, whose lines get the ends of those that they replace."""
    taken = lines[first:last]
    usual = next((line.end for line in (*reversed(taken), *lines) if line.end), "\n")
    fresh = [Line(line.text, taken[at].end if at < len(taken) else usual) for at, line in enumerate(lines_of(new))]
    if fresh:
        # The line before the last of the file has an end, the last one only if it had one.
        fresh = [Line(line.text, line.end or usual) for line in fresh]
        fresh[-1] = Line(fresh[-1].text, taken[-1].end if taken and last == len(lines) else fresh[-1].end)
    return _joined([*lines[:first], *fresh, *lines[last:]])


def _joined(lines: Sequence[Line]) -> str:
    return "".join(line.text + line.end for line in lines)


def _anchored(lines: Sequence[Line], match: re.Match[str], path: str) -> tuple[int, int]:
    """Return the lines that anchors name; ValueError if one of them has changed since."""
    names = [match.group(1, 2), match.group(3, 4)] if match[3] else [match.group(1, 2)] * 2
    numbers = [int(number) for number, _ in names]
    for number, mark in names:
        at = int(number) - 1
        if not 0 <= at < len(lines) or anchor(at + 1, lines[at].text) != f"{at + 1}:{mark}":
            near = _numbered(lines, max(0, at - _CONTEXT), at + _CONTEXT + 1, with_anchors=True)
            problem = f"{path} has changed: line {number} is not the one with the anchor {number}:{mark}."
            raise ValueError(f"{problem} {READ_IT}\n{near}")
    if numbers[1] < numbers[0]:
        raise ValueError(f"The anchors are in the wrong order: {match[0]}.")
    return numbers[0] - 1, numbers[1]


# -- what a refusal shows ------------------------------------------------------------------------------------------


def _numbered(lines: Sequence[Line], first: int, last: int, with_anchors: bool = False) -> str:
    rows = list(enumerate(lines, 1))[max(0, first) : last]
    width = len(str(rows[-1][0])) if rows else 1
    if with_anchors:
        return "\n".join(f"{anchor(number, line.text)}  {line.text}" for number, line in rows)
    return "\n".join(f"{number:>{width}}  {line.text}" for number, line in rows)


def _ambiguous(lines: Sequence[Line], places: Sequence[tuple[int, int]], path: str) -> str:
    numbers = ", ".join(str(first + 1) for first, _ in places)
    shown = "\n...\n".join(_numbered(lines, first - 1, last + 1) for first, last in places[:_PLACES])
    return (
        f"`old` occurs {len(places)} times in {path}, indentation aside (lines {numbers}). {READ_IT} "
        f"Include a neighbouring line that tells the places apart:\n{shown}"
    )


def _missing(lines: Sequence[Line], wanted: Sequence[str], path: str) -> str:
    if not lines:
        return f"{path} is empty. {READ_IT}"
    size, sought = len(wanted), [text.strip() for text in wanted]
    present = [line.text.strip() for line in lines]
    scores = []
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2("\n".join(sought))
    exact = set(sought) - {""}
    for at in range(max(1, len(lines) - size + 1)):
        window = present[at : at + size]
        matcher.set_seq1("\n".join(window))
        if exact & set(window) or (matcher.real_quick_ratio() > 0.5 and matcher.quick_ratio() > 0.5):
            scores.append((matcher.ratio(), -at))
    best = sorted(scores, reverse=True)[:1] or [(0.0, 0)]
    shown = [_numbered(lines, -at - _CONTEXT, -at + size + _CONTEXT) for _, at in best]
    begins = "as whole lines " if size > 1 else ""
    return f"`old` does not occur {begins}in {path}. {READ_IT} The nearest lines:\n" + "\n...\n".join(shown)


# -- a patch -------------------------------------------------------------------------------------------------------


@dataclass
class Part:
    """The part of a patch that changes one file."""

    verb: str
    path: str
    target: str = ""  # the new name, if it moves
    hunks: list[tuple[list[str], list[str]]] = field(default_factory=list)  # (what leads to it, its signed lines)

    @property
    def added(self) -> str:
        return "".join(f"{line[1:]}\n" for _, lines in self.hunks for line in lines)


def parse_patch(text: str) -> list[Part]:
    """Read a patch in the grammar of Codex; ValueError says what is wrong with it."""
    lines = text.strip("\n").split("\n")
    if lines[0].strip() != "*** Begin Patch" or lines[-1].strip() != "*** End Patch":
        raise ValueError("A patch begins with `*** Begin Patch` and ends with `*** End Patch`.")
    parts: list[Part] = []
    for number, line in enumerate(lines[1:-1], 2):
        line = line.removesuffix("\r")
        if head := _HEAD.fullmatch(line.rstrip()):
            parts.append(Part(head[1], head[2].strip()))
        elif not parts:
            raise ValueError(f"Line {number} of the patch belongs to no file: {line}")
        elif line.startswith("*** Move to: "):
            parts[-1].target = line.removeprefix("*** Move to: ").strip()
        elif line.startswith("*** End of File"):
            continue
        elif line.startswith("@@"):
            hunks = parts[-1].hunks
            if not hunks or hunks[-1][1]:
                hunks.append(([], []))
            hunks[-1][0].extend(filter(None, [line.removeprefix("@@").strip()]))
        elif line[:1] in ("+", "-", " ", ""):
            if not parts[-1].hunks:
                parts[-1].hunks.append(([], []))
            parts[-1].hunks[-1][1].append(line or " ")
        else:
            raise ValueError(f"Line {number} of the patch begins with none of `+`, `-`, space and `@@`: {line}")
    if not parts:
        raise ValueError("The patch names no file: use `*** Update File: PATH`, Add or Delete.")
    return parts


def patched(text: str, part: Part) -> tuple[str, list[str]]:
    """Apply the hunks of one file in their order; return the new text, and what to say about white space."""
    lines, at, notes = lines_of(text), 0, list[str]()
    for leads, signed in part.hunks:
        for lead in leads:
            found = next((i for i in range(at, len(lines)) if lines[i].text.strip() == lead), None)
            if found is None:
                found = next((i for i in range(at, len(lines)) if lead in lines[i].text), None)
            if found is None:
                raise ValueError(_missing(lines, [lead], part.path))
            at = found
        wanted = [line[1:] for line in signed if line[0] != "+"]
        if wanted:
            try:
                place, note = find_lines(lines, wanted, part.path, at)
            except ValueError:
                place = next((i for i in range(at, len(lines)) if _is_at(lines, i, wanted)), -1) if leads else -1
                note = ""
                if place < 0:
                    raise
        else:
            place, note = (at if leads else len(lines)), ""
        notes += [note] if note else []
        lines[place : place + len(wanted)], at = _hunk_lines(lines, place, signed, bool(note)), place
        at += sum(line[0] != "-" for line in signed)
    return _joined(lines), list(dict.fromkeys(notes))


def _is_at(lines: Sequence[Line], at: int, wanted: Sequence[str]) -> bool:
    return [line.text for line in lines[at : at + len(wanted)]] == list(wanted)


def _hunk_lines(lines: list[Line], place: int, signed: Sequence[str], is_other_space: bool) -> list[Line]:
    """Return a hunk's result: kept lines as they are in the file, new lines with the line endings around them."""
    wanted = [line[1:] for line in signed if line[0] != "+"]
    taken = lines[place : place + len(wanted)]
    usual = next((line.end for line in (*taken, *lines) if line.end), "\n")
    fresh: list[Line] = []
    kept = iter(taken)
    for line in signed:
        if line[0] == "+":
            text = _indented_like(line[1:], wanted, taken) if is_other_space else line[1:]
            fresh.append(Line(text, usual))
        elif line[0] == " ":
            fresh.append(next(kept))
        else:
            next(kept)
    if lines and place + len(wanted) == len(lines) and not lines[-1].end:
        if not wanted:  # added behind a last line without an end
            lines[-1] = Line(lines[-1].text, usual)
        if fresh:
            fresh = [*(Line(each.text, each.end or usual) for each in fresh[:-1]), Line(fresh[-1].text, "")]
    return fresh


# -- files ---------------------------------------------------------------------------------------------------------


class Edit(NamedTuple):
    """One file of an action: what it holds, and what it is to hold; None: there is no such file."""

    path: str
    before: bytes | None
    after: bytes | None
    result: dict[str, Any] = {}  # noqa: RUF012 - never changed

    @property
    def verb(self) -> str:
        return "created" if self.before is None else "deleted" if self.after is None else "changed"


Read = Callable[[str, str], bytes]  # of the folder and a path in it


def plan_replace(
    folder: str, path: str, old: str, new: str, cell: str | None = None, read: Read = texts.content_of
) -> list[Edit]:
    """Plan to replace a text in a file, or in one cell of a notebook."""
    data = read(folder, path)
    text, mark, encoding = texts.decoded(data, path)
    if path.endswith(".ipynb") and cell is not None:
        from interpreter.repo.notebooks import replaced_in_cell

        changed, result = replaced_in_cell(text, cell, old, new, path)
    else:
        changed, result = replaced(text, old, new, path)
    return [Edit(path, data, texts.encoded(changed, mark, encoding, path), result)]


def plan_patch(folder: str, patch: str, read: Read = texts.content_of) -> list[Edit]:
    """Plan what a patch does to all its files."""
    edits: list[Edit] = []
    for part in parse_patch(patch):
        if part.verb == "Add":
            if os.path.lexists(texts.full(folder, part.path)):
                raise ValueError(f"{part.path} exists already. Use `*** Update File: {part.path}`.")
            edits.append(Edit(part.path, None, part.added.encode()))
            continue
        data = read(folder, part.path)
        if part.verb == "Delete":
            edits.append(Edit(part.path, data, None))
            continue
        text, mark, encoding = texts.decoded(data, part.path)
        changed, notes = patched(text, part)
        after, result = texts.encoded(changed, mark, encoding, part.path), {"note": " ".join(notes)} if notes else {}
        if part.target and os.path.lexists(texts.full(folder, part.target)):
            raise ValueError(f"{part.target} exists already, so {part.path} can't be moved there.")
        moved = [Edit(part.path, data, None), Edit(part.target, None, after, result)]
        edits += moved if part.target else [Edit(part.path, data, after, result)]
    names = [os.path.realpath(texts.full(folder, edit.path)) for edit in edits]
    if twice := next((edit.path for edit, name in zip(edits, names, strict=True) if names.count(name) > 1), None):
        raise ValueError(f"The patch names {twice} twice. Put all its changes under one heading.")
    return edits


def with_lines(text: str, first: int, last: int, new: str) -> str:
    """Replace lines of a text, counted from 0. New lines get the line endings of those that they replace."""
    return _with_lines(lines_of(text), first, last, new)


def overwrite(folder: str, path: str, expected: str, content: str) -> None:
    """Give a file another content, if it has the expected one; both as characters of one byte each."""
    if texts.content_of(folder, path) != expected.encode("latin-1"):
        raise ValueError(f"{path} has changed in the meantime.")
    texts.write(texts.full(folder, path), content.encode("latin-1"), path)


def replace(folder: str, path: str, old: str, new: str, cell: str | None = None) -> dict[str, Any]:
    """Replace a text that occurs once in a file."""
    return _write_all(folder, plan_replace(folder, path, old, new, cell))[0]


def patch(folder: str, patch: str) -> list[dict[str, Any]]:
    """Apply a patch: all of its files, or none."""
    return _write_all(folder, plan_patch(folder, patch))


def _write_all(folder: str, edits: Sequence[Edit]) -> list[dict[str, Any]]:
    """Write all of them; if one can't be written, those before it are as they were."""
    done: list[Edit] = []
    present = [edit.path for edit in edits if edit.before is not None]
    modes = {path: os.stat(texts.full(folder, path)).st_mode & 0o7777 for path in present}
    try:
        for edit in edits:
            done.append(edit)
            _put(folder, edit.path, edit.before, edit.after)
    except OSError:
        for edit in reversed(done):
            with suppress(OSError):
                _put(folder, edit.path, edit.after, edit.before, modes.get(edit.path))
        raise
    moved = [mode for edit in edits if edit.after is None for mode in [modes[edit.path]]]
    created = [edit for edit in edits if edit.before is None]
    if len(moved) == len(created) == 1 and len(edits) == 2:  # a move keeps the mode
        os.chmod(texts.full(folder, created[0].path), moved[0])
    return [{"path": edit.path, edit.verb: True, **edit.result} for edit in edits]


def _put(folder: str, path: str, before: bytes | None, after: bytes | None, mode: int | None = None) -> None:
    full = texts.full(folder, path)
    if after is None:
        with suppress(FileNotFoundError):
            os.unlink(full)
    elif before is None or not os.path.lexists(full):
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "xb") as file:
            file.write(after)
        if mode is not None:
            os.chmod(full, mode)
    elif before != after:
        texts.write(full, after, path)


def with_anchors(text: str, start: int | None, end: int | None) -> Iterator[str]:
    """Yield the lines of a text with their anchors."""
    first, last = start or 1, end
    for number, line in enumerate(lines_of(text), 1):
        if number >= first and (last is None or number <= last):
            yield f"{anchor(number, line.text)}  {line.text}\n"


def read_anchored(folder: str, path: str, start: int | None, end: int | None) -> str:
    """Return the lines of a file, each with an anchor that `replace` takes."""
    text = "".join(with_anchors(texts.whole(folder, path), start, end))
    if len(text) <= texts.MAX_LENGTH:
        return text
    kept = text[: texts.MAX_LENGTH].rpartition("\n")[0]
    following = (start or 1) + kept.count("\n") + 1
    return f"{kept}\n[More lines follow. Continue with start={following}.]\n"
