"""A list to search by typing and to choose from with the arrow keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyBindings

    from interpreter.frontends.terminal.tty import Tty

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
