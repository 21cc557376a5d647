"""What a block would do: effects step by step, a summary for the approval, and whether undo brings all back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

Kind = Literal[
    "read", "write", "delete", "secret", "program", "network", "install", "database", "kill", "computer", "unknown"
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
Place = Literal["", "workspace", "outside", "unknown"]

_SHOWN = 4
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing that the code would do."""

    kind: Kind
    what: str
    """A path as it is written, a program, a host, a package; `*` stands for what is only known when it runs."""
    line: int
    place: Place = ""
    """Of a path: in the workspace or not."""
    full: str = ""
    """Of a path: absolute, links resolved as far as it is known."""
    known: bool = True
    """False: the path or host is made at run time, or the program may do anything."""
    how: str = ""
    """`tree` (a folder with all that is in it), `send` or `get` (network), `file` or `server` (database), `looks`,
    `acts` or `sends` (the computer's tools), ..."""

    def __str__(self) -> str:
        """As a sentence has it."""
        if self.kind == "network" and not self.known:
            return "somebody on the network"
        what = short(self.what)
        return f"the database {what}" if self.kind == "database" and self.known else what


@dataclass(frozen=True, slots=True)
class Step:
    """A part of the block that is judged by itself: a command, a redirection, a call."""

    language: str
    text: str
    line: int
    words: tuple[str, ...] = ()
    """The command and its arguments; for a call, its whole name and its arguments."""
    effects: tuple[Effect, ...] = ()
    fixed: bool = True
    """False: a word of it is only known when it runs."""

    @property
    def is_command(self) -> bool:
        """Is it one command of a shell? One without effects, such as `cd`, changes nothing by itself."""
        return self.language == "shell"

    @property
    def kinds(self) -> frozenset[Kind]:
        return frozenset(effect.kind for effect in self.effects)


@dataclass(frozen=True)
class Effects:
    """All that a block would do; what is empty was not found, which is no promise."""

    language: str
    workspace: str
    steps: tuple[Step, ...]
    defines: dict[str, tuple[Effect, ...]] = field(default_factory=dict, compare=False, repr=False)
    """What the functions that the block defines would do when a later block calls them."""
    lasting: str = ""
    """The language, if its variables cannot be rewound."""

    @cached_property
    def all(self) -> tuple[Effect, ...]:
        return tuple(effect for step in self.steps for effect in step.effects)

    def of(self, *kinds: Kind) -> tuple[Effect, ...]:
        """The effects of these kinds, in the order of the code."""
        return tuple(effect for effect in self.all if effect.kind in kinds)

    @property
    def deleted(self) -> tuple[Effect, ...]:
        return self.of("delete")

    @property
    def calls(self) -> tuple[Effect, ...]:
        """The computer's tools that are called, such as `computer.mouse.click`."""
        return self.of("computer")

    @property
    def unknown(self) -> bool:
        """Is there something in it that its text does not tell?"""
        return bool(self.of("unknown"))

    def lines(self) -> list[str]:
        """A short card for the approval: at most six lines."""
        outside = [effect for effect in self.of("read") if effect.place == "outside"]
        hosts, packages = (_listed(effect.what for effect in self.of(kind)) for kind in ("network", "install"))
        more = (
            ("changes", self.of("database")),
            ("ends", self.of("kill")),
            ("uses", self.calls),
            ("reads the secrets in", self.of("secret")),
            ("reads outside the workspace:", outside),
            ("not to be told from the text:", self.of("unknown")),
        )
        rows = [
            ("writes", _listed(map(_path, self.of("write")))),
            ("deletes", _listed(map(_path, self.deleted))),
            ("starts", _listed(effect.what for effect in self.of("program"))),
            ("contacts", "; ".join(filter(None, [hosts, f"installs {packages}" if packages else ""]))),
            ("also", "; ".join(f"{words} {_listed(map(str, found))}" for words, found in more if found)),
            ("undo", str(reversibility(self))),
        ]
        return [f"{name}: {words}" for name, words in rows if words]


