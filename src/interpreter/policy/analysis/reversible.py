"""Whether a block can be taken back, told before it runs; in doubt, it cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from interpreter.policy.analysis.effects import Effect, Effects

Degree = Literal["reversible", "partly", "not"]
_ORDER: tuple[Degree, ...] = ("reversible", "partly", "not")
_SHOWN = 3


@dataclass(frozen=True)
class Reversibility:
    """How much of it comes back, and why not all."""

    kind: Degree
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        more = f" and {len(self.reasons) - _SHOWN} more" if len(self.reasons) > _SHOWN else ""
        told = "; ".join(self.reasons[:_SHOWN]) + more
        word = {"reversible": "yes", "partly": "partly", "not": "no"}[self.kind]
        return f"{word}: {told}" if told else word


def reversibility(effects: Effects, left_out: Callable[[str], str | None] = lambda path: None) -> Reversibility:
    """What an undo of the block would bring back: the worst of its effects counts.

    `left_out` tells of a path of the workspace why it does not come back, if that is so.
    """
    found = [judged for effect in effects.all for judged in _judged(effect)]
    written = [effect for effect in effects.of("write", "delete") if effect.place == "workspace"]
    found += [("not", f"{effect}: {why}") for effect in written if (why := left_out(effect.full)) is not None]
    if effects.lasting:
        found.append(("partly", f"{effects.lasting}'s variables cannot be rewound"))
    worst = max((_ORDER.index(degree) for degree, _ in found), default=0)
    # The worst come first; a reason is told once.
    found.sort(key=lambda each: -_ORDER.index(each[0]))
    return Reversibility(_ORDER[worst], tuple(dict.fromkeys(reason for _, reason in found)))


def _judged(effect: Effect) -> Iterator[tuple[Degree, str]]:
    match effect.kind:
        case "write" | "delete":
            yield from _of_path(effect)
        case "network" if effect.how == "get":
            yield "partly", f"asks {effect}, which may take note of it"
        case "network":
            yield "not", f"sends something to {effect}"
        case "install":
            verb = "removes" if effect.how == "remove" else "installs"
            yield "partly", f"{verb} {effect}; packages outside the workspace stay as they are then"
        case "database" if effect.how == "file" and effect.place == "workspace":
            yield "partly", f"changes {effect}: the file comes back, open connections do not"
        case "database":
            yield "not", f"changes {effect}"
        case "kill":
            yield "not", f"ends {effect}"
        case "computer" if effect.how == "sends":
            yield "not", f"sends something by {effect}"
        case "computer" if effect.how != "looks":
            yield "not", f"uses {effect}, and what that does stays"
        case "program" if not effect.known:
            yield "not", f"not known what {effect} does"
        case "unknown":
            yield "not", f"not known: {effect}"


def _of_path(effect: Effect) -> Iterator[tuple[Degree, str]]:
    verb = "writes" if effect.kind == "write" else "deletes"
    if effect.how == "git" and effect.place == "workspace":
        yield "partly", "git's own files are left as they are"
    elif effect.how == "temporary":
        yield "partly", "leaves temporary files"
    elif effect.place == "unknown":
        yield "not", f"not known where it {verb} {effect}"
    elif effect.place == "outside":
        yield "not", f"{verb} outside the workspace: {effect}"
