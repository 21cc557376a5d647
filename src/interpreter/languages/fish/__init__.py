"""fish blocks: each runs in a new process, which starts from the state that the one before left."""

from __future__ import annotations

import json
import re
from pathlib import Path

from interpreter.host.files import read_bytes
from interpreter.languages.bridge import CHANGED
from interpreter.languages.program import ProgramLanguage
from interpreter.runtimes import built_in
from interpreter.runtimes.protocol import Frame

__all__ = ["Fish"]

NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class Fish(built_in.Fish, ProgramLanguage):
    """fish without its configuration, with the variables, functions and directory of earlier blocks."""

    arguments = ("--no-config", str(Path(__file__).with_name("driver.fish")), "{file}", "{state}")

    def apply_changes(self, event: Frame) -> None:
        """Give the variables that the block exported to the other languages."""
        assert self.runtime is not None
        try:
            changed = dict(json.loads(read_bytes(self.runtime.folder / CHANGED)))
        except (OSError, ValueError, TypeError):
            changed = {}  # fish was killed, or code has overwritten the file
        env = {
            name: value
            for name, value in changed.items()
            if NAME.fullmatch(str(name)) and (value is None or (isinstance(value, str) and "\0" not in value))
        }
        super().apply_changes({**event, "env": env})
