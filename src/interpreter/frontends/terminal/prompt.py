"""The prompt: a line editor with history, in which a paste never sends itself off."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent, merge_key_bindings
from prompt_toolkit.output import ColorDepth, create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style

from interpreter.app.own_blocks import is_unfinished
from interpreter.frontends.terminal.render.ansi import cells, clip
from interpreter.frontends.terminal.tty import Tty

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter


MARKER = '"""'
_STYLE = Style.from_dict({"bottom-toolbar": "noreverse fg:ansibrightblack"})


class Prompt:
    """Reads messages; Enter sends one off, Alt-Enter or Ctrl-J begins a new line."""

    def __init__(
        self,
        tty: Tty,
        folder: str | None,
        marker: bool = True,
        completer: Completer | None = None,
        status: Callable[[], list[str]] = list,
    ) -> None:
        self._tty, self._status = tty, status
        self._facts: list[str] = []

        def unfinished(text: str) -> bool:
            return (marker and _in_quotes(text)) or is_unfinished(text)

        self._session = _session(tty, _history(folder), unfinished, completer)
        self._session.key_bindings = merge_key_bindings([self._session.key_bindings or KeyBindings(), _rerun_key()])

    def when_ready(self, function: Callable[[], None]) -> None:
        """Have something done as soon as the prompt stands and takes keys, once."""

        def once(sender: object) -> None:
            self._session.app.after_render.remove_handler(once)
            function()

        self._session.app.after_render.add_handler(once)

    def read(self, default: str = "") -> str:
        """A message; EOFError for Ctrl-D, KeyboardInterrupt for Ctrl-C."""
        self._facts = self._status()
        toolbar = self._under_the_prompt if self._facts else None
        return _ask(self._session, "> ", default=default, bottom_toolbar=toolbar)

    def _under_the_prompt(self) -> str:
        separator = " · " if self._tty.unicode else " - "
        return line_of(self._facts, self._tty.size()[0] - 1, separator)


def ask_line(tty: Tty, question: str, password: bool = False) -> str | None:
    """One line, None at the end of input."""
    session = _session(tty, InMemoryHistory(), lambda text: False)
    try:
        return _ask(session, ANSI(question), is_password=password)
    except EOFError:
        return None


class _ToldToEnd(Exception):
    """Raised where the prompt waits, so that it puts the terminal in order on its way out."""


_up: list[tuple[asyncio.AbstractEventLoop, PromptSession[str]]] = []  # the prompt that waits, if any


def leave(code: int) -> bool:
    """The program is told to end; False if no prompt is up that has to be left first."""
    for loop, session in _up:
        loop.call_soon_threadsafe(partial(session.app.exit, exception=_ToldToEnd(code)))
    return bool(_up)


def _ask(session: PromptSession[str], question: Any, **more: Any) -> str:
    def when_up() -> None:
        _up.append((asyncio.get_running_loop(), session))

    try:
        return session.prompt(question, in_thread=_in_event_loop(), pre_run=when_up, **more)
    except _ToldToEnd as told:
        raise SystemExit(told.args[0]) from None
    finally:
        _up.clear()


def _session(
    tty: Tty, history: History, unfinished: Callable[[str], bool], completer: Completer | None = None
) -> PromptSession[str]:
    # Cursor position requests are off: their answers would end up in what is typed ahead.
    output = create_output(stdout=tty.stdout)
    if isinstance(output, Vt100_Output):
        output.enable_cpr = False
        # Without an answer the line under the prompt would not be drawn.
        output.get_rows_below_cursor_position = lambda: 1  # type: ignore[method-assign]
    return PromptSession(
        history=history,
        multiline=True,
        key_bindings=_bindings(unfinished),
        prompt_continuation="  ",
        input=create_input(tty.stdin),
        output=output,
        color_depth=None if tty.color else ColorDepth.DEPTH_1_BIT,
        enable_history_search=True,
        enable_suspend=True,  # Ctrl-Z is what it is everywhere
        completer=completer,
        complete_while_typing=False,
        complete_in_thread=True,
        style=_STYLE,
    )


