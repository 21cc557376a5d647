"""PowerShell blocks, each in a new process. Untested: we have no machine with PowerShell."""

from __future__ import annotations

from interpreter.runtimes.program import ProgramLanguage

__all__ = ["PowerShell"]


class PowerShell(ProgramLanguage):
    """PowerShell 7 or later; it keeps no variables between blocks."""

    name = "PowerShell"
    aliases = ("pwsh", "posh")
    file_extension = "ps1"
    lexer = "powershell"
    cell_magic = "%%script pwsh -NoProfile -Command -"
    programs = ("pwsh",)
    arguments = ("-NoLogo", "-NoProfile", "-NonInteractive", "-File", "{file}")
    install = "see https://aka.ms/install-powershell; macOS: brew install powershell"
    order = 20
    is_common = False
