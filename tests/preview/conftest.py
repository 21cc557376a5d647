"""Fixtures for all preview tests."""

from preview.previewing import interpreter, workspace

__all__ = ["interpreter", "workspace"]
