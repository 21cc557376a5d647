from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interpreter.remote.machine import Machine, RemoteLanguage
from interpreter.runtimes import built_in_languages
from interpreter.runtimes.launch import SessionContext
from remote.keepers import Local, local_machine


class Place:
    """What a language needs of a computer."""

    def __init__(self) -> None:
        self.context = SessionContext(cwd="~", elsewhere=True)


class Elsewhere:
    """A machine and its languages, as a session has them."""

    def __init__(self, machine: Machine, transport: Any) -> None:
        self.machine, self.transport, self.place = machine, transport, Place()
        self.made: dict[str, Any] = {}

    @property
    def context(self) -> SessionContext:
        return self.place.context

    def language(self, name: str = "Python") -> Any:
        if name not in self.made:
            found: Any = next(each for each in self.machine.languages(built_in_languages(), True) if each.name == name)
            self.made[name] = found(self.place)
        return self.made[name]

    def run(self, code: str, language: str = "Python") -> list[dict[str, Any]]:
        return [dict(chunk) for chunk in self.language(language).run(code)]

    def output(self, code: str, language: str = "Python") -> str:
        return text(self.run(code, language))


def text(chunks: list[dict[str, Any]]) -> str:
    """What the code printed, without what we said."""
    shown = (each for each in chunks if each.get("format") == "output" and not each.get("ours"))
    return "".join(each["content"] for each in shown)


def told(chunks: list[dict[str, Any]]) -> str:
    """What we said."""
    notices = (each["content"]["text"] for each in chunks if each.get("format") == "notice")
    return "".join([*notices, *(each["content"] for each in chunks if each.get("ours"))])


@pytest.fixture
def make_elsewhere(tmp_path: Path) -> Iterator[Callable[..., Elsewhere]]:
    made: list[Elsewhere] = []

    def make(keep: float = 60) -> Elsewhere:
        workspace = tmp_path / f"there{len(made)}"
        workspace.mkdir()
        machine, transport = local_machine(tmp_path / f"keepers{len(made)}", workspace, keep)
        made.append(Elsewhere(machine, transport))
        return made[-1]

    yield make
    for each in made:
        each.transport.is_down = False
        each.machine.close()


@pytest.fixture
def elsewhere(make_elsewhere: Callable[..., Elsewhere]) -> Elsewhere:
    return make_elsewhere()


__all__ = ["Elsewhere", "Local", "RemoteLanguage", "text", "told"]
