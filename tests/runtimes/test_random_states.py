"""Random blocks: undo and redo of any number of them restore the variables."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from python_runtimes import ENGINES, PythonRuntime
from shell_runtimes import SHELLS, ShellRuntime

PYTHON_SETUP = """
import json, os, random, numpy, pandas
class Point:
    size = 1
def make_counter():
    n = 0
    def count(step=1):
        nonlocal n
        n += step
        return n
    return count
def make_steps():
    for n in range(10**9):
        yield n
number, text, big = 0, 'ä', 10**30
shared = [0, [1]]; same = shared; inner = shared[1]
table, names = {'a': shared}, {1, 2}
raw = bytearray(5000)
array = numpy.arange(3000.0); window = array[::7]
frame = pandas.DataFrame({'a': range(20), 'b': list('ab') * 10})
point = Point(); point.other = point
count, steps = make_counter(), make_steps()
late = lambda: (number, len(shared))
json.mine = 0
random.seed(1)
os.environ['MINE'] = '0'; os.chdir('/')
file = open(PATH); file.read(1)
def shown():
    import hashlib
    digest = lambda data: hashlib.blake2b(data, digest_size=6).hexdigest()
    alike = [shared is same, inner is shared[1], table.get('a') is shared, window.base is array, point.other is point]
    return repr([
        number, text, big, shared, same, inner, sorted(map(repr, table.items())), sorted(names), digest(raw),
        digest(array.tobytes()), digest(window.tobytes()), frame.to_csv(), sorted(map(str, vars(point))), Point.size,
        count.__closure__[0].cell_contents, steps.gi_frame.f_locals.get('n'), late(), json.mine,
        digest(repr(random.getstate()).encode()), os.environ['MINE'], os.getcwd(), file.closed or file.tell(), alike,
        sorted(name for name in globals() if name.startswith('new_')), hasattr(Point, 'grow')])
