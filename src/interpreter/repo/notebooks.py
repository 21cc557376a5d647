"""Notebooks as cells: read with compact outputs, and edited by cell id so that the rest of the file stays as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from interpreter.computer_api.files.work import texts

_MAX_OUTPUT = 300  # characters of all outputs of one cell
_MAX_SOURCE = 1500  # characters of one cell, in a large notebook
_MAX_READ = 5200  # characters of a notebook: about 1,500 tokens
OLD_OUTPUTS = "The outputs of the cell are those of its old source."
STALE = "oi_stale"  # marks, in a cell's metadata, outputs that an older source produced


def _cells(text: str, path: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    try:
        book = json.loads(text)
        cells = book["cells"]
        if not all(isinstance(cell, dict) and isinstance(cell.get("source", ""), str | list) for cell in cells):
            raise TypeError
    except (ValueError, TypeError, LookupError, RecursionError):
        problem = f"{path} is not a notebook in a format that can be read (nbformat 4)."
        raise ValueError(f"{problem} Read it with numbers=True.") from None
    return book, cells


def _source(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(map(str, source))


def _name(cell: dict[str, Any], number: int) -> str:
    return str(cell.get("id") or number)


def read(folder: str, path: str) -> str:
    """Return the cells of a notebook with their ids; outputs are shortened, and so are cells if it is long."""
    _, cells = _cells(texts.whole(folder, path), path)
    shown = [_shown(cell, number) for number, cell in enumerate(cells, 1)]
    for most in (None, _MAX_SOURCE, 600, 240, 100):
        rows = [_cut(source, most) + (output if most is None or most > 240 else "") for source, output in shown]
        if sum(map(len, rows)) <= _MAX_READ:
            break
    total, kept = 0, []
    for number, row in enumerate(rows, 1):
        total += len(row)
        if total > _MAX_READ:
            kept.append(f"[{len(rows) - number + 1} more cells, from number {number}. Read them with code.]\n")
            break
        kept.append(row)
    return "".join(kept)


def _cut(text: str, most: int | None) -> str:
    if most is None or len(text) <= most:
        return text
    return f"{text[:most].rstrip()}\n[{len(text) - most:,} more characters]\n"


def _shown(cell: dict[str, Any], number: int) -> tuple[str, str]:
    kind, stale = cell.get("cell_type", "code"), (cell.get("metadata") or {}).get(STALE)
    head = f"[{_name(cell, number)}] {kind}{' (its outputs are from an older source)' if stale else ''}"
    outputs = "\n".join(filter(None, map(_output, cell.get("outputs") or [])))
    return f"{head}\n{_source(cell).rstrip()}\n", f"-> {_cut(outputs, _MAX_OUTPUT).rstrip()}\n" if outputs else ""


def _output(output: Any) -> str:
    if not isinstance(output, dict):
        return ""
    if output.get("output_type") == "error":
        return f"{output.get('ename')}: {output.get('evalue')}"
    data = output.get("data") or {}
    text = output.get("text", data.get("text/plain", ""))
    text = text if isinstance(text, str) else "".join(map(str, text))
    pictures = [kind for kind in data if kind.startswith("image/")]
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text).strip()
    return " ".join(filter(None, [plain, *(f"<{kind}>" for kind in pictures)]))


def replaced_in_cell(text: str, name: str, old: str, new: str, path: str) -> tuple[str, dict[str, Any]]:
    """Replace a text in the cell with an id, or with a number from 1; its outputs are marked as those of older code."""
    from interpreter.repo.edits import replaced

    book, cells = _cells(text, path)
    cell = next((cell for number, cell in enumerate(cells, 1) if name in (cell.get("id"), str(number))), None)
    if cell is None:
        names = ", ".join(_name(cell, number) for number, cell in enumerate(cells, 1))
        raise ValueError(f"{path} has no cell {name}. Its cells: {names}")
    before = _source(cell)
    after, result = replaced(before, old, new, f"cell {name} of {path}")
    cell["source"] = after if isinstance(cell.get("source"), str) else after.splitlines(keepends=True)
    if cell.get("outputs") and after != before:
        cell.setdefault("metadata", {})[STALE] = True
        result["note"] = " ".join(filter(None, [result.get("note"), OLD_OUTPUTS]))
    return _written_like(book, text), {**result, "cell": name}


def _written_like(book: dict[str, Any], text: str) -> str:
    """Serialise the notebook with the indentation, separators and line endings of the existing text."""
    indent = re.match(r"\{\r?\n([ \t]+)", text)
    separators = (",", ": ") if indent else (", ", ": ") if '": ' in text else (",", ":")
    spaces = indent[1] if indent else None
    written = json.dumps(book, indent=spaces, ensure_ascii="\\u" in text and text.isascii(), separators=separators)
    end = text[len(text.rstrip()) :]
    return (written.replace("\n", "\r\n") if "\r\n" in text else written) + end


def lines_to_compare(data: bytes) -> Iterator[str]:
    """Yield the cells as lines: what a difference of two notebooks is about; ValueError if it is no notebook."""
    for number, cell in enumerate(_cells(data.decode(), "this file")[1], 1):
        source, output = _shown(cell, number)
        yield from f"{source}{output}".splitlines(keepends=True)
