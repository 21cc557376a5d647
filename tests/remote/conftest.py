"""Machines and their languages for remote tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interpreter.questions import without_questions
from interpreter.remote.machine import Machine, RemoteLanguage
from interpreter.runtimes import built_in_languages
from interpreter.runtimes.launch import RuntimeContext
from remote.keepers import LocalTransport, local_machine


class FakeComputer:
    """The part of a computer that a language needs."""

    def __init__(self) -> None:
        self.context = RuntimeContext(cwd="~", elsewhere=True)


class RemoteSession:
    """A machine and its languages, as in a session."""

    def __init__(self, machine: Machine, transport: Any) -> None:
        self.machine, self.transport, self.computer = machine, transport, FakeComputer()
        self.made: dict[str, Any] = {}

    @property
    def context(self) -> RuntimeContext:
        return self.computer.context

    def language(self, name: str = "Python") -> Any:
        if name not in self.made:
            kind: Any = next(each for each in self.machine.languages(built_in_languages(), True) if each.name == name)
            self.made[name] = kind(self.computer)
        return self.made[name]

    def run(self, code: str, language: str = "Python") -> list[dict[str, Any]]:
        return [dict(chunk) for chunk in without_questions(self.language(language).run(code))]

    def output(self, code: str, language: str = "Python") -> str:
        return text(self.run(code, language))


def text(chunks: list[dict[str, Any]]) -> str:
    """Join the output of the code, without our notices."""
    shown = (each for each in chunks if each.get("format") == "output" and not each.get("ours"))
    return "".join(each["content"] for each in shown)


def notices(chunks: list[dict[str, Any]]) -> str:
    """Our own notices."""
    statuses = (each["content"]["text"] for each in chunks if each.get("format") == "notice")
    return "".join([*statuses, *(each["content"] for each in chunks if each.get("ours"))])


@pytest.fixture
def make_remote(tmp_path: Path) -> Iterator[Callable[..., RemoteSession]]:
    made: list[RemoteSession] = []

    def make(keep: float = 60) -> RemoteSession:
        workspace = tmp_path / f"there{len(made)}"
        workspace.mkdir()
        machine, transport = local_machine(tmp_path / f"keepers{len(made)}", workspace, keep)
        made.append(RemoteSession(machine, transport))
        return made[-1]

    yield make
    for each in made:
        each.transport.is_down = False
        each.machine.close()


@pytest.fixture
def remote(make_remote: Callable[..., RemoteSession]) -> RemoteSession:
    return make_remote()


__all__ = ["LocalTransport", "RemoteLanguage", "RemoteSession", "notices", "text"]
