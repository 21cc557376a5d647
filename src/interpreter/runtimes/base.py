"""The base class of a language, which users can subclass; and the formats that are shown but not run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from interpreter.errors import NotRestorableError, UsageError
from interpreter.leaves import load

if TYPE_CHECKING:
    from interpreter.questions import Step
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

    name: str = "baselanguage"  # its display name; the model, exports and rules use it in lower case
    aliases: Sequence[str] = ()  # other names that a model or a user may write
    file_extension: str | None = None  # the extension of its files, without the dot
    # The characters that start a comment up to the end of the line.
    comment: str = "#"
    # The Pygments lexer for highlighting. None: the one with the language's name, if there is one.
    lexer: str | None = None
    system_message: str | None = None  # what the model should know about it
    # A multi-line regular expression; its groups are the names that a block defines for later blocks.
    definitions: str | None = None
    quotes_paths: bool = False  # whether code quotes file names; if not, any word may be one

    takes_keys: bool = False  # whether a running block reads the keyboard, through `send_keys`
    # Whether the output of a failed block explains the error. If not, the terminal shows the exit code.
    explains_failures: bool = True
    sandboxable: bool = False  # whether its code runs in a separate process, which a sandbox can contain

    # Static analysis: `(code, notes, known) -> defines` as in `interpreter.policy.analysis.python:analyze`. None: a
    # block may do anything.
    analysis: str | None = None
    # The scanners of safe mode that understand it, each an `interpreter.scanners.scanner.ScannerTool`.
    scanners: Sequence[str] = ()
    # For code of other languages inside a block: `(code, registry) -> parts`, for the scanners.
    scan_parts: str | None = None
    # The first line of a notebook cell that runs a block, such as `%%script lua`; empty if it needs none. None:
    # notebooks can't run it, and show the code as text.
    cell_magic: str | None = None
    # If cells need help to keep their state: `(codes) -> interpreter.export.notebook.Setup | None`. Without it, a cell
    # repeats the earlier blocks whose `definitions` it uses.
    cell_setup: str | None = None
    # Adds a block to an exported script, as in `interpreter.script.steps:add_python`. None: the script leaves
    # blocks in this language out, with a note.
    script: str | None = None
    # Runs a block without consequences: `(language, overlay)`, as in `interpreter.preview.dry_run:PythonDryRun`. None:
    # its variables can't be copied.
    preview: str | None = None
    # Called once per run when the block has ended or moved to the background, usually from the reader thread. Set it
    # before `run`. It must not wait. A language that runs blocks in the caller's thread does not call it.
    on_end: Callable[[], None] | None = None

    # Whether `stop` ends a block at once. If not, Ctrl-C raises KeyboardInterrupt inside `run`.
    handles_interrupts = False
    install: str = ""  # the commands that install the program that runs it
    order: int = 100  # its position among the built-in languages, most used first
    # For a language of the package, its row in `built_in.py`: the class that runs it, as `package.module:name`.
    implementation: str = ""
    programs: Sequence[str] = ()  # one of these has to be installed
    has_version: bool = True  # whether to ask `version` for a version, and not only look for the programs
    keeps_variables: bool = True  # whether later blocks see what a block leaves behind
    restorable: bool = False  # whether its variables can return to earlier states
    runs_on: str = ""  # the machine that its code runs on, if that is not this one
    covered_by_undo: bool = True  # whether changes that its blocks make to workspace files can be undone
    is_common: bool = True  # whether small models are offered it: a longer list makes them choose badly

    def __init_subclass__(cls) -> None:
        cls.restorable = cls.restorable or cls.restore is not BaseLanguage.restore

    @classmethod
    def variant(cls, context: RuntimeContext) -> type[BaseLanguage]:
        """Return the class that runs blocks with these settings."""
        own = vars(cls).get("implementation")
        implementation: type[BaseLanguage] = load(own).variant(context) if own else cls
        return implementation

    def version(self) -> str | None:
        """Return what runs it, for the model: such as `Node.js 20.11`; None if that is missing, empty if irrelevant."""
        return ""

    def installed(self) -> str | None:
        """Return the program that runs it and its version, for people; None if missing, empty if it needs none."""
        return self.version()

    def run(self, code: str) -> Iterator[Step]:
        """Run the code, and yield its output and effects as chunks without a role."""
        raise NotImplementedError(f"{type(self).__name__} does not say how to run code")

    def variables(self) -> list[Variable]:
        """List the live variables. Raises BusyError while a block runs."""
        return []

    def look(
        self,
        name: str,
        rows: Window = (0, 50),
        columns: Window = (0, 50),
        view: TableQuery | None = None,
        again: bool = False,
    ) -> Value:
        """Return a value to look at; of a table, these rows and columns of this view.

        With `again`, nothing has changed since the last look at the same view.
        """
        raise UsageError(f"{self.name} can't show values.")

    def stop_looking(self) -> None:
        """Stop a query that takes too long. May be called from any thread."""

    def complete(self, code: str, cursor: int) -> Completions:
        """Complete the code at the cursor; no completions if that is not possible quickly."""
        from interpreter.runtimes.state import Completions

        return Completions(cursor)

    @property
    def state(self) -> int | None:
        """Return the number of the present state of the variables, to restore later; None if that is not possible."""
        return None

    def points(self) -> list[int]:
        """List the states that can be restored, oldest first."""
        return []

    def restore(self, state: int) -> Restored:
        """Restore a state, after which the present one can be restored. Raises NotRestorableError if that fails."""
        raise NotRestorableError(f"{self.name} variables can't be restored. Run its blocks again instead.")

    def split(self, computer: Any) -> tuple[BaseLanguage, Restored]:
        """Copy the language to another computer, with its variables; return the copy and what could not be copied.

        Raises NotRestorableError if that is not possible.
        """
        raise NotRestorableError(NOT_TAKEN_ALONG.format(name=self.name))

    def stop(self) -> None:
        """Stop the running block; may be called from another thread."""

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
