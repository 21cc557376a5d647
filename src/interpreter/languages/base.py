"""What a language must offer; users subclass it to add their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from interpreter.errors import NotPreviewableError, NotRestorableError, UsageError

if TYPE_CHECKING:
    from interpreter.languages.looking import Completions, Value, Variable, Window
    from interpreter.languages.states import Restored
    from interpreter.languages.trials.trial import Trial
    from interpreter.languages.trials.view import View
    from interpreter.messages import Chunk


class BaseLanguage:
    """A language that blocks can be written in.

    A subclass sets `name` and yields chunks from `run`:

        class Shout(BaseLanguage):
            name = "shout"

            def run(self, code):
                yield {"type": "console", "format": "output", "content": code.upper()}

    `__init__` may take nothing, or one argument, which is then the `computer`.
    """

    name: str = "baselanguage"
    aliases: Sequence[str] = ()
    file_extension: str | None = None
    system_message: str | None = None

    def run(self, code: str) -> Iterator[Chunk]:
        """Run the code and yield what happens as chunks without a role."""
        raise NotImplementedError(f"{type(self).__name__} does not say how to run code")

    def variables(self) -> list[Variable]:
        """The live variables; BusyError while a block runs."""
        return []

    def look(self, name: str, rows: Window = (0, 50), columns: Window = (0, 50)) -> Value:
        """A value to look at: of a table, these rows and columns."""
        raise UsageError(f"{self.name} does not show its values.")

    def complete(self, code: str, cursor: int) -> Completions:
        """What could be typed at the cursor; nothing if there is no quick answer."""
        from interpreter.languages.looking import Completions

        return Completions(cursor)

    @property
    def state(self) -> int | None:
        """The number of what the variables are now, to return to later; None where there is no return."""
        return None

    def points(self) -> list[int]:
        """The states that can be returned to, the oldest first."""
        return []

    def restore(self, state: int) -> Restored:
        """Return to a state; the present one can be returned to afterwards. NotRestorableError if it cannot be."""
        raise NotRestorableError(f"The variables of {self.name} cannot be rewound: run its blocks again instead.")

    def split(self, computer: Any) -> tuple[BaseLanguage, Restored]:
        """A second language for another computer, with the same variables and independent of this one; what is not
        the same there. NotRestorableError where that cannot be."""
        from interpreter.languages.states import NOT_TAKEN_ALONG

        raise NotRestorableError(NOT_TAKEN_ALONG.format(name=self.name))

    def trial(self, view: View) -> Trial:
        """A way to run a block without consequences; NotPreviewableError if there is none."""
        raise NotPreviewableError(f"A {self.name} block cannot be previewed: its variables cannot be copied.")

    def stop(self) -> None:
        """End the block that is running; may be called from another thread."""

    def terminate(self) -> None:
        """Let go of everything the language holds; the next run starts afresh."""
