"""PowerShell blocks, each in a new process. Untested: we have no machine with PowerShell."""

from __future__ import annotations

from interpreter.languages.program import ProgramLanguage
from interpreter.runtimes import built_in

__all__ = ["PowerShell"]


class PowerShell(built_in.PowerShell, ProgramLanguage):
    """PowerShell 7 or later; it keeps no variables between blocks."""

    arguments = ("-NoLogo", "-NoProfile", "-NonInteractive", "-File", "{file}")
