"""What a tool shows: in the output of the block whose code called it, or in a notebook below the cell."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.tool import Picture

if TYPE_CHECKING:
    from interpreter.runtimes.calls import Call


def show(what: Picture | str, call: Call | None) -> None:
    """Show it where somebody looks; nowhere if nobody does."""
    if call is not None:
        call.tell({"event": "display", "data": bundle(what)})
    elif (notebook := running_notebook()) is not None:
        notebook.display_pub.publish(bundle(what))


def bundle(what: Picture | str) -> dict[str, Any]:
    """By MIME type, as a display has it."""
    if isinstance(what, str):
        return {"text/plain": what}
    return {"image/png": what.base64, "text/plain": f"<Picture {what.width} x {what.height}>"}


def running_notebook() -> Any:
    """IPython's shell, if this program runs in one."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None
