"""The computer: it runs code in live runtimes, and has tools that code can call."""

from __future__ import annotations

import json
import sys
import threading
import weakref
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing, suppress
from contextvars import ContextVar
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from interpreter import packages
from interpreter.computer_api.tool import TOOLS, ComputerTool, Picture, help_on, info, kind_of, present
from interpreter.config.settings import ComputerSettings
from interpreter.errors import InterpreterError, NotRestorableError, UnknownSettingError, UsageError
from interpreter.leaves import load
from interpreter.messages import Chunk, fold, only_original
from interpreter.runtimes import Registry
from interpreter.runtimes.base import BaseLanguage
from interpreter.runtimes.pool import Language, RuntimePool
from interpreter.session import Actor, Block, Permissions, Session
from interpreter.sigint import Guarded, call_user_code

if TYPE_CHECKING:
    from interpreter.computer_api.ai import Ai, Vision
    from interpreter.computer_api.browser import Browser
    from interpreter.computer_api.files import Docs, Files
    from interpreter.computer_api.people.calendar import Calendar
    from interpreter.computer_api.people.contacts import Contacts
    from interpreter.computer_api.people.mail import Mail
    from interpreter.computer_api.people.sms import SMS
    from interpreter.computer_api.screen.desktop import Os
    from interpreter.computer_api.screen.display import Display
    from interpreter.computer_api.screen.input import Clipboard, Keyboard, Mouse
    from interpreter.computer_api.skills import Skills
    from interpreter.config.settings import InterpreterSettings
    from interpreter.questions import OnInput
    from interpreter.runtimes.calls import ComputerCall
    from interpreter.runtimes.launch import RuntimeContext, RuntimeSandbox
    from interpreter.runtimes.live import Job
    from interpreter.runtimes.protocol import Frame
    from interpreter.runtimes.state import Completions, Mark, Restored, TableQuery, Value, Variable, Window
    from interpreter.tools import Toolbox

# The call from a block's code that this thread is answering.
CALL: ContextVar[ComputerCall | None] = ContextVar("call", default=None)

MACHINES = "interpreter.remote.machines"
KEEPERS = "keepers.json"  # beside a session's journal: where its runtimes are; only the user can read it
_MAX_OUTPUT_LENGTH = 10_000_000  # characters that `run` gives; of more, the beginning and the end


class Participant(NamedTuple):
    """The parts of an agent that the computer uses, for the agent's code and the user's."""

    settings: InterpreterSettings
    tools: Callable[[], Toolbox]
    code_tools: Callable[[], Toolbox]


