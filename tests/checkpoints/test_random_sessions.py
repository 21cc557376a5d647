"""Random Python and shell blocks: undo and redo of any number of them restore everything."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from checkpoints.effects import PREPARE, Effect, blocks, code_of
from checkpoints.scripted_session import ScriptedSession
from checkpoints.test_random_file_changes import populate
from checkpoints.trees import GIT, shape
from interpreter.agent.agent import Agent

Program = list[list[tuple[str, list[Effect]]]]
programs = st.lists(st.lists(blocks, min_size=1, max_size=2), min_size=1, max_size=3)
walks = st.lists(st.integers(0, 9), min_size=1, max_size=3)

PHASES = [Phase.explicit, Phase.reuse, Phase.generate]  # no shrinking: programs are short, and it takes minutes

SHELL_STATE = 'declare -p v 2>/dev/null; declare -p w 2>/dev/null; declare -p E 2>/dev/null; declare -f f; alias; set -o | grep glob; shopt nullglob; pwd; echo "$HOME"'


class World:
    """One session for many programs; each program ends where it started."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self.folders = folders
        self.session: ScriptedSession | None = None

    def ready(self) -> ScriptedSession:
        if self.session is None:
            folder = self.folders.mktemp("any-session").resolve()
            (folder / "work").mkdir()
            populate(folder / "work")
            self.session = ScriptedSession(folder)
            for language, code in PREPARE.items():
                self.session.run_block((language, code))
        return self.session

    def close(self) -> None:
        session, self.session = self.session, None
        if session is not None:
            session.close()

    def seen(self) -> Any:
        """Everything that undo has to restore."""
        session = self.ready()
        computer = session.interpreter.computer
        python = {each.name: (each.type, each.preview) for each in computer.variables("python")["Python"]}
        # Not through the computer, so that this creates no block and no checkpoint.
        shell = "".join(str(chunk.get("content")) for chunk in computer.runtimes.runtime("shell").run(SHELL_STATE))
        shared = computer.context
        # A deleted working directory can't be restored, so the nearest existing folder counts.
        cwd = nearest(shared.cwd)
        shell = shell.replace(f"\n{shared.cwd}\n", f"\n{cwd}\n")
        exported = {name: value for name, value in shared.exported.items() if value is not None}
        return shape(session.root), python, shell, cwd, exported, list(session.interpreter.messages)


def nearest(folder: str) -> str:
    return folder if os.path.isdir(folder) else nearest(os.path.dirname(folder))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory)
    yield world
    world.close()


def check(world: World, program: Program, walk: list[int]) -> None:
    session = world.ready()
    timeline = session.interpreter.timeline
    first = timeline.places["files"]
    states = {first: world.seen()}
    for number, turn in enumerate(program):
        codes = [(language, code_of(language, effects)) for language, effects in turn]
        if number % 2 or len(codes) > 1:
            session.turn(f"turn {number}", *codes)
        else:
            session.run_block(codes[0])
        states[timeline.present] = world.seen()
    stops = sorted(states)
    for stop in [*walk, 0, -1, 0]:
        place = stops[stop % len(stops)]
        go(session, place)
        assert world.seen() == states[place]


def go(session: ScriptedSession, place: int) -> None:
    timeline = session.interpreter.timeline
    plan = timeline.plan(place)
    assert [each for each in plan.variables if each.obstacle] == [] and plan.notes == ()
    folders = {each.folder for each in plan.files.repositories} if plan.files else set()
    undone = timeline.go(plan, repositories=folders)
    assert undone.sentences == []


def check_with_cleanup(world: World, program: Program, walk: list[int]) -> None:
    try:
        check(world, program, walk)
    except BaseException:
        world.close()  # the next program starts with a new session
        raise


@pytest.fixture(autouse=True)
def _git(monkeypatch: pytest.MonkeyPatch) -> None:
    # Here every file of a repository goes back, as a user can ask for; the leaf that knows git keeps refs.
    monkeypatch.setattr(Agent, "plan_repositories", lambda agent, files: None)
    for name, value in GIT.items():
        monkeypatch.setenv(name, value)


@pytest.mark.needs("git")
@settings(max_examples=15, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))
@given(program=programs, walk=walks)
def test_undo_and_redo_restore_random_sessions(world: World, program: Program, walk: list[int]) -> None:
    check_with_cleanup(world, program, walk)


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.needs("git")
@settings(max_examples=500, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))
@given(program=programs, walk=walks)
def test_undo_and_redo_restore_many_random_sessions(world: World, program: Program, walk: list[int]) -> None:
    check_with_cleanup(world, program, walk)
