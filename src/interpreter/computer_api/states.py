"""What the sessions of a computer have between blocks: their variables, and the states that can be returned to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interpreter.computer_api.languages import unknown_language
from interpreter.computer_api.running import Running
from interpreter.errors import LanguageNotFound, NotRestorableError
from interpreter.sigint import wait_for_abandoned

if TYPE_CHECKING:
    from interpreter.runtimes.state import (
        Completions,
        Mark,
        Restored,
        Value,
        Variable,
        Window,
    )


class States(Running):
    """The part of the computer that looks into sessions, and goes back."""

    def variables(self, language: str | None = None) -> dict[str, list[Variable]]:
        """The live variables by language: of one, or of all that have any; BusyError while a block runs."""
        wait_for_abandoned()
        if language is not None:
            found = self.get_language(language)
            if found is None:
                raise LanguageNotFound(unknown_language(language, self.languages))
            instance = self._running.get(found)
            return {found.name: instance.variables() if instance else []}
        listed = {each.name: instance.variables() for each, instance in list(self._running.items())}
        return {name: variables for name, variables in listed.items() if variables}

    def look(self, language: str, name: str, rows: Window = (0, 50), columns: Window = (0, 50)) -> Value:
        """A live value to look at: a window of a table, a picture, or text."""
        return self._instance(language).look(name, rows, columns)

    def complete(self, language: str, code: str, cursor: int | None = None) -> Completions:
        """What could be typed at the cursor; nothing if the language is busy, or has no session yet."""
        from interpreter.runtimes.state import Completions

        found = self.get_language(language)
        instance = self._running.get(found) if found else None
        at = len(code) if cursor is None else cursor
        return instance.complete(code, at) if instance is not None else Completions(at)

    # -- states of the sessions ----------------------------------------------------------------------------------

    def mark(self) -> Mark:
        """This moment, to return to: the state of each language that has a return, the directory, the exports."""
        from interpreter.runtimes.state import Mark

        shared = self.context
        running = self._running
        states = {each.name: (running.get(each) or self._first_instance(each)).state for each in self.languages}
        kept = {name: state for name, state in states.items() if state is not None}
        return Mark(kept, shared.cwd, dict(shared.exported))

    def go_back(self, mark: Mark) -> dict[str, Restored | NotRestorableError]:
        """Return to a moment, earlier or later; by language that was in another state, how that went."""
        told: dict[str, Restored | NotRestorableError] = {}
        for name, state in mark.states.items():
            try:
                if state != self.state(name):
                    told[name] = self.restore(name, state)
            except NotRestorableError as error:
                told[name] = error
        self.context.return_to(mark.cwd, mark.exported)
        return told

    def forget_folders(self) -> None:
        """Files were put back: each session is told anew where it is, since its folder may be another of that name."""
        from interpreter.runtimes.live import LiveLanguage

        self.context.leave_lost_folder()
        for instance in list(self._running.values()):
            if isinstance(instance, LiveLanguage):
                instance.forget_folder()

    def state(self, language: str) -> int | None:
        """The same of one language, which may not have run anything yet; None if it has no return."""
        _ = self.context
        return self._instance(language).state

    def points(self, language: str) -> list[int]:
        """The states that a language can return to, the oldest first."""
        return self._instance(language).points()

    def restore(self, language: str, state: int) -> Restored:
        """Return to a state; NotRestorableError if there is no way. The present one can be returned to after that."""
        _ = self.context
        self._end_trial()
        return self._instance(language).restore(state)

    def split(self, other: States) -> dict[str, Restored | NotRestorableError]:
        """Give another computer, whose languages have not begun, the same variables; by language, how that went.

        The directory and the exported variables are the same there too; the caller may change them before a block runs.
        """
        told: dict[str, Restored | NotRestorableError] = {}
        other.shut_in()
        other.context.return_to(self.context.cwd, self.context.exported)
        for language, instance in list(self._running.items()):
            try:
                other._running[language], told[language.name] = instance.split(other)
            except NotRestorableError as error:
                told[language.name] = error
        return told
