"""`share("df")`: give a variable to the other languages of the session, and take what they share.

The form of a shared value is described in runtimes/sharing.py.
"""

from __future__ import annotations

import datetime
import json
import sys

from .hints import Any, Callable
from .imports import names_of, trusted_import

WHAT_CAN = (
    "Tables (pandas, polars, pyarrow), texts, numbers, booleans, None, dates, and lists and dicts of these can be "
    "shared."
)
KINDS = {"b": "boolean", "i": "integer", "u": "integer", "f": "number", "M": "datetime"}  # NumPy's kind codes
FRAMES = {("pandas", "DataFrame"), ("pandas.core.frame", "DataFrame")}
OTHERS = {("polars.dataframe.frame", "DataFrame"), ("pyarrow.lib", "Table")}


class NotShareable(TypeError):
    """A value that can't be shared with other languages."""


class Share:
    """The function `share`."""

    def __init__(self, namespace: dict[str, Any], send: Callable[[str, str], None]) -> None:
        self.most = 0  # characters; the setting `computer.max_shared`
        self._namespace, self._send = namespace, send
        self.__name__ = "share"

    def __repr__(self) -> str:
        return '<share("name") makes a variable available in the other languages>'

    def __reduce__(self) -> Any:
        return getattr, (trusted_import("builtins"), "share")

    def __call__(self, *names: str, **values: Any) -> None:
        for name in names:
            if not isinstance(name, str):
                raise TypeError('share() takes the names of variables: share("df"), or share(df=value).')
            if name not in self._namespace:
                raise NameError("There is no variable %r to share." % name)
            values[name] = self._namespace[name]
        for name, value in values.items():
            text = packed(name, value)
            if len(text) > self.most:
                raise ValueError(
                    "%s is too large to share: %d characters, the limit (computer.max_shared) is %d."
                    % (name, len(text), self.most)
                )
            self._send(name, text)

    def take(self, shared: list[list[str]]) -> None:
        """Set the variables that other languages share."""
        for name, text in shared:
            content = json.loads(text)
            self._namespace[name] = content["value"] if "value" in content else frame_of(content["table"])


def packed(name: str, value: Any) -> str:
    kinds = names_of(value)
    try:
        if kinds & FRAMES:
            columns = [pandas_column(str(label), value.iloc[:, at]) for at, label in enumerate(value.columns)]
        elif kinds & OTHERS:
            named = value.to_pydict() if hasattr(value, "to_pydict") else value.to_dict(as_series=False)
            columns = [column_of(label, values) for label, values in named.items()]
        else:
            return json.dumps({"value": value}, default=plain, allow_nan=False, ensure_ascii=False)
        if not columns:
            raise NotShareable("a table without columns")
        return json.dumps({"table": columns}, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotShareable("%s can't be shared: %s. %s" % (name, error, WHAT_CAN)) from None


def plain(value: Any) -> Any:
    """Convert a value that JSON does not support to one that it does."""
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return value.tolist()
    raise NotShareable("it has a %s" % type(value).__name__)


def pandas_column(label: str, series: Any) -> dict[str, Any]:
    kind = KINDS.get(getattr(series.dtype, "kind", "O"))
    values = [None if missing else value for missing, value in zip(series.isna(), series.tolist())]
    if kind == "datetime":
        values = [value and value.isoformat() for value in values]
    return {"name": label, "type": kind, "values": values} if kind else column_of(label, values)


def column_of(label: str, values: list[Any]) -> dict[str, Any]:
    values = [value.tolist() if hasattr(value, "tolist") else value for value in values]
    there = [value for value in values if value is not None]
    kinds = {type(value) for value in there}
    if kinds <= {bool} and there:
        kind = "boolean"
    elif kinds <= {int} and there:
        kind = "integer"
    elif kinds <= {int, float} and there:
        kind, values = "number", [None if value != value else value for value in values]
    elif all(isinstance(value, datetime.date) for value in there) and there:
        kind = "datetime" if any(isinstance(value, datetime.datetime) for value in there) else "date"
        values = [value and value.isoformat() for value in values]
    elif all(isinstance(value, str) for value in there):
        kind = "string"
    else:
        mixed = ", ".join(sorted(each.__name__ for each in kinds))
        raise NotShareable("its column %r mixes the types %s" % (label, mixed))
    return {"name": label, "type": kind, "values": values}


def frame_of(columns: list[dict[str, Any]]) -> Any:
    """Make a pandas DataFrame; a list of rows if pandas is not installed."""
    try:
        pandas = sys.modules.get("pandas") or trusted_import("pandas")
    except ImportError:
        names = [column["name"] for column in columns]
        return [dict(zip(names, row)) for row in zip(*(column["values"] for column in columns))]
    made = {}
    for at, column in enumerate(columns):
        series = pandas.Series(column["values"], dtype=object)
        has_gaps = series.isna().any()
        types = {
            "integer": "Int64" if has_gaps else "int64",
            "number": "float64",
            "boolean": "boolean" if has_gaps else "bool",
            "string": "str" if pandas.__version__ >= "3" else object,
        }
        kind = types.get(column["type"])
        made[at] = series.astype(kind) if kind else pandas.to_datetime(series, format="ISO8601")
    frame = pandas.DataFrame(made)
    frame.columns = [column["name"] for column in columns]
    return frame
