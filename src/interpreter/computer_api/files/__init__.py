"""Files: found, read and edited."""

from interpreter.computer_api.files.files import Files
from interpreter.computer_api.files.work.closest import get_close_matches_in_text

__all__ = ["Files", "get_close_matches_in_text"]
