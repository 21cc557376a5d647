"""Which steps the results need: a walk from the last step to the first, by names."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from interpreter.export.script.names import names_of
from interpreter.export.script.steps import Step, throws_result_away

_ALWAYS_THERE = frozenset(dir(builtins)) | {"display", "get_ipython", "__name__", "__file__", "__doc__"}


@dataclass
class Choice:
    """What is kept, in order, and what should be said about it."""

    kept: list[Kept] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass
class Kept:
    """A step that stays: whole, as a result, or of a failed one only some statements."""

    step: Step
    is_result: bool
    statements: list[ast.stmt] | None = None


def choose(steps: Sequence[Step], everything: bool = False) -> Choice:
    """Keep the results, and what they need; with `everything`, all that succeeded."""
    successful = [step for step in steps if not step.failed]
    results = {id(step) for step in _results(successful)}
    wanted = {id(step) for step in successful} if everything else results
    walk = _Walk(steps, wanted, results)
    while walk.run():  # functions may need names that were bound after them
        pass
    return walk.choice


def _results(steps: Sequence[Step]) -> Iterable[Step]:
    """Steps that changed a file, drew a figure or did something outside, and the last that printed."""
    found = [step for step in steps if _is_result(step)]
    printing = [step for step in steps if step.kind == "python" and step.printed]
    if printing and not (found and printing[-1].only_shows_values):
        found.append(printing[-1])
    return found


def _is_result(step: Step) -> bool:
    names = step.names
    return names.effects or names.opaque or names.star or step.shows_picture or throws_result_away(step)


class _Walk:
    """One pass is from the last step to the first; passes are repeated until nothing new is needed."""

    def __init__(self, steps: Sequence[Step], wanted: set[int], results: set[int]) -> None:
        self.choice = Choice()
        self._steps, self._wanted, self._results = steps, wanted, results
        self._groups = _Groups(steps)
        self._late: set[str] = set()
        self._first: dict[str, int] = {}  # the first successful step that binds a name
        for at, step in enumerate(steps):
            for name in () if step.failed else step.names.binds | step.names.may_bind:
                self._first.setdefault(name, at)

    def run(self) -> bool:
        """Walk once; True if the walk found names that steps behind it may have bound."""
        self.choice, before = Choice(), set(self._late)
        needed: set[str] = set()
        everything = False
        for at in range(len(self._steps) - 1, -1, -1):
            step = self._steps[at]
            if step.failed:
                self._look_at_failed(at, needed)
            elif id(step) in self._wanted or everything or self._is_needed(step, needed):
                self.choice.kept.insert(0, Kept(step, id(step) in self._results))
                needed -= step.names.binds
                needed |= step.names.reads | step.names.changes
                self._late |= step.names.late
                everything |= step.names.opaque
        self._name_missing(needed)
        return self._late != before

    def _is_needed(self, step: Step, needed: set[str]) -> bool:
        names = step.names
        changed = self._groups.with_relatives(names.changes)
        return bool((names.binds | names.may_bind | changed) & (needed | self._late))

    def _look_at_failed(self, at: int, needed: set[str]) -> None:
        """A failed step may have bound names that later ones read: those that nobody else can have bound."""
        step = self._steps[at]
        earlier = {name for name in step.names.writes | step.names.reads if self._first.get(name, at) < at}
        missing = ((step.names.binds | step.names.may_bind) & (needed | self._late)) - earlier
        statements: list[ast.stmt] = []
        for node in reversed(step.body):
            names = names_of([node])
            if (names.binds | names.may_bind) & missing:
                statements.insert(0, node)
                missing -= names.binds
                needed -= names.binds
                needed |= names.reads
                missing |= (names.reads & (step.names.binds | step.names.may_bind)) - earlier
                self._late |= names.late
        if statements:
            self.choice.kept.insert(0, Kept(step, False, statements))
        modules = set(step.names.modules)
        doubtful = sorted((step.names.writes - modules) & needed & earlier)
        if doubtful:
            told = ", ".join(f"`{name}`" for name in doubtful)
            self.choice.notes.insert(0, f"A block that failed may have changed {told} before; that is not carried.")

    def _name_missing(self, needed: set[str]) -> None:
        bound = {name for kept in self.choice.kept for name in kept.step.names.binds | kept.step.names.may_bind}
        star = any(kept.step.names.star or kept.step.names.opaque for kept in self.choice.kept)
        missing = sorted(((needed | self._late) - bound - _ALWAYS_THERE) if not star else ())
        if missing:
            told = ", ".join(f"`{name}`" for name in missing)
            self.choice.notes.append(f"Not defined by any block that is carried: {told}.")


class _Groups:
    """Names that may stand for parts of one object: changing one may change the others."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._group: dict[str, set[str]] = {}
        packages: dict[str, set[str]] = {}
        for step in steps:
            for name, module in step.names.modules.items():
                packages.setdefault(module.partition(".")[0], set()).add(name)
            for alike in step.names.alike:
                self._join(alike)
        for names in packages.values():
            self._join(names)

    def _join(self, names: Iterable[str]) -> None:
        names = set(names)
        whole = names.union(*(self._group.get(name, set()) for name in names))
        for name in whole:
            self._group[name] = whole

    def with_relatives(self, names: set[str]) -> set[str]:
        return names.union(*(self._group.get(name, set()) for name in names))
