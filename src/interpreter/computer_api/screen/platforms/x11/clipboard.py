"""The clipboard of an X display. A small process holds what was copied, as X11 requires, so that it outlives us.

That process runs this file: `python -m ...x11.clipboard SELECTION < content`.
"""

from __future__ import annotations

import base64
import json
import os
import select
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from typing import IO, Any

from Xlib import X, Xatom
from Xlib.error import ConnectionClosedError
from Xlib.ext import xfixes
from Xlib.protocol.event import SelectionNotify

from interpreter.computer_api.screen.platforms import PNG
from interpreter.computer_api.screen.platforms.x11 import X11Connection
from interpreter.computer_api.tool import Picture
from interpreter.errors import ComputerError
from interpreter.host import processes

_TIMEOUT = 10.0
# A busy program may take long to paste; one that cannot paste never asks.
_PASTE_TIMEOUT = 8.0
# Targets that programs offer and no program can paste.
_META = {"TARGETS", "MULTIPLE", "TIMESTAMP", "SAVE_TARGETS", "DELETE", "INSERT_SELECTION", "INSERT_PROPERTY"}
_TEXT = ("UTF8_STRING", "text/plain;charset=utf-8", "text/plain", "TEXT")
_FOREVER = 1e6
# Longer content is sent in parts, because the server accepts no longer messages.
_CHUNK = 200_000


class X11Clipboard:
    """The copied content (CLIPBOARD), and the selected text (PRIMARY)."""

    def text(self, selection: str = "CLIPBOARD") -> str | None:
        with X11Connection() as x:
            offered = _targets(x, selection)
            for target in ("UTF8_STRING", "text/plain;charset=utf-8", "STRING"):
                # Some programs give a picture also to those who ask for a text, but do not offer it so.
                content = _read(x, selection, target) if target in offered else None
                if content is not None:
                    return content.decode("latin-1" if target == "STRING" else "utf-8", "replace")
        return None

    def selected_text(self) -> str | None:
        return self.text("PRIMARY")

    def image(self) -> bytes | None:
        with X11Connection() as x:
            offered = _targets(x, "CLIPBOARD")
            for target in (PNG, "image/bmp", "image/jpeg", "image/tiff"):
                if target in offered and (data := _read(x, "CLIPBOARD", target)):
                    if target == PNG:
                        return data
                    from PIL import Image

                    return Picture.of(Image.open(BytesIO(data))).png
        return None

    def put_text(self, text: str) -> None:
        _hold(_forms(text)).close()

    def put_image(self, png: bytes) -> None:
        _hold({PNG: png}).close()

    def changed_by(self, copy: Callable[[], None]) -> bool:
        with X11Connection() as x:
            x.display.xfixes_query_version()
            mask = xfixes.XFixesSetSelectionOwnerNotifyMask
            x.display.xfixes_select_selection_input(x.root, x.atom("CLIPBOARD"), mask)
            x.display.sync()
            copy()
            kind, sub = x.display.extension_event.SetSelectionOwnerNotify
            return any(event.type == kind and getattr(event, "sub_code", sub) == sub for event in x.events(2.0))

    def paste_once(self, text: str, paste: Callable[[], None], delay: float) -> bool:
        with X11Connection() as x:
            offered = _targets(x, "CLIPBOARD")
            before = {each: data for each in offered if (data := _read(x, "CLIPBOARD", each)) is not None}
        try:
            with _hold(_forms(text)) as holder:
                paste()
                taken = _says(holder, "taken", _PASTE_TIMEOUT)
                # A clipboard manager may have been first, so the program gets some time as well.
                time.sleep(delay if taken else 0)
                return taken
        finally:
            # Where nothing was before, an empty text, so that ours does not stay.
            _hold(before or _forms("")).close()

    def paste_selection(self, text: str, paste: Callable[[], None]) -> bool:
        with _hold(_forms(text), "PRIMARY") as holder:
            paste()
            return _says(holder, "taken", _PASTE_TIMEOUT)


def _forms(text: str) -> dict[str, bytes]:
    return dict.fromkeys(_TEXT, text.encode()) | {"STRING": text.encode("latin-1", "replace")}


# -- reading from the program that has it ------------------------------------------------------------------------------


def _targets(x: X11Connection, selection: str) -> list[str]:
    """Return the forms in which the content is offered."""
    raw = _read(x, selection, "TARGETS") or b""
    numbers = [int.from_bytes(raw[at : at + 4], sys.byteorder) for at in range(0, len(raw), 4)]
    return [name for name in map(x.atom_name, numbers) if name not in _META]


def _read(x: X11Connection, selection: str, target: str) -> bytes | None:
    """Return the content in one form; None where no program offers it."""
    window = x.root.create_window(0, 0, 1, 1, 0, X.CopyFromParent, event_mask=X.PropertyChangeMask)
    property_atom = x.atom("OPEN_INTERPRETER_SELECTION")
    try:
        window.convert_selection(x.atom(selection), x.atom(target), property_atom, X.CurrentTime)
        x.display.flush()
        answer = next((e for e in x.events(_TIMEOUT) if e.type == X.SelectionNotify and e.requestor == window), None)
        if answer is None or answer.property == X.NONE:
            return None
        value = window.get_full_property(property_atom, X.AnyPropertyType)
        if value is not None and value.property_type == x.atom("INCR"):
            return _read_in_parts(x, window, property_atom)
        return None if value is None else _bytes(value)
    finally:
        window.destroy()
        x.display.sync()