class Computer(ComputerSettings):
    """The user's computer: it runs code in live runtimes, and has tools that code can call."""

    interpreter: (
        Any  # as in 0.4.3: the OpenInterpreter whose computer it is. Here, only its session and preview are used
    )
    registry: Registry  # finds its languages by name, for parts that describe code without running it
    runtimes: RuntimePool

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

    def __init__(self, interpreter: Any = None) -> None:
        self.interpreter = interpreter
        self.participants: dict[str, Participant] = {}  # by actor
        # Makes what a sandbox's runtimes start in, for someone's settings; it may reuse what exists.
        self.contain: Callable[[InterpreterSettings, Any, RuntimeSandbox | None], RuntimeSandbox | None] | None = None
        self.ends_with: list[Callable[[], object]] = []  # called when it ends: what others have started here
        self._pools: dict[str, RuntimePool] = {}  # beside the usual one, by sub-agent or user
        self._lock = threading.RLock()
        self.closing: list[Callable[[], object]] = []  # called when all runtimes end
        self._languages: list[Language] | None = None
        self._machines: dict[str, Any] = {}
        self._machines_for: tuple[Any, ...] = (None, ())
        self._languages_for: tuple[Any, ...] = (None, ())
        self.registry = Registry(lambda: self.languages)
        self.runtimes = RuntimePool(self)
        self._session: Session | None = None
        self._user: Actor | None = None
        self._tools: dict[str, ComputerTool] = {}
        self.code_calls = _CodeCalls(self)

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            if name in TOOLS:
                return self._tools.get(name) or self._tools.setdefault(name, kind_of(name)(self))
            try:
                return super().__getattr__(name)
            except UnknownSettingError as error:
                if close := get_close_matches(name, TOOLS, 1, 0.7):
                    raise UnknownSettingError(
                        f"There is no computer.{name}. Did you mean computer.{close[0]}?"
                    ) from error
                raise

    # -- languages and runtimes ------------------------------------------------------------------------------------

    @property
    def languages(self) -> list[Language]:
        """Return the classes of the languages that blocks may use; assign or append your own."""
        machines = self.machines
        if self._languages is None or self._languages_for != self._machines_for:
            from interpreter.runtimes import built_in_languages

            built_in = built_in_languages()
            built_in += [each for _, each in packages.loaded("languages")]
            added = [each for each in self._languages or () if each not in built_in and not each.runs_on]
            self._languages = [
                *(load(f"{MACHINES}:languages_for")(machines, built_in) if machines else built_in),
                *added,
            ]
            self._languages_for = self._machines_for
        self._languages[:] = map(_with_defaults, self._languages)  # some may be new
        return self._languages

    @languages.setter
    def languages(self, classes: list[Language]) -> None:
        self._languages = list(map(_with_defaults, classes))
        self.runtimes.keep_only(self._languages)

    @property
    def machines(self) -> dict[str, Any]:
        """Return the other machines that the settings name; the session's own has no name."""
        wanted = (self.remote, tuple((self.remotes or {}).items()))
        if wanted != self._machines_for:
            with self._lock:
                old, self._machines = self._machines, load(f"{MACHINES}:machines_of")(self) if any(wanted) else {}
                self._machines_for = wanted
            for machine in old.values():
                machine.close()
        return self._machines

    @property
    def machine(self) -> Any:
        """Return the other machine that the whole session works on; None if it works on this one."""
        return self.machines.get("")

    def note_machines(self, session_folder: Path) -> None:
        """Note in a session's folder where its runtimes are, for a process that resumes it if this one is killed."""
        load(f"{MACHINES}:note_keepers")(self, session_folder)

    def return_to_machine(self, session_folder: Path) -> None:
        """Work on the machine that a saved session worked on, unless the settings name one."""
        if not self.remote and (session_folder / KEEPERS).exists():
            self.remote = load(f"{MACHINES}:noted_address")(session_folder)

    def take_over_machines(self, session_folder: Path) -> None:
        """Let the machines of a resumed session look for runtimes that a killed process left there."""
        load(f"{MACHINES}:take_over_keepers")(self, session_folder)

    @property
    def terminal(self) -> Computer:
        """0.4.3 kept its languages one level deeper; scripts still reach them there."""
        return self

    def get_language(self, name: str) -> Language | None:
        """Return the language with that name or alias, in any case."""
        return self.registry.find(name)

    @property
    def context(self) -> RuntimeContext:
        """Return the context that the runtimes share: the working directory, exported variables, settings."""
        return self.runtimes.context

    # -- running code ------------------------------------------------------------------------------------------------

    @property
    def session(self) -> Session:
        """Return the session that this computer belongs to. Everything done on the computer goes through it."""
        if self._session is None:
            joined = (
                self.interpreter.session if self.interpreter is not None else Session(runtimes=lambda _: self.runtimes)
            )
            with self._lock:
                self._session = self._session or joined
        return self._session

    @property
    def user(self) -> Actor:
        """Return the actor of `run`: the user of this computer."""
        if self._user is None:
            owner = self.interpreter
            with self._lock:
                self._user = self._user or (owner.user if owner is not None else self._own_user())
        return self._user

    def _own_user(self) -> Actor:
        """Add the user of a computer that has no interpreter: nothing limits its code."""
        return self.session.add_actor("user", Permissions("auto"))

    def belong_to(self, session: Session, user: Actor) -> None:
        """Make this the computer of a session."""
        self._session, self._user = session, user

    def participant(self, actor: Actor | None) -> Participant | None:
        """Return who an actor's code runs for; by default the agent whose computer this is."""
        for each in (*(actor.chain() if actor is not None else ()), self._user):
            if each is not None and each.id in self.participants:
                return self.participants[each.id]
        return None

    def settings_of(self, actor: Actor | None) -> InterpreterSettings | None:
        """Return the settings whose limits apply to an actor's code."""
        participant = self.participant(actor)
        settings: InterpreterSettings | None = self.interpreter if participant is None else participant.settings
        return settings

    @property
    def settings(self) -> InterpreterSettings | None:
        """Return the settings of the agent whose computer this is; None if it has none."""
        return self.settings_of(None)

    @property
    def is_offline(self) -> bool:
        """Return whether nothing but the model may be reached."""
        return self.settings is not None and self.settings.offline if self.offline is None else self.offline

    def runtimes_of(self, actor: Actor) -> RuntimePool:
        """Return an actor's runtimes: a user and their agent share them, a sub-agent or another sandbox has its own."""
        if actor.has_permissions_of(self.user):
            return self.runtimes
        line = list(actor.chain())
        agents = [each for each in line if each.kind == "agent"]
        own = agents[0] if len(agents) > 1 else line[-1]
        if len(agents) < 2 and actor.permissions.sandbox == self.user.permissions.sandbox:
            return self.runtimes
        with self._lock:
            pool = self._pools.get(own.id)
            if pool is None:
                pool = self._pools[own.id] = RuntimePool(self, own)
                pool.context.cwd = self.context.cwd
        return pool

    def run(self, language: str, code: str, stream: bool = False, display: bool = False, wait: bool = True) -> Any:
        """Run code; return the messages it made, or with `stream` a generator of its chunks.

        While another block of the session runs, this one waits, or raises BusyError if `wait` is false.
        """
        block = Block(language, code)
        performance = self.session.perform(block, self.user, wait)
        if display:
            from interpreter.frontend import display as front_end

            chunks = front_end().show_events(self.interpreter, performance)  # it handles Ctrl-C itself
        else:
            chunks = Guarded(performance.chunks(), partial(self.session.cancel, block))
        if stream:
            everything = self.settings is not None and self.settings.stream_all
            return block_chunks(chunks) if everything else _until_end(only_original(block_chunks(chunks)))
        with closing(chunks):
            messages = fold(chunks, self.max_output or _MAX_OUTPUT_LENGTH)
        for message in messages:
            message.pop("role", None)
        return [message for message in messages if message["content"] != "" or "ended" in message]

    def exec(self, code: str) -> Any:
        """Run a shell command."""
        return self.run("shell", code)

    def stream(self, language: str, code: str, by: Actor | None = None) -> Generator[Chunk]:
        """Run code for an actor, by default the user, and yield its chunks; errors are part of the output."""
        return block_chunks(self.session.perform(Block(language, code), by or self.user).chunks())

    def preview(self, language: str, code: str) -> Any:
        """Dry-run a block in a copy-on-write view of the workspace."""
        if self.interpreter is None:
            raise UsageError("A preview needs an interpreter with a workspace.")
        return self.interpreter.dry_run(language, code)

    def stop(self) -> None:
        """End the running block; from any thread."""
        active = self.runtimes.active
        if active is not None:
            active.stop()

    def terminate(self) -> None:
        """End all runtimes and everything they started, and what the tools have open."""
        with ExitStack() as ending:  # a failure does not keep the rest from ending
            for end in self.ends_with:
                ending.callback(end)
            for machine in self._machines.values():
                ending.callback(machine.close)
            for pool in (self.runtimes, *self._pools.values()):
                ending.callback(pool.terminate)
            for tool in list(self._tools.values()):
                ending.callback(tool.terminate)
            for close in self.closing:
                ending.callback(close)

    @property
    def on_input(self) -> OnInput | None:
        """Asked when code wants input: `(prompt, is_password) -> answer`, None for end of file."""
        ask = self.context.on_input
        return ask.args[0] if isinstance(ask, partial) and ask.func is call_user_code else ask

    @on_input.setter
    def on_input(self, ask: OnInput | None) -> None:
        self.context.on_input = None if ask is None else partial(call_user_code, ask)

    def detach(self) -> None:
        """Move the running block to the background."""
        self.runtimes.detach()

    @property
    def jobs(self) -> list[Job]:
        """Return the blocks that were moved to the background."""
        return self.runtimes.jobs

    # -- live variables ----------------------------------------------------------------------------------------------

    def variables(self, language: str | None = None) -> dict[str, list[Variable]]:
        """Return the live variables by language: of one, or of all that have any; BusyError while a block runs."""
        return self.runtimes.variables(language)

    def look(
        self,
        language: str,
        name: str,
        rows: Window = (0, 50),
        columns: Window = (0, 50),
        view: TableQuery | None = None,
        again: bool = False,
    ) -> Value:
        """Show a live value: a window of a table, a picture, or text.

        A view sorts, filters or exports a table; `again` says that nothing has changed since the last look at it.
        """
        runtime = self.runtimes.runtime(language)
        if view is None:
            return runtime.look(name, rows, columns)  # languages from elsewhere may know no views
        return runtime.look(name, rows, columns, view, again)

    def complete(self, language: str, code: str, cursor: int | None = None) -> Completions:
        """Return what could be typed at the cursor; nothing if the language is busy or has no runtime yet."""
        return self.runtimes.complete(language, code, cursor)

    def mark(self) -> Mark:
        """Mark this moment, to return to: the state of each language that can return, the directory, the exports."""
        return self.runtimes.mark()

    def go_back(self, mark: Mark) -> dict[str, Restored | NotRestorableError]:
        """Return to a moment, earlier or later; report the outcome for each language that was in another state."""
        return self.runtimes.go_back(mark)

    # -- what is shown ---------------------------------------------------------------------------------------------

    def show(self, what: Picture | str) -> None:
        """Put a picture or a text, for a tool, into the output of the calling block or of the notebook we run in."""
        if isinstance(what, str):
            data = {"text/plain": what}
        else:
            data = {"image/png": what.base64, "text/plain": f"<Picture {what.width} x {what.height}>"}
        ipython = sys.modules.get("IPython")
        notebook = ipython.get_ipython() if ipython is not None else None
        if (call := CALL.get()) is not None:
            call.tell({"event": "display", "data": data})
        elif notebook is not None:
            notebook.display_pub.publish(data)

    # -- what there is ---------------------------------------------------------------------------------------------

    def help(self, name: str = "") -> str:
        """List the tools, or with the name of a tool or a method, describe how to call it."""
        return help_on(name)

    def view(self, *args: Any, **kwargs: Any) -> Any:
        """Do the same as `display.view`."""
        return self.display.view(*args, **kwargs)

    def screenshot(self, *args: Any, **kwargs: Any) -> Any:
        """Do the same as `display.screenshot`."""
        return self.display.screenshot(*args, **kwargs)

    def _get_all_computer_tools_list(self) -> list[ComputerTool]:
        """List all tools, in the order of 0.4.3."""
        return [getattr(self, name) for name in present()]

    def _get_all_computer_tools_signature_and_description(self) -> list[str]:
        """List every method of every tool, each as `computer.mouse.scroll(clicks) # what it does`."""
        return [
            f"{each['signature']} # {each['description']}"
            for tool in self._get_all_computer_tools_list()
            for each in info(tool)["methods"]
        ]

    def _extract_tool_info(self, tool: ComputerTool) -> dict[str, Any]:
        """Describe a tool by its name, its signature lines and its purpose."""
        return info(tool)

    # -- as data ---------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the settings of this computer that JSON can represent, without secrets."""
        settings: dict[str, Any] = {}
        for name in [name for name, row in self.setting_rows.items() if not row.secret]:
            with suppress(TypeError, ValueError):
                json.dumps(getattr(self, name))
                settings[name] = getattr(self, name)
        return settings

    def load_dict(self, given: dict[str, Any]) -> None:
        """Apply settings from `to_dict`. Entries that are not settings are ignored."""
        for name, value in given.items():
            if name in self.setting_rows:
                setattr(self, name, value)


