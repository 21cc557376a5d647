"""The effects that static analysis finds, in a form that tests can compare."""

from __future__ import annotations

from interpreter.policy.analysis import analyze

WORKSPACE = "/srv/space"


def seen(language: str, code: str) -> set[tuple[str, str]]:
    """Kind and object of each effect, without known programs."""
    effects = analyze(language, code, WORKSPACE).all
    return {(effect.kind, effect.what) for effect in effects if effect.kind != "program" or not effect.known}
