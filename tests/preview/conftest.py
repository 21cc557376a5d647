"""Fixtures for all preview tests."""

from preview.preview_session import interpreter, workspace

__all__ = ["interpreter", "workspace"]
