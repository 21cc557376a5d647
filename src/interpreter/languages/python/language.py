"""Python in a live session."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

from interpreter.languages.frames import Frame
from interpreter.languages.live import LiveLanguage
from interpreter.languages.python.which import which_python
from interpreter.languages.session import Launch
from interpreter.languages.version import program_version

DRIVER = Path(__file__).with_name("driver") / "start.py"


class Python(LiveLanguage):
    """Variables, imports and functions stay from block to block; IPython is used where it is installed."""

    name = "Python"
    aliases = ("py", "python3")
    file_extension = "py"

    def version(self) -> str | None:
        python = which_python(self.surroundings.python, self.surroundings.environment())
        return platform.python_version() if python == sys.executable else program_version(python)

    def launch(self) -> Launch:
        env = self.surroundings.environment()
        python = which_python(self.surroundings.python, env)
        return Launch(["driver", str(DRIVER)], python=python, env=env, cwd=self.surroundings.cwd)

    def fields(self) -> Frame:
        return {"colors": self.surroundings.colors, "active_lines": self.surroundings.active_lines}
