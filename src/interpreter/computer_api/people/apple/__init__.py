"""The applications of macOS, spoken to in AppleScript."""
