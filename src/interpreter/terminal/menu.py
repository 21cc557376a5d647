"""A list to choose from with the arrow keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyBindings


class Menu:
    """Rows under a question; one of them is marked."""

    def __init__(self, question: str, rows: Sequence[str]) -> None:
        self.question, self.rows = question, rows
        self.marked = 0

    def choose(self) -> int:
        """The number of the row that was taken with Enter; KeyboardInterrupt for Ctrl-C and Escape."""
        from prompt_toolkit.application import Application
        from prompt_toolkit.layout import HSplit, Layout, ScrollOffsets, Window
        from prompt_toolkit.layout.controls import FormattedTextControl

        question = Window(FormattedTextControl(self.question), dont_extend_height=True, wrap_lines=True)
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
            out.append(("bold" if is_marked else "", f"{'>' if is_marked else ' '} {row}\n"))
        return out

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
