"""Tests of OS mode run on a desktop like those of the screen; each test worker has one."""

from screen.conftest import _desktop, desktop, two_monitors

__all__ = ["_desktop", "desktop", "two_monitors"]
