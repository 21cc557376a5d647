"""What a block did to a copy-on-write view of the files, and how that becomes real."""

from interpreter.workspace.overlay.layer import Layer
from interpreter.workspace.overlay.writing import Written, write

__all__ = ["Layer", "Written", "write"]
