"""Libraries with their own threads work before and after undo, and their data is restored."""

from __future__ import annotations

import importlib.util
import os

import pytest

from python_runtimes import PythonRuntime

# A Python with more of these libraries than ours.
PYTHON = os.environ.get("TEST_LIBRARIES_PYTHON")

# Code that creates data, uses the library's threads, changes the data, and prints it.
LIBRARIES = {
    "numpy": ("import numpy as np; a = np.random.rand(700, 700)", "b = a @ a", "a[:] = 0", "print(a.sum())"),
    "pandas": (
        "import pandas as pd, numpy as np; df = pd.DataFrame(np.random.rand(1000, 2), columns=['a', 'b'])",
        "g = df.groupby(df.a.round(1)).mean()",
        "df['a'] = 0",
        "print(df.a.sum())",
    ),
    "matplotlib": (
        "import matplotlib.pyplot as plt; n = 1",
        "plt.plot([1, 2]); plt.show()",
        "n = 2",
        "print(n)",
    ),
    "sklearn": (
        "import numpy as np; from sklearn.ensemble import HistGradientBoostingClassifier as Boost\n"
        "X = np.random.rand(2000, 5); y = (X[:, 0] > 0.5).astype(int)",
        "m = Boost(max_iter=5).fit(X, y)",
        "X[:] = 0",
        "print(X.sum())",
    ),
    "torch": (
        "import torch; w = torch.randn(500, 500, requires_grad=True)",
        "(w @ w).pow(2).mean().backward()",
        "with torch.no_grad(): w.zero_()",
        "print(w.sum().item())",
    ),
    "polars": (
        "import polars as pl; df = pl.DataFrame({'a': list(range(20000)), 'b': [n % 7 for n in range(20000)]})\n"
        "def total(): return df['a'].sum()",
        "r = df.group_by('b').agg(pl.col('a').sum()).sort('b')",
        "df = df.with_columns(pl.lit(0).alias('a'))",
        "print(total())",
    ),
    "pyarrow": (
        "import pyarrow as pa, pyarrow.compute as pc; t = pa.table({'a': list(range(20000))})",
        "s = t.group_by('a').aggregate([('a', 'sum')])",
        "t = t.slice(0, 10)",
        "print(pc.sum(t['a']))",
    ),
    "duckdb": (
        "import duckdb; rows = duckdb.sql('select 42').fetchall()",
        "duckdb.sql('select sum(i) from range(1000000) t(i)').fetchall()",
        "rows = None",
        "print(rows)",
    ),
}


@pytest.mark.parametrize(
    "library",
    [pytest.param(name, marks=[] if name in ("numpy", "pandas") else [pytest.mark.full]) for name in LIBRARIES],
)
def test_a_library_works_before_and_after_undo(library: str) -> None:
    if PYTHON is None and importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed; TEST_LIBRARIES_PYTHON can name a Python that has it")
    make, use, change, show = LIBRARIES[library]
    session = PythonRuntime(python=PYTHON)
    try:
        session.context.timeout = 120
        assert session.do(make).ended == "done"
        assert session.do(use).ended == "done"
        before, then = session.do(show).text, session.present
        assert session.do(change).ended == "done"
        after, later = session.do(show).text, session.present
        assert before != after
        for state, shown in ((then, before), (later, after), (then, before)):
            session.restore(state)
            assert session.do(show).text == shown
            ran = session.do(use)
            assert ran.ended == "done", ran.stderr
        assert session.do("import os; os._exit(1)").ended == "died"
        assert session.do(show).text == before
        assert session.do(use).ended == "done"
    finally:
        session.terminate()


NATIVE_THREAD = """
import ctypes
libc = ctypes.CDLL(None)
number = ctypes.c_ulong()
libc.pthread_create(ctypes.byref(number), None, ctypes.cast(libc.pause, ctypes.c_void_p), None)
"""
DEFINED = """
import dataclasses, enum, json
class Base:
    def name(self): return 'base'
class Point(Base):
    def __init__(self, x): self.x = x
    def name(self): return super().name() + str(self.x)
@dataclasses.dataclass
class Pair:
    a: int
    b: list = dataclasses.field(default_factory=list)
class Color(enum.Enum):
    RED = 1
def add(n, step=2): return n + step + offset
def counter():
    n = 0
    def count():
        nonlocal n
        n += 1
        return n
    return count
offset, count, point, pair, red = 10, counter(), Point(3), Pair(1, [2]), Color.RED
count()
same = pair.b
square = lambda n: n * n
steps = (n for n in range(3))
"""
SHOWN = "print(add(1), count(), point.name(), pair, red is Color.RED, same is pair.b, square(4), json.dumps([1]))"


@pytest.mark.parametrize("engine", ["ipython", "bare"])
def test_variables_move_to_a_new_process_if_threads_cannot_be_restored(engine: str) -> None:
    session = PythonRuntime(engine)
    session.do(NATIVE_THREAD)
    session.do(DEFINED)
    state = session.present
    pid = session.do("import os; print(os.getpid())").text
    assert session.do(SHOWN).text == "13 2 base3 Pair(a=1, b=[2]) True True 16 [1]\n"
    lost = str(session.restore(state))
    assert "steps (generator)" in lost
    assert session.do(SHOWN).text == "13 2 base3 Pair(a=1, b=[2]) True True 16 [1]\n"
    assert (
        session.do("import os; print(len(os.listdir('/proc/self/task')), 'steps' in globals())").stdout == "1 False\n"
    )
    assert session.do("import os; print(os.getpid())").text != pid
    session.terminate()
