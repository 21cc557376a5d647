"""What a profile says, once it is read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from interpreter.config.profiles.places import Place


@dataclass(frozen=True)
class Profile:
    """Settings by their dotted names, and what else a profile can hold."""

    place: Place
    settings: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    """Where each setting stands."""
    languages: tuple[str, ...] | None = None
    """The languages to keep, by name."""
    code: str = ""
    """Python: the whole profile, or the `start_script` of one in YAML or JSON."""
    code_line: int = 1
    """Where the code begins in the file."""
    notices: tuple[str, ...] = ()
    """Lines for the user, about what has no effect."""
    later: tuple[str, ...] = ()
    """What it asks for that is not there yet, in words."""
    variables: tuple[str, ...] = ()
    """The environment variables that it reads."""
    text: str = ""
    """The file as it is."""

    @property
    def is_python(self) -> bool:
        return self.place.kind == ".py"
