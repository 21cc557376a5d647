"""The screen of the computer: display, mouse, keyboard, clipboard, windows and applications; and OS mode."""