def _read_in_parts(x: X11Connection, window: Any, property_atom: int) -> bytes | None:
    """Read long content in parts: deleting a part requests the next one, and an empty part is the end."""
    parts: list[bytes] = []
    window.delete_property(property_atom)
    x.display.flush()
    for event in x.events(_TIMEOUT * 4):
        if event.type != X.PropertyNotify or event.atom != property_atom or event.state != X.PropertyNewValue:
            continue
        value = window.get_full_property(property_atom, X.AnyPropertyType)
        if value is None or value.property_type == x.atom("INCR"):
            continue
        window.delete_property(property_atom)
        x.display.flush()
        part = _bytes(value)
        if not part:
            return b"".join(parts)
        parts.append(part)
    return None


def _bytes(value: Any) -> bytes:
    content = value.value
    if isinstance(content, str):
        return content.encode("latin-1")
    return bytes(content) if value.format == 8 else bytes(content.tobytes())


# -- holding it for other programs -------------------------------------------------------------------------------------


def _hold(content: dict[str, bytes], selection: str = "CLIPBOARD") -> IO[bytes]:
    """Start the process that has the selection until another program takes it; returns its output, for `_says`."""
    command = processes.python("-m", __name__, selection, packages=True)
    process = processes.start(command, stdin=processes.PIPE, stdout=processes.PIPE)
    assert process.stdin is not None and process.stdout is not None
    with process.stdin as pipe:
        pipe.write(json.dumps({name: base64.b64encode(data).decode() for name, data in content.items()}).encode())
    held = _says(process.stdout, "held", 30.0)
    process.wait()
    if not held:
        process.stdout.close()
        raise ComputerError("Can't access the clipboard: the X server does not answer.")
    return process.stdout


def _says(holder: IO[bytes], word: str, limit: float) -> bool:
    """Return whether the process says a word in time: `held`, or `taken` when a program has fetched the content."""
    while select.select([holder], [], [], limit)[0]:
        line = os.read(holder.fileno(), 1024).decode()
        if word in line.split():
            return True
        if not line:
            return False
    return False


class _Selection:
    """The content in the holding process, and the programs that are fetching it."""

    def __init__(self, x: X11Connection, name: str, content: dict[str, bytes]) -> None:
        self._x, self._content = x, content
        self._window = x.root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
        self._name = x.atom(name)
        self._rest: dict[tuple[int, int], tuple[int, bytes | None]] = {}
        self._window.set_selection_owner(self._name, X.CurrentTime)
        x.display.sync()
        self.held = x.display.get_selection_owner(self._name) == self._window

    def serve(self) -> None:
        """Send the content to programs that ask, until another program takes the selection."""
        lost = False
        for event in self._x.events(_FOREVER):
            if event.type == X.SelectionClear and event.atom == self._name:
                lost = True
            elif event.type == X.SelectionRequest:
                self._answer(event)
            elif event.type == X.PropertyNotify and event.state == X.PropertyDelete:
                transfer = (event.window.id, event.atom)
                kind, data = self._rest.pop(transfer, (0, None))
                if data is not None:  # the next part; an empty one ends it
                    event.window.change_property(event.atom, kind, 8, data[:_CHUNK])
                    self._x.display.flush()
                if data:
                    self._rest[transfer] = (kind, data[_CHUNK:])
                elif data is not None:
                    _say("taken")
            if lost and not self._rest:
                return

    def _answer(self, request: Any) -> None:
        requestor, property_atom = request.requestor, request.property or request.target
        target = self._x.atom_name(request.target)
        data = self._content.get(target)
        if target == "TARGETS":
            names = [self._x.atom(name) for name in ("TARGETS", *self._content)]
            requestor.change_property(property_atom, Xatom.ATOM, 32, names)
        elif data is None:
            property_atom = X.NONE
        elif len(data) <= _CHUNK:
            requestor.change_property(property_atom, request.target, 8, data)
            _say("taken")
        else:
            requestor.change_attributes(event_mask=X.PropertyChangeMask)
            requestor.change_property(property_atom, self._x.atom("INCR"), 32, [len(data)])
            self._rest[requestor.id, property_atom] = (request.target, data)
        copied = {name: getattr(request, name) for name in ("time", "requestor", "selection", "target")}
        requestor.send_event(SelectionNotify(**copied, property=property_atom))
        self._x.display.flush()


def _say(word: str) -> None:
    """Tell the process that started us, if it still listens."""
    with suppress(BrokenPipeError):
        os.write(1, f"{word}\n".encode())


def main() -> None:
    content = {target: base64.b64decode(data) for target, data in json.load(sys.stdin).items()}
    with suppress(ConnectionClosedError), X11Connection() as x:  # with the display, the selection is gone
        selection = _Selection(x, sys.argv[1], content)
        if selection.held:
            _say("held")
            # From here on it runs alone: the process that started us reaps the parent at once.
            if os.fork() == 0:
                selection.serve()


if __name__ == "__main__":
    main()
