"""The narrowest sensible rule for "always"."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence

from interpreter.policy.analysis import (
    Effect,
    Effects,
    Step,
    look,
)
from interpreter.policy.rules import NOTHING, Rule

# Their second word says what they do.
_WITH_VERBS = frozenset(
    "git npm pnpm yarn docker podman kubectl cargo go gh brew apt apt-get uv poetry conda systemctl "
    "terraform helm make just dotnet bundle gem composer aws gcloud az".split()
)


def propose_rule(language: str, code: str, effects: Effects | None = None, workspace: str | None = None) -> Rule | None:
    """A rule that allows this block, and of others as few as make sense; None if no rule should."""
    found = effects or look(language, code, workspace or os.getcwd())
    if found.unknown or found.secrets or not found.steps:
        return None  # what cannot be told from the text cannot be allowed for ever
    if any(effect.kind == "computer" and effect.how in ("sends", "unknown") for effect in found.all):
        return None  # sending asks each time
    if any(effect.kind in ("write", "delete", "database") and not effect.known for effect in found.all):
        return None
    if found.language != "shell" and any(effect.kind == "network" and not effect.known for effect in found.all):
        return None
    steps = [step for step in found.steps if step.effects or not step.is_command] or list(found.steps)
    shell_only = all(step.is_command for step in steps)
    return Rule(
        "allow",
        language=tuple(dict.fromkeys(step.language for step in steps)),
        command=tuple(dict.fromkeys(map(_command, steps))) if shell_only else (),
        does=_kinds(steps),
        path=tuple(dict.fromkeys(_paths(found))),
        host=_hosts(steps),
        call=tuple(dict.fromkeys(effect.what for effect in found.calls)),
        folder=found.workspace,
        reason='said "always" at the prompt',
    )


def _command(step: Step) -> str:
    """As much of the command as says what it does."""
    words = step.words
    if not words:
        return step.text
    program = words[0].rsplit("/", 1)[-1]
    known = all(effect.known for effect in step.effects if effect.kind == "program")
    if not known or any(effect.kind == "install" for effect in step.effects):
        return _joined(words)
    if program in _WITH_VERBS and len(words) > 1 and not words[1].startswith("-"):
        return _joined(words[:2])
    return _joined([program])


def _joined(words: Sequence[str]) -> str:
    """As a rule has them: quoted where it matters, and a star is a star."""
    escaped = (re.sub(r"([*?\[])", r"[\1]", word) for word in words)
    return " ".join(word if re.fullmatch(r"[^\s'\"\\]+", word) else shlex.quote(word) for word in escaped)


def _kinds(steps: Iterable[Step]) -> tuple[str, ...]:
    effects = [effect for step in steps for effect in step.effects]
    kinds = {effect.how if effect.kind == "network" else effect.kind for effect in effects} - {"program", "computer"}
    opaque = any(effect.kind == "program" and not effect.known for effect in effects)
    return () if opaque else tuple(sorted(kinds)) or (NOTHING,)


def _hosts(steps: Iterable[Step]) -> tuple[str, ...]:
    network = [effect for step in steps for effect in step.effects if effect.kind == "network"]
    return tuple(dict.fromkeys(effect.what for effect in network)) if all(effect.known for effect in network) else ()


def _paths(found: Effects) -> Iterator[str]:
    for effect in found.of("read", "write", "delete", "database"):
        if effect.full:
            yield _pattern(effect, found.workspace)


def _pattern(effect: Effect, workspace: str) -> str:
    """In the workspace the files of a folder; outside just this path."""
    if effect.place != "workspace":
        return effect.full
    inside = os.path.relpath(effect.full, workspace)
    if inside == ".":
        return "{workspace}"
    folder = os.path.dirname(inside)
    return f"{{workspace}}/{folder}/*" if folder else "{workspace}/*"
