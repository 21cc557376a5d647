"""Tracebacks on the screen: the user's frames, a count of library frames, and the whole in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interpreter.frontends.terminal.render.ansi import without_styles
from interpreter.frontends.terminal.render.code_block import shortened
from interpreter.frontends.terminal.render.theme import Theme
from terminal.test_display import Stage, output, over

IPYTHON = """\
---------------------------------------------------------------------------
KeyError                                  Traceback (most recent call last)
File /x/lib/python3.11/site-packages/pandas/core/indexes/base.py:3816, in Index.get_loc(self, key)
   3815 try:
-> 3816     return self._engine.get_loc(casted_key)

File pandas/_libs/index.pyx:172, in pandas._libs.index.IndexEngine.get_loc()
--> 172 'Could not get source, probably due dynamically evaluated source code.'
KeyError: 'zz'

The above exception was the direct cause of the following exception:

KeyError                                  Traceback (most recent call last)
Cell In[1], line 2
      1 def f(df): return df["zz"]
----> 2 f(df)

File ~/project/mine.py:7, in f(df)
----> 7     return df["zz"]

File /x/lib/python3.11/site-packages/pandas/core/frame.py:4330, in DataFrame.__getitem__(self, key)
-> 4330             indexer = self.columns.get_loc(key)

File /x/lib/python3.11/json/decoder.py:1, in g()
----> 1 x

KeyError: 'zz'
"""
SHORT = """\
Cell In[1], line 2
      1 def f(df): return df["zz"]
----> 2 f(df)

File ~/project/mine.py:7, in f(df)
----> 7     return df["zz"]

… 2 frames in pandas, json
KeyError: 'zz'
"""
BARE = """\
Traceback (most recent call last):
  File "<block 1>", line 3, in <module>
    g()
  File "/usr/lib/python3.11/json/__init__.py", line 346, in loads
    return _default_decoder.decode(s)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^
json.JSONDecodeError: Expecting value
"""


def short(text: str) -> tuple[str, bool] | None:
    found = shortened(text, Theme())
    return (without_styles(found[0]), found[1]) if found else None


def test_library_frames_are_counted() -> None:
    assert short(IPYTHON) == (SHORT, True)


def test_the_sessions_colours_are_replaced_by_ours() -> None:
    colored = IPYTHON.replace("KeyError", "\x1b[0;31mKeyError\x1b[0m").replace("Cell", "\x1b[32mCell")
    assert short(colored) == (SHORT, True)
    assert "\x1b[0;31m" not in shortened(colored, Theme())[0]  # type: ignore[index]


def test_plain_python_tracebacks_are_shortened() -> None:
    found = short(BARE)
    assert found is not None
    assert found[0].splitlines() == [
        '  File "<block 1>", line 3, in <module>',
        "    g()",
        "… 1 frame in json",
        "json.JSONDecodeError: Expecting value",
    ]


def test_a_cause_with_another_message_stays() -> None:
    text = IPYTHON.replace("KeyError: 'zz'\n\nThe", "IndexError: 3\n\nThe")
    found = short(text)
    assert found is not None
    assert found[0].startswith("… 2 frames in pandas\nIndexError: 3\n\nThe above exception was")


def test_all_frames_of_the_user_stay() -> None:
    own = IPYTHON[IPYTHON.index("KeyError                                  Traceback") :]
    own = own.replace("site-packages", "src").replace("/lib/python3.11", "").replace("pandas/_libs/index.pyx", "/x.py")
    found = short(own)
    assert found is not None
    assert found[1] is False
    assert found[0].count("File ") == 5


@pytest.mark.parametrize(
    "text", ["", "plain\n", "Traceback (most recent call last)", "a\nTraceback (most recent call last):\n"]
)
def test_text_without_a_traceback_is_not_shortened(text: str) -> None:
    assert shortened(text, Theme()) is None


def shown(text: str, **more: Any) -> list[str]:
    stage = Stage()
    stage.show(output(text, **more), over(1, "error"))
    stage.display.finish()
    return stage.rows


def test_the_whole_traceback_is_saved_to_a_file() -> None:
    *rows, last = shown(IPYTHON, stream="stderr")
    assert rows == SHORT.splitlines()
    assert Path(last.removeprefix("… whole traceback: ")).read_text() == IPYTHON


def test_a_traceback_on_standard_output_is_left_alone() -> None:
    assert shown(BARE) == BARE.splitlines()
