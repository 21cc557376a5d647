"""Questions that are asked between blocks: which variables there are, what one looks like, what could be typed."""

from __future__ import annotations

from . import (
    completions,
    values,
    variables,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Optional

    from .channel import Frame


def answer(
    frame: Frame, namespace: Dict[str, Any], hidden: Dict[str, Any], png: Callable[[Any], Optional[bytes]]
) -> Frame:
    """The answer to one frame."""
    if frame["op"] == "complete":
        return completions.completions(namespace, str(frame["code"]), int(frame["cursor"]))
    if "name" not in frame:
        return variables.listed(namespace, hidden)
    try:
        value = values.found(namespace, str(frame["name"]))
    except values.NotAName:
        return {"failed": "this takes a name, or an attribute or element of one, such as df or sizes['small']"}
    page = values.page_of(value, frame.get("rows", (0, 50)), frame.get("columns", (0, 50)), png)
    return {"type": variables.type_name(value), **page}
