"""Widgets outside the chat: a menu with arrow keys or numbers, and a picker that is searched by typing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from interpreter.console_text import visible_line
from interpreter.frontends.terminal.render.ansi import wrapped
from interpreter.frontends.terminal.terminal import Terminal
from interpreter.frontends.terminal.tty import Tty, prompt_toolkit_options

if TYPE_CHECKING:
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from prompt_toolkit.layout import Window


_SEARCH_HELP = "Type to search. Arrow keys and Enter to pick, Escape to cancel."


def choose_row(terminal: Terminal, question: str, rows: Sequence[str], leaving: str = "") -> int:
    """Return the number of the row that the user chooses; KeyboardInterrupt for Ctrl-C, Escape and an empty answer.

    `leaving` says what Escape does, if that needs saying. In plain text it is chosen by number: no row is redrawn.
    """
    rows = [visible_line(row) for row in rows]
    if terminal.plain:
        width = terminal.tty.size()[0] - 1
        numbered = [wrapped(f"{number:>3}. {row}", width, hanging=3) for number, row in enumerate(rows, 1)]
        terminal.tell("\n".join([question, *(line for lines in numbered for line in lines)]), "")
        while answer := terminal.ask(f"Number (Enter {leaving or 'to skip'}): "):
            if answer.strip().isdecimal() and 0 < int(answer) <= len(rows):
                return int(answer) - 1
        raise KeyboardInterrupt
    from prompt_toolkit.application import get_app
    from prompt_toolkit.layout import FormattedTextControl, ScrollOffsets, Window

    def columns() -> int:
        return get_app().output.get_size().columns

    def heading() -> str:
        hint = f" Arrow keys and Enter to pick, Escape {leaving}." if leaving else ""
        return "\n".join(wrapped(f"{question}{hint}\n", columns() - 1))

    def draw(number: int) -> str:
        return "\n  ".join(wrapped(rows[number], columns() - 2, hanging=2))

    marked = _MarkedRows(range(len(rows)), draw)
    steps = {"up": -1, "k": -1, "c-p": -1, "down": 1, "j": 1, "c-n": 1}
    steps |= {"pageup": -len(rows), "home": -len(rows), "pagedown": len(rows), "end": len(rows)}
    window = Window(
        FormattedTextControl(marked.text, focusable=True, show_cursor=False),
        scroll_offsets=ScrollOffsets(top=1, bottom=1),
        dont_extend_height=True,
    )
    above = Window(FormattedTextControl(heading), dont_extend_height=True)
    return _run(terminal.tty, [above, window], window, marked.keys(steps, leave="<sigint>"))


def search_row(tty: Tty, question: str, rows: Sequence[str], draw: Callable[[int, int], str]) -> int:
    """Return the number of a row that the user finds by typing its words; KeyboardInterrupt for Ctrl-C and Escape.

    `rows` are searched, `draw(number, width)` is shown.
    """
    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.layout import BufferControl, FormattedTextControl, ScrollOffsets, Window
    from prompt_toolkit.layout.processors import BeforeInput

    width, texts = tty.size()[0] - 3, [row.lower() for row in rows]
    marked = _MarkedRows(range(len(texts)), lambda number: draw(number, width))

    def search(buffer: Buffer) -> None:
        wanted = buffer.text.lower().split()
        marked.rows = [at for at, text in enumerate(texts) if all(word in text for word in wanted)]
        marked.row = 0

    typed = Buffer(multiline=False, on_text_changed=search)
    line = Window(BufferControl(typed, input_processors=[BeforeInput("Search: ")]), height=1)
    matches = Window(FormattedTextControl(marked.text), scroll_offsets=ScrollOffsets(top=1, bottom=1))
    heading = Window(FormattedTextControl(f"{question} {_SEARCH_HELP}"), dont_extend_height=True, wrap_lines=True)
    steps = {"up": -1, "c-p": -1, "down": 1, "c-n": 1, "pageup": -10, "pagedown": 10}
    return _run(tty, [heading, line, matches], line, marked.keys(steps, leave="c-d"))


class _MarkedRows:
    """Numbers of rows of which one is marked, and the keys that move the mark."""

    def __init__(self, rows: Sequence[int], draw: Callable[[int], str]) -> None:
        self.rows, self._draw = rows, draw
        self.row = 0

    def text(self) -> StyleAndTextTuples:
        out: StyleAndTextTuples = []
        for row, number in enumerate(self.rows):
            if row == self.row:
                out.append(("[SetCursorPosition]", ""))
            sign, style = (">", "bold") if row == self.row else (" ", "")
            out.append((style, f"{sign} {self._draw(number)}\n"))
        return out or [("", "  No matches.\n")]

    def keys(self, steps: dict[str, int], leave: str) -> KeyBindings:
        """Bind keys that move by these steps, Enter to choose, and Ctrl-C, Escape and `leave` to leave."""
        from prompt_toolkit.key_binding import KeyBindings

        keys = KeyBindings()

        def move(event: KeyPressEvent, by: int) -> None:
            self.row = max(0, min(self.row + by, len(self.rows) - 1))

        for name, by in steps.items():
            keys.add(name)(partial(move, by=by))

        @keys.add("enter")
        @keys.add("c-j")  # what Enter is if it was pressed before we had the terminal
        def _take(event: KeyPressEvent) -> None:
            if self.rows:
                event.app.exit(result=self.rows[self.row])

        @keys.add("c-c")
        @keys.add(leave)
        @keys.add("escape", eager=True)
        def _leave(event: KeyPressEvent) -> None:
            event.app.exit(exception=KeyboardInterrupt)

        return keys


def _run(tty: Tty, windows: list[Window], focus: Window, keys: KeyBindings) -> int:
    from prompt_toolkit.application import Application
    from prompt_toolkit.layout import HSplit, Layout

    layout = Layout(HSplit(windows), focused_element=focus)
    application: Application[int] = Application(
        layout=layout, key_bindings=keys, erase_when_done=True, **prompt_toolkit_options(tty)
    )
    application.ttimeoutlen = 0.05  # Escape alone is an answer
    return application.run()
