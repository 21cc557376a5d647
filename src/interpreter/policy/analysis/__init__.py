"""Static analysis: what a block would do, from its text. In doubt, it may do anything.

What programs and functions do is in tables/, which a contributor can extend without reading the rest.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from interpreter.policy.analysis.effects import Effect, Effects, Kind, Place, Reversibility, Step, reversibility
from interpreter.policy.analysis.notes import Notes, Places
from interpreter.runtimes import BUILT_IN, BaseLanguage, Registry, resolve

__all__ = ["Effect", "Effects", "Kind", "Place", "Reversibility", "Step", "analyze", "look", "reversibility"]

FAILED = "the analysis of this code failed"


def analyze(
    language: str,
    code: str,
    workspace: str | os.PathLike[str],
    *,
    cwd: str | os.PathLike[str] | None = None,
    known: Mapping[str, tuple[Effect, ...]] | None = None,
    registry: Registry = BUILT_IN,
) -> Effects:
    """What a block would do, from its text; it never raises.

    `cwd` is where the session is, if not in the workspace. `known` says what functions of earlier blocks would do: the
    `defines` of their analyses, together. `registry` has the languages of the session: each names its own analysis.
    """
    places = Places(os.fspath(workspace), os.fspath(cwd) if cwd else None)
    described = registry.describe(language)
    name = described.name.lower()
    notes = Notes(places, name)
    defines: dict[str, tuple[Effect, ...]] = {}
    try:
        if described.analysis is None:
            notes.not_known(name, f"what {name or 'this'} code does", 1, "unparsed")
        else:
            defines = resolve(described.analysis)(code, notes, known or {})
    except (RecursionError, MemoryError):
        notes.not_known(name, "code that is nested too deeply", 1)
    except Exception as error:  # noqa: BLE001 - an analysis from outside may raise anything: then the block may do anything
        notes.not_known(name, f"{FAILED} ({type(error).__name__}: {error})", 1, "unparsed")
    steps = tuple(doing.done() for doing in notes.steps if not doing.dropped)
    keeps = described.run is not BaseLanguage.run and described.restore is BaseLanguage.restore
    return Effects(name, places.workspace, steps, defines, described.name if keeps else "", described.runs_on)


look = analyze  # its name in earlier versions


def analyze_displayed(
    code: str, notes: Notes, known: Mapping[str, tuple[Effect, ...]]
) -> dict[str, tuple[Effect, ...]]:
    """The analysis of what is shown to the user and never run on the machine."""
    notes.step(notes.language, "shown, not run", 1)
    return {}
