"""What the tools of the Computer API have in common: a tool, a picture, and what a method says of itself."""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from PIL.Image import Image

    from interpreter.computer_api.computer import Computer
    from interpreter.runtimes.calls import Call


Method = TypeVar("Method", bound=Callable[..., Any])


class Tool:
    """One tool of the computer, such as its mouse; its public methods and properties are what code can call.

    Values are what JSON has, pictures, and bytes. Whatever is wrong is raised as a typed error or a ValueError whose
    words say what to do; nothing prints.
    """

    def __init__(self, computer: Computer) -> None:
        self.computer = computer

    def check_sending(self) -> None:
        """Before the user is asked whether something may be sent: an error if it cannot be, which says what to do."""

    def terminate(self) -> None:
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


# In the order of 0.4.3, which scripts rely on.
TOOLS = {
    "mouse": "input.mouse:Mouse",
    "keyboard": "input.keyboard:Keyboard",
    "display": "display:Display",
    "clipboard": "input.clipboard:Clipboard",
    "mail": "mail:Mail",
    "sms": "sms:SMS",
    "calendar": "calendar:Calendar",
    "contacts": "contacts:Contacts",
    "browser": "browser:Browser",
    "os": "desktop:Os",
    "vision": "vision:Vision",
    "skills": "skills:Skills",
    "docs": "docs:Docs",
    "ai": "ai:Ai",
    "files": "files:Files",
}


def kind_of(name: str) -> type[Tool]:
    """The class of the tool of that name."""
    module, _, kind = TOOLS[name].partition(":")
    found: type[Tool] = getattr(import_module(f"interpreter.computer_api.{module}"), kind)
    return found


def make(name: str, computer: Computer) -> Tool:
    """A computer's tool of that name."""
    return kind_of(name)(computer)


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
