"""How well the forecast shown at the approval matches what the snippets of the corpus really did.

    python -m policy.corpus.forecast [KIND]     from the folder `tests`; KIND also lists the wrong forecasts

A snippet counts once per kind, however many files it touches. "Can't tell" is neither right nor wrong.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from interpreter.policy.analysis import Effects, analyze
from interpreter.policy.analysis.effects import Existing, Look, existing
from policy.corpus import Measured, Snippet, effects, snippets
from policy.corpus.measure import SPACE, listing, make_world

VERBS = ("Deletes", "Overwrites", "Renames", "Changes", "Creates", "Writes", "Installs", "Uninstalls", "Can't tell")
KINDS = ("writes", "overwrites", "renames", "deletes", "network", "installs")


class Score(NamedTuple):
    """For one kind: snippets with a right forecast, a wrong one, none, and "can't tell"."""

    right: list[Snippet]
    wrong: list[Snippet]
    missed: list[Snippet]
    cannot_tell: list[Snippet]

    @property
    def precision(self) -> float:
        return len(self.right) / (len(self.right) + len(self.wrong) or 1)

    @property
    def recall(self) -> float:
        """Of the effects that happened, without those the analysis can't tell."""
        return len(self.right) / (len(self.right) + len(self.missed) or 1)


class World:
    """The files that every snippet found."""

    def __init__(self, folder: Path) -> None:
        make_world(folder)
        self._space = str(folder / "space")
        self.paths = frozenset(listing(folder))

    def look(self, path: str) -> Existing | None:
        """Return what existed at a path in the workspace."""
        return existing(self._space, self._space + path.removeprefix(SPACE))


def actual_kinds(measured: Measured, before: Collection[str]) -> set[str]:
    """Return the kinds of changes a snippet made to existing files. Changes to git's own files count as writes."""
    created, overwritten, gone = (_own(measured, kind) for kind in ("creates", "overwrites", "deletes"))
    # Files outside the workspace aren't looked at: the approval says "Writes".
    overwritten = {path for path in overwritten if path.startswith((SPACE, "*"))}
    deleted = gone & {"*", *before}  # files that the snippet made itself don't count
    pairs = [pair.split(" -> ") for pair in measured.get("renames", ())]
    # A program that writes a temporary file and renames that one doesn't rename an existing file.
    moved = {pair[0] for pair in pairs if pair[0] in deleted and pair[-1] in created.union(before)}
    moved |= {
        path for path in deleted - {"*"} if any(Path(each).name == Path(path).name for each in created)
    }  # to another disk
    overwritten |= _own(measured, "changes").union(pair[-1] for pair in pairs if pair[0] in moved) & {*before}
    changes = {
        "writes": any(measured.get(kind) for kind in ("creates", "overwrites", "changes", "renames")),
        "overwrites": overwritten,
        "renames": moved,
        "deletes": {path for path in deleted - moved if not any(path.startswith(f"{each}/") for each in moved)},
        "network": measured.get("contacts"),
        "installs": measured.get("installs"),
    }
    return {kind for kind, what in changes.items() if what}


def is_git(path: str) -> bool:
    return bool(re.search(r"(^|/)\.git(/|$)", path))


def _own(measured: Measured, kind: str) -> set[str]:
    return {path for path in measured.get(kind, ()) if not is_git(path)}


def forecast(found: Effects, look: Look) -> set[str]:
    """Return the kinds that the approval names."""
    verbs = found.changes(look)
    files = {verb for verb in verbs if verb != "Deletes"}
    databases = [] if says_cannot_tell(found) else found.of("database")
    known = [effect for effect in databases if not effect.full or (effect.is_exact and look(effect.full))]
    changed = [path for verb in ("Overwrites", "Changes") for path in verbs.get(verb, ()) if not is_git(path)]
    named = {
        "writes": files or found.of("database", "install"),
        "overwrites": changed or known,
        "renames": files & {"Renames"},
        # Not what the snippet has made itself before.
        "deletes": [
            path for path in found.deleted if not path.operation and not (path.is_exact and not look(path.full))
        ],
        "network": found.of("network"),
        "installs": [effect for effect in found.of("install") if effect.how != "remove"],
    }
    return {kind for kind, what in named.items() if what}


def says_cannot_tell(found: Effects) -> bool:
    """Does the approval say that it can't tell?"""
    return any(line.startswith("Can't tell") for line in found.lines())


def runs(every_r: int = 1) -> Iterator[tuple[Snippet, Measured, Effects]]:
    """Yield the snippets that ran to completion or have a label."""
    known = effects()
    for snippet in [*snippets(every_r=every_r), *snippets("analyst", every_r)]:
        measured = known[snippet.key]
        if "missing" not in measured and measured.get("status", 0) == 0:
            yield snippet, measured, analyze(snippet.language, snippet.code, SPACE)


def scores(world: World, every_r: int = 1) -> dict[str, Score]:
    table = {kind: Score([], [], [], []) for kind in KINDS}
    for snippet, measured, found in runs(every_r):
        happened, named, cannot_tell = (
            actual_kinds(measured, world.paths),
            forecast(found, world.look),
            says_cannot_tell(found),
        )
        for kind, score in table.items():
            if kind in named:
                (score.right if kind in happened else score.wrong).append(snippet)
            elif kind in happened:
                (score.cannot_tell if cannot_tell else score.missed).append(snippet)
    return table


def shown_as_harmless(world: World, every_r: int = 1) -> list[Snippet]:
    """Snippets that change files though the approval says they don't, whether they succeeded or failed."""
    known, found = effects(), []
    for snippet in [*snippets(every_r=every_r), *snippets("analyst", every_r)]:
        if actual_kinds(known[snippet.key], world.paths) & {"writes", "deletes"}:
            lines = analyze(snippet.language, snippet.code, SPACE).lines(look=world.look)
            named = [line for line in lines if line.startswith(VERBS) and line != "Changes no files"]
            found += [] if named else [snippet]
    return found


def as_table(table: dict[str, Score]) -> str:
    rows = ["kind         forecast  precision    did it  recall  can't tell"]
    for kind, score in table.items():
        named, happened = len(score.right) + len(score.wrong), len(score.right) + len(score.missed)
        columns = f"{happened + len(score.cannot_tell):8}  {score.recall:6.1%}  {len(score.cannot_tell):10}"
        rows.append(f"{kind:12} {named:8}  {score.precision:9.1%}  {columns}")
    return "\n".join(rows)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        world = World(Path(name))
        table = scores(world)
        harmless = shown_as_harmless(world)
    print(as_table(table))
    print(f"{len(harmless)} snippets change files and are shown as changing nothing")
    for score in (table[kind] for kind in sys.argv[1:] if kind in table):
        for what in ("wrong", "missed"):
            for snippet in getattr(score, what):
                print(
                    f"{what}: {snippet.language}: {snippet.code!r}: {sorted(actual_kinds(effects()[snippet.key], world.paths))}"
                )


if __name__ == "__main__":
    main()
