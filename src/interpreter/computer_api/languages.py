"""The languages of a computer, and what their sessions share."""

from __future__ import annotations

import inspect
import threading
from functools import partial
from typing import TYPE_CHECKING

from interpreter.config.settings import ComputerSettings
from interpreter.errors import InterpreterError, LanguageNotFound
from interpreter.runtimes import Registry
from interpreter.runtimes.base import BaseLanguage
from interpreter.sigint import call_user_code, wait_for_abandoned

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.computer_api.skills import Skills
    from interpreter.runtimes.calls import Tools
    from interpreter.runtimes.context import OnInput, SessionContext
    from interpreter.runtimes.launch import Containment

Language = type[BaseLanguage]


class Languages(ComputerSettings):
    """The part of the computer that knows its languages."""

    if TYPE_CHECKING:
        skills: Skills

    def __init__(self, interpreter: OpenInterpreter | None = None) -> None:
        self._interpreter = interpreter
        self._making = threading.RLock()
        self._languages: list[Language] | None = None
        self._known: tuple[Language, ...] = ()  # as the list was when it was looked at last
        self._registry = Registry(lambda: self.languages)
        self._running: dict[Language, BaseLanguage] = {}
        self._shared: SessionContext | None = None
        self._left: list[Containment] = []  # that new sessions are not shut in any more

    def _answering(self) -> Tools | None:
        """Who answers what code calls."""
        return None

    @property
    def languages(self) -> list[Language]:
        """The classes of the languages that blocks may use; assign or append your own."""
        if self._languages is None:
            from interpreter.runtimes import built_in_languages

            self._languages = built_in_languages()
        if (found := tuple(self._languages)) != self._known:
            self._languages[:] = map(_completed, found)
            self._known = tuple(self._languages)
        return self._languages

    @languages.setter
    def languages(self, classes: list[Language]) -> None:
        classes = list(map(_completed, classes))
        for dropped in set(self._running) - set(classes):
            self._running.pop(dropped).terminate()
        self._languages = classes

    @property
    def terminal(self) -> Languages:
        """The original kept its languages one level deeper; scripts still reach them there."""
        return self

    @property
    def registry(self) -> Registry:
        """Finds these languages by name, for parts that describe code without running it."""
        return self._registry

    def get_language(self, name: str) -> Language | None:
        """The language of that name or alias, however it is capitalised."""
        return self._registry.find(name)

    def _instance(self, name: str) -> BaseLanguage:
        wait_for_abandoned()
        language = self.get_language(name)
        if language is None:
            raise LanguageNotFound(unknown_language(name, self.languages))
        return self._running.get(language) or self._first_instance(language)

    def _first_instance(self, language: Language) -> BaseLanguage:
        with self._making:  # several threads may be the first
            if language not in self._running:
                self._running[language] = self._make(language)
            return self._running[language]

    def _make(self, language: Language) -> BaseLanguage:
        variant = language.variant(self.context)
        wants_computer = any(
            parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
            for parameter in inspect.signature(variant).parameters.values()
        )
        return variant(self) if wants_computer else variant()  # type: ignore[call-arg]

    def describe_languages(self) -> str:
        """The languages with what runs them, in words for the model."""
        self.shut_in()
        described = []
        for language in self.languages:
            name, version = language.name.lower(), self._instance(language.name).version()
            described.append(name if version == "" else f"{name} ({version or 'not installed'})")
        return ", ".join(described)

    def has_python_package(self, name: str) -> bool:
        """Whether Python blocks can import a package, as far as can be told without starting a session."""
        from interpreter.runtimes.python.language import has_package, which_python

        try:
            return has_package(which_python(self.context.python, self.context.environment()), name)
        except InterpreterError:
            return False

    def is_alive(self, name: str) -> bool:
        """Whether the language has a session with what its blocks have defined."""
        from interpreter.runtimes.live import LiveLanguage

        language = self.get_language(name)
        instance = self._running.get(language) if language is not None else None
        if isinstance(instance, LiveLanguage):
            return instance.runtime is not None and instance.runtime.alive
        return instance is not None

    # -- what the sessions share ---------------------------------------------------------------------------------

    @property
    def context(self) -> SessionContext:
        """What the live sessions share, with the settings as they are now."""
        from interpreter.runtimes.context import SessionContext

        if self._shared is None:
            self._shared = SessionContext()
            if self._interpreter is not None:
                self._shared.cwd = self._interpreter.workspace
                self._shared.cancelled = self._interpreter._cancel.is_set
        shared, owner = self._shared, self._interpreter
        shared.python, shared.shell, shared.shell_rc = self.python, self.shell, self.shell_rc
        shared.active_lines = self.active_line_detection
        shared.snapshots = self.undo_snapshots
        shared.tools, shared.emit_images = self._answering(), self.emit_images
        shared.skills = self.skills.import_skills if self.import_skills else None
        if owner is not None:
            shared.timeout = owner.block_timeout
            shared.max_output = self.max_output or owner.max_output
        return shared

    def shut_in(self) -> None:
        """Have sessions that start from now on in the sandbox that the settings ask for, or in none."""
        shared = self.context
        if self._interpreter is None:
            return
        before, shared.containment = shared.containment, self._interpreter.containment_now(shared.containment)
        if before is not None and before is not shared.containment:
            self._left.append(before)  # sessions may still be in there
            shared.exported.clear()  # such as LD_PRELOAD: programs outside would heed it

    @property
    def on_input(self) -> OnInput | None:
        """Asked when code wants input: `(prompt, is_password) -> answer`, None for end of file."""
        ask = self.context.on_input
        return ask.args[0] if isinstance(ask, partial) and ask.func is call_user_code else ask

    @on_input.setter
    def on_input(self, ask: OnInput | None) -> None:
        self.context.on_input = None if ask is None else partial(call_user_code, ask)


def _completed(language: Language) -> Language:
    """The class; one that does not extend BaseLanguage, as in 0.4.3, gets the defaults from it."""
    return language if issubclass(language, BaseLanguage) else type(language.__name__, (language, BaseLanguage), {})


def unknown_language(name: str, languages: list[Language]) -> str:
    known = ", ".join(language.name.lower() for language in languages)
    return f"`{name}` is disabled or not supported here. Languages to use: {known}."
