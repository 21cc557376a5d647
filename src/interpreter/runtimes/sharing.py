"""Values that code shares with the other languages of a session: checked here, and converted for each language.

A value travels as JSON, either `{"value": ...}` or `{"table": [{"name": ..., "type": ..., "values": [...]}, ...]}`,
where a type is one of `TYPES`, missing values are null, and times are ISO 8601 texts. It comes from code that may be
hostile, so nothing else is accepted.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Literal

from interpreter.runtimes.protocol import is_shallow
from interpreter.runtimes.state import numbers

Form = Literal["json", "r", "env", "none"]
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")
TYPES: dict[str, type | tuple[type, ...]] = {
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "string": str,
    "datetime": str,
    "date": str,
}
MAX_DEPTH = 100  # nested lists and objects
MAX_VARIABLE_BYTES = 100_000  # bytes of an environment variable
MAX_SHARED, SHARED_TOGETHER = 1000, 5  # values, and how many of them may have the largest size


@dataclass(frozen=True)
class Shared:
    number: int  # later ones have higher numbers
    text: str
    content: dict[str, Any]


def take(shared: dict[str, Shared], name: str, text: str, most: int) -> None:
    """Add a value to the shared ones. Raises ValueError if it cannot be shared."""
    content = check(name, text, most)
    others = [len(each.text) for other, each in shared.items() if other != name]
    if sum(others) + len(text) > SHARED_TOGETHER * most or len(others) >= MAX_SHARED:
        raise ValueError(
            f"a session can share at most {MAX_SHARED} values, and their combined size can be at most "
            f"{SHARED_TOGETHER} times the limit for one (setting `computer.max_shared`)"
        )
    shared[name] = Shared(next(numbers), text, content)


def check(name: str, text: str, most: int) -> dict[str, Any]:
    if not NAME.fullmatch(name):
        raise ValueError("a name starts with a letter and has at most 100 letters, digits and underscores")
    if len(text) > most:
        raise ValueError(
            f"{len(text):,} characters are more than the limit of {most:,} (setting `computer.max_shared`)"
        )
    try:
        content = json.loads(text, parse_constant=_reject)
        if not isinstance(content, dict) or content.keys() not in ({"value"}, {"table"}):
            raise ValueError("neither a value nor a table")
        if "table" in content:
            _check_table(content["table"])
        elif not is_shallow(content["value"], MAX_DEPTH):
            raise ValueError("too deeply nested")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(f"it is not in the form in which values are shared ({error})") from None
    return content


def _reject(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _check_table(columns: Any) -> None:
    lengths = set()
    for column in columns:
        kind, values = TYPES[column["type"]], column["values"]
        if not isinstance(column["name"], str) or not isinstance(values, list) or len(column) != 3:
            raise ValueError("a column has a name, a type and values")
        lengths.add(len(values))
        for value in values:
            is_right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
            if value is not None and not is_right:
                raise ValueError(f"the column {column['name']} has something that is not a {column['type']}")
            if value is not None and column["type"] in ("datetime", "date"):
                datetime.fromisoformat(value)
    if len(lengths) != 1:
        raise ValueError("the columns of a table have the same length, and there is one at least")


# -- forms -------------------------------------------------------------------------------------------------------------


def in_form(form: Form, shared: Mapping[str, Shared]) -> list[list[str]]:
    """List names and values for a driver or a kernel, as JSON or as R expressions."""
    return [[name, as_r(each.content) if form == "r" else each.text] for name, each in shared.items()]


def as_csv(columns: list[dict[str, Any]]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(column["name"] for column in columns)
    writer.writerows(zip(*(column["values"] for column in columns), strict=True))
    return file.getvalue()


def as_text(value: Any) -> str:
    """Format a value for an environment variable: a text as it is, anything else as JSON."""
    return value.replace("\0", "") if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def as_r(content: dict[str, Any]) -> str:
    if "value" in content:
        return _r_value(content["value"])
    columns = content["table"]
    made = ", ".join(f"{_r_name(column['name'])} = {_r_column(column['type'], column['values'])}" for column in columns)
    return f'structure(list({made}), class = "data.frame", row.names = c(NA, -{len(columns[0]["values"])}L))'


def _r_column(kind: str, values: list[Any]) -> str:
    missing, attributes = {"string": "NA_character_", "boolean": "NA"}.get(kind, "NA_real_"), ""
    if kind == "date":
        values = [value and (date.fromisoformat(value[:10]) - date(1970, 1, 1)).days for value in values]
        attributes = ', class = "Date"'
    elif kind == "datetime":
        values = [value and _seconds(value) for value in values]
        attributes = ', class = c("POSIXct", "POSIXt"), tzone = "UTC"'
    elif kind == "integer" and all(value is None or abs(value) < 1 << 31 for value in values):
        missing = "NA_integer_"
    if missing == "NA_real_":
        values = [value if value is None else float(value) for value in values]
    cells = ", ".join(missing if value is None else _r_scalar(value) for value in values)
    vector = f"c({cells})" if cells else f"{missing}[0]"
    return f"structure({vector}{attributes})" if attributes else vector


def _seconds(text: str) -> float:
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _r_value(value: Any) -> str:
    if isinstance(value, dict):
        return f"list({', '.join(f'{_r_name(name)} = {_r_value(each)}' for name, each in value.items())})"
    if isinstance(value, list):
        kinds = {type(each) for each in value} - {int, float} or {float}
        together = "c" if value and len(kinds) == 1 and not kinds & {list, dict, type(None)} else "list"
        return f"{together}({', '.join(map(_r_value, value))})"
    return "NULL" if value is None else _r_scalar(value)


def _r_scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return f"{value}L" if abs(value) < 1 << 31 else f"{value}"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else "NA_real_"
    return json.dumps(value.replace("\0", "").encode("utf-8", "replace").decode(), ensure_ascii=False)


def _r_name(name: str) -> str:
    return _r_scalar(name.replace("\0", "") or "V")  # names in R can't be empty


# -- kernels of Jupyter ------------------------------------------------------------------------------------------------

KERNEL_FORMS: dict[str, Form] = {"python": "json", "r": "r"}  # by the language of the kernel
SHARE_MIME = "application/x-open-interpreter-share"  # what `share` displays in a kernel: a name, a space and the value
ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
IN_PYTHON = """
import builtins, sys, types
from IPython.display import publish_display_data
package = types.ModuleType("_interpreter_share")
package.__path__ = []
sys.modules[package.__name__] = package
for name, source in {sources!r}.items():
    module = types.ModuleType(package.__name__ + "." + name)
    module.__package__ = package.__name__
    sys.modules[module.__name__] = module
    exec(source, module.__dict__)
