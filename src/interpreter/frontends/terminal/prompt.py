"""The prompt: a line editor with history and completion, and the status line under it. A paste never sends itself."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import CompletionState
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, get_common_complete_suffix
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, has_completions
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.styles import Style

from interpreter.api import OpenInterpreter
from interpreter.app.own_blocks import is_unfinished
from interpreter.app.trust import switch_mode
from interpreter.config.homes import make_folder
from interpreter.console_text import short_count, visible, visible_line
from interpreter.errors import SandboxUnavailableError
from interpreter.frontends.terminal.render.ansi import cells, clip
from interpreter.frontends.terminal.tty import Tty, prompt_toolkit_options
from interpreter.leaves import leaves, load
from interpreter.policy.policy import mode_of

MARKER = '"""'
_NEXT_MODE = {"ask": "plan", "plan": "auto-in-sandbox"}  # by Shift-Tab; after any other, `ask`
_COMMAND_KEYS = {"f5": "%rerun", "f6": "%cd --move"}
_COMMAND = re.compile(r"\s*[%/]\w*\Z")
_STYLE = Style.from_dict({"bottom-toolbar": "noreverse fg:ansibrightblack"})


class Prompt:
    """Reads messages. Enter sends one, Alt-Enter or Ctrl-J begins a new line."""

    def __init__(self, tty: Tty, interpreter: OpenInterpreter) -> None:
        self._tty, self._interpreter = tty, interpreter
        self._facts: list[str] = []  # on the status line

        def unfinished(text: str) -> bool:
            return (interpreter.multi_line and text.count(MARKER) % 2 == 1) or is_unfinished(text)

        keys = _bindings(unfinished)

        for key, command in _COMMAND_KEYS.items():

            @keys.add(key)
            def _send(event: KeyPressEvent, command: str = command) -> None:
                if not event.current_buffer.text:
                    event.current_buffer.text = command
                    event.current_buffer.validate_and_handle()

        @keys.add("s-tab", filter=~has_completions)
        def _next_mode(event: KeyPressEvent) -> None:
            """Cycle the permission modes, but never to one that runs code unasked outside a sandbox."""
            following = _NEXT_MODE.get(str(mode_of(interpreter)), "ask")
            try:
                switch_mode(interpreter, following)
            except SandboxUnavailableError:
                switch_mode(interpreter, "ask")
            self._facts = status_facts(interpreter)

        history: History = InMemoryHistory()
        folder = interpreter.get_oi_dir()
        with suppress(OSError):  # kept in a file that only its owner can read, if that is possible
            make_folder(folder)
            path = os.path.join(folder, "history")
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
            history = FileHistory(path)
        self._session = _session(tty, history, keys, Suggestions(interpreter))
        if interpreter.editing_mode == "vi":
            self._session.editing_mode = EditingMode.VI

    def when_ready(self, function: Callable[[], None]) -> None:
        """Call a function once, as soon as the prompt is drawn and takes keys."""

        def once(sender: object) -> None:
            self._session.app.after_render.remove_handler(once)
            function()

        self._session.app.after_render.add_handler(once)

    def read(self, default: str = "") -> str:
        """Read a message; raise EOFError for Ctrl-D, KeyboardInterrupt for Ctrl-C."""
        has_line = self._interpreter.status_line
        self._facts = status_facts(self._interpreter) if has_line else []

        def toolbar() -> str:
            model, *others = self._facts
            # With less room, it is more important when code may run.
            facts = [*_background, *others[:1], model, *others[1:]] if _background else self._facts
            separator = " · " if self._tty.unicode else " - "
            return status_line(facts, self._tty.size()[0] - 1, separator)

        return _ask(self._session, "> ", default=default, bottom_toolbar=toolbar if has_line else None)


def ask_line(tty: Tty, question: str, password: bool = False) -> str | None:
    """Ask for one line; None at the end of input."""
    session = _session(tty, InMemoryHistory(), _bindings(lambda text: False))
    try:
        return _ask(session, ANSI(question), is_password=password)
    except EOFError:
        return None


def edit_text(tty: Tty, text: str) -> str:
    """Let the user edit a text of several lines; raise KeyboardInterrupt for Ctrl-C."""
    from prompt_toolkit.layout.screen import Char

    # Show hidden characters as codes, as everywhere else.
    Char.display_mappings |= {char: visible(char) for char in set(text) - set("\n\t") if visible(char) != char}
    keys = KeyBindings()

    @keys.add("c-s")
    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("tab")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("    ")

    return _ask(_session(tty, InMemoryHistory(), keys), "", default=text, prompt_continuation="")


class _Terminated(Exception):
    """Raised where the prompt waits, so that it restores the terminal on its way out."""


_waiting: list[tuple[asyncio.AbstractEventLoop, PromptSession[str]]] = []  # the prompt that waits, if any


_background: list[str] = []  # work in the background, for the status line


