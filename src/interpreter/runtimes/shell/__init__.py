"""Shell: bash or zsh in a live runtime; PowerShell on Windows."""

import sys

if sys.platform == "win32":
    from interpreter.runtimes.shell.powershell import PowerShell as Shell
else:
    from interpreter.runtimes.shell.language import Shell

__all__ = ["Shell"]
