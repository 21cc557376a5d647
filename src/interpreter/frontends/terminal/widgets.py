"""Widgets outside the chat: a menu with arrow keys or numbers, a picker that is searched by typing, a download bar."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from interpreter.frontends.terminal.render.ansi import wrapped
from interpreter.frontends.terminal.tty import Tty

if TYPE_CHECKING:
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    from interpreter.llm.local.weights import Progress as DownloadProgress

_PICKER_HELP = "Type to search; arrow keys and Enter; Escape leaves."


class Menu:
    """Rows under a question; one of them is marked.

    `leaving` says what Escape does, if that needs saying; `plain` chooses by number, without redrawing rows.
    """

    def __init__(self, question: str, rows: Sequence[str], leaving: str = "", plain: bool = False) -> None:
        self._question, self._rows = question, rows
        self._leaving, self._plain = leaving, plain
        self._marked = 0

    def choose(self) -> int:
        """The number of the chosen row; KeyboardInterrupt for Ctrl-C, Escape and an empty answer."""
        if not self._plain and Tty().can_draw:
            return self._by_arrows()
        width = Tty().size()[0] - 1
        print("\n".join(wrapped(self._question, width)))
        for number, row in enumerate(self._rows, 1):
            print("\n".join(wrapped(f"{number:>3}. {row}", width, hanging=3)))
        while answer := ask_plainly(f"Its number (Enter alone {self._leaving or 'takes none'}): ").strip():
            if answer.isdecimal() and 0 < int(answer) <= len(self._rows):
                return int(answer) - 1
        raise KeyboardInterrupt

    def _by_arrows(self) -> int:
        from prompt_toolkit.application import Application, get_app
        from prompt_toolkit.layout import HSplit, Layout, ScrollOffsets, Window
        from prompt_toolkit.layout.controls import FormattedTextControl

        def columns() -> int:
            return get_app().output.get_size().columns

        def question() -> str:
            hint = f" Arrow keys and Enter; Escape {self._leaving}." if self._leaving else ""
            return "\n".join(wrapped(f"{self._question}{hint}\n", columns() - 1))

        def rows() -> StyleAndTextTuples:
            lines = ("\n  ".join(wrapped(row, columns() - 2, hanging=2)) for row in self._rows)
            return _marked_lines(lines, self._marked)

        def move(by: int) -> None:
            self._marked = max(0, min(self._marked + by, len(self._rows) - 1))

        steps = {"up": -1, "k": -1, "c-p": -1, "down": 1, "j": 1, "c-n": 1}
        steps |= {"pageup": -len(self._rows), "home": -len(self._rows)}
        steps |= {"pagedown": len(self._rows), "end": len(self._rows)}
        window = Window(
            FormattedTextControl(rows, focusable=True, show_cursor=False),
            scroll_offsets=ScrollOffsets(top=1, bottom=1),
            dont_extend_height=True,
        )
        heading = Window(FormattedTextControl(question), dont_extend_height=True)
        application: Application[int] = Application(
            layout=Layout(HSplit([heading, window]), focused_element=window),
            key_bindings=_list_keys(steps, move, lambda: self._marked, leave="<sigint>"),
            erase_when_done=True,
        )
        application.ttimeoutlen = 0.05  # Escape alone is an answer
        return application.run()


class Picker:
    """Rows that contain all the words that are typed."""

    def __init__(self, question: str, rows: Sequence[str], draw: Callable[[int, int], str]) -> None:
        """`rows` are searched, `draw(number, width)` is shown."""
        self._question, self._draw = question, draw
        self._texts = [row.lower() for row in rows]
        self._shown = list(range(len(rows)))
        self._marked = 0

    def _search(self, words: str) -> None:
        wanted = words.lower().split()
        self._shown = [number for number, text in enumerate(self._texts) if all(word in text for word in wanted)]
        self._marked = 0

    def _move(self, by: int) -> None:
        self._marked = max(0, min(self._marked + by, len(self._shown) - 1))

    def choose(self, tty: Tty) -> int:
        """The number of the chosen row; KeyboardInterrupt for Ctrl-C and Escape."""
        from prompt_toolkit.application import Application
        from prompt_toolkit.buffer import Buffer
        from prompt_toolkit.input import create_input
        from prompt_toolkit.layout import HSplit, Layout, ScrollOffsets, Window
        from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
        from prompt_toolkit.layout.processors import BeforeInput
        from prompt_toolkit.output import ColorDepth, create_output
        from prompt_toolkit.output.vt100 import Vt100_Output

        width = tty.size()[0] - 3

        def rows() -> StyleAndTextTuples:
            lines = (self._draw(number, width) for number in self._shown)
            return _marked_lines(lines, self._marked) or [("", "  Nothing has these words.\n")]

        output = create_output(stdout=tty.stdout)
        if isinstance(output, Vt100_Output):
            output.enable_cpr = False  # its answer would end up in what is typed next
        typed = Buffer(multiline=False, on_text_changed=lambda buffer: self._search(buffer.text))
        line = Window(BufferControl(typed, input_processors=[BeforeInput("Search: ")]), height=1)
        window = Window(FormattedTextControl(rows), scroll_offsets=ScrollOffsets(top=1, bottom=1))
        words = Window(
            FormattedTextControl(f"{self._question} {_PICKER_HELP}"), dont_extend_height=True, wrap_lines=True
        )
        steps = {"up": -1, "c-p": -1, "down": 1, "c-n": 1, "pageup": -10, "pagedown": 10}
        application: Application[int] = Application(
            layout=Layout(HSplit([words, line, window]), focused_element=line),
            key_bindings=_list_keys(
                steps, self._move, lambda: self._shown[self._marked] if self._shown else None, leave="c-d"
            ),
            erase_when_done=True,
            input=create_input(tty.stdin),
            output=output,
            color_depth=None if tty.color else ColorDepth.DEPTH_1_BIT,
        )
        application.ttimeoutlen = 0.05  # Escape alone is an answer
        return application.run()


def _marked_lines(lines: Iterable[str], marked: int) -> StyleAndTextTuples:
    out: StyleAndTextTuples = []
    for place, line in enumerate(lines):
        if place == marked:
            out.append(("[SetCursorPosition]", ""))
        out.append(("bold" if place == marked else "", f"{'>' if place == marked else ' '} {line}\n"))
    return out


def _list_keys(
    steps: dict[str, int], move: Callable[[int], None], taken: Callable[[], int | None], leave: str
) -> KeyBindings:
    """Keys that move by these steps, Enter to take, and Ctrl-C, Escape and `leave` to leave."""
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    def mover(by: int) -> Callable[[KeyPressEvent], None]:
        return lambda event: move(by)

    for name, by in steps.items():
        keys.add(name)(mover(by))

    @keys.add("enter")
    @keys.add("c-j")  # what Enter is if it was pressed before we had the terminal
    def _take(event: KeyPressEvent) -> None:
        number = taken()
        if number is not None:
            event.app.exit(result=number)

    @keys.add("c-c")
    @keys.add(leave)
    @keys.add("escape", eager=True)
    def _leave(event: KeyPressEvent) -> None:
        event.app.exit(exception=KeyboardInterrupt)

    return keys


def show_download(name: str, steps: Iterable[DownloadProgress]) -> None:
    """Run a download to its end with a bar. Ctrl-C stops it; the part that has arrived is kept."""
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    description = TextColumn("{task.description}", markup=False)
    columns = (description, BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns) as bar:
        task = bar.add_task(name, total=None)
        origin = name
        for step in steps:
            origin = f"{name} from {step.source}" if step.source else name
            text = origin if step.step == "downloading" else f"{name}: {step.step}"
            bar.update(task, description=text, completed=step.done, total=step.total or None)
        bar.update(task, description=origin)


def fitting(text: str) -> str:
    """Text that is printed before there is a chat, in lines that fit."""
    return "\n".join(wrapped(text, Tty().size()[0] - 1))


def ask_plainly(question: str) -> str:
    """One line from the user, empty at the end of input."""
    tty = Tty()
    if not tty.can_draw:
        tty.write(question)
        return tty.read_line().rstrip("\r\n")
    from prompt_toolkit import prompt

    try:
        return prompt(question)
    except EOFError:
        return ""
