"""One turn in OS mode: what the model is shown of the screen, what it may touch, and how the user stops it."""

from __future__ import annotations

import platform
from collections.abc import Generator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.input.errors import StoppedByUser
from interpreter.computer_api.input.hands import hands_of, release
from interpreter.computer_api.os_mode.limits import Limits
from interpreter.computer_api.os_mode.sight import Sight
from interpreter.computer_api.os_mode.sign import Sign
from interpreter.computer_api.os_mode.stopping import BY_CORNER, Stopping
from interpreter.errors import InterpreterError
from interpreter.llm.computer_use import Screen
from interpreter.messages import Chunk

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter

STOPPED = "The user has stopped you ({}). Nothing more was done on the screen. Ask what they want before you go on."


class Control:
    """Begins and ends with the turn; `begin` fails with one sentence where there is no screen to use."""

    def __init__(self, interpreter: OpenInterpreter) -> None:
        self._interpreter = interpreter
        self._sight = Sight(interpreter.computer.display)
        self._sign = Sign()
        self._stopping = Stopping(interpreter.computer, self._stop)
        self._limits = Limits(interpreter, self._stopping)
        self._acted = False  # on the screen, since it was last shown
        self._stopped_by: str | None = None

    def begin(self) -> Generator[Chunk]:
        """Take control, and show the model where it is."""
        self._interpreter.computer.display.size()  # where there is no screen, this says so
        with suppress(InterpreterError):  # what is missing for the hands is told when they are used
            hands_of(self._interpreter.computer)  # opened here, where no interrupt of a block can strike
        keys = self._stopping.start()
        self._interpreter._os_limits = self._limits
        shown = self._sign.show()
        yield {"role": "computer", "type": "status", "format": "control", "content": {"stop": keys, "sign": shown}}
        yield from self._look("The screen now")

    def end(self) -> None:
        """Give control back."""
        self._interpreter._os_limits = None
        self._sign.hide()
        self._stopping.close()
        release(self._interpreter.computer)  # what was held when it broke off

    def after_block(self) -> Generator[Chunk]:
        """What a block did to the screen."""
        acted, self._acted = self._acted, False
        self._stopping.rests()
        if acted and not self._interpreter.cancelled:
            yield from self._look("The screen after that")

    def farewell(self) -> Generator[Chunk]:
        """If the user has stopped the turn: a word on it to them, and to the model when it is asked again."""
        if self._stopped_by is None:
            return
        told = STOPPED.format(self._stopped_by)
        self._interpreter.messages.append({"role": "computer", "type": "message", "content": told})
        content = {"by": self._stopped_by}
        yield {"role": "computer", "type": "status", "format": "stopped", "content": content}

    def called(self, call: Mapping[str, Any]) -> None:
        """Take note of what a block's code did with the screen."""
        if call.get("acts"):
            self._acted = True
            self._stopping.ends()
        if call.get("kind") == StoppedByUser.__name__:
            self._stop(BY_CORNER)

    def _look(self, about: str) -> Generator[Chunk]:
        self._sign.show()  # above what has come up meanwhile
        sees = self._interpreter.llm.vision
        seen = self._sight.look(about, sees)
        self._limits.front.note()
        picture = seen.picture
        self._interpreter.screen = Screen(
            picture.width, picture.height, picture.scale, picture.left, picture.top, platform.system().lower()
        )
        for chunk in seen.chunks(sees):
            yield {**chunk, "role": "computer"}

    def _stop(self, how: str) -> None:
        if self._stopped_by is None:
            self._stopped_by = how
            self._interpreter.cancel()
