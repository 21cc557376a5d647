"""What a language offers, for users to subclass; and the formats that are shown but not run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from interpreter.errors import NotPreviewableError, NotRestorableError, UsageError

if TYPE_CHECKING:
    from interpreter.questions import Step
    from interpreter.runtimes.dry_run import DryRun, Overlay
    from interpreter.runtimes.launch import RuntimeContext
    from interpreter.runtimes.state import Completions, Restored, TableQuery, Value, Variable, Window

NOT_TAKEN_ALONG = "{name} variables can't be copied. Run its blocks again instead."


class BaseLanguage:
    """A language that blocks can be written in, and everything that other parts know about it.

    A subclass sets `name` and yields chunks from `run`; the rest has defaults:

        class Shout(BaseLanguage):
            name = "shout"

            def run(self, code):
                yield {"type": "console", "format": "output", "content": code.upper()}

    `__init__` may take nothing, or one argument, which is then the `computer`. An attribute that names a function or a
    class has the form `package.module:name`; the part that needs it imports it then.
    """

    name: str = "baselanguage"  # what people call it; the model, exports and rules use it in lower case
    aliases: Sequence[str] = ()  # other names that a model or a user may write
    file_extension: str | None = None  # the extension of its files, without the dot
    # What starts a comment that ends with the line.
    comment: str = "#"
    # The Pygments lexer that highlights it; None: the one that has the language's name, if there is one.
    lexer: str | None = None
    system_message: str | None = None  # what the model should know about it
    # A multi-line regular expression; its groups are the names that a block defines for later blocks.
    definitions: str | None = None
    quotes_paths: bool = False  # whether code has file names in quotes; if not, any word may be one

    takes_keys: bool = False  # whether a running block reads the keyboard, through `send_keys`
    # Whether the output of a failed block says what went wrong; if not, the terminal shows the exit code.
    explains_failures: bool = True
    sandboxable: bool = False  # whether its code runs in a separate process, which a sandbox can contain

    # Static analysis: `(code, notes, known) -> defines` as in `interpreter.policy.analysis.python:analyze`. None: a
    # block may do anything.
    analysis: str | None = None
    # The scanners of safe mode that understand it, each an `interpreter.policy.scanners.scanner.ScannerTool`.
    scanners: Sequence[str] = ()
    # Where code of other languages can be part of a block: `(code, registry) -> parts`, for the scanners.
    scan_parts: str | None = None
    # The first line of a notebook cell that runs a block, such as `%%script lua`; empty: it needs none. None: a
    # notebook cannot run it, and shows the code as text.
    cell_magic: str | None = None
    # Where cells need help to keep their state: `(codes) -> interpreter.export.notebook.Setup | None`. Without it, a
    # cell repeats the earlier blocks whose `definitions` it uses.
    cell_setup: str | None = None
    # How the script export carries a block over, as in `interpreter.export.script.steps:add_python`. None: it does not,
    # and says so.
    script: str | None = None
    # Called once per run when the block has ended or moved to the background, usually from the reader thread. Set it
    # before `run`. It must not wait. A language that runs blocks in the caller's thread does not call it.
    on_end: Callable[[], None] | None = None

    # Whether `stop` ends a block at once. If not, Ctrl-C raises KeyboardInterrupt inside `run`.
    handles_interrupts = False
    install: str = ""  # how to get the program that runs it, as commands to type
    order: int = 100  # its position among the built-in languages, most used first
    runs_on: str = ""  # the machine that its code runs on, if that is not this one
    covered_by_undo: bool = True  # whether what its blocks do to files of the workspace can be undone
    is_common: bool = True  # whether small models are offered it too: a longer list makes them choose badly

    @classmethod
    def variant(cls, context: RuntimeContext) -> type[BaseLanguage]:
        """The class that runs its blocks with these settings."""
        return cls

    def version(self) -> str | None:
        """What runs it, for the model to know, such as `Node.js 20.11`; None if it is missing, empty if irrelevant."""
        return ""

    def installed(self) -> str | None:
        """The program that runs it and its version, for people; None if it is missing, empty if it needs none."""
        return self.version()

    def run(self, code: str) -> Iterator[Step]:
        """Run the code and yield what happens as chunks without a role."""
        raise NotImplementedError(f"{type(self).__name__} does not say how to run code")

    def variables(self) -> list[Variable]:
        """The live variables; BusyError while a block runs."""
        return []

    def look(
        self,
        name: str,
        rows: Window = (0, 50),
        columns: Window = (0, 50),
        view: TableQuery | None = None,
        again: bool = False,
    ) -> Value:
        """A value to look at: of a table, these rows and columns of this view.

        `again`: nothing has changed since the last look at the same view.
        """
        raise UsageError(f"{self.name} can't show values.")

    def stop_looking(self) -> None:
        """End a look that takes too long; from any thread."""

    def complete(self, code: str, cursor: int) -> Completions:
        """What could be typed at the cursor; nothing if there is no quick answer."""
        from interpreter.runtimes.state import Completions

        return Completions(cursor)

    @property
    def state(self) -> int | None:
        """The number of the present state of the variables, to return to later; None where that is not possible."""
        return None

    def points(self) -> list[int]:
        """The states that can be returned to, the oldest first."""
        return []

    def restore(self, state: int) -> Restored:
        """Return to a state; afterwards, the present one can be returned to. NotRestorableError if that fails."""
        raise NotRestorableError(f"{self.name} variables can't be restored. Run its blocks again instead.")

    def split(self, computer: Any) -> tuple[BaseLanguage, Restored]:
        """An independent copy for another computer, with the same variables; and what could not be copied.

        NotRestorableError if that is not possible.
        """
        raise NotRestorableError(NOT_TAKEN_ALONG.format(name=self.name))

    def dry_run(self, overlay: Overlay) -> DryRun:
        """Prepare to run a block without consequences; NotPreviewableError if that is not possible."""
        raise NotPreviewableError(f"{self.name} blocks can't be previewed, because their variables can't be copied.")

    def stop(self) -> None:
        """End the block that is running; may be called from another thread."""

    def terminate(self) -> None:
        """Release everything the language holds; the next run starts fresh."""


class Displayed(BaseLanguage):
    """A format that is shown to the user and not run."""

    analysis = "interpreter.policy.analysis:analyze_displayed"


class Markdown(Displayed):
    name = "Markdown"
    file_extension = "md"


class SVG(Displayed):
    name = "SVG"
    file_extension = "svg"
    lexer = "xml"


DISPLAYED = (Markdown, SVG)
