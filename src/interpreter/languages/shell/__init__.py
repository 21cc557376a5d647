"""Shell: bash or zsh in a live session; PowerShell on Windows."""

import sys

if sys.platform == "win32":
    from interpreter.languages.shell.powershell import PowerShell as Shell
else:
    from interpreter.languages.shell.language import Shell

__all__ = ["Shell"]
