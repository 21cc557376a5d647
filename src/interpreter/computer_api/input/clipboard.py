"""The clipboard."""

from __future__ import annotations

import sys
from io import BytesIO
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.input.clips import Clips, open_clips
from interpreter.computer_api.input.hands import Hands, hands_of, press
from interpreter.computer_api.input.stop import acting
from interpreter.computer_api.tool import Picture, Tool, acts
from interpreter.errors import ComputerError

if TYPE_CHECKING:
    from interpreter.computer_api.computer import Computer


class Clipboard(Tool):
    """What was copied: text, or a picture."""

    def __init__(self, computer: Computer) -> None:
        super().__init__(computer)
        self.modifier_key = "command" if sys.platform == "darwin" else "ctrl"

    def view(self) -> str | Picture:
        """What is on the clipboard: a text, or a picture; an empty text if nothing is."""
        clips = open_clips()
        text = clips.text()
        if not text and (png := clips.image()):
            return _picture(png)
        return text or ""

    @acts
    def copy(self, text: Any = None) -> str | Picture:
        """Put a text or a picture on the clipboard; without one, copy what is marked on the screen. Returns it."""
        clips = open_clips()
        if text is None:
            return self._copy_marked(clips)
        if isinstance(text, str):
            clips.put_text(text)
            return text
        picture = text if isinstance(text, Picture) else _picture(_png(text))
        clips.put_image(picture.png)
        return picture

    @acts
    def paste(self) -> None:
        """Paste what is on the clipboard into the window that has the keyboard."""
        with acting(self.computer) as hands:
            if hands.in_terminal():
                self._paste_in_terminal(hands, open_clips().text() or "")
            else:
                self._press(hands, self._modifier, "v")

    def _copy_marked(self, clips: Clips) -> str | Picture:
        with acting(self.computer) as hands:
            if hands.in_terminal():
                clips.put_text(clips.marked() or "")
            elif not clips.changed_by(lambda: self._press(hands, self._modifier, "c")):
                raise ComputerError(
                    "Nothing was copied: mark something in the window in front first, by a drag or ctrl+a."
                )
        return self.view()

    def _paste_once(self, text: str, delay: float) -> bool:
        """Enter a text by a paste, and leave the clipboard as it was; whether a program took it."""
        hands = hands_of(self.computer)
        if hands.in_terminal():
            return self._paste_in_terminal(hands, text)
        return open_clips().lent(text, lambda: self._press(hands, self._modifier, "v"), delay)

    def _paste_in_terminal(self, hands: Hands, text: str) -> bool:
        """Terminals paste what is marked on Shift+Insert; the line breaks at the end are keys, so that they count."""
        line = text.rstrip("\n")
        if line and not open_clips().marked_for(line, lambda: self._press(hands, "shift", "insert")):
            return False
        for _ in range(len(text) - len(line)):
            self._press(hands, "enter")
        return True

    @property
    def _modifier(self) -> str:
        return "cmd" if self.modifier_key == "command" else self.modifier_key

    def _press(self, hands: Hands, *keys: str) -> None:
        """Press keys together; the program has seen them afterwards."""
        press(hands, list(keys))
        hands.settle()


def _picture(png: bytes) -> Picture:
    from PIL import Image

    with Image.open(BytesIO(png)) as image:
        return Picture(png, image.width, image.height)


def _png(image: Any) -> bytes:
    """The PNG of a picture in one of its forms: PNG bytes, base64, or an image of Pillow."""
    if isinstance(image, bytes):
        return image
    if hasattr(image, "save") and hasattr(image, "mode"):
        return Picture.of(image).png
    if hasattr(image, "png"):
        return bytes(image.png)
    raise ValueError(f"A text or a picture can be copied, not {type(image).__name__}.")