def _path(effect: Effect) -> str:
    told = {"outside": " (outside the workspace)", "unknown": " (place not known)"}
    return effect.what + told.get(effect.place, "")


def _listed(names: Iterable[str]) -> str:
    different = list(dict.fromkeys(short(name) for name in names))
    more = f" and {len(different) - _SHOWN} more" if len(different) > _SHOWN else ""
    return ", ".join(different[:_SHOWN]) + more


def short(name: str) -> str:
    """On one line, and not too long."""
    flat = " ".join(name.split())
    return flat if len(flat) <= _LONGEST else flat[: _LONGEST - 1] + "…"


Degree = Literal["reversible", "partly", "not"]
_ORDER: tuple[Degree, ...] = ("reversible", "partly", "not")
_MOST_REASONS = 3


@dataclass(frozen=True)
class Reversibility:
    """How much of it comes back, and why not all."""

    kind: Degree
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        more = f" and {len(self.reasons) - _MOST_REASONS} more" if len(self.reasons) > _MOST_REASONS else ""
        told = "; ".join(self.reasons[:_MOST_REASONS]) + more
        word = {"reversible": "yes", "partly": "partly", "not": "no"}[self.kind]
        return f"{word}: {told}" if told else word


# What an undo leaves as it is: kind, `how` and place of an effect (None: any), how bad that is, and the words for it.
# The first row that fits counts.
_LEFT: tuple[tuple[Kind, str | None, Place | None, Degree, str], ...] = (
    ("write", "git", "workspace", "partly", "git's own files are left as they are"),
    ("write", "temporary", None, "partly", "leaves temporary files"),
    ("write", None, "unknown", "not", "not known where it writes {}"),
    ("write", None, "outside", "not", "writes outside the workspace: {}"),
    ("delete", None, "unknown", "not", "not known where it deletes {}"),
    ("delete", None, "outside", "not", "deletes outside the workspace: {}"),
    ("network", "get", None, "partly", "asks {}, which may take note of it"),
    ("network", None, None, "not", "sends something to {}"),
    ("install", "remove", None, "partly", "removes {}; packages outside the workspace stay as they are then"),
    ("install", None, None, "partly", "installs {}; packages outside the workspace stay as they are then"),
    ("database", "file", "workspace", "partly", "changes {}: the file comes back, open connections do not"),
    ("database", None, None, "not", "changes {}"),
    ("kill", None, None, "not", "ends {}"),
    ("computer", "looks", None, "reversible", ""),
    ("computer", "sends", None, "not", "sends something by {}"),
    ("computer", None, None, "not", "uses {}, and what that does stays"),
    ("program", None, None, "not", "not known what {} does"),
    ("unknown", None, None, "not", "not known: {}"),
)


def reversibility(effects: Effects, left_out: Callable[[str], str | None] = lambda path: None) -> Reversibility:
    """What an undo of the block would bring back: the worst of its effects counts.

    `left_out` tells of a path of the workspace why it does not come back, if that is so.
    """
    found: list[tuple[Degree, str]] = []
    for effect in effects.all:
        row = next((row for row in _LEFT if _fits(effect, *row[:3])), None)
        if row is not None and row[3] != "reversible":
            found.append((row[3], row[4].format(effect)))
    written = [effect for effect in effects.of("write", "delete") if effect.place == "workspace"]
    found += [("not", f"{effect}: {why}") for effect in written if (why := left_out(effect.full)) is not None]
    if effects.lasting:
        found.append(("partly", f"{effects.lasting}'s variables cannot be rewound"))
    worst = max((_ORDER.index(degree) for degree, _ in found), default=0)
    # The worst come first; a reason is told once.
    found.sort(key=lambda each: -_ORDER.index(each[0]))
    return Reversibility(_ORDER[worst], tuple(dict.fromkeys(reason for _, reason in found)))


def _fits(effect: Effect, kind: Kind, how: str | None, place: Place | None) -> bool:
    if effect.kind != kind or (kind == "program" and effect.known):
        return False
    return how in (None, effect.how) and place in (None, effect.place)