class _CodeCalls:
    """Answers the calls from code. What that takes is loaded at the first call.

    Runtimes hold it, and their threads must not keep a computer alive that nothing else uses.
    """

    def __init__(self, computer: Computer) -> None:
        self._reference = weakref.ref(computer)

    @property
    def _computer(self) -> Computer:
        computer = self._reference()
        if computer is None:
            raise InterpreterError("This computer is no longer used.")
        return computer

    def answer(self, call: ComputerCall) -> Frame:
        from interpreter.computer_api.code_calls import handle_call

        return handle_call(self._computer, call)

    def stand_in(self, call: Callable[[str, str], Any], name: str) -> Any:
        from interpreter.computer_api.code_calls import in_this_process

        return in_this_process(self._computer, call, name)


def block_chunks(framed: Generator[Chunk]) -> Generator[Chunk]:
    """Yield the chunks of a block as `computer.run` streams them: without flags and role."""
    with closing(framed):
        for chunk in framed:
            if not (chunk.get("start") or chunk.get("end")):
                yield {key: value for key, value in chunk.items() if key != "role"}  # type: ignore[misc]


def _until_end(chunks: Generator[Chunk]) -> Generator[Chunk]:
    """Yield the chunks of a block without the last active line, None, which 0.4.3 has only in a chat."""
    with closing(chunks):
        for chunk in chunks:
            if chunk.get("format") != "active_line" or chunk["content"] is not None:
                yield chunk


def _with_defaults(language: type) -> Language:
    """Return the class; one that does not extend BaseLanguage, as in 0.4.3, gets its defaults."""
    if issubclass(language, BaseLanguage):
        return language
    named = {} if hasattr(language, "name") else {"name": language.__name__}
    return type(language.__name__, (language, BaseLanguage), named)