def show_data_stack(progress: str) -> None:
    """Begin the status line with the progress of the data packages, if any; any thread may call this."""
    _background[:] = [visible_line(f"data packages: {progress}")] if progress else []
    for loop, session in list(_waiting):
        with suppress(RuntimeError):  # it has just been left
            loop.call_soon_threadsafe(session.app.invalidate)


def leave(code: int) -> bool:
    """End the program; False if no prompt waits that has to be left first."""
    for loop, session in _waiting:
        loop.call_soon_threadsafe(partial(session.app.exit, exception=_Terminated(code)))
    return bool(_waiting)


def _ask(session: PromptSession[str], question: Any, **options: Any) -> str:
    def when_waiting() -> None:
        _waiting.append((asyncio.get_running_loop(), session))

    try:
        asyncio.get_running_loop()
        in_event_loop = True
    except RuntimeError:
        in_event_loop = False
    try:
        return session.prompt(question, in_thread=in_event_loop, pre_run=when_waiting, **options)
    except _Terminated as terminated:
        raise SystemExit(terminated.args[0]) from None
    finally:
        _waiting.clear()


def _session(tty: Tty, history: History, keys: KeyBindings, completer: Completer | None = None) -> PromptSession[str]:
    @Condition
    def lists_commands() -> bool:
        return completer is not None and _COMMAND.match(get_app().current_buffer.text) is not None

    @keys.add("tab", filter=lists_commands)
    def _complete(event: KeyPressEvent) -> None:
        """Complete at once, even while the menu is still loading."""
        buffer = event.current_buffer
        state = buffer.complete_state
        if completer is None or (state is not None and state.complete_index is not None):
            buffer.complete_next()
            return
        completions = list(completer.get_completions(buffer.document, CompleteEvent(completion_requested=True)))
        if common := get_common_complete_suffix(buffer.document, completions):
            buffer.insert_text(common)
        elif completions:
            buffer.complete_state = CompletionState(buffer.document, completions)
            buffer.complete_next()

    return PromptSession(
        history=history,
        multiline=True,
        key_bindings=keys,
        prompt_continuation="  ",
        enable_history_search=~lists_commands,  # the menu opens only without it
        enable_suspend=True,
        completer=completer,
        complete_while_typing=lists_commands,
        complete_in_thread=True,
        style=_STYLE,
        **prompt_toolkit_options(tty),
    )


def _bindings(unfinished: Callable[[str], bool]) -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        # If a terminal does not mark a paste, more keys are waiting behind its line ends.
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


# -- completion --------------------------------------------------------------------------------------------------

_MAX_SUGGESTIONS = 500
_WORD = r"""(?<![^\s=:])(?P<at>@)?(?P<quote>["']?)(?P<path>(?:\\.|[^\s"'])*|(?<=")[^"]*|(?<=')[^']*)\Z"""
_ARGUMENTS = {  # of magic commands; the others take files
    "show": "variables",
    "vars": "languages",
    "cd": "folders",
    "undo": "options",
    "redo": "options",
    "rewind": "options",
}


