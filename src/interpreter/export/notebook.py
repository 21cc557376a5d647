"""The conversation as a Jupyter notebook that runs; its shell blocks share one shell."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from interpreter.export import Document, ExportedConversation
from interpreter.export.documents import (
    SVG,
    ImageFile,
    Output,
    Page,
    PlainText,
    fenced,
    outputs_of,
    picture,
    quoted,
    why_not,
)
from interpreter.messages import Message
from interpreter.runtimes import BaseLanguage, Registry, resolve
from interpreter.session.journal.reader import Entry, RecordedBlock, RecordedToolCall, Said, Shown

Cell = dict[str, Any]
# A command that begins like this changes its shell, so later blocks may depend on it.
_LASTING = re.compile(
    r"(?:^|[;&|({]|\b(?:then|do|else)\b)\s*"
    r"(?:(?:cd|pushd|popd|export|unset|source|\.|alias|set|shopt|umask)(?=\s|$|;)|[A-Za-z_]\w*=\S*\s*(?:$|;|&&)"
    r"|(?:function\s+)?[\w-]+\s*\(\)\s*\{)",
    re.MULTILINE,
)


class Setup(NamedTuple):
    """Keeps the state of a language between cells: code that runs first, and the magic that its blocks then use."""

    note: str
    code: str
    magic: str


def notebook(conversation: ExportedConversation) -> Document:
    writing = _NotebookWriter(conversation.entries, conversation.registry)
    cells = [_markdown(f"# {conversation.title}"), *writing.cells()]
    for number, cell in enumerate(cells):
        cell["id"] = hashlib.sha256(f"{number} {cell['source']}".encode()).hexdigest()[:12]
        cell["source"] = cell["source"].splitlines(keepends=True)
    whole = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"},
            "language_info": {"name": "python", "file_extension": ".py"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return Document(json.dumps(whole, indent=1, ensure_ascii=False) + "\n")


class _NotebookWriter:
    """Turns entries into cells. Cells of languages other than Python may depend on earlier ones."""

    def __init__(self, entries: Sequence[Entry], registry: Registry) -> None:
        self._entries, self._registry = entries, registry
        self._earlier: dict[str, list[str]] = {}  # by language, the code of the cells so far
        self._count = 0
        codes: dict[type[BaseLanguage], list[str]] = {}
        for entry in entries:
            if isinstance(entry, RecordedBlock) and self._is_cell(entry):
                codes.setdefault(registry.describe(entry.language), []).append(entry.code)
        self._setups: dict[str, Setup] = {}
        for language, code in codes.items():
            if language.cell_setup and (setup := resolve(language.cell_setup)(code)) is not None:
                self._setups[language.name] = setup

    def cells(self) -> Iterator[Cell]:
        for setup in self._setups.values():
            yield _markdown(setup.note)
            yield _code_cell(setup.code, (), None)
        for entry in self._entries:
            match entry:
                case Said(role="user"):
                    yield _markdown(quoted(entry.text))
                case Said():
                    yield _markdown(entry.text)
                case Shown():
                    yield _shown(entry.message)
                case RecordedBlock() if self._is_cell(entry):
                    yield self._code(entry)
                case RecordedBlock():  # it did not run, or running it again would not end well
                    language = self._registry.canonical(entry.language)
                    reason = why_not(entry) or f"A notebook can't run {language}"
                    note = f"*{reason}, so it is included as text, not as a cell.*"
                    yield _markdown("\n\n".join([note, fenced(entry.code, language), *_printed(entry)]))
                case RecordedToolCall():
                    yield _markdown("\n\n".join([fenced(str(entry), ""), *_printed(entry)]))

    def _is_cell(self, block: RecordedBlock) -> bool:
        return (
            self._registry.describe(block.language).cell_magic is not None
            and block.ran
            and block.ended not in ("interrupted", "timed_out", "died", "background")
            and bool(block.code.strip())
        )

    def _code(self, block: RecordedBlock) -> Cell:
        self._count += 1
        language = self._registry.describe(block.language)
        source = block.code
        if language.name in self._setups:
            source = f"{self._setups[language.name].magic}\n{source}"
        elif language.cell_magic:
            alone = language.cell_setup is not None  # it has seen all blocks, and none depends on another
            source = f"{language.cell_magic}\n{source if alone else self._with_earlier(block, language)}"
        cell = _code_cell(source, [_output(output) for output in outputs_of(block.outputs)], self._count)
        if not block.succeeded:
            cell["metadata"]["tags"] = ["raises-exception"]  # so that "run all" continues, as the session did
        return cell

    def _with_earlier(self, block: RecordedBlock, language: type[BaseLanguage]) -> str:
        """Put the earlier code that a block needs in front of it, because each such cell runs in its own process."""
        needed: list[str] = []
        wanted = block.code
        cells = self._earlier.setdefault(language.name, [])
        for earlier in reversed(cells):
            defined = re.finditer(language.definitions or r"(?!)", earlier, re.MULTILINE)
            names = [definition[definition.lastindex or 0] for definition in defined]
            if any(re.search(rf"(?<![\w$.]){re.escape(name)}(?![\w$])", wanted) for name in names):
                needed.insert(0, earlier)
                wanted += earlier
        if block.succeeded:
            cells.append(block.code)
        if not needed:
            return block.code
        above, here = (
            f"{language.comment} {label}" for label in ("From earlier blocks that this one needs:", "This block:")
        )
        return "\n".join([above, *needed, here, block.code])


def _printed(of: RecordedBlock | RecordedToolCall) -> list[str]:
    return [fenced(output.text, "text") for output in outputs_of(of.outputs) if isinstance(output, PlainText)]


def _shown(message: Message) -> Cell:
    content = str(message.get("content", ""))
    if message.get("type") != "image":
        return _markdown(f"> {content}" if message.get("role") == "user" else fenced(content, "text"))
    image = picture(message)
    if image is None:
        return _markdown(f"> *(image: {content[:200]})*")
    name = "image" + (".jpg" if image.mime == "image/jpeg" else "." + image.mime.partition("/")[2].partition("+")[0])
    return {**_markdown(f"![image](attachment:{name})"), "attachments": {name: {image.mime: image.data}}}


def _markdown(text: str) -> Cell:
    return {"cell_type": "markdown", "metadata": {}, "source": text}


def _code_cell(source: str, outputs: Sequence[dict[str, Any]], count: int | None) -> Cell:
    return {
        "cell_type": "code",
        "metadata": {},
        "source": source.rstrip("\n"),
        "execution_count": count,
        "outputs": list(outputs),
    }


def _output(output: Output) -> dict[str, Any]:
    match output:
        case PlainText(text=text, mime=""):
            return {"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)}
        case ImageFile(mime=mime, data=data):
            source = data.splitlines(keepends=True) if mime == SVG else data
            forms: dict[str, Any] = {mime: source, "text/plain": "(image)"}
        case Page(html=html):
            forms = {"text/html": html.splitlines(keepends=True), "text/plain": "(HTML)"}
        case PlainText(text=text, mime=mime):
            forms = {"text/plain": text}
            if mime == "application/json":
                with suppress(ValueError):
                    forms[mime] = json.loads(text)
            elif mime != "application/javascript":  # shown, never executed
                forms[mime] = text
    return {"output_type": "display_data", "data": forms, "metadata": {}}


# -- shell blocks ----------------------------------------------------------------------------------------------------


def leaves_state(commands: str) -> bool:
    """Check whether a block changes its shell: folder, variables, functions or options."""
    return bool(_LASTING.search(commands))


def notebook_setup(blocks: Sequence[str]) -> Setup | None:
    """Return the code and magic that let shell cells share one shell; None if no block changes its shell."""
    if not any(map(leaves_state, blocks)):
        return None
    register = 'get_ipython().register_magic_function(lambda line, cell: shell(cell), "cell", "shell")'
    return Setup(
        "The shell blocks below run in this function, which keeps their folder and variables.",
        f"{shell_function()}\n\n{register}",
        "%%shell",
    )


def shell_function(name: str = "shell") -> str:
    """Return the source of a Python function that keeps folder and variables from one shell block to the next."""
    source = (Path(__file__).parent / "templates" / "shell_function.txt").read_text(encoding="utf-8")
    return source.replace("def shell(", f"def {name}(", 1)
