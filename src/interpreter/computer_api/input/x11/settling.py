"""Whether an application has taken in what was sent to it: it says so when asked, or it sleeps."""

from __future__ import annotations

import time
from itertools import count
from pathlib import Path
from typing import Any

from interpreter.computer_api.input.x11.connection import Connection

# For an application of which nothing can be known.
_PATIENCE = 0.15
_LOOK = 0.01
_SIGNS = count(int(time.monotonic() * 1000) % 2**30)


def answered(x: Connection, number: int, limit: float) -> bool:
    """Ask a window for a sign of life: it answers when it has read everything before the question."""
    from Xlib import X
    from Xlib.error import XError
    from Xlib.protocol.event import ClientMessage

    window, sign = x.window(number), next(_SIGNS)
    data = (32, [x.atom("_NET_WM_PING"), sign, number, 0, 0])
    question = ClientMessage(window=window, client_type=x.atom("WM_PROTOCOLS"), data=data)
    # GTK answers to those who watch the root's children, Qt to those who watch the root itself.
    x.root.change_attributes(event_mask=X.SubstructureNotifyMask | X.StructureNotifyMask)
    window.change_attributes(event_mask=X.StructureNotifyMask, onerror=_closed)
    try:
        window.get_attributes()
        window.send_event(question, event_mask=X.NoEventMask, onerror=_closed)
        x.display.sync()
        for event in x.events(limit):
            if event.type == X.ClientMessage and _sign(event) == sign:
                return True
            if event.type in (X.UnmapNotify, X.DestroyNotify) and event.window.id == number:
                return False  # The window closed on what was done.
        return False
    except XError:
        return False  # It is closed already.
    finally:
        x.root.change_attributes(event_mask=X.NoEventMask)
        window.change_attributes(event_mask=X.NoEventMask, onerror=_closed)
        x.display.sync()


def at_rest(pid: int, limit: float) -> None:
    """Wait until a process sleeps, as it does when it has read all its events; no event tells of it."""
    end, quiet = time.monotonic() + limit, 0
    while quiet < 3 and time.monotonic() < end:
        time.sleep(_LOOK)
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, IndexError):
            time.sleep(_PATIENCE)
            return
        quiet = quiet + 1 if state == "S" else 0


def _closed(*_: Any) -> bool:
    """An error that is expected of a window that may be gone at any time."""
    return True


def _sign(event: Any) -> int:
    return int(event.data[1][1]) if event.data[0] == 32 else -1