def _bindings(unfinished: Callable[[str], bool]) -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        # Where a terminal does not mark a paste, more keys are waiting behind its line ends.
        pasted = bool(event.app.key_processor.input_queue)
        if pasted or unfinished(buffer.text):
            buffer.newline(copy_margin=False)
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    @keys.add("c-j")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    @keys.add("c-c")
    def _(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt, style="class:aborting")

    return keys


def _rerun_key() -> KeyBindings:
    """F5 is %rerun, where nothing has been typed that it would take away."""
    keys = KeyBindings()

    @keys.add("f5")
    def _(event: KeyPressEvent) -> None:
        if not event.current_buffer.text:
            event.current_buffer.text = "%rerun"
            event.current_buffer.validate_and_handle()

    return keys


def _in_quotes(text: str) -> bool:
    """Whether a text that was begun with three quotes is not closed yet."""
    return text.count(MARKER) % 2 == 1


def _history(folder: str | None) -> History:
    """Kept in a file that only its owner can read, where that is possible."""
    if folder is None:
        return InMemoryHistory()
    path = os.path.join(folder, "history")
    with suppress(OSError):
        os.makedirs(folder, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        return FileHistory(path)
    return InMemoryHistory()


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


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
        return self._interpreter.computer.context.cwd


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


SEPARATOR = " · "


def facts(interpreter: OpenInterpreter) -> list[str]:
    """What there is to say, the most important first; nobody is asked for it."""
    parts = [interpreter.llm.model, safety(interpreter)]
    if interpreter.messages:
        parts += [context(interpreter), cost(interpreter)]
    parts.append(folder(interpreter))
    return [part for part in parts if part]


def line_of(parts: list[str], width: int, separator: str = SEPARATOR) -> str:
    """The line; a folder that does not fit is told by its last name."""
    whole = fitted(parts, width, separator)
    if not parts or whole.endswith(parts[-1]) or parts[-1].count(os.sep) < 2:
        return whole
    return fitted([*parts[:-1], f"...{os.sep}{os.path.basename(parts[-1])}"], width, separator)


def fitted(parts: list[str], width: int, separator: str = SEPARATOR) -> str:
    """As many parts as fit, from the left; the first one is cut where even that does not."""
    line = clip(parts[0], max(1, width)) if parts else ""
    for part in parts[1:]:
        longer = line + separator + part
        if cells(longer) > width:
            break
        line = longer
    return line


def safety(interpreter: OpenInterpreter) -> str:
    mode = interpreter.mode or ("auto" if interpreter.auto_run else "ask")
    words = {"ask": "asks first", "auto": "auto run"}.get(mode, str(mode))
    if mode == "plan":
        words += ", read-only sandbox"  # whatever the setting is
    elif interpreter.sandbox != "off":
        words += f", sandbox {interpreter.sandbox}"
    if interpreter.safe_mode != "off":
        words += f", safe mode {interpreter.safe_mode}"
    return words + ", offline" if interpreter.offline else words


def context(interpreter: OpenInterpreter) -> str:
    used, window = interpreter.llm.context_used
    if not window:
        return f"{short(used)} tokens"
    return f"{short(used)} of {short(window)} ({used * 100 // window}%)"


def cost(interpreter: OpenInterpreter) -> str:
    from interpreter.llm.usage import in_dollars

    spent = interpreter.llm.cost
    return "" if spent is None else in_dollars(spent)


def folder(interpreter: OpenInterpreter) -> str:
    known = interpreter.__dict__.get("computer")
    path: str = known.context.cwd if known is not None else interpreter.workspace
    home = os.path.expanduser("~")
    if path == home or path.startswith(home + os.sep):
        path = "~" + path[len(home) :]
    return path


def short(count: int) -> str:
    """A number of tokens as people write it."""
    if count < 1000:
        return str(count)
    if count < 1_000_000:
        return f"{count / 1000:.1f}k" if count < 10_000 else f"{count // 1000}k"
    return f"{count / 1_000_000:.1f}".removesuffix(".0") + "M"
