"""The process that has an X selection and hands it to the programs that ask: `python -m ... SELECTION < content`."""

from __future__ import annotations

import base64
import json
import os
import sys
from typing import Any

from interpreter.computer_api.input.x11.connection import Connection

_FOREVER = 1e6
# Longer content goes in parts, since the server takes no longer messages.
_PART = 200_000


class Selection:
    """The content, and the programs that are fetching it."""

    def __init__(self, x: Connection, name: str, content: dict[str, bytes]) -> None:
        from Xlib import X

        self._x, self._content = x, content
        self._window = x.root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
        self._name = x.atom(name)
        self._rest: dict[tuple[int, int], tuple[int, bytes]] = {}
        self._window.set_selection_owner(self._name, X.CurrentTime)
        x.display.sync()

    @property
    def held(self) -> bool:
        return bool(self._x.display.get_selection_owner(self._name) == self._window)

    def serve(self) -> None:
        """Hand it out until another program has the selection."""
        from Xlib import X

        lost = False
        for event in self._x.events(_FOREVER):
            if event.type == X.SelectionClear and event.atom == self._name:
                lost = True
            elif event.type == X.SelectionRequest:
                self._answer(event)
            elif event.type == X.PropertyNotify and event.state == X.PropertyDelete:
                self._go_on(event.window, event.atom)
            if lost and not self._rest:
                return

    def _answer(self, request: Any) -> None:
        from Xlib import X
        from Xlib.protocol.event import SelectionNotify

        place = request.property or request.target
        given = self._give(request.requestor, place, self._x.name(request.target))
        answer = SelectionNotify(
            time=request.time,
            requestor=request.requestor,
            selection=request.selection,
            target=request.target,
            property=place if given else X.NONE,
        )
        request.requestor.send_event(answer)
        self._x.display.flush()

    def _give(self, requestor: Any, place: int, target: str) -> bool:
        from Xlib import X, Xatom

        if target == "TARGETS":
            names = [self._x.atom(name) for name in ("TARGETS", *self._content)]
            requestor.change_property(place, Xatom.ATOM, 32, names)
            return True
        data = self._content.get(target)
        if data is None:
            return False
        kind = self._x.atom(target)
        if len(data) <= _PART:
            requestor.change_property(place, kind, 8, data)
            _say("taken")
            return True
        requestor.change_attributes(event_mask=X.PropertyChangeMask)
        requestor.change_property(place, self._x.atom("INCR"), 32, [len(data)])
        self._rest[requestor.id, place] = (kind, data)
        return True

    def _go_on(self, requestor: Any, place: int) -> None:
        if (requestor.id, place) not in self._rest:
            return
        kind, data = self._rest[requestor.id, place]
        requestor.change_property(place, kind, 8, data[:_PART])
        self._x.display.flush()
        if data:
            self._rest[requestor.id, place] = (kind, data[_PART:])
        else:
            del self._rest[requestor.id, place]
            _say("taken")


def _say(word: str) -> None:
    """Tell the one who started us, if they still listen."""
    try:
        os.write(1, f"{word}\n".encode())
    except BrokenPipeError:
        pass


def main() -> None:
    from Xlib.error import ConnectionClosedError

    content = {target: base64.b64decode(data) for target, data in json.load(sys.stdin).items()}
    try:
        with Connection() as x:
            selection = Selection(x, sys.argv[1], content)
            if selection.held:
                _say("held")
                # On its own from here: the one who started us reaps us at once.
                if os.fork() == 0:
                    selection.serve()
    except ConnectionClosedError:
        pass  # The display is gone, and the selection with it.


if __name__ == "__main__":
    main()
