"""A point in time: the moment before a turn or a block."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from interpreter.messages import Message
    from interpreter.runtimes.states import Mark
    from interpreter.session.checkpoints.conversation import Conversation

Part = Literal["conversation", "files", "variables"]
PARTS: tuple[Part, ...] = ("conversation", "files", "variables")

Kind = Literal["turn", "block", "own"]
Way = Literal["back", "forward", "there"]
_LABEL = 60


@dataclass
class Point:
    """The moment before a turn, before a block in a turn, or before a block that was run outside of any."""

    id: int
    kind: Kind
    at: int
    """How many messages there were."""
    label: str
    """The first words of the request, or of the code."""
    language: str | None = None
    block: int | None = None
    """The number of the block in the journal."""
    time: float = field(default_factory=time.time)
    mark: Mark | None = None
    """The states of the sessions; a turn has that of its first block."""
    workspace: str | None = None
    """Whose files were recorded when the block ran; None if that was switched off, and for a turn."""
    anchor: Message | None = field(default=None, repr=False)
    """The message that it is before, or if there was none, the one that it is `behind`."""
    behind: int = 0
    actor: str = ""
    """Who acted, where that was not the session's own agent or user."""
    conversation: Conversation | None = field(default=None, repr=False)
    """The conversation that it belongs to, where that is not the session's own."""
    elsewhere: bool = False
    """A turn that came with the conversation: what its blocks did is not known here."""

    @property
    def begins_turn(self) -> bool:
        """Whether undo, without another word, goes back to a point such as this."""
        return self.kind != "block"

    @property
    def code(self) -> str | None:
        """The code of a block, if the conversation has it."""
        message = self.anchor if not self.behind else None
        return str(message.get("content")) if message is not None and message.get("type") == "code" else None

    @property
    def fields(self) -> dict[str, Any]:
        """As the journal has it, under the event `point`."""
        return {
            "point": self.id,
            "kind": self.kind,
            "at": self.at,
            "label": self.label,
            "language": self.language,
            "block": self.block,
            "workspace": self.workspace,
            **({"elsewhere": True} if self.elsewhere else {}),
            **({"guest": self.actor} if self.actor else {}),  # every entry has the `actor` of its event
        }

    @classmethod
    def from_fields(cls, entry: dict[str, Any]) -> Point:
        """The other way round."""
        names = ("kind", "at", "label", "language", "block", "time", "workspace", "elsewhere")
        known = {name: entry[name] for name in names if name in entry}
        return cls(id=entry["point"], actor=entry.get("guest", ""), **known)


def label_of(text: object) -> str:
    """The first words of it."""
    words = " ".join(text.split()) if isinstance(text, str) else ""
    return words if len(words) <= _LABEL else words[: _LABEL - 1] + "…"
