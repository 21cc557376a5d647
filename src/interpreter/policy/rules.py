"""A rule, and whether it speaks of a step.

`ask` and `deny` match when any effect of the step fits; `allow` only when it covers every one of them.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal, get_args

from interpreter.policy.analysis import Effect, Step
from interpreter.policy.analysis.places import is_of_system
from interpreter.policy.patterns import (
    Folders,
    above,
    matches_path,
    may_be,
)

Decision = Literal["allow", "ask", "deny"]
DECISIONS: tuple[Decision, ...] = get_args(Decision)
NOTHING = "nothing"
# The two halves of `network`.
WAYS = ("get", "send")


@dataclass(frozen=True)
class Rule:
    """One rule of a policy file; what is empty does not restrict it."""

    decision: Decision
    language: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    """Beginnings of commands, word by word; a word may be a pattern."""
    path: tuple[str, ...] = ()
    host: tuple[str, ...] = ()
    does: tuple[str, ...] = ()
    """Kinds of effects, or `nothing`."""
    call: tuple[str, ...] = ()
    """Tools of the computer that code calls: `computer.mouse.*`."""
    folder: str = ""
    """The workspace in which the rule holds."""
    reason: str = ""
    name: str = ""
    match: tuple[str, ...] = field(default=(), compare=False)
    no_match: tuple[str, ...] = field(default=(), compare=False)
    source: str = field(default="", compare=False)
    line: int = field(default=0, compare=False)

    def __str__(self) -> str:
        told = [f"{name} {', '.join(given)}" for name, given in self.conditions.items()]
        return f"{self.decision}: {'; '.join(told) or 'everything'}"

    @property
    def conditions(self) -> dict[str, Sequence[str]]:
        """What restricts it, as the file has it."""
        given: dict[str, Sequence[str]] = {
            name: getattr(self, name) for name in ("language", "command", "does", "path", "host", "call")
        }
        return {name: value for name, value in given.items() if value} | (
            {"folder": [self.folder]} if self.folder else {}
        )

    @property
    def where(self) -> str:
        """Where it stands."""
        place = f"{self.source}:{self.line}" if self.line else self.source
        return f"{self.name} ({place})" if self.name else place

    def holds_in(self, workspace: str) -> bool:
        return not self.folder or above(os.path.realpath(os.path.expanduser(self.folder)), workspace)

    def matches(self, step: Step, folders: Folders) -> bool:
        """Does the rule speak of this step?"""
        if self.language and step.language not in self.language:
            return False
        loosely = self.decision != "allow"
        if self.command and not any(_begins(step.words, command, loosely) for command in self.command):
            return False
        if loosely:
            return self._touches(step, folders)
        return (step.fixed or not self.command) and all(self._covers(effect, folders) for effect in step.effects)

    def _touches(self, step: Step, folders: Folders) -> bool:
        if not (self.does or self.path or self.host or self.call):
            return True
        if not step.effects:
            return self.does == (NOTHING,) and not (self.path or self.host or self.call)
        return any(self._fits(effect, folders) for effect in step.effects)

    def _fits(self, effect: Effect, folders: Folders) -> bool:
        if self.does and not self._named(effect):
            return False
        if self.call and not self._calls(effect):
            return False
        if self.path and not _any_path(effect, self.path, folders, loosely=True):
            return False
        return not self.host or (effect.kind == "network" and _any_host(effect, self.host))

    def _covers(self, effect: Effect, folders: Folders) -> bool:
        if effect.how == "unparsed":
            return False  # what cannot be read is asked
        if self.call and (effect.kind == "computer" or not (self.does or self.path or self.host or self.command)):
            return self._calls(effect)
        if effect.kind == "program" and (self.command or effect.known):
            return True
        if self.does and not self._named(effect):
            return False
        if effect.kind == "network" and self.host:
            return effect.known and _any_host(effect, self.host)
        if (effect.full or effect.place) and self.path:
            return effect.known and _any_path(effect, self.path, folders, loosely=False)
        # Restricted to some paths or hosts, it says nothing about the rest.
        return bool(self.does or self.command) or not (self.path or self.host)

    def _calls(self, effect: Effect) -> bool:
        return effect.kind == "computer" and any(fnmatchcase(effect.what, pattern) for pattern in self.call)

    def _named(self, effect: Effect) -> bool:
        return effect.kind in self.does or (effect.kind == "network" and effect.how in self.does)


@lru_cache(1024)  # a long block has the same few calls again and again
def _begins(words: tuple[str, ...], command: str, loosely: bool) -> bool:
    """`loosely`: a program of that name counts wherever it is; else only where the system has its own."""
    wanted = _split(command)
    if len(words) < len(wanted) or not wanted:
        return False
    named = "/" not in wanted[0] and (loosely or is_of_system(words[0]))
    program = words[0].rsplit("/", 1)[-1] if named else words[0]
    return all(fnmatchcase(word, pattern) for word, pattern in zip([program, *words[1:]], wanted, strict=False))


@lru_cache(1024)
def _split(command: str) -> tuple[str, ...]:
    """The words of a rule's command; each statement of a block is held against each rule."""
    try:
        return tuple(shlex.split(command))
    except ValueError:
        return tuple(command.split())


def _any_path(effect: Effect, patterns: Sequence[str], folders: Folders, loosely: bool) -> bool:
    if not effect.full:
        return False
    whole = loosely and effect.kind == "delete" and effect.how == "tree"
    if any(matches_path(effect.full, pattern, folders, above_too=whole, in_both=loosely) for pattern in patterns):
        return True
    # `rm -r da*`; what only the run tells is not known well enough to be denied
    return loosely and effect.known and any(may_be(effect.full, pattern, folders, whole) for pattern in patterns)


def _any_host(effect: Effect, patterns: Sequence[str]) -> bool:
    return any(
        pattern == "*" or (effect.known and (fnmatchcase(effect.what, pattern) or effect.what.endswith(f".{pattern}")))
        for pattern in map(str.lower, patterns)
    )
