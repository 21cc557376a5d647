"""Small models get a shortened traceback: the frames of the model's code, and the error."""

from __future__ import annotations

from interpreter.llm.request import digest, shortened

IPYTHON = """\
before
---------------------------------------------------------------------------
KeyError                                  Traceback (most recent call last)
Cell In[1], line 2
      1 import pandas as pd
----> 2 pd.DataFrame()["price"]

File /x/lib/python3.11/site-packages/pandas/core/frame.py:4107, in DataFrame.__getitem__(self, key)
   4105 if self.columns.nlevels > 1:
-> 4107 indexer = self.columns.get_loc(key)

KeyError: 'price'
"""
PLAIN = """\
Traceback (most recent call last):
  File "<block 1>", line 1, in <module>
    json.loads("{")
  File "/usr/lib/python3.11/json/__init__.py", line 346, in loads
    return _default_decoder.decode(s)
json.decoder.JSONDecodeError: Expecting property name
"""


def test_library_frames_are_left_out() -> None:
    assert digest(IPYTHON) == (
        "before\nCell In[1], line 2\n      1 import pandas as pd\n"
        "----> 2 pd.DataFrame()[\"price\"]\n\nKeyError: 'price'"
    )
    assert digest(PLAIN).splitlines() == [
        '  File "<block 1>", line 1, in <module>'.strip(),
        '    json.loads("{")',
        "json.decoder.JSONDecodeError: Expecting property name",
    ]


def test_other_errors_stay_unchanged() -> None:
    assert digest("ls: no such file\n") == "ls: no such file\n"


def test_long_text_keeps_its_start_and_end() -> None:
    text = shortened("a" * 100 + "b" * 1000 + "c" * 100, 60)
    assert text.startswith("a" * 20)
    assert text.endswith("c" * 40)
    assert "1,140 characters left out" in text
