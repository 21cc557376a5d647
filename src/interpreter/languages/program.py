"""Languages that another program runs: a driver that keeps its variables, or a program that runs one block and ends."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from interpreter.errors import RuntimeStartError
from interpreter.messages import Chunk
from interpreter.runtimes.block import Channels
from interpreter.runtimes.launch import Launch, program_version
from interpreter.runtimes.live import LiveLanguage
from interpreter.runtimes.protocol import Frame

BRIDGE = Path(__file__).with_name("bridge.py")


class ProgramLanguage(LiveLanguage):
    """A language whose blocks another program runs, through `bridge.py`."""

    # The program's arguments: `{file}` is the block; a driver gets `{commands}` and `{replies}`.
    arguments: Sequence[str] = ()
    worker: Path = BRIDGE  # the file that runs beside the program and speaks frames with the host
    persistent: bool = False  # whether the arguments start a driver that keeps the variables; see `bridge.py`

    def program(self) -> str | None:
        path = self.context.own_environment().get("PATH")
        return next((program for each in self.programs if (program := shutil.which(each, path=path))), None)

    def version(self) -> str | None:
        # Finding the version number can take longer than the model's answer.
        return "" if not self.programs or self.program() else None

    def installed(self) -> str | None:
        program = self.program()
        number = program and program_version(program, self.context.containment)
        return f"{Path(program).name} {number or ''}".rstrip() if program else None

    def command(self) -> list[str]:
        program = self.program()
        if program is None:
            names = " or ".join(self.programs)
            raise RuntimeStartError(self.name, f"{names} is not installed. To install it: {self.install}")
        return [program, *self.arguments]

    def config(self) -> Frame:
        """Return the configuration for its worker."""
        return {"command": self.command(), "persistent": self.persistent}

    def launch(self) -> Launch:
        config = {**self.config(), "extension": self.file_extension or "txt"}
        env = self.context.environment()
        chosen = next((name for name in ("LC_ALL", "LC_CTYPE", "LANG") if env.get(name)), "LC_CTYPE")
        if "utf" not in env.get(chosen, "").lower():
            env[chosen] = "C.UTF-8"  # else a program prints `<U+4E16>` instead of the character
        return Launch(["driver", str(self.worker), json.dumps(config)], env=env, cwd=self.context.cwd)

    def channels(self) -> Channels:
        return Channels()  # the bridge sends what the program writes

    def fields(self) -> Frame:
        return {"folder": str(self.start().folder)}

    def exited(self, event: Frame) -> Iterator[Chunk]:
        """End the whole runtime too, so that nothing of the bridge or its program is left for the next block."""
        yield from super().exited(event)
        self.end_runtime()
