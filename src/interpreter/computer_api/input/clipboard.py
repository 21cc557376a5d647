"""`computer.clipboard`."""

from __future__ import annotations

import sys
from io import BytesIO
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.input import acting, press_together
from interpreter.computer_api.platforms import InputDevice, open_clipboard
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
        clipboard = open_clipboard()
        text = clipboard.text()
        if not text and (png := clipboard.image()):
            return _picture(png)
        return text or ""

    @acts
    def copy(self, text: Any = None) -> str | Picture:
        """Put a text or a picture on the clipboard; without one, copy what is marked on the screen. Returns it."""
        clipboard = open_clipboard()
        if isinstance(text, str):
            clipboard.put_text(text)
            return text
        if text is not None:
            picture = _picture(text)
            clipboard.put_image(picture.png)
            return picture
        with acting(self.computer) as device:
            if device.in_terminal():
                clipboard.put_text(clipboard.selected_text() or "")
            elif not clipboard.changed_by(lambda: _press(device, self.modifier_key, "c")):
                raise ComputerError(
                    "Nothing was copied: mark something in the window in front first, by a drag or ctrl+a."
                )
        return self.view()

    @acts
    def paste(self) -> None:
        """Paste what is on the clipboard into the window that has the keyboard."""
        with acting(self.computer) as device:
            if device.in_terminal():
                _paste_in_terminal(device, open_clipboard().text() or "")
            else:
                _press(device, self.modifier_key, "v")


def paste_text(clipboard: Clipboard, device: InputDevice, text: str, delay: float) -> bool:
    """Enter a text by a paste, and restore the clipboard; whether a program took it."""
    if device.in_terminal():
        return _paste_in_terminal(device, text)
    return open_clipboard().paste_once(text, lambda: _press(device, clipboard.modifier_key, "v"), delay)


def _paste_in_terminal(device: InputDevice, text: str) -> bool:
    """Terminals paste the selection on Shift+Insert; line breaks at the end are keys, so that they count."""
    line = text.rstrip("\n")
    if line and not open_clipboard().paste_selection(line, lambda: _press(device, "shift", "insert")):
        return False
    for _ in range(len(text) - len(line)):
        _press(device, "enter")
    return True


def _press(device: InputDevice, *keys: str) -> None:
    """Press keys together, and wait until the program has handled them."""
    press_together(device, ["cmd" if key == "command" else key for key in keys])
    device.settle()


def _picture(image: Any) -> Picture:
    """A picture in one of its forms: a Picture, PNG bytes, or a PIL image."""
    if isinstance(image, Picture):
        return image
    if hasattr(image, "save") and hasattr(image, "mode"):
        return Picture.of(image)
    png = image if isinstance(image, bytes) else getattr(image, "png", None)
    if png is None:
        raise ValueError(f"A text or a picture can be copied, not {type(image).__name__}.")
    from PIL import Image

    with Image.open(BytesIO(png)) as opened:
        return Picture(bytes(png), opened.width, opened.height)
