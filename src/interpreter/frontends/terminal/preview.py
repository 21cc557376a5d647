"""A block is tried out before it is approved: what it printed, what it would change, and the question about that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interpreter.errors import InterpreterError
from interpreter.frontends.terminal.approval import edit
from interpreter.session import APPROVE, REFUSE, Answer

if TYPE_CHECKING:
    from interpreter.agent.blocks import PendingBlock
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.messages import Chunk
    from interpreter.session.preview import Preview
    from interpreter.workspace import Change

BEGIN = "Preview: nothing that it does lasts, and the network is closed."
QUESTION = "Apply this? (y/n)"
EXPLANATION = "y makes it real, n forgets it, e forgets it and lets you edit the code, d shows all differences."
DRY = "Nothing was run. What can be told from its text:"
APPLIED = "Applied."
FORGOTTEN = "Forgotten: nothing has changed."
MOST_LINES = 40  # of differences that are shown unasked
SIGNS = {"created": "+", "deleted": "-", "renamed": ">", "changed": "~", "mode": "~", "touched": "~"}
STYLES = {"+": "string", "-": "error", "@": "hint"}


class Trying:
    """Tries out the block that waits, as often as it is asked to."""

    def __init__(self, terminal: Terminal, interpreter: OpenInterpreter, pending: PendingBlock) -> None:
        self._terminal, self._interpreter, self._pending = terminal, interpreter, pending

    @property
    def may_work(self) -> bool:
        """Whether there is a way: none in a sandbox, and none for a language whose variables cannot be copied."""
        return self._interpreter.sandbox_now() is None and self._interpreter.computer.copies(self._pending.language)

    def look(self) -> Answer | None:
        """Run it where nothing lasts and ask what then; None if the question about the block is still open."""
        pending = self._pending
        try:
            preview = self._interpreter.computer.preview(pending.language, pending.code)
        except InterpreterError as error:
            self._dry_look(error)
            return None
        try:
            self._run(preview)
            if self._interpreter.cancelled:  # Ctrl-C is for the whole turn
                preview.discard()
                return Answer(REFUSE)
            self._show(preview)
            chosen = self._choose(preview)
        except BaseException:
            preview.discard()
            raise
        return self._settle(preview, chosen)

    def _run(self, preview: Preview) -> None:
        display = self._terminal.display
        display.line(BEGIN)
        display.running()
        busy = self._terminal.busy
        for chunk in busy.interrupts.passing(iter(preview)) if busy is not None else preview:
            display.show({**chunk, "role": "computer"})

    def _show(self, preview: Preview) -> None:
        from interpreter.runtimes.states import listed

        display = self._terminal.display
        for change in preview.changes:
            display.line(line_of(change))
        if not preview.changes:
            display.line("It changes no files.")
        self._show_differences(preview, MOST_LINES)
        if preview.denied:
            display.line(f"Denied: {listed([str(each) for each in preview.denied])}.", "error")
        if preview.lost:
            display.line(f"Would be lost: {listed(preview.lost)}.", "error")

    def _choose(self, preview: Preview) -> str:
        if not preview.can_apply:
            self._terminal.display.line("This cannot be applied: the process that it ran in has ended.")
            return "n"
        while True:
            try:
                answer = self._terminal.ask(QUESTION + " ", guarded=True)
            except KeyboardInterrupt:
                answer = None
            word = (answer or "n").strip().lower()[:1]
            if answer is None or word in ("y", "n", "e"):
                return word
            if word == "d":
                self._show_differences(preview, None)
            else:
                self._terminal.display.line(EXPLANATION)

    def _settle(self, preview: Preview, chosen: str) -> Answer | None:
        if chosen == "y":
            return Answer(APPROVE, details={"preview": preview})
        preview.discard()
        self._terminal.display.line(FORGOTTEN)
        return edit(self._terminal, self._pending) if chosen == "e" else None

    def _show_differences(self, preview: Preview, most: int | None) -> None:
        """Those of the workspace, as many as that; or all there are."""
        texts = [text for path, text in preview.diffs.items() if most is None or not path.startswith("/")]
        lines = [line for text in texts for line in text.splitlines()]
        for line in lines[:most]:
            self._terminal.display.line(line, STYLES.get(line[:1], "quote"))
        if most is not None and len(lines) > most:
            self._terminal.display.line(f"{len(lines) - most} more lines: d shows them.")

    def _dry_look(self, error: InterpreterError) -> None:
        """There is no preview here: say so, and what the code names."""
        self._terminal.display.line(str(error), "error")
        if named := getattr(error, "named", ()):
            self._terminal.display.line("\n".join([DRY, *(f"  {line}" for line in named)]))


class Seen:
    """Knows which chunks of a turn have been on the screen: those of a preview that is made real."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def before(self, chunk: Chunk) -> bool:
        """Whether the user has seen it before; at the end of the block it says that it is real now."""
        if chunk["type"] in ("status", "confirmation"):
            return False
        if chunk.get("previewed"):
            if "ended" in chunk:
                self._terminal.display.line(APPLIED)
                self._terminal.display.tell_files()
            return True
        return False


def line_of(change: Change) -> str:
    """One change in a line."""
    kind = "" if change.what != "created" and change.what != "deleted" else kind_of(change)
    source = f"{change.source} -> " if change.source else ""
    return f"  {SIGNS[change.what]} {change.what:<8} {source}{change.path}{kind}"


def kind_of(change: Change) -> str:
    item = change.after or change.before
    return "/" if item is not None and item.kind == "folder" else ""
