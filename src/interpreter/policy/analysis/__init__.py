"""Static analysis: what a block would do, from its text. In doubt, it may do anything.

What programs and functions do is in tables/, which a contributor can extend without reading the rest.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from interpreter.policy.analysis.effects import Effect, Effects, EffectStep, Kind, Place, Reversibility, reversibility
from interpreter.policy.analysis.notes import CodeLocation, Notes
from interpreter.runtimes import BUILT_IN, BaseLanguage, Registry, resolve

__all__ = ["Effect", "EffectStep", "Effects", "Kind", "Place", "Reversibility", "analyze", "look", "reversibility"]

FAILED = "the analysis of this code failed"


def analyze(
    language: str,
    code: str,
    workspace: str | os.PathLike[str],
    *,
    cwd: str | os.PathLike[str] | None = None,
    known: Mapping[str, tuple[Effect, ...]] | None = None,
    registry: Registry = BUILT_IN,
    database: str = "",
) -> Effects:
    """Predict from a block's text what it would do; never raises.

    `cwd` is where the session is, if not in the workspace. `known` says what functions of earlier blocks would do: the
    merged `defines` of their analyses. `registry` has the languages of the session: each names its own analysis.
    `database` is the address that SQL blocks use.
    """
    location = CodeLocation(os.fspath(workspace), os.fspath(cwd) if cwd else None)
    described, started_in = registry.describe(language), location.cwd
    name = described.name.lower()
    notes = Notes(location, name, database)
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
    can_run = described.implementation or described.run is not BaseLanguage.run
    is_lasting = can_run and described.keeps_variables and not described.restorable
    lasting = described.name if is_lasting else ""
    return Effects(name, location.workspace, steps, defines, lasting, described.runs_on, started_in or "")


look = analyze  # its name in earlier versions


def analyze_displayed(
    code: str, notes: Notes, known: Mapping[str, tuple[Effect, ...]]
) -> dict[str, tuple[Effect, ...]]:
    """Record a step without effects: such code is shown to the user and never runs on the machine."""
    notes.step(notes.language, "shown, not run", 1)
    return {}