builtins.share = module.Share(
    get_ipython().user_ns, lambda name, text: publish_display_data({{{mime!r}: name + " " + text}})
)
builtins.share.most = {most}
"""
IN_R = """
local({{
send <- function(name, json) IRdisplay::publish_mimebundle(list("{mime}" = paste(name, json)))
{source}
attach(list(share = share), name = "interpreter", warn.conflicts = FALSE)
}})
"""


def input_value(answer: str | None, language: str) -> str:
    """Format an answer for a kernel. The end of input is a character for ipykernel, and an empty line for others."""
    return ("\x04" if language == "python" else "") if answer is None else answer


def error_text(content: dict[str, Any]) -> str:
    """Return the traceback of an error without colours; its name and value if there is none."""
    lines = content.get("traceback")
    shown = "\n".join(map(str, lines)) if isinstance(lines, list) else ""
    return ESCAPE.sub("", shown or f"{content.get('ename')}: {content.get('evalue')}") + "\n"


def kernel_setup(language: str, most: int) -> str:
    """Return code that defines `share` in a kernel."""
    folder = Path(__file__).parent
    if language == "r":
        return IN_R.format(mime=SHARE_MIME, source=(folder / "sharing.R").read_text("utf-8"))
    names = ("hints", "imports", "sharing")
    sources = {name: (folder / f"python/driver/{name}.py").read_text("utf-8") for name in names}
    code = IN_PYTHON.format(sources=sources, mime=SHARE_MIME, most=most)
    return f"exec({code!r}, {{'get_ipython': get_ipython}})"


def kernel_takes(language: str, values: list[list[str]], most: int) -> str:
    """Return code that sets variables in a kernel; the values are in the form for its language."""
    if language == "r":
        return "\n".join(f'assign("{name}", {expression}, globalenv())' for name, expression in values)
    return f"share.most = {most}; share.take({values!r})"
