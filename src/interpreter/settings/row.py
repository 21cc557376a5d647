"""What one row of the table of settings says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Default(NamedTuple):
    """A default that is made when it is first read: a fresh list, a folder, a text from a file."""

    make: Callable[[], Any]
    words: str


class Setting(NamedTuple):
    """One setting: everything that code, command line, environment, profiles and docs need to know of it."""

    name: str
    """Dotted: `auto_run`, `llm.model`; also its key in a profile."""
    kind: str
    """`bool`, `int`, `float`, `str`, `path`, `list`, `list of str`, `dict`, `callable` or `str or False`."""
    default: Any
    help: str
    section: str
    optional: bool = False
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    flag: str = ""
    short: str = ""
    no_flag: str = ""
    env: str = ""
    headless: Any = None
    """The default where nobody is there to ask, if it differs."""
    alias_of: str = ""
    secret: bool = False
    later: str = ""
    """What is not there yet; said in one line when the flag is used."""
    inert: str = ""
    """Why the setting is accepted and does nothing."""

    @property
    def group(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def leaf(self) -> str:
        return self.name.rpartition(".")[2]

    def default_value(self) -> Any:
        return self.default.make() if isinstance(self.default, Default) else self.default

    def default_words(self) -> str:
        return self.default.words if isinstance(self.default, Default) else repr(self.default)
