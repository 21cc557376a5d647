"""The conversation as a Jupyter notebook that runs."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from interpreter.export.markdown import fenced, quoted, why_not
from interpreter.export.outputs import SVG, Output, Page, Picture, Text, kind_of, outputs_of, picture
from interpreter.export.shell_state import any_leaves_state, shell_function
from interpreter.journal.entries import Block, Entry, Said, Shown

Cell = dict[str, Any]

_UNREPEATABLE = frozenset({"interrupted", "timed_out", "died", "background"})
_JSON_TYPES = frozenset({"application/json"})
_DECLARED = re.compile(r"^(?:async\s+)?(?:let|const|var|function\*?|class)\s+([A-Za-z_$][\w$]*)", re.MULTILINE)


def notebook(entries: Sequence[Entry], title: str) -> str:
    """The notebook's JSON (nbformat 4.5)."""
    writing = _Writing(entries)
    cells = [_markdown(f"# {title}"), *writing.cells()]
    for number, cell in enumerate(cells):
        cell["id"] = hashlib.sha256(f"{number} {cell['source']}".encode()).hexdigest()[:12]
        cell["source"] = cell["source"].splitlines(keepends=True)
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python", "file_extension": ".py"}}
    whole = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


class _Writing:
    """The cells of one notebook; shell and JavaScript blocks depend on those before them."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries
        shell = [block.code for block in _cells_of(entries) if kind_of(block.language) == "shell"]
        self._keeps_shell = any_leaves_state(shell)
        self._javascript: list[str] = []
        self._count = 0

    def cells(self) -> Iterator[Cell]:
        if self._keeps_shell:
            yield from _setup()
        for entry in self._entries:
            match entry:
                case Said(role="user"):
                    yield _markdown(quoted(entry.text))
                case Said():
                    yield _markdown(entry.text)
                case Shown():
                    yield _shown(entry)
                case Block() if _is_cell(entry):
                    yield self._code(entry)
                case Block():
                    yield _written_down(entry)

    def _code(self, block: Block) -> Cell:
        self._count += 1
        cell = _code_cell(self._source(block), [_output(output) for output in outputs_of(block.outputs)], self._count)
        if not block.succeeded:
            cell["metadata"]["tags"] = ["raises-exception"]  # so that running all goes on, as the session did
        return cell

    def _source(self, block: Block) -> str:
        match kind_of(block.language):
            case "shell":
                return f"%%{'shell' if self._keeps_shell else 'bash'}\n{block.code}"
            case "javascript":
                return f"%%script node\n{self._with_earlier(block)}"
            case "html":
                return f"%%html\n{block.code}"
        return block.code

    def _with_earlier(self, block: Block) -> str:
        """JavaScript cells have a process each, so one that uses earlier names begins with the code that made them."""
        needed: list[str] = []
        wanted = block.code
        for earlier in reversed(self._javascript):
            if any(re.search(rf"(?<![\w$.]){re.escape(name)}(?![\w$])", wanted) for name in _DECLARED.findall(earlier)):
                needed.insert(0, earlier)
                wanted += earlier
        if block.succeeded:
            self._javascript.append(block.code)
        if not needed:
            return block.code
        return "\n".join(["// From the blocks before, which this one needs:", *needed, "// This block:", block.code])


def _setup() -> Iterator[Cell]:
    yield _markdown("The shell blocks below run in this function, which keeps their folder and variables.")
    register = 'get_ipython().register_magic_function(lambda line, cell: shell(cell), "cell", "shell")'
    yield _code_cell(f"{shell_function()}\n\n{register}", (), None)


def _cells_of(entries: Sequence[Entry]) -> Iterator[Block]:
    return (entry for entry in entries if isinstance(entry, Block) and _is_cell(entry))


def _is_cell(block: Block) -> bool:
    known = kind_of(block.language) in ("python", "shell", "javascript", "html")
    return known and block.ran and block.ended not in _UNREPEATABLE and bool(block.code.strip())


def _written_down(block: Block) -> Cell:
    """A block that is no cell, since it did not run, or would not end well if it ran again."""
    reason = why_not(block) or f"A notebook cannot run {block.language}"
    parts = [f"*{reason}: it is written down here, and not a cell.*", fenced(block.code, block.language)]
    parts += [fenced(output.text, "text") for output in outputs_of(block.outputs) if isinstance(output, Text)]
    return _markdown("\n\n".join(parts))


def _shown(shown: Shown) -> Cell:
    message = shown.message
    content = str(message.get("content", ""))
    if message.get("type") != "image":
        return _markdown(f"> {content}" if message.get("role") == "user" else fenced(content, "text"))
    image = picture(content, message.get("format", ""))
    if image is None:
        return _markdown(f"> *(image: {content[:200]})*")
    name = "image" + (".jpg" if image.mime == "image/jpeg" else "." + image.mime.partition("/")[2].partition("+")[0])
    return {**_markdown(f"![image](attachment:{name})"), "attachments": {name: {image.mime: image.data}}}


def _markdown(text: str) -> Cell:
    return {"cell_type": "markdown", "metadata": {}, "source": text}


def _code_cell(source: str, outputs: Sequence[dict[str, Any]], count: int | None) -> Cell:
    cell: Cell = {"cell_type": "code", "metadata": {}, "source": source.rstrip("\n")}
    return cell | {"execution_count": count, "outputs": list(outputs)}


def _output(output: Output) -> dict[str, Any]:
    match output:
        case Picture(mime=mime, data=data):
            return _display({mime: data.splitlines(keepends=True) if mime == SVG else data, "text/plain": "(image)"})
        case Page(html=html):
            return _display({"text/html": html.splitlines(keepends=True), "text/plain": "(HTML)"})
        case Text(text=text, mime=""):
            return {"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)}
    if output.mime in _JSON_TYPES:
        try:
            return _display({output.mime: json.loads(output.text), "text/plain": output.text})
        except ValueError:
            return _display({"text/plain": output.text})
    if output.mime == "application/javascript":
        return _display({"text/plain": output.text})  # shown, never executed
    return _display({output.mime: output.text, "text/plain": output.text})


def _display(data: dict[str, Any]) -> dict[str, Any]:
    return {"output_type": "display_data", "data": data, "metadata": {}}
