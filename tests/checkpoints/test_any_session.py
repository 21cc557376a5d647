"""Any program of blocks in Python and the shell: back by any number of blocks everything is as it was, and forth again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from checkpoints.effects import PREPARE, Effect, blocks, code_of
from checkpoints.test_any_program import populate
from checkpoints.traveller import Traveller
from checkpoints.trees import GIT, shape

Program = list[list[tuple[str, list[Effect]]]]
programs = st.lists(st.lists(blocks, min_size=1, max_size=2), min_size=1, max_size=3)
walks = st.lists(st.integers(0, 9), min_size=1, max_size=3)

PHASES = [Phase.explicit, Phase.reuse, Phase.generate]  # programs are short; to find shorter ones takes minutes

SHELL_STATE = 'declare -p v 2>/dev/null; declare -p w 2>/dev/null; declare -p E 2>/dev/null; declare -f f; alias; set -o | grep glob; shopt nullglob; pwd; echo "$HOME"'


class World:
    """One session that is used for many programs; after each it is where it was."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self.folders = folders
        self.traveller: Traveller | None = None

    def ready(self) -> Traveller:
        if self.traveller is None:
            folder = self.folders.mktemp("any-session").resolve()
            (folder / "work").mkdir()
            populate(folder / "work")
            self.traveller = Traveller(folder)
            for language, code in PREPARE.items():
                self.traveller.own((language, code))
        return self.traveller

    def close(self) -> None:
        traveller, self.traveller = self.traveller, None
        if traveller is not None:
            traveller.close()

    def seen(self) -> Any:
        """All that there is to come back."""
        traveller = self.ready()
        computer = traveller.interpreter.computer
        python = {each.name: (each.type, each.preview) for each in computer.variables("python")["Python"]}
        # Not by way of the computer: this look is no block, and leaves no point.
        shell = "".join(str(chunk.get("content")) for chunk in computer.runtimes.runtime("shell").run(SHELL_STATE))
        shared = computer.context
        # Nobody can be brought back to a folder that was deleted under their feet: where it was counts.
        cwd = nearest(shared.cwd)
        shell = shell.replace(f"\n{shared.cwd}\n", f"\n{cwd}\n")
        exported = {name: value for name, value in shared.exported.items() if value is not None}
        return shape(traveller.root), python, shell, cwd, exported, list(traveller.interpreter.messages)


def nearest(folder: str) -> str:
    return folder if os.path.isdir(folder) else nearest(os.path.dirname(folder))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory)
    yield world
    world.close()


def check(world: World, program: Program, walk: list[int]) -> None:
    traveller = world.ready()
    timeline = traveller.interpreter.timeline
    first = timeline.places["files"]
    states = {first: world.seen()}
    for number, turn in enumerate(program):
        codes = [(language, code_of(language, effects)) for language, effects in turn]
        if number % 2 or len(codes) > 1:
            traveller.turn(f"turn {number}", *codes)
        else:
            traveller.own(codes[0])
        states[timeline.present] = world.seen()
    stops = sorted(states)
    for stop in [*walk, 0, -1, 0]:
        place = stops[stop % len(stops)]
        go(traveller, place)
        assert world.seen() == states[place]


def go(traveller: Traveller, place: int) -> None:
    timeline = traveller.interpreter.timeline
    plan = timeline.plan(place)
    assert [each for each in plan.variables if each.obstacle] == [] and plan.notes == ()
    folders = {each.folder for each in plan.files.repositories} if plan.files else set()
    undone = timeline.go(plan, repositories=folders)
    assert undone.sentences == []


def guarded(world: World, program: Program, walk: list[int]) -> None:
    try:
        check(world, program, walk)
    except BaseException:
        world.close()  # the next one begins anew
        raise


@pytest.fixture(autouse=True)
def _git(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in GIT.items():
        monkeypatch.setenv(name, value)


@pytest.mark.needs("git")
@settings(max_examples=15, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))
@given(program=programs, walk=walks)
def test_any_program(world: World, program: Program, walk: list[int]) -> None:
    guarded(world, program, walk)


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.needs("git")
@settings(max_examples=500, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))
@given(program=programs, walk=walks)
def test_many_programs(world: World, program: Program, walk: list[int]) -> None:
    guarded(world, program, walk)
