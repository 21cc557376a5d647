"""What is marked, and what was copied, on an X display: read from the program that has it, or given to a holder."""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from interpreter.computer_api.input.x11.connection import Connection
from interpreter.errors import ComputerError

_LIMIT = 10.0
# What programs list and nobody can paste.
_META = {"TARGETS", "MULTIPLE", "TIMESTAMP", "SAVE_TARGETS", "DELETE", "INSERT_SELECTION", "INSERT_PROPERTY"}


def text(selection: str = "CLIPBOARD") -> str | None:
    with Connection() as x:
        offered = _targets(x, selection)
        for target in ("UTF8_STRING", "text/plain;charset=utf-8", "STRING"):
            # Some programs give a picture also to those who ask for a text, but do not offer it so.
            found = _read(x, selection, target) if target in offered else None
            if found is not None:
                return found.decode("latin-1" if target == "STRING" else "utf-8", "replace")
    return None


def data(target: str, selection: str = "CLIPBOARD") -> bytes | None:
    with Connection() as x:
        return _read(x, selection, target)


def targets(selection: str = "CLIPBOARD") -> list[str]:
    """The forms in which the content can be had."""
    with Connection() as x:
        return _targets(x, selection)


def whole(selection: str = "CLIPBOARD") -> dict[str, bytes]:
    """The content in all its forms, so that it can be given back later."""
    with Connection() as x:
        found = {target: _read(x, selection, target) for target in _targets(x, selection)}
        return {target: data for target, data in found.items() if data is not None}


def changed_by(action: Callable[[], Any], selection: str = "CLIPBOARD", limit: float = 2.0) -> bool:
    """Whether a program took the selection on an action."""
    from Xlib.ext import xfixes

    with Connection() as x:
        x.display.xfixes_query_version()
        x.display.xfixes_select_selection_input(x.root, x.atom(selection), xfixes.XFixesSetSelectionOwnerNotifyMask)
        x.display.sync()
        action()
        kind, sub = x.display.extension_event.SetSelectionOwnerNotify
        return any(event.type == kind and getattr(event, "sub_code", sub) == sub for event in x.events(limit))


def _targets(x: Connection, selection: str) -> list[str]:
    raw = _read(x, selection, "TARGETS") or b""
    numbers = [int.from_bytes(raw[at : at + 4], sys.byteorder) for at in range(0, len(raw), 4)]
    return [name for name in map(x.name, numbers) if name not in _META]


def _read(x: Connection, selection: str, target: str) -> bytes | None:
    """The content in one form; None where nobody has it so."""
    from Xlib import X

    window = x.root.create_window(0, 0, 1, 1, 0, X.CopyFromParent, event_mask=X.PropertyChangeMask)
    place = x.atom("OPEN_INTERPRETER_SELECTION")
    try:
        window.convert_selection(x.atom(selection), x.atom(target), place, X.CurrentTime)
        x.display.flush()
        answer = next((e for e in x.events(_LIMIT) if e.type == X.SelectionNotify and e.requestor == window), None)
        if answer is None or answer.property == X.NONE:
            return None
        found = window.get_full_property(place, X.AnyPropertyType)
        if found is not None and found.property_type == x.atom("INCR"):
            return _read_in_parts(x, window, place)
        return None if found is None else _bytes(found)
    finally:
        window.destroy()
        x.display.sync()


def _read_in_parts(x: Connection, window: Any, place: int) -> bytes | None:
    """What is too long for one message comes in parts, each when the one before was taken; an empty one ends it."""
    from Xlib import X

    parts: list[bytes] = []
    window.delete_property(place)
    x.display.flush()
    for event in x.events(_LIMIT * 4):
        if event.type != X.PropertyNotify or event.atom != place or event.state != X.PropertyNewValue:
            continue
        found = window.get_full_property(place, X.AnyPropertyType)
        if found is None or found.property_type == x.atom("INCR"):
            continue
        window.delete_property(place)
        x.display.flush()
        part = _bytes(found)
        if not part:
            return b"".join(parts)
        parts.append(part)
    return None


def _bytes(found: Any) -> bytes:
    value = found.value
    if isinstance(value, str):
        return value.encode("latin-1")
    return bytes(value) if found.format == 8 else bytes(value.tobytes())


class Holder:
    """A small process that has the selection until another program takes it: what was copied outlives us."""

    def __init__(self, content: dict[str, bytes], selection: str = "CLIPBOARD") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "interpreter.computer_api.input.x11.holder", selection],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        assert self._process.stdin is not None
        told = {target: base64.b64encode(data).decode() for target, data in content.items()}
        with self._process.stdin as pipe:
            pipe.write(json.dumps(told).encode())
        held = self.heard("held")
        self._process.wait()
        if not held:
            self.close()
            raise ComputerError("The clipboard could not be taken: the X server does not answer.")

    def heard(self, word: str, limit: float = 30.0) -> bool:
        """Whether the holder says a word in time: `held`, or `taken` when a program has fetched the content."""
        out = self._process.stdout
        assert out is not None
        while select.select([out], [], [], limit)[0]:
            line = os.read(out.fileno(), 1024).decode()
            if word in line.split():
                return True
            if not line:
                return False
        return False

    def close(self) -> None:
        """Listen no longer; the process goes on until something else is copied."""
        assert self._process.stdout is not None
        self._process.stdout.close()