"""
PYTHON_EFFECTS = [
    "number += {n}",
    "text += chr(200 + {n})",
    "big **= 2; big %= 10**90",
    "shared.append({n})",
    "inner.append(shared[0])",
    "same = list(same)",
    "same = shared",
    "shared[1] = [{n}]",
    "table[{n}] = [shared, point]",
    "table.pop('a', None)",
    "names ^= {{1, {n}}}",
    "raw[{n} * 100:] = bytes([{n}]) * (5000 - {n} * 100)",
    "array += {n}",
    "window[:] = {n}",
    "array = array[:{n} + 1].copy()",
    "frame.loc[{n}, 'a'] = -1",
    "frame['c{n}'] = frame['a'] * 2",
    "frame.drop(frame.index[:1], inplace=True)",
    "point.x{n} = shared",
    "Point.size = {n}",
    "Point.grow = lambda self: {n}",
    "point = Point(); point.other = point",
    "count({n})",
    "next(steps)",
    "json.mine = {n}",
    "random.random()",
    "os.environ['MINE'] = '{n}'",
    "os.chdir(['/', '/tmp', '/usr'][{n} % 3])",
    "file.closed or file.read({n})",
    "file.closed or file.seek({n})",
    "file.close()",
    "file = open(PATH)",
    "new_{n} = [number]",
    "for name in [each for each in globals() if each.startswith('new_')]: del globals()[name]",
    "number = 1; raise ValueError({n})",
    "number = 1; os._exit({n})",
    "import threading; started = threading.Thread(target=shared.append, args=({n},)); started.start(); started.join()",
]
SHELL_SETUP = """
v=0; w='ä b'; list=(a 'b c'); f() { echo "f $v"; }; alias g='echo g0'; export E=0; unset new
set +o noglob; set +o nounset; umask 022; cd /; typeset -i whole=1
"""
SHELL_SHOWN = """
echo "$v/$w/${#list[@]}/${list[*]}/$whole/${new-none}"; f; eval g; sh -c 'echo "E $E ${N-none}"'; umask; pwd
case $- in *f*) echo noglob;; esac; case $- in *u*) echo nounset;; esac; type h >/dev/null 2>&1 && h; alias k 2>/dev/null
"""
SHELL_EFFECTS = [
    "v={n}",
    "w=\"$w'\\\"{n}\"$'\\n'",
    "list+=({n})",
    "list=()",
    'f() {{ echo "f{n} $w"; }}',
    "h() {{ echo h{n}; }}",
    "unset -f h",
    "alias g='echo g{n}'",
    "alias k='echo k{n}'",
    "unalias k",
    "export E={n}",
    "export N={n}",
    "unset N",
    "set -o noglob",
    "set +o noglob",
    "set -o nounset",
    "set +o nounset",
    "umask 0{m}{m}",
    "cd /tmp",
    "cd /usr",
    "whole+={n}",
    "new={n}",
    "unset new",
    "v=lost; exit {n}",
    "v=lost; kill -9 $$",
    "(v=9; cd /tmp)",
]
numbers = st.integers(0, 9)
walks = st.lists(st.integers(0, 4), min_size=1, max_size=3)


def programs(effects: list[str]) -> st.SearchStrategy[list[str]]:
    """Lists of blocks, each with some effects."""
    effect = st.builds(lambda text, n: text.format(n=n, m=n % 8), st.sampled_from(effects), numbers)
    return st.lists(st.lists(effect, min_size=1, max_size=4).map("\n".join), min_size=1, max_size=4)


def check(session: PythonRuntime | ShellRuntime, setup: str, shown: str, program: list[str], walk: list[int]) -> None:
    """Undo and redo to each stop of a walk, and to both ends."""
    assert session.do(setup).ended == "done"
    seen = [(session.present, session.do(shown).text)]
    for block in program:
        session.do(block)
        state = session.present
        seen.append((state, session.do(shown).text))
    for stop in [*walk, 0, len(program), 0]:
        state, text = seen[min(stop, len(program))]
        assert state in (*session.points(), session.present)
        restored = session.restore(state)
        assert not restored.lost and not restored.running
        assert session.do(shown).text == text


@pytest.fixture(scope="module")
def pythons() -> Iterator[dict[str, PythonRuntime]]:
    sessions = {engine: PythonRuntime(engine) for engine in ENGINES}
    for session in sessions.values():
        session.context.snapshots = 30  # enough for the longest walk
    yield sessions
    for session in sessions.values():
        session.terminate()


@pytest.fixture(scope="module", params=SHELLS)
def shell(request: pytest.FixtureRequest) -> Iterator[ShellRuntime]:
    session = ShellRuntime(request.param, snapshots=30)
    yield session
    session.terminate()


@pytest.fixture(scope="module")
def path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "file").write_text("0123456789" * 10)
        yield Path(folder) / "file"


def examples(count: int) -> Any:
    return settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))


def check_python(session: PythonRuntime, path: Path, program: list[str], walk: list[int]) -> None:
    check(session, f"PATH = {str(path)!r}\n{PYTHON_SETUP}", "print(shown())", program, walk)


@examples(8)
@given(engine=st.sampled_from(ENGINES), program=programs(PYTHON_EFFECTS), walk=walks)
def test_undo_and_redo_restore_random_python_states(
    pythons: dict[str, PythonRuntime], path: Path, engine: str, program: list[str], walk: list[int]
) -> None:
    check_python(pythons[engine], path, program, walk)


@examples(5)
@given(program=programs(SHELL_EFFECTS), walk=walks)
def test_undo_and_redo_restore_random_shell_states(shell: ShellRuntime, program: list[str], walk: list[int]) -> None:
    check(shell, SHELL_SETUP, SHELL_SHOWN, program, walk)


@pytest.mark.full
@pytest.mark.timeout(3600)
@examples(500)
@given(engine=st.sampled_from(ENGINES), program=programs(PYTHON_EFFECTS), walk=walks)
def test_undo_and_redo_restore_many_random_python_states(
    pythons: dict[str, PythonRuntime], path: Path, engine: str, program: list[str], walk: list[int]
) -> None:
    check_python(pythons[engine], path, program, walk)


@pytest.mark.full
@pytest.mark.timeout(3600)
@examples(250)
@given(program=programs(SHELL_EFFECTS), walk=walks)
def test_undo_and_redo_restore_many_random_shell_states(
    shell: ShellRuntime, program: list[str], walk: list[int]
) -> None:
    check(shell, SHELL_SETUP, SHELL_SHOWN, program, walk)
