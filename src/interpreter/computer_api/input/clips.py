"""Where copied things are: the clipboard of each kind of screen, in forms named by their MIME type."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from shutil import which
from typing import Protocol

from interpreter.computer_api.input.hands import kind_of_screen
from interpreter.errors import ComputerError

PNG = "image/png"
_LIMIT = 10


class Clips(Protocol):
    """One clipboard."""

    def text(self) -> str | None:
        """The copied text, None if what was copied is no text."""

    def image(self) -> bytes | None:
        """The copied picture as PNG, None if what was copied is none."""

    def marked(self) -> str | None:
        """The text that is marked and not yet copied, where the system tells it."""

    def put_text(self, text: str) -> None: ...

    def put_image(self, png: bytes) -> None: ...

    def changed_by(self, copying: Callable[[], None]) -> bool:
        """Whether a program put something there when it was told to copy."""

    def lent(self, text: str, pasting: Callable[[], None], delay: float) -> bool:
        """Put a text there for one paste and give the clipboard back; whether a program fetched it."""

    def marked_for(self, text: str, pasting: Callable[[], None]) -> bool:
        """Have a text be the marked one, for a terminal to paste; whether it fetched it."""


def open_clips() -> Clips:
    match kind_of_screen():
        case "x11":
            from interpreter.computer_api.input.x11.clips import X11Clips

            return X11Clips()
        case "wayland":
            return CommandClips(
                text=["wl-paste", "--no-newline", "--type", "text/plain"],
                image=["wl-paste", "--type", PNG],
                put_text=["wl-copy", "--type", "text/plain"],
                put_image=["wl-copy", "--type", PNG],
                marked=["wl-paste", "--no-newline", "--primary"],
                package="wl-clipboard",
            )
        case "macos":
            return CommandClips(text=["pbpaste"], put_text=["pbcopy"], package="macOS")
        case _:
            return CommandClips(
                text=["powershell", "-NoProfile", "-Command", "Get-Clipboard -Raw"],
                put_text=["powershell", "-NoProfile", "-Command", "$input | Set-Clipboard"],
                package="PowerShell",
            )


class CommandClips:
    """A clipboard behind the commands that the system has for it. Not tried on a real screen of these kinds."""

    def __init__(
        self,
        text: list[str],
        put_text: list[str],
        package: str,
        image: list[str] | None = None,
        put_image: list[str] | None = None,
        marked: list[str] | None = None,
    ) -> None:
        if which(text[0]) is None:
            raise ComputerError(f"The clipboard needs the command {text[0]}, which comes with {package}.")
        self._text, self._image, self._marked = text, image, marked
        self._put_text, self._put_image = put_text, put_image

    def text(self) -> str | None:
        found = _output(self._text)
        return None if found is None else found.decode("utf-8", "replace")

    def image(self) -> bytes | None:
        return _output(self._image) if self._image else None

    def marked(self) -> str | None:
        found = _output(self._marked) if self._marked else None
        return None if found is None else found.decode("utf-8", "replace")

    def put_text(self, text: str) -> None:
        _give(self._put_text, text.encode())

    def put_image(self, png: bytes) -> None:
        if self._put_image is None:
            raise ComputerError("Pictures cannot be copied on this system yet; save it to a file instead.")
        _give(self._put_image, png)

    def changed_by(self, copying: Callable[[], None]) -> bool:
        before = self.text()
        copying()
        return self.text() != before

    def lent(self, text: str, pasting: Callable[[], None], delay: float) -> bool:
        import time

        before = self.text()
        self.put_text(text)
        pasting()
        # There is no word from the program that pastes, so it gets the time.
        time.sleep(delay)
        self.put_text(before or "")
        return True

    def marked_for(self, text: str, pasting: Callable[[], None]) -> bool:
        return False


def _output(command: list[str]) -> bytes | None:
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_LIMIT, check=False)
    return ran.stdout if ran.returncode == 0 else None


def _give(command: list[str], data: bytes) -> None:
    """Hand data to a command that may stay behind to serve it, so that its output is not waited for."""
    ran = subprocess.run(
        command, input=data, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=_LIMIT, check=False
    )
    if ran.returncode:
        raise ComputerError(f"{command[0]} could not copy: it ended with {ran.returncode}.")
