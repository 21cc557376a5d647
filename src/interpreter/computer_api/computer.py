"""The computer as its owner, the loop and the code see it: it runs blocks, and it has tools that code can call."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from contextvars import ContextVar
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.languages import unknown_language
from interpreter.computer_api.states import States
from interpreter.computer_api.tool import TOOLS, make
from interpreter.config.setting import copy_settings
from interpreter.errors import UnknownSettingError

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.computer_api.ai import Ai
    from interpreter.computer_api.browser import Browser
    from interpreter.computer_api.calendar import Calendar
    from interpreter.computer_api.code_calls import Answering
    from interpreter.computer_api.contacts import Contacts
    from interpreter.computer_api.desktop import Os
    from interpreter.computer_api.display import Display
    from interpreter.computer_api.docs import Docs
    from interpreter.computer_api.files import Files
    from interpreter.computer_api.input.clipboard import Clipboard
    from interpreter.computer_api.input.keyboard import Keyboard
    from interpreter.computer_api.input.mouse import Mouse
    from interpreter.computer_api.mail import Mail
    from interpreter.computer_api.skills import Skills
    from interpreter.computer_api.sms import SMS
    from interpreter.computer_api.tool import Picture, Tool
    from interpreter.computer_api.vision import Vision
    from interpreter.runtimes.calls import Call
    from interpreter.runtimes.protocol import Frame

__all__ = ["Computer", "unknown_language"]

CALL: ContextVar[Call | None] = ContextVar("call", default=None)
"""The call of a block's code that this thread is answering."""


class Computer(States, closed=True):
    """The user's computer, as the loop, the library and the code itself see it."""

    if TYPE_CHECKING:  # in the order of TOOLS
        mouse: Mouse
        keyboard: Keyboard
        display: Display
        clipboard: Clipboard
        mail: Mail
        sms: SMS
        calendar: Calendar
        contacts: Contacts
        browser: Browser
        os: Os
        vision: Vision
        skills: Skills
        docs: Docs
        ai: Ai
        files: Files

    def __init__(self, interpreter: OpenInterpreter | None = None) -> None:
        super().__init__(interpreter)
        self._tools: dict[str, Tool] = {}
        self._answers = Answers(self)

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            if name in TOOLS:
                return self._tools.get(name) or self._tools.setdefault(name, make(name, self))
            try:
                return super().__getattr__(name)
            except UnknownSettingError as error:
                if close := get_close_matches(name, TOOLS, 1, 0.7):
                    words = f"There is no computer.{name}. Did you mean computer.{close[0]}?"
                    raise UnknownSettingError(words) from error
                raise

    def _answering(self) -> Answers:
        return self._answers

    def apart(self, interpreter: OpenInterpreter) -> Computer:
        """The same computer with runtimes of its own, for an interpreter that has another sandbox."""
        other = Computer(interpreter)
        copy_settings(self, other)
        other.languages = self.languages
        other._tools = self._tools
        other.belong_to(self.session, interpreter.user)
        other.context.cwd = self.context.cwd
        return other

    def terminate(self) -> None:
        """End all sessions and everything they started, and what the tools have open."""
        with ExitStack() as ending:  # what cannot be ended does not keep the rest
            ending.callback(super().terminate)
            for tool in list(self._tools.values()):
                if tool.computer is self:  # else they are those of the computer that this one was split off from
                    ending.callback(tool._terminate)

    # -- what is shown ---------------------------------------------------------------------------------------------

    def show(self, what: Picture | str) -> None:
        """For tools: put a picture or a text into the output of the block that called."""
        from interpreter.computer_api.tool import show

        show(what, CALL.get())

    # -- what there is ---------------------------------------------------------------------------------------------

    def help(self, name: str = "") -> str:
        """What there is, or with the name of a tool or a method, how it is called."""
        from interpreter.computer_api.listing import help_on

        return help_on(self, name)

    def view(self, *args: Any, **kwargs: Any) -> Any:
        """The same as `display.view`."""
        return self.display.view(*args, **kwargs)

    def screenshot(self, *args: Any, **kwargs: Any) -> Any:
        """The same as `display.screenshot`."""
        return self.display.screenshot(*args, **kwargs)

    def _get_all_computer_tools_list(self) -> list[Tool]:
        """All tools, in the order of 0.4.3."""
        return [getattr(self, name) for name in TOOLS]

    def _get_all_computer_tools_signature_and_description(self) -> list[str]:
        """Every method of every tool, each as `computer.mouse.scroll(clicks) # what it does`."""
        from interpreter.computer_api.listing import signatures

        return [line for tool in self._get_all_computer_tools_list() for line in signatures(tool)]

    def _extract_tool_info(self, tool: Tool) -> dict[str, Any]:
        """A tool by its name, its signature lines and what it is."""
        from interpreter.computer_api.listing import info

        return info(tool)

    # -- as data ---------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The settings of this computer, as JSON has them."""
        from interpreter.computer_api.listing import settings_of

        return settings_of(self)

    def load_dict(self, given: dict[str, Any]) -> None:
        """Take over the settings that `to_dict` gave, and of other entries those that are settings here."""
        for name, value in given.items():
            if name in self._rows and not name.startswith("_"):
                setattr(self, name, value)


class Answers:
    """Answers what code calls; made in earnest at the first call."""

    def __init__(self, computer: Computer) -> None:
        self._computer = computer

    @cached_property
    def _answering(self) -> Answering:
        from interpreter.computer_api.code_calls import Answering

        return Answering(self._computer)

    def answer(self, call: Call) -> Frame:
        return self._answering.answer(call)

    def stand_in(self, call: Callable[[str, str], Any]) -> Any:
        return self._answering.stand_in(call)
