"""X11, spoken directly: pointer and keys through XTest, selections, and what the window manager knows."""
