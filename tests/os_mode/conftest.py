"""OS mode tests use the desktop of tests/screen; each test worker has its own."""

from screen.conftest import _desktop, desktop, two_monitors

__all__ = ["_desktop", "desktop", "two_monitors"]
