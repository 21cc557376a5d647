"""What the tools of the Computer API have in common: a tool, a picture, and what a method says of itself."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from PIL.Image import Image

    from interpreter.computer_api.computer import Computer

Method = TypeVar("Method", bound=Callable[..., Any])


class Tool:
    """One tool of the computer, such as its mouse; its public methods and properties are what code can call.

    Values are what JSON has, pictures, and bytes. Whatever is wrong is raised as a typed error or a ValueError whose
    words say what to do; nothing prints.
    """

    def __init__(self, computer: Computer) -> None:
        self.computer = computer

    def _check_sending(self) -> None:
        """Before the user is asked whether something may be sent: an error if it cannot be, which says what to do."""

    def _terminate(self) -> None:
        """The computer ends: end what the tool has started."""


@dataclass(frozen=True)
class Picture:
    """A picture as it travels: PNG, and what it is of, so that places in it can be mapped back to the screen."""

    png: bytes = field(repr=False)
    width: int
    height: int
    # Where its upper left corner is on the screen, and how many screen pixels one of its pixels is.
    left: float = 0
    top: float = 0
    scale: float = 1
    about: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, image: Image, left: float = 0, top: float = 0, scale: float = 1) -> Picture:
        buffer = BytesIO()
        image.save(buffer, "PNG", compress_level=1)
        return cls(buffer.getvalue(), image.width, image.height, left, top, scale)

    @property
    def base64(self) -> str:
        return base64.b64encode(self.png).decode("ascii")

    def pil(self) -> Image:
        from PIL import Image

        image = Image.open(BytesIO(self.png))
        image.load()
        return image

    def on_screen(self, x: float, y: float) -> tuple[float, float]:
        """Where a place in the picture is on the screen."""
        return self.left + x * self.scale, self.top + y * self.scale

    def _repr_png_(self) -> bytes | None:
        return None if self.about.get("shown") else self.png  # it has been shown when it was taken


def sends(method: Method) -> Method:
    """Mark a method that sends something to other people: when a model's code calls it, the user is asked each time."""
    method.__sends__ = True  # type: ignore[attr-defined]
    return method


def acts(method: Method) -> Method:
    """Mark a method that changes what is on the screen, or in another program."""
    method.__acts__ = True  # type: ignore[attr-defined]
    return method
