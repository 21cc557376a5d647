"""A list to choose from with the arrow keys, or by number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from interpreter.frontends.terminal.render.ansi import wrapped
from interpreter.frontends.terminal.tty import Tty, read_line

if TYPE_CHECKING:
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyBindings

    from interpreter.frontends.terminal.tty import Tty


class Menu:
    """Rows under a question; one of them is marked.

    `leaving` is what Escape does, where that is worth a word; `plain` if rows are not to be drawn again.
    """

    def __init__(self, question: str, rows: Sequence[str], leaving: str = "", plain: bool = False) -> None:
        self.question, self.rows = question, rows
        self.leaving, self.plain = leaving, plain
        self.marked = 0

    def choose(self) -> int:
        """The number of the row that was taken; KeyboardInterrupt for Ctrl-C, and for Escape or an empty answer."""
        return self._by_number() if self.plain or not Tty().can_draw else self._by_arrows()

    def _by_number(self) -> int:
        width = Tty().size()[0] - 1
        print("\n".join(wrapped(self.question, width)))
        for number, row in enumerate(self.rows, 1):
            print("\n".join(wrapped(f"{number:>3}. {row}", width, hanging=3)))
        while answer := ask_plainly(f"Its number (Enter alone {self.leaving or 'takes none'}): ").strip():
            if answer.isdecimal() and 0 < int(answer) <= len(self.rows):
                return int(answer) - 1
        raise KeyboardInterrupt

    def _by_arrows(self) -> int:
        from prompt_toolkit.application import Application
        from prompt_toolkit.layout import HSplit, Layout, ScrollOffsets, Window
        from prompt_toolkit.layout.controls import FormattedTextControl

        question = Window(FormattedTextControl(self._words), dont_extend_height=True)
        rows = Window(
            FormattedTextControl(self._text, focusable=True, show_cursor=False),
            scroll_offsets=ScrollOffsets(top=1, bottom=1),
            dont_extend_height=True,
        )
        layout = Layout(HSplit([question, rows]), focused_element=rows)
        application: Application[int] = Application(layout=layout, key_bindings=self._keys(), erase_when_done=True)
        application.ttimeoutlen = 0.05  # Escape alone is an answer
        return application.run()

    def _text(self) -> StyleAndTextTuples:
        out: StyleAndTextTuples = []
        for number, row in enumerate(self.rows):
            is_marked = number == self.marked
            if is_marked:
                out.append(("[SetCursorPosition]", ""))
            first, *more = wrapped(row, _columns() - 2, hanging=2)
            text = "".join(f"  {line}\n" for line in more)
            out.append(("bold" if is_marked else "", f"{'>' if is_marked else ' '} {first}\n{text}"))
        return out

    def _words(self) -> str:
        hint = f" Arrow keys and Enter; Escape {self.leaving}." if self.leaving else ""
        return "\n".join(wrapped(f"{self.question}{hint}\n", _columns() - 1))

    def _keys(self) -> KeyBindings:
        from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

        keys = KeyBindings()

        def move(*names: str, by: int) -> None:
            for name in names:

                @keys.add(name)
                def _(event: KeyPressEvent) -> None:
                    self.marked = max(0, min(self.marked + by, len(self.rows) - 1))

        move("up", "k", "c-p", by=-1)
        move("down", "j", "c-n", by=1)
        move("pageup", "home", by=-len(self.rows))
        move("pagedown", "end", by=len(self.rows))

        @keys.add("enter")
        @keys.add("c-j")  # what Enter is if it was pressed before we had the terminal
        def _take(event: KeyPressEvent) -> None:
            event.app.exit(result=self.marked)

        @keys.add("c-c")
        @keys.add("<sigint>")
        @keys.add("escape", eager=True)
        def _leave(event: KeyPressEvent) -> None:
            event.app.exit(exception=KeyboardInterrupt)

        return keys


def fitting(text: str) -> str:
    """Words that are printed before there is a chat, in lines that end between words."""
    return "\n".join(wrapped(text, Tty().size()[0] - 1))


def ask_plainly(question: str) -> str:
    """One line from the user, empty at the end of input."""
    tty = Tty()
    if not tty.can_draw:
        tty.write(question)
        return read_line(tty).rstrip("\r\n")
    from prompt_toolkit import prompt

    try:
        return prompt(question)
    except EOFError:
        return ""


def _columns() -> int:
    """How wide the terminal is at this moment."""
    from prompt_toolkit.application import get_app

    return get_app().output.get_size().columns


_HELP = "Type to search; arrow keys and Enter; Escape leaves."


class Picker:
    """Rows of text; those that contain all words that are typed stay."""

    def __init__(self, question: str, rows: Sequence[str], draw: Callable[[int, int], str]) -> None:
        """`rows` are what is searched, `draw(number, width)` is what is shown."""
        self.question, self._draw = question, draw
        self._texts = [row.lower() for row in rows]
        self._shown = list(range(len(rows)))
        self.marked = 0

    def search(self, words: str) -> None:
        """Show the rows that contain all of these words."""
        wanted = words.lower().split()
        self._shown = [number for number, text in enumerate(self._texts) if all(word in text for word in wanted)]
        self.marked = 0

    @property
    def taken(self) -> int | None:
        """The row that is marked; None if none is left."""
        return self._shown[self.marked] if self._shown else None

    def move(self, by: int) -> None:
        self.marked = max(0, min(self.marked + by, len(self._shown) - 1))

    def choose(self, tty: Tty) -> int:
        """The number of the row that was taken; KeyboardInterrupt for Ctrl-C and Escape."""
        from prompt_toolkit.application import Application
        from prompt_toolkit.buffer import Buffer
        from prompt_toolkit.input import create_input
        from prompt_toolkit.layout import HSplit, Layout, ScrollOffsets, Window
        from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
        from prompt_toolkit.layout.processors import BeforeInput
        from prompt_toolkit.output import ColorDepth, create_output
        from prompt_toolkit.output.vt100 import Vt100_Output

        output = create_output(stdout=tty.stdout)
        if isinstance(output, Vt100_Output):
            output.enable_cpr = False  # its answer would end up in what is typed next
        typed = Buffer(multiline=False, on_text_changed=lambda buffer: self.search(buffer.text))
        line = Window(BufferControl(typed, input_processors=[BeforeInput("Search: ")]), height=1)
        width = tty.size()[0] - 3
        rows = Window(FormattedTextControl(lambda: self._text(width)), scroll_offsets=ScrollOffsets(top=1, bottom=1))
        words = Window(FormattedTextControl(f"{self.question} {_HELP}"), dont_extend_height=True, wrap_lines=True)
        application: Application[int] = Application(
            layout=Layout(HSplit([words, line, rows]), focused_element=line),
            key_bindings=self._keys(),
            erase_when_done=True,
            input=create_input(tty.stdin),
            output=output,
            color_depth=None if tty.color else ColorDepth.DEPTH_1_BIT,
        )
        application.ttimeoutlen = 0.05  # Escape alone is an answer
        return application.run()

    def _text(self, width: int) -> StyleAndTextTuples:
        out: StyleAndTextTuples = []
        for place, number in enumerate(self._shown):
            is_marked = place == self.marked
            if is_marked:
                out.append(("[SetCursorPosition]", ""))
            out.append(("bold" if is_marked else "", f"{'>' if is_marked else ' '} {self._draw(number, width)}\n"))
        return out or [("", "  Nothing has these words.\n")]

    def _keys(self) -> KeyBindings:
        from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

        keys = KeyBindings()

        def moves(*names: str, by: int) -> None:
            for name in names:

                @keys.add(name)
                def _(event: KeyPressEvent) -> None:
                    self.move(by)

        moves("up", "c-p", by=-1)
        moves("down", "c-n", by=1)
        moves("pageup", by=-10)
        moves("pagedown", by=10)

        @keys.add("enter")
        def _take(event: KeyPressEvent) -> None:
            if self.taken is not None:
                event.app.exit(result=self.taken)

        @keys.add("c-c")
        @keys.add("c-d")
        @keys.add("escape", eager=True)
        def _leave(event: KeyPressEvent) -> None:
            event.app.exit(exception=KeyboardInterrupt)

        return keys
