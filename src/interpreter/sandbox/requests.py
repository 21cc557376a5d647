"""What a block asks its sandbox for beyond what it has: whether it can be given, and for how long it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from interpreter.policy import Policy
    from interpreter.sandbox import Containment, Widening

Scope = Literal["block", "session", "always"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
NOT_GIVEN = "it asks for more than the sandbox gives ({wanted}), and {why}. Do without it, or tell the user."


@dataclass
class Wish:
    """What a block asks for; it runs when somebody has given it, or not at all."""

    wanted: tuple[Widening, ...]
    here: tuple[Widening, ...] = ()
    """What the sandbox gives already, though maybe not to a session that is older than that."""
    refusal: str = ""
    """Why nobody can give it."""
    granted: Scope | None = None

    def __str__(self) -> str:
        return ", ".join(map(str, self.wanted))

    @property
    def lines(self) -> list[str]:
        """What it would be given, one thing a line, as the one who is asked should read it."""
        return [each.words for each in self.wanted]

    @property
    def is_open(self) -> bool:
        """Whether somebody has to be asked."""
        return bool(self.wanted) and self.granted is None

    @property
    def moves(self) -> bool:
        """Whether the block needs a new session for it."""
        return not all(each.at_once for each in self.wanted)

    def not_given(self, why: str) -> str:
        return NOT_GIVEN.format(wanted=self, why=why)


def wish_of(containment: Containment, policy: Policy, code: str) -> Wish | None:
    """What the code asks for; None if that is nothing, or what every session has."""
    from interpreter.sandbox.needs import has, needs

    sandbox, places = containment.sandbox, containment.places([])
    asked = needs(code, sandbox.workspace)
    missing = tuple(each for each in asked if not has(sandbox, places, each))
    here = tuple(each for each in asked if each in containment.granted and not each.at_once)
    if not (missing or here):
        return None
    return Wish(missing, here, refused(containment, policy, missing))


def refused(containment: Containment, policy: Policy, wanted: Sequence[Widening]) -> str:
    from interpreter.policy.widening import refusal
    from interpreter.sandbox.needs import obstacle

    for each in wanted:
        why = obstacle(containment.sandbox, containment.places([]), containment.state, each)
        if why := why or refusal(policy, each):
            return f"the sandbox cannot be given {each}: {why.rstrip('.')}."
    return ""
