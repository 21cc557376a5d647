"""The line at the bottom while something goes on: a spinner, how long already, and what is being typed."""

from __future__ import annotations

import math

from interpreter.frontends.terminal.render.theme import Theme
from interpreter.frontends.terminal.render.words import duration

PATIENCE = 0.3  # seconds of silence before the spinner shows
STALL = 1.0  # the same where a text is already on the screen
TICK = 0.125
_HINT_AFTER = 5.0
_FRAMES = ("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\")


class Status:
    """What is being waited for, and since when."""

    def __init__(self, theme: Theme) -> None:
        self._theme = theme
        self.what = ""  # "" is nothing; else thinking, running, ...
        self.detail = ""
        self.typed = ""
        self._since = 0.0
        self._quiet_since = 0.0
        self._until = 0.0  # end of a countdown

    def begin(self, what: str, now: float, detail: str = "") -> None:
        """Something new is waited for."""
        self.what, self.detail = what, detail
        self._since = self._quiet_since = now
        self._until = 0.0

    def countdown(self, words: str, seconds: float, now: float) -> None:
        self.begin(words, now)
        self._until = now + seconds

    def stop(self) -> None:
        self.what = self.detail = ""

    def progress(self, now: float) -> None:
        """Something was shown: the spinner has to wait again."""
        self._quiet_since = now

    def appears_at(self, patience: float) -> float | None:
        """When the spinner is due; None if there is nothing to wait for."""
        if not self.what or patience == math.inf:
            return None
        return self._since if self._until else self._quiet_since + patience

    def rows(self, now: float, patience: float) -> list[str]:
        """The status line, or nothing."""
        due = self.appears_at(patience)
        parts = [self._spinner(now)] if due is not None and now >= due - 0.001 else []
        if self.typed:
            shown = self.typed.replace("\n", " ")
            parts.append(self._theme.paint(f"{self._theme.symbol('typed')} {shown}", "typed"))
        return ["  ".join(parts)] if parts else []

    def _spinner(self, now: float) -> str:
        frames = _FRAMES[0 if self._theme.unicode else 1]
        frame = frames[int(now / TICK) % len(frames)]
        elapsed = now - self._since
        if self._until:
            words = f"{self.what}, trying again in {duration(max(0, round(self._until - now)), 0)}"
        else:
            words = f"{self.what} {duration(elapsed, 0)}"
        words += self.detail and f" {self._theme.symbol('dot')} {self.detail}"
        if elapsed > _HINT_AFTER and not self.typed:
            words += f" {self._theme.symbol('dot')} Ctrl-C stops"
            words += ", Ctrl-B to the background" if self.what == "running" else ""
        return f"{self._theme.paint(frame, 'spinner')} {self._theme.paint(words, 'hint')}"
