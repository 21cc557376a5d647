"""Random programs: discarding a preview restores everything, and applying it equals running the block."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpoints.trees import Shape, shape
from interpreter import OpenInterpreter
from preview.preview_session import needs_views, ran

pytestmark = needs_views

NAMES = ["a", "b", "d", "d/a", "d/e", "d/e/a", "new", "new/a"]
names, texts, modes = st.sampled_from(NAMES), st.text("xy\n", max_size=6), st.sampled_from([0o600, 0o644, 0o755])
steps = st.one_of(
    st.tuples(st.just("write"), names, texts),
    st.tuples(st.just("append"), names, texts),
    st.tuples(st.just("remove"), names, st.just("")),
    st.tuples(st.just("folder"), names, st.just("")),
    st.tuples(st.just("rename"), names, names),
    st.tuples(st.just("link"), names, names),
    st.tuples(st.just("hard"), names, names),
    st.tuples(st.just("mode"), names, modes),
    st.tuples(st.just("variable"), st.sampled_from("uvw"), st.integers(0, 9)),
)
PROGRAM = """
import os as _os, shutil as _shutil
def _do(what, name, more):
    try:
        if what in ('write', 'append'):
            with open(name, what[0]) as file: file.write(more)
        elif what == 'remove':
            _shutil.rmtree(name) if _os.path.isdir(name) and not _os.path.islink(name) else _os.remove(name)
        elif what == 'folder': _os.makedirs(name)
        elif what == 'rename':
            if not _os.path.isdir(name): _os.rename(name, more)
        elif what == 'link': _os.symlink(more, name)
        elif what == 'hard': _os.link(more, name, follow_symlinks=False)
        elif what == 'mode':
            if not _os.path.islink(name): _os.chmod(name, more)
        else: globals()[name] = globals().get(name, 0) * 10 + more
    except OSError as error: print(type(error).__name__)
for _step in {steps}: _do(*_step)
"""
SHOWN = "print({name: value for name, value in globals().items() if name in ('u', 'v', 'w')})"


def create_files(folder: Path) -> None:
    for name in ("a", "d/a", "d/e/a"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{name}\n")
    (folder / "b").symlink_to("d/a")


def without_times(found: Shape) -> Shape:
    return {path: entry[:3] if entry[0] == "file" else entry[:2] for path, entry in found.items()}


class Sessions:
    """Two interpreters in equal workspaces: one previews blocks, the other runs them."""

    def __init__(self, folder: Path) -> None:
        self.previewed, self.ran = folder / "previewed", folder / "ran"
        self.interpreters = []
        for place in (self.previewed, self.ran):
            place.mkdir()
            self.interpreters.append(OpenInterpreter(workspace=str(place), undo_files=False))

    def reset(self) -> None:
        for place, interpreter in zip((self.previewed, self.ran), self.interpreters, strict=True):
            for path in place.iterdir():
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            place.chmod(0o755)
            create_files(place)
            ran(interpreter, "python", "u = 5\nfor _name in ('v', 'w'): globals().pop(_name, None)")


@pytest.fixture(scope="module")
def sessions() -> Iterator[Sessions]:
    folder = Path(tempfile.mkdtemp())
    made = Sessions(folder)
    yield made
    for interpreter in made.interpreters:
        interpreter.computer.terminate()
    shutil.rmtree(folder)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(steps, max_size=8))
def test_discarding_restores_files_and_variables(sessions: Sessions, program: list[object]) -> None:
    sessions.reset()
    interpreter, before = sessions.interpreters[0], shape(sessions.previewed)
    with interpreter.computer.preview("python", PROGRAM.format(steps=program)) as preview:
        preview.run()
    assert shape(sessions.previewed) == before
    assert ran(interpreter, "python", SHOWN) == "{'u': 5}\n"


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(steps, max_size=8))
def test_applying_equals_running(sessions: Sessions, program: list[object]) -> None:
    sessions.reset()
    code = PROGRAM.format(steps=program)
    with sessions.interpreters[0].computer.preview("python", code) as preview:
        preview.run()
        assert str(preview.apply()) == ""
    ran(sessions.interpreters[1], "python", code)
    assert without_times(shape(sessions.previewed)) == without_times(shape(sessions.ran))
    shown = [ran(interpreter, "python", SHOWN) for interpreter in sessions.interpreters]
    assert shown[0] == shown[1]
