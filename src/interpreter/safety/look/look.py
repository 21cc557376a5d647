"""The way in: a block's text to its effects, whatever the text is."""

from __future__ import annotations

import os
from collections.abc import Mapping

from interpreter.safety.look.effects import Effect, Effects
from interpreter.safety.look.notes import Notes
from interpreter.safety.look.places import Places

_NAMES = {
    "py": "python", "python3": "python", "ipython": "python",
    "bash": "shell", "sh": "shell", "zsh": "shell",
    "js": "javascript", "node": "javascript", "nodejs": "javascript", "ecmascript": "javascript",
}  # fmt: skip
# Shown to the user, never run on the machine.
_DISPLAYED = frozenset({"html", "react", "markdown", "svg"})


def look(
    language: str,
    code: str,
    workspace: str | os.PathLike[str],
    *,
    cwd: str | os.PathLike[str] | None = None,
    known: Mapping[str, tuple[Effect, ...]] | None = None,
) -> Effects:
    """What a block would do, from its text; it never raises.

    `cwd` is where the session is, if not in the workspace. `known` says what functions of earlier blocks would do: the
    `defines` of their looks, together.
    """
    places = Places(os.fspath(workspace), os.fspath(cwd) if cwd else None)
    notes, name = Notes(places), canonical(language)
    defines: dict[str, tuple[Effect, ...]] = {}
    try:
        defines = _looked(name, code, notes, known or {})
    except (RecursionError, MemoryError):
        notes.not_known(name, "code that is nested too deeply", 1)
    steps = tuple(doing.done() for doing in notes.steps if not doing.dropped)
    return Effects(name, places.workspace, steps, defines)


def canonical(language: str) -> str:
    """One name for each language."""
    return _NAMES.get(language.strip().lower(), language.strip().lower())


def _looked(
    language: str, code: str, notes: Notes, known: Mapping[str, tuple[Effect, ...]]
) -> dict[str, tuple[Effect, ...]]:
    match language:
        case "python":
            from interpreter.safety.look.python import look_at_python

            notes.step("python", "the code itself", 1)
            return look_at_python(code, 1, notes, known)
        case "shell":
            from interpreter.safety.look.shell import look_at_shell

            look_at_shell(code, 1, notes)
        case "javascript":
            from interpreter.safety.look.javascript import look_at_javascript

            notes.step("javascript", "the code itself", 1)
            look_at_javascript(code, 1, notes)
        case _ if language in _DISPLAYED:
            notes.step(language, "shown, not run", 1)
        case _:
            notes.not_known(language, f"{language or 'this'} code is not looked into", 1, "unparsed")
    return {}
