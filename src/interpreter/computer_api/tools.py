"""Which tools there are, each loaded when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interpreter.computer_api.computer import Computer
    from interpreter.computer_api.tool import Tool

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
