"""AppleScript blocks, on a Mac. Untested: we have no Mac to test it on."""

from __future__ import annotations

from interpreter.languages.program import ProgramLanguage
from interpreter.runtimes import built_in

__all__ = ["AppleScript"]


class AppleScript(built_in.AppleScript, ProgramLanguage):
    """Runs blocks with osascript, which gets the block as a file: nothing in it passes through a shell."""

    arguments = ("{file}",)
