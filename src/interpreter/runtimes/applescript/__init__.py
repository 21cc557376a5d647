"""AppleScript blocks, on a Mac. Untested: no machine of ours is one."""

from __future__ import annotations

from interpreter.runtimes.program import ProgramLanguage

__all__ = ["AppleScript"]


class AppleScript(ProgramLanguage):
    """osascript gets the block as a file: nothing of it passes through a shell."""

    name = "AppleScript"
    file_extension = "applescript"
    comment = "--"
    cell_magic = "%%script osascript"
    programs = ("osascript",)
    arguments = ("{file}",)
    install = "it comes with macOS, and runs nowhere else"
    order = 21
    is_common = False
