"""What Tab offers: commands, files, live variables."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter

MOST = 500
_WORD = r"""(?<![^\s=:])(?P<at>@)?(?P<quote>["']?)(?P<path>(?:\\.|[^\s"'])*|(?<=")[^"]*|(?<=')[^']*)\Z"""
_LIVE = {"show": "variables", "vars": "languages", "cd": "folders"}
_LIVE |= {"undo": "options", "redo": "options", "rewind": "options"}


class Suggestions(Completer):
    """Completes what is typed at the prompt; files are sought from the folder that the sessions are in."""

    def __init__(self, interpreter: OpenInterpreter) -> None:
        self._interpreter = interpreter

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        offered = list(self._offered(document))
        typed = document.text_before_cursor
        if len(offered) == 1 and typed.endswith(offered[0].text) and offered[0].start_position:
            return []  # it stands there already
        return offered

    def _offered(self, document: Document) -> Iterable[Completion]:
        text = document.text_before_cursor.lstrip()
        if text.startswith(">>>"):
            return self._code("python", text.removeprefix(">>>").lstrip(" "))
        if text.startswith(("!", "%%")):
            return self._shell(text.lstrip("!%").lstrip())
        if text.startswith("%"):
            return self._command(text[1:])
        return self._files(text, only_paths=True)

    # -- commands ------------------------------------------------------------------------------------------

    def _command(self, text: str) -> Iterator[Completion]:
        from interpreter.frontends.terminal.magics import COMMANDS

        name, space, argument = text.partition(" ")
        if not space:
            rows = [row for row in COMMANDS if row.name.startswith(name.lower())]
            for row in rows:
                yield Completion(row.name, -len(name), display=f"%{row.name}", display_meta=row.help)
            return
        match _LIVE.get(name.lower()):
            case "variables":
                yield from self._variables(argument)
            case "languages":
                names = (language.name.lower() for language in self._interpreter.computer.languages)
                yield from (Completion(each, -len(argument)) for each in names if each.startswith(argument.lower()))
            case "options":
                from interpreter.frontends.terminal.magics.undo import OPTIONS

                last = argument.rpartition(" ")[2]
                yield from (Completion(each, -len(last)) for each in OPTIONS if last and each.startswith(last.lower()))
            case wanted:
                yield from self._files(argument, only_folders=wanted == "folders")

    def _variables(self, part: str) -> Iterator[Completion]:
        for language in self._interpreter.computer.languages:
            found = self._interpreter.computer.complete(language.name, part)
            plain = [(text, kind) for text, kind in found.matches if kind not in ("keyword", "function", "class")]
            yield from (Completion(text, found.start - len(part), display_meta=kind) for text, kind in plain[:MOST])

    # -- code ----------------------------------------------------------------------------------------------

    def _code(self, language: str, code: str) -> Iterator[Completion]:
        found = self._interpreter.computer.complete(language, code)
        for text, kind in found.matches:
            yield Completion(text, found.start - len(code), display_meta=kind)

    def _shell(self, code: str) -> Iterator[Completion]:
        offered = list(self._code("shell", code))
        if offered:
            yield from offered
        elif " " not in code and "/" not in code:
            for name in programs(code):
                yield Completion(name, -len(code))
        else:
            yield from self._files(code, escaped=True)

    # -- files ---------------------------------------------------------------------------------------------

    def _files(
        self, text: str, only_paths: bool = False, only_folders: bool = False, escaped: bool = False
    ) -> Iterator[Completion]:
        """The files that the word at the cursor may become; in prose only what is meant as a path."""
        match = re.search(_WORD, text)
        if match is None:
            return
        path = match["path"]
        is_path = match["at"] or path.startswith(("/", "~", "./", "../")) or os.sep in path
        if only_paths and not is_path:
            return
        plain = re.sub(r"\\(.)", r"\1", path)
        for name in self._listed(plain, only_folders):
            shown = name
            if escaped and not match["quote"]:
                name = re.sub(r"([\s\\'\"$&;()<>|*?`!#])", r"\\\1", name)
            elif re.search(r"\s", name) and not match["quote"]:
                name = f'"{name}'  # the closing quote is for who typed on
            last = os.path.basename(shown.rstrip("/")) + "/" * shown.endswith("/")
            yield Completion(name, -len(path), display=last)

    def _listed(self, path: str, only_folders: bool) -> list[str]:
        head, part = os.path.split(path)
        place = os.path.join(self._folder(), os.path.expanduser(head))
        try:
            with os.scandir(place) as entries:
                found = [(entry.name, entry.is_dir()) for entry in entries if entry.name.startswith(part)]
        except OSError:
            return []
        shown = [(name, folder) for name, folder in found if part or not name.startswith(".")]
        shown.sort(key=lambda each: each[0].lower())
        start = path[: len(path) - len(part)]
        return [start + name + "/" * folder for name, folder in shown if folder or not only_folders][:MOST]

    def _folder(self) -> str:
        return self._interpreter.computer.surroundings.cwd


def programs(part: str) -> list[str]:
    """Programs on the search path whose names begin so."""
    if not part:
        return []
    found: set[str] = set()
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        try:
            found.update(name for name in os.listdir(folder or ".") if name.startswith(part))
        except OSError:
            continue
    return sorted(found)[:MOST]
