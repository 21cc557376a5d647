"""The clipboard of an X display."""

from __future__ import annotations

import time
from collections.abc import Callable
from io import BytesIO

from interpreter.computer_api.input.clips import PNG
from interpreter.computer_api.input.x11 import selection
from interpreter.computer_api.input.x11.selection import Holder

_TEXT = ("UTF8_STRING", "text/plain;charset=utf-8", "text/plain", "TEXT")
# A program that is asked to paste and busy may take long; one that cannot paste never asks.
_PATIENCE = 8.0
_PICTURES = (PNG, "image/bmp", "image/jpeg", "image/tiff")


class X11Clips:
    """What is copied is held by a process of its own, as X11 wants it."""

    def text(self) -> str | None:
        return selection.text()

    def image(self) -> bytes | None:
        offered = selection.targets()
        for target in _PICTURES:
            if target in offered and (data := selection.data(target)):
                return data if target == PNG else _as_png(data)
        return None

    def marked(self) -> str | None:
        return selection.text("PRIMARY")

    def put_text(self, text: str) -> None:
        self._hold(_forms(text))

    def put_image(self, png: bytes) -> None:
        self._hold({PNG: png})

    def changed_by(self, copying: Callable[[], None]) -> bool:
        return selection.changed_by(copying)

    def lent(self, text: str, pasting: Callable[[], None], delay: float) -> bool:
        before = selection.whole()
        holder = Holder(_forms(text))
        try:
            pasting()
            taken = holder.heard("taken", _PATIENCE)
            # A clipboard manager may have been first, so the program gets some time as well.
            time.sleep(delay if taken else 0)
            return taken
        finally:
            holder.close()
            # Nothing to give back: an empty text, so that what was lent does not stay.
            self._hold(before or _forms(""))

    def marked_for(self, text: str, pasting: Callable[[], None]) -> bool:
        holder = Holder(_forms(text), "PRIMARY")
        try:
            pasting()
            return holder.heard("taken", _PATIENCE)
        finally:
            holder.close()

    def _hold(self, content: dict[str, bytes]) -> None:
        Holder(content).close()


def _forms(text: str) -> dict[str, bytes]:
    return dict.fromkeys(_TEXT, text.encode()) | {"STRING": text.encode("latin-1", "replace")}


def _as_png(data: bytes) -> bytes:
    from PIL import Image

    made = BytesIO()
    Image.open(BytesIO(data)).save(made, "PNG")
    return made.getvalue()
