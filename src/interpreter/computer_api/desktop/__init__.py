"""The desktop: windows, applications, notices, and the text that is marked."""

from interpreter.computer_api.desktop.os import Os

__all__ = ["Os"]