class Suggestions(Completer):
    """Completes commands, files, and live variables. Files are looked up from the runtimes' folder."""

    def __init__(self, interpreter: OpenInterpreter) -> None:
        self._interpreter = interpreter

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        typed = document.text_before_cursor
        text = typed.lstrip()
        if text.startswith(">>>"):
            completions = self._code("python", text.removeprefix(">>>").lstrip(" "))
        elif text.startswith(("!", "%%")):
            completions = self._shell(text.lstrip("!%").lstrip())
        elif text.startswith("%"):
            completions = self._command(text[1:])
        elif text.startswith("/") and _COMMAND.match(text):
            files = self._files(text) if complete_event.completion_requested else ()
            completions = chain(self._command(text[1:], "/"), files)
        else:
            completions = self._files(text, only_paths=True)
        offered = list(completions)
        if len(offered) == 1 and typed.endswith(offered[0].text) and offered[0].start_position:
            return []  # it is complete already
        return offered

    def _command(self, text: str, sign: str = "%") -> Iterator[Completion]:
        from interpreter.frontends.terminal.magics import COMMANDS

        name, space, argument = text.partition(" ")
        if not space:
            for row in COMMANDS:
                if row.name.startswith(name.lower()):
                    yield Completion(row.name, -len(name), display=f"{sign}{row.name}", display_meta=row.help)
            return
        computer = self._interpreter.computer
        match _ARGUMENTS.get(name.lower()):
            case "variables":
                for language in computer.languages:
                    values = self._code(language.name, argument, without=("keyword", "function", "class"))
                    yield from islice(values, _MAX_SUGGESTIONS)
            case "languages":
                names = (language.name.lower() for language in computer.languages)
                yield from (Completion(each, -len(argument)) for each in names if each.startswith(argument.lower()))
            case "options":
                from interpreter.frontends.terminal.magics.undo import OPTIONS

                last = argument.rpartition(" ")[2]
                yield from (Completion(each, -len(last)) for each in OPTIONS if last and each.startswith(last.lower()))
            case wanted:
                yield from self._files(argument, only_folders=wanted == "folders")

    def _code(self, language: str, code: str, without: tuple[str, ...] = ()) -> Iterator[Completion]:
        completions = self._interpreter.computer.complete(language, code)
        for text, kind in completions.matches:
            if kind not in without:
                yield Completion(text, completions.start - len(code), display=visible(text), display_meta=visible(kind))

    def _shell(self, code: str) -> Iterator[Completion]:
        offered = list(self._code("shell", code))
        if offered:
            yield from offered
        elif " " in code or "/" in code:
            yield from self._files(code, escaped=True)
        elif code:
            programs: set[str] = set()
            for folder in os.environ.get("PATH", "").split(os.pathsep):
                with suppress(OSError):
                    programs.update(name for name in os.listdir(folder or ".") if name.startswith(code))
            names = sorted(programs)[:_MAX_SUGGESTIONS]
            yield from (Completion(name, -len(code), display=visible(name)) for name in names)

    def _files(
        self, text: str, only_paths: bool = False, only_folders: bool = False, escaped: bool = False
    ) -> Iterator[Completion]:
        """Complete the word at the cursor to a file; in prose, only if it looks like a path."""
        match = re.search(_WORD, text)
        if match is None:
            return
        path = match["path"]
        is_path = match["at"] or path.startswith(("/", "~", "./", "../")) or os.sep in path
        if only_paths and not is_path:
            return
        unescaped = re.sub(r"\\(.)", r"\1", path)
        head, part = os.path.split(unescaped)
        place = os.path.join(self._interpreter.computer.context.folder_here, os.path.expanduser(head))
        listed: list[tuple[str, bool]] = []
        with suppress(OSError), os.scandir(place) as entries:
            listed = [(entry.name, entry.is_dir()) for entry in entries if entry.name.startswith(part)]
        shown = [(name, folder) for name, folder in listed if part or not name.startswith(".")]
        shown.sort(key=lambda each: each[0].lower())
        start = unescaped[: len(unescaped) - len(part)]
        names = [start + name + "/" * folder for name, folder in shown if folder or not only_folders]
        for name in names[:_MAX_SUGGESTIONS]:
            last = os.path.basename(name.rstrip("/")) + "/" * name.endswith("/")
            if escaped and not match["quote"]:
                name = re.sub(r"([\s\\'\"$&;()<>|*?`!#])", r"\\\1", name)
            elif re.search(r"\s", name) and not match["quote"]:
                name = f'"{name}'  # the user closes the quote
            yield Completion(name, -len(path), display=visible(last))


# -- the status line ---------------------------------------------------------------------------------------------


def status_facts(interpreter: OpenInterpreter) -> list[str]:
    """List model, safety, context, cost and folder, the most important first, without querying anything."""
    mode = mode_of(interpreter)
    safety = {"ask": "asks first", "auto": "auto run"}.get(mode, str(mode))
    if mode == "auto-in-sandbox" and interpreter.sandbox == "off":
        safety = "asks first, no sandbox yet"
    elif mode == "plan":
        safety += ", read-only sandbox"  # independent of the setting
    elif interpreter.sandbox != "off":
        safety += f", sandbox {interpreter.sandbox}"
    if interpreter.safe_mode != "off":
        safety += f", safe mode {interpreter.safe_mode}"
    facts = [interpreter.llm.model, safety + ", offline" * interpreter.offline]
    if interpreter.messages:
        from interpreter.llm.usage import in_dollars

        used, window = interpreter.llm.context_used
        share = f" of {short_count(window)} ({used * 100 // window}%)" if window else " tokens"
        facts.append(short_count(used) + share)
        if interpreter.llm.cost is not None:
            facts.append(in_dollars(interpreter.llm.cost))
    computer = interpreter.__dict__.get("computer")
    path: str = computer.context.cwd if computer is not None else interpreter.workspace
    home = os.path.expanduser("~")
    if path == home or path.startswith(home + os.sep):
        path = "~" + path[len(home) :]
    if computer is not None and computer.context.elsewhere:
        path = f"{computer.machine.name}:{path}"
    parts = (part for leaf in leaves() for part in leaf.status if interpreter.agent.uses(part))
    facts += [load(part.make)(interpreter) for part in parts]
    return [visible_line(fact) for fact in [*facts, path] if fact]


def status_line(facts: list[str], width: int, separator: str = " · ") -> str:
    """Fit the facts on one line. If the folder is too long, try its last name instead."""
    whole = fitted(facts, width, separator)
    if not facts or whole.endswith(facts[-1]) or facts[-1].count(os.sep) < 2:
        return whole
    return fitted([*facts[:-1], f"...{os.sep}{os.path.basename(facts[-1])}"], width, separator)


def fitted(parts: list[str], width: int, separator: str = " · ") -> str:
    """Join as many parts as fit, from the left; the first one is cut if even that does not fit."""
    line = clip(parts[0], max(1, width)) if parts else ""
    for part in parts[1:]:
        longer = line + separator + part
        if cells(longer) > width:
            break
        line = longer
    return line
