"""Loading what the first answer needs while the user is still typing."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from threading import Thread

_NEEDED_SOON = (
    "interpreter.agent.turn",
    "interpreter.llm",
    "interpreter.computer_api",
    "interpreter.frontends.terminal.render.inline",
    "rich.table",
    "pygments.lexers.python",
    "httpx",
)


class WarmUp:
    """Imports in the background; `finish` before anything else imports the same, or two halves may meet."""

    def __init__(self) -> None:
        self._thread = Thread(target=self._load, name="warm-up", daemon=True)
        self._begun = False

    def begin(self) -> None:
        self._begun = True
        self._thread.start()

    def finish(self) -> None:
        if self._begun:
            self._thread.join()

    @staticmethod
    def _load() -> None:
        for name in _NEEDED_SOON:
            with suppress(ImportError):  # it fails again where it is needed, and is told there
                import_module(name)
