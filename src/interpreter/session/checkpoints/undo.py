"""What going to another point would change, and what came of it: for people and for programs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from interpreter.session.checkpoints.checkpoint import Part, Point

if TYPE_CHECKING:
    from interpreter.errors import NotRestorableError
    from interpreter.messages import Message
    from interpreter.runtimes.state import Mark, Restored
    from interpreter.workspace import (
        Plan,
        Report,
        Step,
    )


class VariablesOutlook(NamedTuple):
    """What would become of the variables of a language."""

    language: str
    obstacle: str | None = None
    """Why they stay as they are, if that is so."""

    @property
    def sentence(self) -> str:
        """The same as people say it."""
        return f"The variables of {self.language} stay: {self.obstacle}."


@dataclass(frozen=True)
class Outlook:
    """What would be restored by going to a point. Nothing has been done yet."""

    to: int
    """The place of the point among all; one more than the last is the present."""
    back: bool
    """Whether it is earlier."""
    points: tuple[Point, ...]
    """What would be taken back, or done again."""
    parts: tuple[Part, ...]
    messages: tuple[Message, ...] = ()
    """Those that would go, or come back."""
    files: Plan | None = None
    variables: tuple[VariablesOutlook, ...] = ()
    mark: Mark | None = None
    notes: tuple[str, ...] = ()
    """What cannot be restored, in sentences."""
    stamp: int = 0
    point: int | None = None
    """The id of the point; None for the present."""

    @property
    def certain(self) -> list[Step]:
        """What is done to files that are as the blocks left them."""
        from interpreter.workspace.restore import chosen_steps

        return chosen_steps(self.files, (), ())[0] if self.files is not None else []

    @property
    def drifted(self) -> list[Step]:
        """The files that somebody else has changed since, and that can be restored."""
        drift = self.files.drift if self.files is not None else ()
        return [step for step in drift if step.repository is None and not step.impossible]

    @property
    def changes_files(self) -> bool:
        """Whether anything on the disk would change, or could; then a person should be asked."""
        from interpreter.workspace.restore import chosen_steps

        if self.files is None:
            return False
        drifted = {step.path for step in self.files.drift if step.repository is None}
        return bool(chosen_steps(self.files, drifted, ())[0])

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all would change."""
        return not (self.messages or self.changes_files or self.variables or self.mark)


@dataclass(frozen=True)
class Undone:
    """What an undo, a redo or a return to a point has done."""

    outlook: Outlook
    files: Report | None = None
    variables: dict[str, Restored | NotRestorableError] = field(default_factory=dict)

    @property
    def restored(self) -> tuple[str, ...]:
        """The paths of the files that were restored."""
        return self.files.restored if self.files is not None else ()

    @property
    def sentences(self) -> list[str]:
        """What could not be restored, or is not as it was; nothing to say, no words."""
        return [*self._about_variables(), *self._about_files(), *self.outlook.notes]

    @property
    def fields(self) -> dict[str, Any]:
        """As the journal has it, under the event `rewound`."""
        told = {language: str(how) for language, how in self.variables.items()}
        files = self.files.fields if self.files is not None else None
        points = [point.id for point in self.outlook.points]
        return {
            "points": points,
            "back": self.outlook.back,
            "to": self.outlook.point,
            "parts": list(self.outlook.parts),
            "files": files,
            "variables": told,
        }

    def _about_variables(self) -> Iterable[str]:
        for language, how in self.variables.items():
            if words := str(how):
                yield f"{language}: {words}"
        for each in self.outlook.variables:
            if each.obstacle is not None and each.language not in self.variables:
                yield each.sentence

    def _about_files(self) -> Iterable[str]:
        if self.files is None or self.outlook.files is None:
            return
        from interpreter.workspace.tree import repository_of

        named = {step.path for step in self.outlook.files.steps if step.impossible}  # among the notes
        kept = [each for each in (*self.files.kept, *self.files.failed) if each.path not in named]
        left = {repository_of(path) or path: why for path, why, *_ in kept}
        yield from (f"{path} is left as it is: {why}." for path, why in left.items())
