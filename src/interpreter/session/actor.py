"""The actors in a session, and their permissions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, get_args

from interpreter.errors import NotPermittedError, UsageError
from interpreter.llm.limits import Budget
from interpreter.session.events import Sink

ActorKind = Literal["user", "agent", "client", "viewer"]
Mode = Literal["ask", "auto-in-sandbox", "auto", "plan"]
MODES: tuple[Mode, ...] = get_args(Mode)
_FREEDOM: dict[Mode, int] = {"plan": 0, "ask": 1, "auto-in-sandbox": 2, "auto": 3}


class Contained(Protocol):
    """The interface of `sandbox.Sandbox`, as permissions use it."""

    def is_within(self, other: Any) -> bool:
        """Check whether this sandbox allows nothing beyond `other`."""


@dataclass(frozen=True)
class Permissions:
    """The permissions of an actor. Immutable: to change them, replace them."""

    mode: Mode = "ask"
    sandbox: Contained | None = None  # what contains its code; None: nothing does
    scan: Literal["off", "ask", "auto"] = "off"
    offline: bool = False
    tools: frozenset[str] | None = None  # the names of the tools it may call; None: all
    # Parts of the computer that code in a sandbox may use: the screen, in OS mode.
    given_tools: frozenset[str] = frozenset()
    budget: float | None = None  # in dollars, for itself and those it starts; None: no limit

    def is_within(self, other: Permissions) -> bool:
        """Check whether these permissions allow nothing beyond `other`."""
        return self == self.restricted_to(other)

    def restricted_to(self, other: Permissions) -> Permissions:
        """Return the permissions that both allow. If neither sandbox is within the other, take that of `other`."""
        sandbox = self.sandbox
        if other.sandbox is not None and (sandbox is None or not sandbox.is_within(other.sandbox)):
            sandbox = other.sandbox
        shared = [each for each in (self.tools, other.tools) if each is not None]
        limits = [limit for limit in (self.budget, other.budget) if limit is not None]
        return replace(
            self,
            mode=min(self.mode, other.mode, key=_FREEDOM.__getitem__),
            sandbox=sandbox,
            scan="auto" if "auto" in (self.scan, other.scan) else self.scan if self.scan != "off" else other.scan,
            offline=self.offline or other.offline,
            tools=frozenset.intersection(*shared) if shared else None,
            given_tools=self.given_tools & other.given_tools,
            budget=min(limits, default=None),
        )


class Actor:
    """The user, an agent, a client or a viewer. Its authority comes from itself, not from callers.

    `permissions` is a value, or a function where settings that a program may change are the source.
    """

    def __init__(
        self,
        name: str,
        kind: ActorKind,
        permissions: Permissions | Callable[[], Permissions],
        parent: Actor | None = None,
        add: Callable[..., Actor] | None = None,
        sink: Callable[[], Sink | None] = lambda: None,
        contain: Callable[[], None] | None = None,
    ) -> None:
        self.id, self.kind, self.parent = name, kind, parent
        self.sink = sink  # returns what records its events, if anything does
        self._add = add  # adds an actor to its session
        self.contain = contain  # has its code run in a sandbox from now on; an error if there is none
        self.revoked = False
        # What it may spend, and has spent, with those it started.
        self.budget: Budget = Budget(lambda: self.own_permissions.budget, parent.budget if parent else None, name)
        self.published: Permissions | None = None  # what the last event about its permissions said
        self.source = permissions  # of what it was given

    def __repr__(self) -> str:
        return f"<Actor {self.id}>"

    @property
    def own_permissions(self) -> Permissions:
        """Return the actor's own permissions, without the limits of those it acts for."""
        given = self.source
        return given() if callable(given) else given

    @property
    def permissions(self) -> Permissions:
        """Return the actor's own permissions, limited by those of everyone it acts for."""
        allowed = self.own_permissions
        for above in self.chain():
            if above is not self:
                allowed = allowed.restricted_to(above.own_permissions)
        return allowed

    def chain(self) -> Iterator[Actor]:
        """Yield this actor, then the one it acts for, up to the one that no other started."""
        actor: Actor | None = self
        while actor is not None:
            yield actor
            actor = actor.parent

    def child(self, kind: ActorKind, permissions: Permissions | None = None) -> Actor:
        """Add an actor that acts for this one: it may do at most what this one may do."""
        if self._add is None:
            raise UsageError(f"{self.id} belongs to no session.")
        return self._add(kind, permissions or self.permissions, self)

    def has_permissions_of(self, other: Actor) -> bool:
        """Check whether this is the same actor, or reads its permissions from the same settings."""
        return self is other or (callable(self.source) and self.source == other.source)

    @property
    def is_revoked(self) -> bool:
        """Return whether this actor, or one that it acts for, has lost all permissions."""
        return any(each.revoked for each in self.chain())

    def replace_permissions(self, permissions: Permissions) -> None:
        """Replace the actor's permissions. Raises NotPermittedError if they come from settings."""
        if callable(self.source):
            raise NotPermittedError(f"The permissions of {self.id} come from settings. Change those instead.")
        self.source = permissions  # of what it was given
