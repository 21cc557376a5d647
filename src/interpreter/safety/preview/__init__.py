"""What a block did to a copy-on-write view of the files, and how that becomes real."""

from interpreter.safety.preview.layer import Layer
from interpreter.safety.preview.writing import Written, write

__all__ = ["Layer", "Written", "write"]
