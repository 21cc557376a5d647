"""AppleScript blocks, on a Mac. Untested: we have no Mac to test it on."""

from __future__ import annotations

from interpreter.runtimes.program import ProgramLanguage

__all__ = ["AppleScript"]


class AppleScript(ProgramLanguage):
    """Runs blocks with osascript, which gets the block as a file: nothing in it passes through a shell."""

    name = "AppleScript"
    file_extension = "applescript"
    comment = "--"
    cell_magic = "%%script osascript"
    programs = ("osascript",)
    arguments = ("{file}",)
    install = "it comes with macOS, and runs nowhere else"
    order = 21
    is_common = False
