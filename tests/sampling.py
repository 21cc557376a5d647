"""Test cases of which a few run in `make test`, and all in `make test-full`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def some(count: int, cases: Iterable[Any]) -> list[Any]:
    """Return the cases for `parametrize`; only the first ones run in `make test`."""
    listed = list(cases)
    return [*listed[:count], *map(_full, listed[count:])]


def _full(case: Any) -> Any:
    values, marks, name = case if isinstance(case, type(pytest.param())) else (None, (), None)
    if values is None:
        values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=[*marks, pytest.mark.full], id=name)
