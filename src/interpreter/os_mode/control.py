"""One turn in OS mode: what the model is shown of the screen, what it may touch, and how the user stops it."""

from __future__ import annotations

import platform
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.input.errors import StoppedByUser
from interpreter.computer_api.input.stop import STOP_KEY, StopWatch
from interpreter.errors import InterpreterError
from interpreter.llm.computer_use import Screen
from interpreter.messages import Chunk
from interpreter.os_mode.limits import Limits
from interpreter.os_mode.sight import Sight
from interpreter.os_mode.sign import Sign

if TYPE_CHECKING:
    from interpreter.core import OpenInterpreter

STOPPED = "The user has stopped you. Nothing more was done on the screen."


class Control:
    """Begins and ends with the turn; `begin` fails with one sentence where there is no screen to use."""

    def __init__(self, interpreter: OpenInterpreter) -> None:
        self._interpreter = interpreter
        self._sight = Sight(interpreter.computer.display)
        self._sign = Sign()
        self._watch: StopWatch | None = None
        self._limits = Limits(interpreter)
        self.acted = False  # on the screen, since it was last shown
        self.stopped_by: str | None = None

    def begin(self) -> Generator[Chunk]:
        """Take control, and show the model where it is."""
        interpreter = self._interpreter
        yield from self._look("The screen now")
        self._watch = self._watching()
        interpreter._os_limits = self._limits
        shown = self._sign.show()
        keys = "+".join(STOP_KEY) if self._watch is not None else None
        yield {"role": "computer", "type": "status", "format": "control", "content": {"stop": keys, "sign": shown}}

    def end(self) -> None:
        """Give control back."""
        self._interpreter._os_limits = None
        self._sign.hide()
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()

    def after_block(self) -> Generator[Chunk]:
        """What a block did to the screen."""
        acted, self.acted = self.acted, False
        if self.stopped_by is not None:
            yield {"role": "computer", "type": "console", "format": "output", "content": f"{STOPPED}\n"}
        elif acted:
            self._sign.show()
            yield from self._look("The screen after that")

    def _look(self, about: str) -> Generator[Chunk]:
        seen = self._sight.look(about)
        picture = seen.picture
        self._interpreter.screen = Screen(
            picture.width, picture.height, picture.scale, picture.left, picture.top, platform.system().lower()
        )
        for chunk in seen.chunks(self._interpreter.llm.vision):
            yield {**chunk, "role": "computer"}

    def _watching(self) -> StopWatch | None:
        """The watch over the stop key; without one the corner of the screen and Ctrl-C are left."""
        try:
            return StopWatch(self._stop).start()
        except InterpreterError:
            return None

    def called(self, call: Mapping[str, Any]) -> None:
        """Take note of what a block's code did with the screen."""
        self.acted = self.acted or bool(call.get("acts"))
        if call.get("kind") == StoppedByUser.__name__:
            self._stop("the corner of the screen")

    def _stop(self, how: str = "the stop key") -> None:
        self.stopped_by = how
        self._interpreter.cancel()
